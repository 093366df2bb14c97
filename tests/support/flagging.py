"""Flags that are put on tokens of a made-up index."""

import pytest

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.community.flag_calls import SETTLED_S
from support.flagged import FLAGGER, TOKEN, FlagGround
from support.told_winners import BUYERS

CROWD = BUYERS[3:6]


DOWN_WEI = 10**16


NOW_WEI = 9 * 10**16


async def refused(ground: FlagGround, kind: str, token: str = TOKEN, wallet: str = FLAGGER) -> str:
    account = await ground.account(wallet=wallet, designation=f"mite-{wallet[-4:]}")  # type: ignore[arg-type]
    with pytest.raises(CallerFault) as raised:
        await ground.flag(account, kind, token)  # type: ignore[arg-type]
    assert raised.value.code == "bad_input"
    return raised.value.message


async def settle(ground: FlagGround) -> None:
    await ground.block(after_s=SETTLED_S)
    await ground.look()
