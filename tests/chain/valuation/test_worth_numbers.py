"""Holdings of tokens that may count blocks: worth the same where a node's simulations keep NUMBER still."""

from collections.abc import Callable

import asyncpg
import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.services.valuation import holdings
from roundtrip.services.valuation.holdings import HoldingToSell, SellValue, Valued, slot_of, worth
from support.dialects import DialectNode, Kind
from truth.dialect_table import KINDS, speaking
from truth.number_tokens import Maker

HELD_RAW, DAY_S = 10**21, 86_400
TOKENS: dict[str, tuple[Callable[[Maker], str], type[Valued]]] = {
    "a share behind a beacon": (lambda m: m.beacon_share(m.contract("share_logic")), SellValue),
    "a wait behind a proxy": (lambda m: m.proxy(m.contract("waiting_logic", 10)), SellValue),
    "a trap behind a proxy": (lambda m: m.proxy(m.contract("waiting_logic", 10**6)), RefusedCall),
}


async def valued_on(kind: Kind, rpc: SyncRpc, built: Built, pool: asyncpg.Pool, token: str) -> Valued:
    node = DialectNode(rpc.url, kind)
    async with node.running(), speaking(node, built, pool, KINDS[kind]) as ctx:
        head, address = ctx.heads.current(), Address(token)
        slot = await slot_of(ctx, head, address, Meter())
        (value,) = await worth(
            ctx, head, [HoldingToSell(address, HELD_RAW, slot=slot, held_s=DAY_S)], Meter()
        )
    return value


@pytest.mark.parametrize("name", TOKENS)
async def test_it_is_worth_the_same_on_every_kind_of_node(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, name: str
) -> None:
    make, kind_of_value = TOKENS[name]
    token = make(Maker(rpc, built))
    anvil = await valued_on("anvil", rpc, built, pool, token)
    assert isinstance(anvil, kind_of_value), anvil
    assert await valued_on("nitro", rpc, built, pool, token) == anvil


async def test_beyond_what_is_tried_it_stays_unknown(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "_MOST_COUNTING", 0)
    maker = Maker(rpc, built)
    value = await valued_on("nitro", rpc, built, pool, maker.beacon_share(maker.contract("share_logic")))
    assert isinstance(value, Missing)
    assert value.fault == "token"
