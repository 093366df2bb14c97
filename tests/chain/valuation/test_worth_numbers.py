"""Holdings of tokens that may count blocks: worth the same where a node's simulations keep NUMBER still."""

from collections.abc import Callable
from dataclasses import replace

import asyncpg
import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.valuation import holdings
from roundtrip.services.valuation.holdings import HoldingToSell, SellValue, Valued, slot_of, worth
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
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
    (value,) = await all_valued_on(kind, rpc, built, pool, {token: HELD_RAW})
    return value


async def all_valued_on(
    kind: Kind, rpc: SyncRpc, built: Built, pool: asyncpg.Pool, held: dict[str, int]
) -> list[Valued]:
    """The worth of holdings, by token and amount."""
    node = DialectNode(rpc.url, kind)
    async with node.running(), speaking(node, built, pool, KINDS[kind]) as ctx:
        head = ctx.heads.current()
        holdings_to_sell = [
            HoldingToSell(
                Address(token),
                amount_raw,
                slot=await slot_of(ctx, head, Address(token), Meter()),
                held_s=DAY_S,
            )
            for token, amount_raw in held.items()
        ]
        return await worth(ctx, head, holdings_to_sell, Meter())


@pytest.mark.parametrize("name", TOKENS)
async def test_it_is_worth_the_same_on_every_kind_of_node(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, name: str
) -> None:
    make, kind_of_value = TOKENS[name]
    token = make(Maker(rpc, built))
    anvil = await valued_on("anvil", rpc, built, pool, token)
    assert isinstance(anvil, kind_of_value), anvil
    nitro = await valued_on("nitro", rpc, built, pool, token)
    if isinstance(nitro, RefusedCall) and isinstance(anvil, RefusedCall):
        # Its gas has the data fee, of which some is left where another block producer stands for NUMBER.
        assert nitro.gas >= anvil.gas
        nitro = replace(nitro, gas=anvil.gas)
    assert nitro == anvil


async def test_beyond_what_is_tried_it_stays_unknown(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "_MAX_COUNTING", 0)
    maker = Maker(rpc, built)
    value = await valued_on("nitro", rpc, built, pool, maker.beacon_share(maker.contract("share_logic")))
    assert isinstance(value, Missing)
    assert value.fault == "token"


async def test_the_largest_holdings_come_first(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "_MAX_COUNTING", 1)
    maker = Maker(rpc, built)
    small, large = (maker.beacon_share(maker.contract("share_logic")) for _ in range(2))
    values = await all_valued_on("nitro", rpc, built, pool, {small: HELD_RAW // 10, large: HELD_RAW})
    assert [type(value) for value in values] == [Missing, SellValue]


async def test_a_full_service_leaves_only_these_tokens_unknown(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> BuyRoundResult:
        raise ServiceFull("busy", "This service is full.", 1)

    monkeypatch.setattr(holdings, "start_check", refuse)
    maker = Maker(rpc, built)
    share = maker.beacon_share(maker.contract("share_logic"))
    plain = built.tokens["plain"]
    values = await all_valued_on("nitro", rpc, built, pool, {share: HELD_RAW, plain: HELD_RAW})
    assert [type(value) for value in values] == [Missing, SellValue]
