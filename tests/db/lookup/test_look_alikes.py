"""Which older, larger or listed token another one looks like, by its symbol or name."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcNode
from roundtrip.chain.simulate.rates import Rates
from roundtrip.chain.simulate.token_facts import BEACON_SLOT
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.market.look_alikes import COUNTED_TRADERS, MIN_TRADERS, ListedToken
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.look_alikes import LookAlikeAnswer, find_look_alike
from roundtrip.store.index import tokens
from roundtrip.store.index.tokens import Label
from roundtrip.store.server import connections
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets import look_up
from support.made_index import MadeIndex, number_address
from support.told_blocks import START_S
from unit.venues.network import CONTRACTS as NETWORK

OLD, NEW, NVDA, GME = (number_address(n) for n in (0xA1, 0xA2, 0xB1, 0xB2))
WETH = NETWORK.weth
TABLES = (
    "facts.cursor, facts.token, facts.address, facts.launch, facts.pool, facts.position, facts.launch_quote"
)


@dataclass
class ProxyNode:
    """Answers for code and for the beacon slot of some contracts."""

    code: dict[Address, str] = field(default_factory=dict)
    beacon: dict[Address, str] = field(default_factory=dict)

    async def batch(self, calls: list[RpcCall], meter: Meter | None = None) -> list[msgspec.Raw]:
        answers = []
        for call in calls:
            found = self.code if call.method == "eth_getCode" else self.beacon
            assert call.method == "eth_getCode" or call.params[1] == BEACON_SLOT
            answers.append(found.get(cast(Address, call.params[0]), "0x"))
        return [msgspec.Raw(json.dumps(answer).encode()) for answer in answers]


@dataclass
class LookAlikeGround:
    """An index with tokens that a test names."""

    ctx: Context
    index: MadeIndex
    node: ProxyNode

    async def token(
        self, token: Address, symbol: str, at_s: int, traders: int, name: str = "", launched: bool = True
    ) -> None:
        if launched:
            await self.index.launch(token, number_address(0xDE), WETH, at_s=at_s, block_number=at_s)
        pool_id = await self.index.pool(token, WETH)
        await self.index.connection.execute("UPDATE facts.pool SET at_s = $1 WHERE id = $2", at_s, pool_id)
        for number in range(traders):
            await self.index.position(number_address(0xF000 + number), token, buys=1)
        await tokens.keep(self.index.connection, token, symbol, name, 18, 1, at_s)

    async def ask(
        self, token: Address, symbol: str | None, name: str | None = None
    ) -> LookAlikeAnswer | None:
        return await find_look_alike(self.ctx, Label(token, symbol, name, None, None), Meter())


@pytest.fixture
async def looks(url: str, index: Connection) -> AsyncIterator[LookAlikeGround]:
    await index.execute(f"TRUNCATE {TABLES} RESTART IDENTITY")
    made, node = MadeIndex(index), ProxyNode()
    await made.begin(0, 1_000)
    head = SimpleNamespace(block=BlockRef(1_000, "0x" + "77" * 32, START_S))
    async with connections.create_pool(url, min_size=1, max_size=2) as pool:
        ctx = Context(
            chain_id=4663,
            contracts=NETWORK,
            node=cast(RpcNode, node),
            heads=cast(Heads, SimpleNamespace(current=lambda: head)),
            policy=POLICY,
            pool=pool,
            rates=cast(Rates, None),
            now_s=lambda: float(START_S),
            entropy=lambda: bytes(32),
            stock_tokens=(ListedToken("NVDA", NVDA),),
        )
        yield LookAlikeGround(ctx, made, node)


@pytest.mark.parametrize("launched", [True, False])
@pytest.mark.parametrize(
    ("symbol", "is_equal", "verb"), [("pepe", True, "is"), ("P\u0415P\u0415", False, "looks like")]
)
async def test_an_older_and_larger_token_is_named(
    looks: LookAlikeGround, symbol: str, is_equal: bool, verb: str, launched: bool
) -> None:
    await looks.token(OLD, "PEPE", 100, MIN_TRADERS, launched=launched)
    await looks.token(NEW, symbol, 200, 1)
    found = await looks.ask(NEW, symbol)
    assert found is not None
    assert (found.original.address, found.kind, found.by, found.is_equal) == (
        OLD,
        "older",
        "symbol",
        is_equal,
    )
    shown = f'Its symbol {verb} that of "PEPE" ({OLD}), an older and larger token. It is not that token.'
    assert found.text == shown
    assert await looks.ask(OLD, "PEPE") is None


async def test_a_name_is_compared_with_names(looks: LookAlikeGround) -> None:
    await looks.token(OLD, "PPP", 100, MIN_TRADERS, name="Pepe the Frog")
    await looks.token(NEW, "QQQ", 200, 1, name="P\u0435pe the Frog")
    found = await looks.ask(NEW, "QQQ", "P\u0435pe the Frog")
    assert found is not None
    assert (found.original.address, found.by, found.is_equal) == (OLD, "name", False)
    assert await looks.ask(NEW, "Pepe the Frog", "QQQ") is None


async def test_a_younger_or_smaller_token_is_not_named(looks: LookAlikeGround) -> None:
    await looks.token(OLD, "PEPE", 100, MIN_TRADERS)
    await looks.token(NEW, "PEPE", 200, MIN_TRADERS + 1)
    assert await looks.ask(NEW, "PEPE") is None
    assert await looks.ask(OLD, "PEPE") is None


async def test_a_token_that_the_index_does_not_know_is_the_youngest(looks: LookAlikeGround) -> None:
    await looks.token(OLD, "PEPE", 100, MIN_TRADERS)
    found = await looks.ask(NEW, "PEPE")
    assert found is not None
    assert found.original.address == OLD


async def test_clones_do_not_hide_the_original(looks: LookAlikeGround) -> None:
    """Of hundreds of clones those launched first are compared."""
    await looks.token(OLD, "PEPE", 100, MIN_TRADERS)
    for number in range(3 * look_up.MAX_LAUNCHED):
        await looks.token(number_address(0x9000 + number), "PEPE", 200 + number, 0)
    found = await looks.ask(NEW, "PEPE")
    assert found is not None
    assert found.original.address == OLD


@pytest.mark.parametrize(
    ("symbol", "original", "kind"),
    [
        ("NVD\u0410", NVDA, "stock_token"),
        ("U\u0405DG", NETWORK.usdg, "money"),
        ("weth", WETH, "money"),
        ("GME", GME, "quote"),
    ],
)
async def test_a_listed_token_is_named_whatever_its_age(
    looks: LookAlikeGround, symbol: str, original: Address, kind: str
) -> None:
    await looks.token(NEW, symbol, 200, 3 * MIN_TRADERS)
    await looks.index.connection.execute(
        "INSERT INTO facts.launch_quote VALUES ($1, 1)", await looks.index.id_of(GME)
    )
    await tokens.keep(looks.index.connection, GME, "GME", "GameStop", 18, 1, 500)
    found = await looks.ask(NEW, symbol)
    assert found is not None
    assert (found.original.address, found.kind) == (original, kind)
    assert await looks.ask(original, symbol) is None


async def test_a_listed_token_is_named_without_an_index(looks: LookAlikeGround) -> None:
    await looks.index.connection.execute("TRUNCATE facts.cursor")
    assert await looks.ask(NEW, "NVDA") is not None
    assert await looks.ask(NEW, "PEPE") is None


@pytest.mark.parametrize(("code", "beacon", "is_issuers"), [("0x60", "0x11", True), ("0x61", "0x11", False)])
async def test_a_proxy_of_the_issuer_passes_for_no_older_token(
    looks: LookAlikeGround, code: str, beacon: str, is_issuers: bool
) -> None:
    """The beacon alone proves nothing: any contract can name it."""
    looks.node.code = {NVDA: "0x60", NEW: code}
    looks.node.beacon = {NVDA: "0x11", NEW: beacon}
    await looks.token(OLD, "GME", 100, MIN_TRADERS)
    await looks.token(NEW, "GME", 200, 0)
    assert (await looks.ask(NEW, "GME") is None) is is_issuers
    # The listed one is the only one of its symbol.
    assert await looks.ask(NEW, "NVDA") is not None


async def test_a_symbol_without_anything_visible_looks_like_none(looks: LookAlikeGround) -> None:
    await looks.token(OLD, "\u200b", 100, MIN_TRADERS, name="")
    assert await looks.ask(NEW, "\u200b", "") is None
    assert await looks.ask(NEW, None, None) is None


async def test_of_two_that_are_not_counted_further_none_is_called_larger(looks: LookAlikeGround) -> None:
    for token, at_s in ((OLD, 100), (NEW, 200)):
        await looks.token(token, "PEPE", at_s, 0)
        await looks.index.connection.execute(
            "INSERT INTO facts.position"
            " SELECT wallet, $1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1"
            " FROM generate_series(1, $2) AS wallet",
            await looks.index.id_of(token),
            COUNTED_TRADERS + 1,
        )
    found = await looks.ask(NEW, "PEPE")
    assert found is not None
    assert "an older token; at least 1,000 wallets traded each of the two." in found.text
