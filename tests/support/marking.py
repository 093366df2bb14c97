"""Accounts that name and mark wallets, and what everybody is told of it."""

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address
from roundtrip.services.community.mark_wallet import Marked, MarkParams, mark_wallet
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.wallets.names import WalletNames, wallet_names
from support.flagged import FlagGround
from support.told_winners import BUYERS

TARGET = BUYERS[9]
STRANGERS = BUYERS[:3]
"""Each with a purse of his own; all have traded."""


async def marked(ground: FlagGround, account: Account, wallet: Address = TARGET, **said: object) -> Marked:
    params = MarkParams(wallet, **said)  # type: ignore[arg-type]
    return (await mark_wallet(ground.ctx, params, account)).answer


async def all_say(
    ground: FlagGround, *wallets: Address, about: Address = TARGET, days_old: float = 30, **said: object
) -> None:
    """An account of each wallet says it."""
    for wallet in wallets:
        account = await ground.account(wallet, f"mite-{wallet[-6:]}", days_old)
        await marked(ground, account, about, **said)


async def read_names(ground: FlagGround) -> WalletNames:
    """Once the job has counted."""
    await ground.count_names()
    return (await wallet_names(ground.ctx, Nothing())).answer
