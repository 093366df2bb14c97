"""The bag of a wallet that really holds, asked with its own key: worth what it really gets."""

from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal

import pytest

from roundtrip.domain.base.types import WEI_PER_ETH, Address
from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip_development.devnet.demo.crowd import choose_tokens
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.doors import over_mcp_client
from support.ground import Ground
from support.holding_asked import copied
from support.keys import Person, random_context
from support.serving import service
from support.trader import Market, MarketTrader
from support.wallet import Wallet
from support.watching import SETTINGS, caller, operation

ETH = WEI_PER_ETH


class BuyingPerson(Wallet, Person):
    """Buys for real, and signs for its key with the same account."""

    def __init__(self, rpc: SyncRpc, contracts: dict[str, str]) -> None:
        Wallet.__init__(self, rpc, contracts, "a holder with a key", eth=50)
        self.shown, self.address = str(self._account.address), Address(self._account.address.lower())


@pytest.fixture
async def ground(
    ctx: Context, rpc: SyncRpc, built: Built, database_url: str, indexed_url: str
) -> AsyncIterator[Ground]:
    async with (
        copied(database_url, indexed_url) as url,
        connections.create_pool(url, min_size=1, max_size=6) as pool,
    ):
        yield Ground(random_context(replace(ctx, pool=pool), Clock()), rpc, built, url)


async def test_it_is_worth_what_selling_all_of_it_really_pays(ground: Ground, built: Built) -> None:
    holder = BuyingPerson(ground.rpc, built.contracts)
    launched = choose_tokens(built).dumped
    curve = MarketTrader(
        holder, built.contracts, Market(launched.token, "0x" + "0" * 40, curve=launched.curve)
    )
    plain, trap, capped = (built.tokens[key] for key in ("plain", "owner_only_sell", "max_transaction"))
    assert curve.buy(ETH // 10)
    for token in (plain, trap, capped):
        assert holder.buy(token, "weth", 3000, ETH // 5)
    await ground.follow()
    await ground.ctx.heads.refresh()
    async with service(ground.ctx, SETTINGS) as url:
        me = await caller(ground.ctx, url, holder)
        answer = await me.ask("my_bag")
        assert (await over_mcp_client(url, operation("my_bag"), {}, me.key)).answer == answer
        stranger = await caller(ground.ctx, url)
        assert (await stranger.ask("my_bag"))["holdings"] == []
    rows = {row["token"]["address"]: row for row in answer["holdings"]}
    assert rows.keys() == {launched.token, plain, trap, capped}
    held = {token: holder.tokens(token) for token in rows}
    assert {token: int(row["amountRaw"]) for token, row in rows.items()} == held
    assert not holder.sell(capped, "weth", 3000, held[capped]).ok
    part_raw = int(rows[capped]["partRaw"])
    assert (rows[capped]["sells"], rows[capped]["gainEth"]) == ("part", None)
    assert rows[capped]["reverts"].startswith("the token refused the transfer")
    assert held[capped] // 10 < part_raw < held[capped]
    assert (
        f"only a part sells at once, of those tried at most {part_raw * 100 // held[capped]}"
        in answer["text"]
    )
    fills = {
        launched.token: curve.sell(held[launched.token]),
        plain: holder.sell(plain, "weth", 3000, held[plain]),
        trap: holder.sell(trap, "weth", 3000, held[trap]),
        capped: holder.sell(capped, "weth", 3000, part_raw),
    }
    for token, fill in fills.items():
        assert rows[token]["sells"] == ("refused" if not fill.ok else "part" if token == capped else "yes")
        assert Decimal(rows[token]["worthEth"]) * ETH == fill.back_raw
    assert Decimal(answer["worthEth"]) * ETH == sum(fill.back_raw for fill in fills.values()) > 0
