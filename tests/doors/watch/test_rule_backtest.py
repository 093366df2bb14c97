"""What test_rule tells of a replay: its hits as they would have been told, and what it was asked for."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.watch.alerts import INBOX_S, describe_happening
from roundtrip.domain.watch.rules import Happening, Watch
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import when
from roundtrip.services.watch import rule_backtest
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import happenings
from roundtrip.store.watch.happenings import IndexedBlock, ReplayResult
from roundtrip.venues.base import Contracts
from support.cases.base import WALLET
from support.clocks import Clock
from support.keys import random_context
from support.serving import service
from support.watching import SETTINGS, STRANGER, Caller, a_launch, caller

TX = TxHash("0x" + "ab" * 32)


@pytest.fixture
async def me(indexed: Context) -> AsyncIterator[Caller]:
    ctx = random_context(indexed, Clock())
    async with service(ctx, SETTINGS) as url:
        yield await caller(ctx, url)


@dataclass
class Tape:
    """Stands for the replay: gives what a test wants, and keeps what it was asked."""

    hits: int = 0
    at_least: bool = False
    last: Sequence[Happening] = ()
    watch: Watch | None = None
    span: tuple[int, IndexedBlock] | None = None
    waits_for: str | None = None
    """A table that it reads for ever, which somebody may have locked."""
    statement_timeout: str = ""
    """The limit of each of its statements, as PostgreSQL shows it."""

    async def replayed(
        self, connection: Connection, contracts: Contracts, watch: Watch, after_s: int, to: IndexedBlock
    ) -> ReplayResult:
        self.watch, self.span = watch, (after_s, to)
        self.statement_timeout = await connection.fetchval("SHOW statement_timeout")
        while self.waits_for:
            await connection.execute(f"SELECT FROM {self.waits_for} LIMIT 1")
        return ReplayResult(self.hits, self.at_least, self.last)


@pytest.fixture
def tape(monkeypatch: pytest.MonkeyPatch) -> Tape:
    found = Tape()
    monkeypatch.setattr(happenings, "replay_rule", found.replayed)
    return found


def hit(number: int, token: str, **more: Any) -> Happening:
    given: dict[str, Any] = {
        "verb": "buying", "spot": Spot(number, 3, 1_760_000_000 + number, TX), "wallet": Address(WALLET),
        "token": Address(token), "eth_wei": 2 * 10**18, "micro_usd": 7_000_000_000, "part_raw": 5,
        "whole_raw": 200,
    }  # fmt: skip
    return Happening(**{**given, **more})


async def indexed_head(me: Caller) -> IndexedBlock:
    [row] = await me.ctx.pool.fetch("SELECT number, at_s FROM facts.cursor")
    return IndexedBlock(row["number"], row["at_s"])


async def test_nothing_would_have_hit(me: Caller, tape: Tape) -> None:
    to = await indexed_head(me)
    assert await me.ask("test_rule", rule="ANY buying over 1.0 eth") == {
        "text": "This rule would not have hit within the last seven days. It hits when any wallet buys a "
        "token for more than 1 eth. No rule was set.",
        "rule": "any buying over 1 eth",
        "wallet": None,
        "hits": 0,
        "atLeast": False,
        "last": [],
        "fromTime": f"{when(to.at_s - INBOX_S):%Y-%m-%dT%H:%M:%SZ}",
        "toTime": f"{when(to.at_s):%Y-%m-%dT%H:%M:%SZ}",
        "block": to.number,
    }
    assert tape.span == (to.at_s - INBOX_S, to)
    assert tape.watch is not None
    assert (tape.watch.rule.text(), tape.watch.wallets) == ("any buying over 1 eth", None)
    # It was not set.
    assert (await me.ask("list_rules"))["rules"] == []


async def test_hits_are_rows_as_they_would_have_been_told(me: Caller, tape: Tape) -> None:
    token, *_ = await a_launch(me)
    symbol = await me.ctx.pool.fetchval(
        "SELECT symbol FROM facts.token WHERE token = $1", bytes.fromhex(token[2:])
    )
    known, unknown = hit(9, token), hit(8, STRANGER, eth_wei=None, micro_usd=None, part_raw=None)
    tape.hits, tape.last = 2, [known, unknown]
    answer = await me.ask("test_rule", rule="any buying")
    assert answer["last"] == [
        {
            "who": "any", "verb": "buying", "wallet": WALLET, "token": token, "symbol": symbol, "eth": 2.0,
            "usd": 7000.0, "pct": 2.5, "tx": TX, "block": 9, "ts": "2025-10-09T08:53:29Z",
            "text": describe_happening(known),
        },
        {
            "who": "any", "verb": "buying", "wallet": WALLET, "token": STRANGER, "symbol": None, "eth": None,
            "usd": None, "pct": None, "tx": TX, "block": 8, "ts": "2025-10-09T08:53:28Z",
            "text": describe_happening(unknown),
        },
    ]  # fmt: skip
    assert answer["text"] == (
        "This rule would have hit 2 times within the last seven days. It hits when any wallet buys a token. "
        f"The last hit: {describe_happening(known)} No rule was set."
    )


async def test_of_many_the_last_ten_are_shown_and_the_count_may_be_a_floor(me: Caller, tape: Tape) -> None:
    tape.hits, tape.at_least = 10_000, True
    tape.last = [hit(number, STRANGER) for number in range(40, 20, -1)]
    answer = await me.ask("test_rule", rule="any buying")
    assert [row["block"] for row in answer["last"]] == list(range(40, 30, -1))
    assert (answer["hits"], answer["atLeast"]) == (10_000, True)
    assert "would have hit at least 10,000 times within" in answer["text"]


async def test_whom_the_replay_is_about(me: Caller, tape: Tape) -> None:
    token, deployer, sender = await a_launch(me)
    answer = await me.ask("test_rule", rule="follow selling")
    assert "You follow no wallet yet, so this rule cannot hit" in answer["text"]
    assert (tape.watch and tape.watch.wallets) == frozenset()
    await me.ask("follow_wallet", address=STRANGER)
    await me.ask("follow_wallet", address=WALLET, name="Mine")
    answer = await me.ask("test_rule", rule="follow selling")
    assert "You follow no wallet yet, so this rule cannot hit" not in answer["text"]
    assert (tape.watch and tape.watch.wallets) == {STRANGER, WALLET}
    for who, wallet in ((f"deployer:{token}", deployer), (f"creator:{token}", sender), (WALLET, WALLET)):
        answer = await me.ask("test_rule", rule=f"{who} selling")
        assert (answer["wallet"], tape.watch and tape.watch.wallets) == (wallet, {wallet})


async def test_a_chain_that_is_followed_for_less_than_seven_days(me: Caller, tape: Tape) -> None:
    to = await indexed_head(me)
    [(start, after_s)] = await me.ctx.pool.fetch(
        "SELECT number, at_s FROM facts.block WHERE at_s > $1 ORDER BY number LIMIT 1", to.at_s - INBOX_S // 2
    )
    await me.ctx.pool.execute("UPDATE facts.cursor SET start_number = $1, older_number = $1", start)
    try:
        answer = await me.ask("test_rule", rule="any buying")
    finally:
        await me.ctx.pool.execute("UPDATE facts.cursor SET start_number = 0, older_number = 0")
    assert after_s > to.at_s - INBOX_S
    assert tape.span == (after_s, to)
    assert answer["fromTime"] == f"{when(after_s):%Y-%m-%dT%H:%M:%SZ}"
    assert (
        f"The index begins at {when(after_s):%Y-%m-%d %H:%M} UTC: earlier hits are not counted."
        in answer["text"]
    )


async def test_a_token_that_is_not_known_is_no_fault(me: Caller, tape: Tape) -> None:
    answer = await me.ask("test_rule", rule=f"any buying on {STRANGER}")
    assert answer["hits"] == 0
    assert f"We have no record of {STRANGER} yet: check that the address is right." in answer["text"]


@pytest.mark.parametrize("locked", [True, False], ids=["one slow statement", "many quick ones"])
async def test_a_replay_that_takes_too_long_is_busy(
    me: Caller, tape: Tape, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    monkeypatch.setattr(rule_backtest, "LONGEST_S", 0.05)
    tape.waits_for = "jobs.job"
    async with asyncio.timeout(20), me.ctx.pool.acquire() as connection, connection.transaction():
        if locked:
            await connection.execute("LOCK TABLE jobs.job IN ACCESS EXCLUSIVE MODE")
        error = await me.error("test_rule", rule="any buying")
    assert error.startswith("busy: Replaying seven days of this rule takes too long now. Retry in 30 s, ")


async def test_its_statements_have_a_timeout(me: Caller, tape: Tape) -> None:
    await me.ask("test_rule", rule="any buying")
    assert tape.statement_timeout == "8s"
    # Of that transaction and of no other.
    async with me.ctx.pool.acquire() as connection:
        assert await connection.fetchval("SHOW statement_timeout") == "0"


async def test_without_an_index_it_is_busy(me: Caller, tape: Tape) -> None:
    async with me.ctx.pool.acquire() as connection:
        [row] = await connection.fetch("DELETE FROM facts.cursor RETURNING *")
        try:
            error = await me.error("test_rule", rule="any buying")
            refused = await me.error("create_rule", rule=f"deployer:{STRANGER} selling")
        finally:
            names = ", ".join(row.keys())
            marks = ", ".join(f"${number + 1}" for number in range(len(row)))
            await connection.execute(f"INSERT INTO facts.cursor ({names}) VALUES ({marks})", *row.values())  # noqa: S608
    assert error.startswith("busy: ")
    assert refused.startswith("busy: ")


# --- with the real replay --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "counted"),
    [
        ("any buying", "SELECT count(*) FROM facts.trade WHERE buys AND at_s > $1"),
        ("any selling", "SELECT count(*) FROM facts.trade WHERE NOT buys AND at_s > $1"),
        ("any launching", "SELECT count(*) FROM facts.launch WHERE at_s > $1"),
        ("any graduating", "SELECT count(*) FROM facts.launch_step WHERE step = 'pooled' AND at_s > $1"),
    ],
)
async def test_what_the_local_chain_has_is_told(me: Caller, rule: str, counted: str) -> None:
    to = await indexed_head(me)
    answer = await me.ask("test_rule", rule=rule)
    assert answer["hits"] == await me.ctx.pool.fetchval(counted, to.at_s - INBOX_S)
    assert answer["hits"] > 0
    assert len(answer["last"]) == min(10, answer["hits"])
    assert {row["verb"] for row in answer["last"]} == {rule.split()[1]}
    blocks = [row["block"] for row in answer["last"]]
    assert blocks == sorted(blocks, reverse=True)


async def test_a_followed_wallets_buys_are_its_own(me: Caller) -> None:
    [trader] = await me.ctx.pool.fetch(
        "SELECT address.address, count(*) FROM facts.trade JOIN facts.address ON address.id = trader_id"
        " WHERE buys AND at_s > $1 GROUP BY address.address ORDER BY count(*) LIMIT 1",
        (await indexed_head(me)).at_s - INBOX_S,
    )
    wallet = "0x" + trader["address"].hex()
    assert (await me.ask("test_rule", rule="follow buying"))["hits"] == 0
    await me.ask("follow_wallet", address=wallet)
    for rule in ("follow buying", f"{wallet} buying"):
        answer = await me.ask("test_rule", rule=rule)
        assert answer["hits"] == trader["count"]
        assert {row["wallet"] for row in answer["last"]} == {wallet}
        assert {row["who"] for row in answer["last"]} == {rule.split()[0]}
