"""A bag that is really held, whose tokens really go bad: what my_bag says of it, and what the guard tells."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import WEI_PER_ETH, Address
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.jobs.alerts.loop import AlertLoop
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.portfolio.bag import BagRow, MyBag, bag_of
from roundtrip.services.portfolio.bag_page import bag_past
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.valuation.holdings import HoldingToSell, PartValue, SellValue, Valued
from roundtrip.services.watch.inbox import inbox, unwatch_token, watch_token
from roundtrip.store.accounts import accounts
from roundtrip.store.server import connections
from roundtrip.venues import amm_v3
from roundtrip_development.devnet import launchpad
from roundtrip_development.devnet.deploy import put_token
from roundtrip_development.devnet.launchpad import CurveToken
from roundtrip_development.devnet.stories import Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.actors import code_of
from support.databases import connected
from support.fixtures import context_for
from support.ground import Ground, view
from support.holding_asked import copied
from support.indexing import cursor
from support.wallet import Wallet, calldata

ETH = WEI_PER_ETH
WAIT_S = 60
_DECREASE = "decreaseLiquidity((uint256,uint128,uint256,uint256,uint256))"


@dataclass
class Bag:
    """An account, and its wallet on the chain."""

    ground: Ground
    ctx: Context
    account: Account
    wallet: Wallet
    later_s: float = 0.0
    asked: list[Sequence[HoldingToSell]] = field(default_factory=list)
    valued: dict[str, Valued | PartValue] = field(default_factory=dict)

    def now(self) -> Context:
        now_s = self.ctx.now_s() + self.later_s
        return replace(self.ctx, now_s=lambda: now_s)

    async def follows(self) -> None:
        stands = (await cursor(self.ground.url)).block
        newest = self.ground.rpc.call("eth_getBlockByNumber", "latest", False)
        if stands.hash != newest["hash"]:
            await self.ground.follow()
        await self.ctx.heads.refresh()

    async def guard_rows(self) -> list[dict[str, Any]]:
        """What the inbox has of the guard, when all was read, the oldest first."""
        await self.follows()
        alerts = AlertLoop(self.now())
        while await alerts.step():
            pass
        rows = (await inbox(self.now(), Nothing(), self.account)).answer.rows
        return [{name: getattr(row, name) for name in row.__struct_fields__} for row in reversed(rows)]

    async def work(self) -> None:
        """The job, and the checks that it or anybody wished for."""
        await self.follows()
        async with self.ctx.pool.acquire() as connection:
            await connection.execute("DELETE FROM jobs.job WHERE kind NOT IN ('bag', 'recheck', 'deliver')")
            await connection.execute(
                "INSERT INTO jobs.job (kind, key, run_at) VALUES ('bag', 'held', to_timestamp(0))"
                " ON CONFLICT (kind, key) DO UPDATE SET run_at = excluded.run_at"
            )
        kinds = {name: KINDS[name] for name in ("bag", "recheck")}
        for _ in range(2):
            async with asyncio.timeout(WAIT_S):
                await asyncio.gather(*await Worker(self.now(), kinds, lambda: 0.5).take())

    async def checked(self, token: str, deep: str = "0") -> None:
        await self.ctx.heads.refresh()
        await check(self.now(), CheckParams(token, deep))

    async def check_later(self, token: str, *more_s: int) -> None:
        """Checks the token so much later, again and again."""
        for added_s in more_s:
            self.later_s += added_s
            await check(self.now(), CheckParams(token))

    async def told(self) -> list[int]:
        """The accounts that were alerted of a verdict, in order."""
        rows = await self.ctx.pool.fetch(
            "SELECT account_id FROM accounts.alert WHERE verb = 'verdict' ORDER BY id"
        )
        return [row["account_id"] for row in rows]

    async def shown(self) -> MyBag:
        await self.follows()
        return (await bag_of(self.ctx, Address(self.wallet.address), self._values)).answer

    async def shown_at_once(self) -> MyBag:
        """Before the index reads what was sent."""
        return (await bag_of(self.ctx, Address(self.wallet.address), self._values)).answer

    async def row(self, token: str) -> BagRow:
        (found,) = [row for row in (await self.shown()).holdings if row.token.address == token]
        return found

    async def _values(
        self, ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], meter: Meter
    ) -> list[Valued | PartValue]:
        self.asked.append(holdings)
        return [self.valued.get(one.token, Missing("node", "not asked here")) for one in holdings]


@pytest.fixture
async def bag(
    ctx: Context, rpc: SyncRpc, built: Built, database_url: str, indexed_url: str
) -> AsyncIterator[Bag]:
    async with (
        copied(database_url, indexed_url) as url,
        connections.create_pool(url, min_size=1, max_size=6) as pool,
    ):
        own, ground = replace(ctx, pool=pool), Ground(ctx, rpc, built, url)
        wallet = Wallet(rpc, built.contracts, "a bag", eth=50)
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute("TRUNCATE jobs.job, facts.evidence, accounts.account CASCADE")
            made = await accounts.lock_account(
                connection, Address(wallet.address), ["mite-bagg"], _at(ctx), ctx.heads.last_number()
            )
        while await AlertLoop(own).step():
            pass
        yield Bag(ground, own, made.account, wallet)


def _at(ctx: Context) -> datetime:
    return datetime.fromtimestamp(ctx.now_s(), UTC)


def a_launch(bag: Bag, salt: int) -> CurveToken:
    """Whose deployer bought a good part of it."""
    made = bag.ground.launch(salt)
    launchpad.curve_buy(bag.ground.me, made, ETH)
    return made


def buy_on_curve(bag: Bag, made: CurveToken, wei: int) -> int:
    data = calldata("buy(uint256,uint256,address)", wei, 0, bag.wallet.address)
    assert bag.wallet.send(made.curve, data, wei).ok
    return bag.wallet.tokens(made.token)


def a_pool_token(bag: Bag, source: str) -> str:
    """A token of ours whose owner may turn selling off, in a pool that the same one filled."""
    me, contracts = bag.ground.me, bag.ground.built.contracts
    me.send(contracts["weth"], calldata("deposit()"), 20 * ETH)
    me.send(contracts["weth"], calldata("approve(address,uint256)", contracts["v3PositionManager"], 20 * ETH))
    token = put_token(me, contracts, Story("bag", "", source, "Bag", "BAG"), code_of(source))
    me.check_receipts()
    return token


def drain(bag: Bag, share: float) -> None:
    """The pool's owner takes a part of what it put in last."""
    positions = bag.ground.built.contracts["v3PositionManager"]
    rpc = bag.ground.rpc
    number = view(rpc, positions, "totalSupply()")
    words = rpc.call("eth_call", {"to": positions, "data": calldata("positions(uint256)", number)}, "latest")[
        2:
    ]
    liquidity = int(words[7 * 64 : 8 * 64], 16)
    data = calldata(_DECREASE, (number, int(liquidity * share), 0, 0, 2**40))
    bag.ground.me.receipt(bag.ground.me.send(positions, data))


async def test_a_deployer_that_sells_is_told_to_whoever_holds(bag: Bag) -> None:
    made, other = a_launch(bag, 71), a_launch(bag, 72)
    buy_on_curve(bag, made, ETH // 10)
    held = view(bag.ground.rpc, made.token, "balanceOf(address)", bag.ground.me.account)
    assert await bag.guard_rows() == []
    launchpad.curve_sell(bag.ground.me, made, held // 2)
    launchpad.curve_sell(bag.ground.me, other, held // 2)
    (row,) = await bag.guard_rows()
    assert (row["kind"], row["verb"], row["who"], row["token"]) == (
        "bag_guard",
        "selling",
        "deployer",
        made.token,
    )
    assert row["wallet"] == bag.ground.me.account
    assert row["pct"] == pytest.approx(held // 2 / 10**25, rel=1e-3)
    assert row["eth"] > 0.1
    assert "which you hold, sold" in row["text"]
    assert len(await bag.guard_rows()) == 1


async def test_liquidity_that_leaves_is_told_to_whoever_holds(bag: Bag) -> None:
    token = a_pool_token(bag, "tokens/plain.vy")
    assert bag.wallet.buy(token, "weth", 3000, ETH // 10)
    assert await bag.guard_rows() == []
    drain(bag, 0.04)
    assert await bag.guard_rows() == []
    drain(bag, 0.5)
    (row,) = await bag.guard_rows()
    assert (row["kind"], row["verb"], row["token"]) == ("bag_guard", "draining", token)
    assert row["pct"] == pytest.approx(50, rel=0.01)
    changes = (await bag.row(token)).changes
    assert changes.liquidity_left_bps == pytest.approx(5200, abs=2)
    assert changes.deployer is None
    # A pool that is older than what is kept of changes may have more.
    await bag.ctx.pool.execute(
        "INSERT INTO facts.pool (at, kind, token_id, quote_id, in_money_from, fee_pips, tick_spacing,"
        " block_number, log_index, at_s) SELECT decode(repeat('0d', 20), 'hex'), kind, token_id, quote_id,"
        " in_money_from, 100, 1, block_number, log_index, 0 FROM facts.pool JOIN facts.address AS token"
        " ON token.id = token_id WHERE token.address = $1",
        bytes.fromhex(token[2:]),
    )
    assert (await bag.row(token)).changes.liquidity_left_bps is None


async def test_a_verdict_that_turns_is_told_once_two_checks_say_so(bag: Bag) -> None:
    token = a_pool_token(bag, "zoo/pausable_owner.vy")
    await bag.checked(token)
    assert bag.wallet.buy(token, "weth", 3000, ETH // 10)
    await bag.work()
    before = (await bag.row(token)).changes
    assert before.then is not None
    assert before.then.code == "ok"
    bag.ground.me.receipt(bag.ground.me.send(token, calldata("setSelling(bool)", False)))
    bag.later_s = 400
    await bag.work()
    await bag.work()
    assert await bag.guard_rows() == []
    bag.later_s = 415
    await bag.work()
    await bag.work()
    (row,) = await bag.guard_rows()
    assert (row["kind"], row["verb"], row["token"], row["block"]) == ("bag_guard", "verdict", token, None)
    assert f": its verdict changed from {before.then.level} (ok) to danger (cannot_sell). " in row["text"]
    assert row["text"].count("sell") > 1
    changes = (await bag.row(token)).changes
    assert (changes.then, changes.now and changes.now.code) == (before.then, "cannot_sell")
    past = (await bag_past(bag.now(), Nothing(), bag.account)).answer
    (own,) = past.tokens
    assert (own.address, past.is_part, own.values[0]) == (token, False, "0")
    assert 0.09 < float(own.values[-1] or 0) < 0.11
    (guard,) = past.guards
    assert (guard.is_guarded, guard.is_doubted, guard.verdict and guard.verdict.code) == (
        True,
        False,
        "cannot_sell",
    )
    assert guard.told_at is not None
    bag.later_s = 900
    await bag.work()
    await bag.work()
    assert len(await bag.guard_rows()) == 1
    # It is turned on again: that is told only an hour after.
    bag.ground.me.receipt(bag.ground.me.send(token, calldata("setSelling(bool)", True)))
    for bag.later_s in (1300, 1700, 2100):
        await bag.work()
        await bag.work()
    assert len(await bag.guard_rows()) == 1
    bag.later_s = 5000
    await bag.work()
    await bag.work()
    rows = await bag.guard_rows()
    assert [row["verb"] for row in rows] == ["verdict", "verdict"]
    assert f": its verdict changed from danger (cannot_sell) to {before.then.level}" in rows[1]["text"]


async def test_a_token_that_nobody_checked_before_the_buy_alerts_too(bag: Bag) -> None:
    token = a_pool_token(bag, "zoo/pausable_owner.vy")
    assert bag.wallet.buy(token, "weth", 3000, ETH // 10)
    bag.ground.me.receipt(bag.ground.me.send(token, calldata("setSelling(bool)", False)))
    await bag.follows()
    # The local chain's clock stands apart from this machine's.
    await bag.ctx.pool.execute("UPDATE facts.position SET last_s = $1", int(bag.ctx.now_s()))
    for bag.later_s in (2, 20, 40):
        await bag.work()
        await bag.work()
    (row,) = await bag.guard_rows()
    assert (row["verb"], row["token"]) == ("verdict", token)
    assert f"You hold {token}: its first checks say danger (cannot_sell). " in row["text"]


async def test_a_token_that_turns_between_a_buy_and_the_first_run_alerts(bag: Bag) -> None:
    token = a_pool_token(bag, "zoo/pausable_owner.vy")
    await bag.checked(token)
    assert bag.wallet.buy(token, "weth", 3000, ETH // 10)
    bag.ground.me.receipt(bag.ground.me.send(token, calldata("setSelling(bool)", False)))
    for bag.later_s in (2, 13):
        await bag.ctx.heads.refresh()
        await check(bag.now(), CheckParams(token))
    await bag.work()
    (row,) = await bag.guard_rows()
    assert (row["verb"], row["token"]) == ("verdict", token)
    assert "to danger (cannot_sell). " in row["text"]


async def test_who_buys_or_watches_while_it_sells_again_is_told_that_it_shut(bag: Bag) -> None:
    """Others were told before: a better verdict waits an hour, and the newcomers never saw a bad one."""
    token = a_pool_token(bag, "zoo/pausable_owner.vy")
    other = Wallet(bag.ground.rpc, bag.ground.built.contracts, "a later bag", eth=50)

    async def shut(is_shut: bool) -> None:
        bag.ground.me.receipt(bag.ground.me.send(token, calldata("setSelling(bool)", not is_shut)))
        await bag.ctx.heads.refresh()

    accounts_made = []
    async with bag.ctx.pool.acquire() as connection, connection.transaction():
        for address in (other.address, "0x" + "ab" * 20):
            made = await accounts.lock_account(
                connection,
                Address(address),
                [f"mite-{address[2:6]}"],
                _at(bag.ctx),
                bag.ctx.heads.last_number(),
            )
            accounts_made.append(made.account)
    await bag.checked(token)
    assert bag.wallet.buy(token, "weth", 3000, ETH // 10)
    await shut(True)
    await bag.check_later(token, 2, 11)
    await bag.work()
    first = bag.account.id
    assert await bag.told() == [first]
    await shut(False)
    await bag.check_later(token, 2)
    assert other.buy(token, "weth", 3000, ETH // 10)
    await watch_token(bag.now(), TokenParams(token), accounts_made[1])
    await bag.follows()
    # The chain's clock is not the service's.
    await bag.ctx.pool.execute(
        "UPDATE facts.position AS own SET last_s = $2 FROM facts.address AS wallet"
        " WHERE wallet.id = own.wallet_id AND wallet.address = $1",
        bytes.fromhex(other.address[2:]),
        int(bag.now().now_s()) + 1,
    )
    await shut(True)
    await bag.check_later(token, 2, 11)
    await bag.work()
    assert await bag.told() == [first, *(account.id for account in accounts_made)]
    await bag.check_later(token, 20)
    await bag.work()
    assert len(await bag.told()) == 3
    # Whom the last alert told of a warning is told of the danger, once.
    await bag.ctx.pool.execute("UPDATE accounts.alert SET level = 'warn' WHERE account_id <> $1", first)
    for _ in range(2):
        await bag.check_later(token, 2, 11)
        await bag.work()
    assert (await bag.told())[3:] == [account.id for account in accounts_made]
    rows = await bag.ctx.pool.fetch("SELECT said, level FROM accounts.alert ORDER BY id DESC LIMIT 2")
    assert all(": its verdict changed from warn to danger (cannot_sell). " in row["said"] for row in rows)
    assert {row["level"] for row in rows} == {"danger"}


async def test_a_token_that_is_only_watched_is_told_of_as_well(bag: Bag) -> None:
    token = a_pool_token(bag, "zoo/pausable_owner.vy")
    await bag.checked(token)
    watched = (await watch_token(bag.now(), TokenParams(token), bag.account)).answer
    assert [(row.token.address, row.verdict and row.verdict.code) for row in watched.tokens] == [
        (token, "ok")
    ]
    # It stops selling before the guard ever looked at it.
    bag.ground.me.receipt(bag.ground.me.send(token, calldata("setSelling(bool)", False)))
    for bag.later_s in (400, 415, 800, 815):
        await bag.work()
        await bag.work()
    (alert,) = await bag.guard_rows()
    assert (alert["kind"], alert["verb"], alert["token"]) == ("bag_guard", "verdict", token)
    assert alert["text"].startswith(f"You watch {token}: its verdict changed from ")
    await unwatch_token(bag.now(), TokenParams(token), bag.account)
    bag.ground.me.receipt(bag.ground.me.send(token, calldata("setSelling(bool)", True)))
    for bag.later_s in (5000, 5400):
        await bag.work()
        await bag.work()
    assert len(await bag.guard_rows()) == 1
    assert await bag.ctx.pool.fetchval("SELECT count(*) FROM accounts.bag_verdict") == 0


async def test_checks_are_wished_for_within_a_budget_and_none_without_a_node(bag: Bag, built: Built) -> None:
    keys = ("plain", "six_decimals", "v4_eth", "two_pools")
    for key, version, quote in zip(keys, (3, 3, 4, 3), ("weth", "weth", "eth", "weth"), strict=True):
        assert bag.wallet.buy(built.tokens[key], quote, 3000, ETH // 10, version)
    await bag.follows()
    pool = bag.ctx.pool
    await pool.execute(
        "INSERT INTO jobs.job (kind, key, run_at) SELECT 'recheck', n::text, to_timestamp(0)"
        " FROM generate_series(1, 5) AS n"
    )

    async def wished(ctx: Context) -> list[str]:
        await pool.execute(
            "INSERT INTO jobs.job (kind, key, run_at) VALUES ('bag', 'held', to_timestamp(0))"
            " ON CONFLICT (kind, key) DO UPDATE SET run_at = excluded.run_at"
        )
        await asyncio.gather(*await Worker(ctx, {"bag": KINDS["bag"]}, lambda: 0.5).take())
        rows = await pool.fetch("SELECT key FROM jobs.job WHERE kind = 'recheck' AND key LIKE '0x%'")
        return [row["key"] for row in rows]

    async with context_for("http://127.0.0.1:9", built, pool) as deaf:
        assert await wished(deaf) == []
    assert len(await wished(bag.now())) == 3
    # Those that the sync enqueued take no room: anybody can bring them about.
    await pool.execute("DELETE FROM jobs.job WHERE kind = 'recheck' AND key LIKE '0x%'")
    await pool.execute("UPDATE jobs.job SET payload = '{\"chain\": true}' WHERE kind = 'recheck'")
    assert len(await wished(bag.now())) == 4
    await pool.execute("DELETE FROM jobs.job WHERE kind = 'recheck'")
    await bag.checked(built.tokens["plain"], deep="1")
    await bag.checked(built.tokens["two_pools"])
    assert set(await wished(bag.now())) == {built.tokens[key] for key in keys[1:]}
    row, *_ = await pool.fetch("SELECT payload FROM jobs.job WHERE kind = 'recheck'")
    assert json.loads(row["payload"]) == {"deep": True}
    async with connected(bag.ground.url) as connection:
        known = await connection.fetch("SELECT level FROM accounts.bag_verdict")
    assert len(known) == 2


async def test_what_is_held_stands_with_its_cost_and_what_it_would_bring(bag: Bag) -> None:
    made = a_launch(bag, 73)
    got = buy_on_curve(bag, made, ETH // 5)
    token = a_pool_token(bag, "tokens/plain.vy")
    assert bag.wallet.buy(token, "weth", 3000, ETH // 10)
    sold = bag.wallet.sell(token, "weth", 3000, bag.wallet.tokens(token) // 2)
    place = amm_v3.pool(Address(token), bag.ctx.contracts.weth, 3000, bag.ctx.contracts)
    bag.valued = {token: SellValue(ETH // 10, place), made.token: RefusedCall("sell", "no\u202e way", 1)}
    found = await bag.shown()
    assert [(one.token, one.amount_raw, one.seller) for one in bag.asked[-1]] == [
        (row.token.address, int(row.amount_raw or 0), bag.wallet.address) for row in found.holdings
    ]
    rows = {row.token.address: row for row in found.holdings}
    first, second = rows[token], rows[made.token]
    assert first.amount_raw == str(bag.wallet.tokens(token))
    assert (first.worth_eth, first.cost_eth, first.gain_eth, first.gain_bps) == (
        "0.1",
        "0.05",
        "0.05",
        10_000,
    )
    assert first.realised_eth is not None
    assert float(first.realised_eth) == pytest.approx(sold.back_raw / ETH - 0.05, abs=1e-9)
    assert (second.amount_raw, second.bought_raw, second.cost_eth) == (str(got), str(got), "0.2")
    assert (second.sells, second.reverts, second.worth_eth, second.gain_bps) == (
        "refused",
        "no way",
        "0",
        -10_000,
    )
    assert (found.worth_eth, found.gain_eth, found.unvalued) == ("0.1", "-0.15", 0)
    assert "you cannot sell it now" in found.text
    capped = PartValue(got // 4, SellValue(ETH // 25, place), RefusedCall("sell", "max transaction", 1))
    bag.valued[made.token] = capped
    found = await bag.shown()
    (second,) = [row for row in found.holdings if row.token.address == made.token]
    assert (second.sells, second.part_raw, second.worth_eth) == ("part", str(got // 4), "0.04")
    assert (second.reverts, second.gain_eth, found.gain_eth) == ("max transaction", None, "0.05")
    assert "only a part sells at once, of those tried at most 2" in found.text
    assert ", of 1 token only a part, they bring 0.14 eth in all." in found.text
    assert "you cannot sell it now" not in found.text
    held = view(bag.ground.rpc, made.token, "balanceOf(address)", bag.ground.me.account)
    launchpad.curve_sell(bag.ground.me, made, held // 4)
    deployer = (await bag.row(made.token)).changes.deployer
    assert deployer is not None
    assert (deployer.address, deployer.sold_raw) == (bag.ground.me.account, str(held // 4))
    assert deployer.sold_bps == pytest.approx(2500, abs=1)


async def test_what_was_given_is_held_and_what_was_given_away_is_not(bag: Bag) -> None:
    made, gone = a_launch(bag, 74), a_launch(bag, 75)
    some = 10**24
    bag.ground.me.send(made.token, calldata("transfer(address,uint256)", bag.wallet.address, some))
    held = buy_on_curve(bag, gone, ETH // 10)
    bag.wallet.send(gone.token, calldata("transfer(address,uint256)", bag.ground.me.account, held))
    found = await bag.shown()
    (row,) = found.holdings
    assert (row.token.address, row.amount_raw, row.bought_raw) == (made.token, str(some), "0")
    assert (row.cost_eth, row.gain_eth, row.realised_eth, row.sells) == (None, None, None, "unknown")
    assert (found.gone, found.unvalued, found.worth_eth) == (1, 1, None)


async def test_the_gain_on_tokens_of_which_a_part_is_gone_is_not_known(bag: Bag) -> None:
    """Whether they were given away, or a tax kept them, the trades do not say."""
    made = a_launch(bag, 77)
    held = buy_on_curve(bag, made, ETH // 10)
    place = amm_v3.pool(Address(made.token), bag.ctx.contracts.weth, 3000, bag.ctx.contracts)
    bag.valued = {made.token: SellValue(ETH // 20, place)}

    async def give_away(raw: int) -> MyBag:
        bag.wallet.send(made.token, calldata("transfer(address,uint256)", bag.ground.me.account, raw))
        return await bag.shown()

    found = await give_away(held // 2000)
    assert found.gain_eth is not None
    assert "it holds less than it bought" not in found.text
    found = await give_away(held // 2)
    (row,) = found.holdings
    assert "Of 1 token it holds less than it bought" in found.text
    assert (row.cost_eth, row.worth_eth, found.gain_eth) == ("0.1", "0.05", None)


@pytest.mark.parametrize("deaf", ["the node", "the values"])
async def test_what_the_chain_does_not_answer_is_null_and_said(bag: Bag, built: Built, deaf: str) -> None:
    token = built.tokens["plain"]
    assert bag.wallet.buy(token, "weth", 3000, ETH // 10)
    await bag.follows()

    async def values(
        ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], meter: Meter
    ) -> list[Valued]:
        raise NodeFault("away")

    wallet = Address(bag.wallet.address)
    if deaf == "the values":
        answered = await bag_of(bag.ctx, wallet, values)
    else:
        async with context_for("http://127.0.0.1:9", built, bag.ctx.pool) as ctx:
            answered = await bag_of(ctx, wallet, values)
    found = answered.answer
    (row,) = found.holdings
    assert (row.sells, row.worth_eth, row.gain_eth) == ("unknown", None, None)
    assert (row.amount_raw is None, found.at_block is None) == (deaf == "the node",) * 2
    assert (found.worth_eth, found.gain_eth, found.unvalued) == (None, None, 1)
    assert "could not find out" in found.text
    assert answered.counted == (deaf == "the values")


async def test_a_wallet_without_tokens_holds_none(bag: Bag) -> None:
    found = await bag.shown()
    assert (found.holdings, found.gone, bag.asked) == ([], 0, [])
    assert found.text.startswith("This wallet holds no token that the index knows.")


async def test_what_the_index_has_not_read_yet_is_not_known(bag: Bag) -> None:
    """Amounts are those of the newest block: next to the cost of older ones a gain would be false."""
    made = a_launch(bag, 77)
    await bag.follows()
    buy_on_curve(bag, made, ETH // 10)
    empty = await bag.shown_at_once()
    assert empty.holdings == []
    assert empty.text.startswith(f"Up to block {empty.block:,} this wallet held no token")
    known = await bag.row(made.token)
    assert known.cost_eth == "0.1"
    held_raw = buy_on_curve(bag, made, ETH // 5)
    behind = await bag.shown_at_once()
    (row,) = behind.holdings
    assert (row.amount_raw, row.cost_eth, row.gain_eth, behind.gain_eth) == (str(held_raw), None, None, None)
    assert f"Trades after block {behind.block:,} are not read yet" in behind.text
    assert (await bag.row(made.token)).cost_eth == "0.3"
