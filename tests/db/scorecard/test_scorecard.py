"""Verdicts scored over a database and a chain we write: whose trades count, in what order, and once."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import RefusedCall
from roundtrip.domain.scorecard.scorecard import SETTLED_S, FailedSell, RealTrade, VerdictScore
from roundtrip.services.runtime.context import Context
from roundtrip.services.scorecard.page import PAGE, ScorecardParams, scorecard
from roundtrip.services.scorecard.real_trades import MAX_WALLETS, PlainTrade
from roundtrip.services.scorecard.settlement import MAX_VERDICTS, WAITS_S, SettlementRun, score_verdicts
from roundtrip.store.check import evidence as kept
from roundtrip.store.maintenance.backup import forget
from roundtrip.store.scorecard import failed_sells
from roundtrip.store.scorecard import scorecard as store
from roundtrip.store.scorecard.scorecard import ScoredVerdict
from roundtrip.store.server import connections
from roundtrip.sync.apply import FAILED_EVERY_S, MAX_FAILED_A_TOKEN
from roundtrip.venues import amm_v3
from support.flagged import OTHER, TOKEN, FlagGround, emptied_accounts
from support.told_blocks import LoggedTransaction, sent
from support.told_winners import BUYERS, DEPLOYER, HIS_FRIEND, buys, sells
from unit.domain import builders as made
from unit.venues.logs import NETWORK
from unit.venues.network import address

DAY_S = POLICY.day_s
TX = TxHash("0x" + "a" * 64)
NOW = datetime(2026, 11, 23, tzinfo=UTC)


class Receipts:
    """Every trade that the index has is a plain wallet's, and cost as little. ``asked``: whose."""

    def __init__(self) -> None:
        self.asked: list[Address] = []
        self.is_away = False
        self.untold: set[Address] = set()

    async def __call__(
        self, ctx: Context, token: Address, plain: PlainTrade, meter: Meter
    ) -> RealTrade | None:
        if self.is_away or plain.trade.wallet in self.untold:
            raise NodeFault("it is away")
        trade = plain.trade
        self.asked.append(trade.wallet)
        spot = trade.block_number, trade.at_s, trade.tx_hash, trade.wallet
        held = plain.held_before, plain.new_place
        # Where the verdict was made, whatever it was sold on.
        return RealTrade(trade.buys, made.POOL, *spot, trade.token_raw, trade.worth_wei, 60, *held)


class Card(FlagGround):
    """The same, with verdicts on it. The first of the buyers still hold a million each."""

    receipts: Receipts

    async def judge(
        self, token: Address = TOKEN, code: str = "ok", level: str = "ok", document: bytes | None = None
    ) -> int:
        """A verdict at the newest block; its number."""
        if document is None:
            cells = made.refused_cells() if code == "cannot_sell" else None
            whole = replace(made.evidence(made.venue(cells)), block=self.at, token=token)
            document = canonical_json.dump(whole)
        at = datetime.fromtimestamp(self.at.timestamp_s, UTC)
        one = kept.KeptEvidence(at, self.at.number, POLICY.version, code, level, document)
        return await kept.keep(self.index, token, one)

    async def settled(self) -> SettlementRun:
        """One run, written."""
        found = await score_verdicts(self.ctx, self.receipts)
        if found.scored or found.waiting or found.to_id != found.from_id:
            async with self.index.transaction():
                await store.put(self.index, found.scored, found.from_id, found.to_id, NOW, found.waiting)
        return found

    async def over(self) -> SettlementRun:
        """The day of every verdict is over, and a run."""
        await self.block(after_s=DAY_S + SETTLED_S + 1)
        return await self.settled()

    async def scores(self) -> list[tuple[str, str, str]]:
        rows = await self.index.fetch("SELECT code, outcome, cause FROM facts.score ORDER BY evidence_id")
        return [tuple(row) for row in rows]

    async def counted(self) -> bool:
        """Whether the counts are those of the rows."""
        rows = await self.index.fetch(
            "SELECT code, outcome, count(*) AS n, count(DISTINCT token) AS of FROM facts.score GROUP BY 1, 2"
        )
        answer = await store.counts(self.index)
        return {(row["code"], row["outcome"]): (row["n"], row["of"]) for row in rows} == {
            key: counted for key, counted in answer.items() if counted != (0, 0)
        }


@pytest.fixture
async def card(url: str) -> AsyncIterator[Card]:
    async with connections.create_pool(url, min_size=1, max_size=4) as pool, pool.acquire() as index:
        await emptied_accounts(index)
        await index.execute(
            "TRUNCATE facts.evidence, facts.score, facts.score_count, facts.score_cursor, facts.score_token,"
            " facts.score_wait, facts.failed_sell, jobs.job CASCADE"
        )
        found = Card(pool, index)
        found.receipts = Receipts()
        await found.begin()
        yield found


# --- whose trades ----------------------------------------------------------------------------------


async def test_of_who_sells_only_plain_wallets_are_asked_about(card: Card) -> None:
    await card.judge()
    stranger = address(0xE1)
    # The deployer, whom he paid, and who never bought.
    await card.block(sells(DEPLOYER, 0.5, TOKEN), sells(HIS_FRIEND, 0.5, TOKEN), sells(stranger, 0.5, TOKEN))
    await card.block(sells(BUYERS[5], 0.5, TOKEN), after_s=60)
    await card.over()
    assert card.receipts.asked == [BUYERS[5]]
    assert await card.scores() == [("ok", "right", "sold")]


async def test_who_sells_more_than_it_bought_sells_what_it_was_given(card: Card) -> None:
    await card.block(sells(BUYERS[5], 0.5, TOKEN))
    await card.judge()
    await card.block(sells(BUYERS[5], 0.5, TOKEN))
    await card.over()
    assert card.receipts.asked == []
    assert await card.scores() == [("ok", "undecided", "no_sell")]


async def test_each_wallet_is_asked_about_once(card: Card) -> None:
    await card.block(buys(BUYERS[5], 0.5, TOKEN))
    await card.judge()
    await card.block(sells(BUYERS[5], 0.5, TOKEN))
    await card.block(sells(BUYERS[5], 0.5, TOKEN))
    await card.over()
    assert card.receipts.asked == [BUYERS[5]]


async def test_several_trades_in_one_transaction_are_none_to_go_by(card: Card) -> None:
    await card.judge()
    await card.block(twice(sells(BUYERS[5], 0.25, TOKEN)))
    await card.over()
    assert card.receipts.asked == []
    assert await card.scores() == [("ok", "undecided", "no_sell")]


def twice(one: LoggedTransaction) -> LoggedTransaction:
    """The same transaction with what it did done again."""
    return one._replace(logs=one.logs * 2)


async def test_of_many_wallets_the_first_and_the_last_are_asked_about(card: Card) -> None:
    await card.judge()
    for one in BUYERS[4:16]:
        await card.block(sells(one, 0.5, TOKEN), after_s=60)
    await card.over()
    half = MAX_WALLETS // 2
    assert card.receipts.asked == [*BUYERS[4 : 4 + half], *BUYERS[16 - half : 16]]


async def test_a_trap_is_contradicted_by_who_bought_after_it(card: Card) -> None:
    await card.judge(code="cannot_sell", level="danger")
    fresh = address(0xE2)
    await card.block(buys(fresh, 0.5, TOKEN))
    await card.block(sells(fresh, 0.5, TOKEN), after_s=30)
    await card.over()
    assert card.receipts.asked == [fresh]
    assert await card.scores() == [("cannot_sell", "wrong", "sold")]


# --- when, and once --------------------------------------------------------------------------------


async def test_verdicts_wait_for_their_day_and_for_what_may_be_undone(card: Card) -> None:
    await card.judge()
    await card.block(sells(BUYERS[5], 0.5, TOKEN))
    await card.block(after_s=DAY_S + SETTLED_S - 2)
    assert await card.settled() == SettlementRun((), 0, 0, False)
    await card.block()
    assert len((await card.settled()).scored) == 1
    assert await card.scores() == [("ok", "right", "sold")]


async def test_after_a_reorganisation_it_waits_again(card: Card) -> None:
    await card.judge()
    sold_in = card.at
    await card.block(sells(BUYERS[5], 0.5, TOKEN))
    await card.block(after_s=DAY_S + SETTLED_S + 1)
    await card.writer.rewind(card.index, card.at, sold_in)
    assert await card.settled() == SettlementRun((), 0, 0, False)
    # The other side of the fork has no such sell.
    del card.chain.blocks[[one.ref for one in card.chain.blocks].index(sold_in) + 1 :]
    await card.over()
    assert await card.scores() == [("ok", "undecided", "no_sell")]


async def test_many_verdicts_are_scored_some_a_run_and_each_once(card: Card) -> None:
    tokens = [address(0x5C0000 + n) for n in range(2 * MAX_VERDICTS + 3)]
    for one in tokens:
        await card.judge(one, "unproven", "unknown")
    runs = [await card.over(), await card.settled(), await card.settled(), await card.settled()]
    assert [len(run.scored) for run in runs] == [MAX_VERDICTS, MAX_VERDICTS, 3, 0]
    assert [run.is_more for run in runs] == [True, True, False, False]
    assert await card.scores() == [("unproven", "undecided", "silent")] * len(tokens)
    assert await card.counted()
    await card.index.execute("UPDATE facts.score_cursor SET evidence_id = 0")
    for _ in range(4):
        await card.settled()
    assert len(await card.scores()) == len(tokens)
    assert await card.counted()


async def test_of_two_that_score_at_once_one_writes(card: Card) -> None:
    await card.judge()
    await card.block(sells(BUYERS[5], 0.5, TOKEN))
    await card.block(after_s=DAY_S + SETTLED_S + 1)
    first, second = [await score_verdicts(card.ctx, card.receipts) for _ in range(2)]
    assert await store.put(card.index, first.scored, first.from_id, first.to_id, NOW) == 1
    with pytest.raises(store.ScoredMeanwhile):
        await store.put(card.index, second.scored, second.from_id, second.to_id, NOW)
    assert await card.counted()
    with pytest.raises(store.ScoredMeanwhile):
        await store.put(card.index, (), first.to_id + 5, first.to_id + 9, NOW)


async def test_one_of_a_token_an_hour_and_a_code(card: Card) -> None:
    # Two hours begin within these; the first of each is the one.
    first = [await card.judge(), await card.judge()]
    await card.block(after_s=3600)
    last = [await card.judge(), await card.judge(code="cannot_sell", level="danger")]
    await card.over()
    rows = await card.index.fetch("SELECT evidence_id FROM facts.score ORDER BY 1")
    assert [row["evidence_id"] for row in rows] == [first[0], *last]


async def test_what_cannot_be_read_or_was_not_followed_is_undecided(card: Card) -> None:
    early = BlockRef(card.chain.blocks[0].ref.number - 2, "0x" + "ee" * 32, card.at.timestamp_s)
    await card.judge(address(0x5C1), document=b"{}")
    whole = replace(made.evidence(made.venue()), block=early, token=TOKEN)
    at = datetime.fromtimestamp(card.at.timestamp_s, UTC)
    document = canonical_json.dump(whole)
    await kept.keep(
        card.index, TOKEN, kept.KeptEvidence(at, early.number, POLICY.version, "ok", "ok", document)
    )
    await card.judge(OTHER, "thin_pool", "danger")
    await card.judge(address(0x5C2), "quote_asset", "ok")
    await card.over()
    assert await card.scores() == [
        ("ok", "undecided", "unreadable"),
        ("ok", "undecided", "not_followed"),
        ("thin_pool", "undecided", "no_sell"),
    ]


async def test_what_a_token_says_in_a_later_check_stops_no_run(card: Card) -> None:
    """A reason with a zero byte in it, which no text of the database can hold."""
    await card.judge()
    await card.block(after_s=60)
    cells = made.refused_cells(full=RefusedCall("sell", "\0", 0))
    whole = replace(made.evidence(made.venue(cells)), block=card.at, token=TOKEN)
    await card.judge(code="cannot_sell", level="danger", document=canonical_json.dump(whole))
    await card.over()
    assert await card.scores() == [("ok", "wrong", "turned"), ("cannot_sell", "undecided", "no_sell")]


async def test_checks_that_say_no_trap_hide_none_that_does(card: Card) -> None:
    """Whoever has it checked fifty times before it is one shifts nothing."""
    await card.judge()
    for _ in range(51):
        await card.block(after_s=2)
        await card.judge(code="thin_pool", level="warn")
    await card.block(after_s=2)
    await card.judge(code="cannot_sell", level="danger")
    await card.block(after_s=DAY_S + SETTLED_S + 1)
    found = await card.settled()
    assert (found.scored[0].code, found.scored[0].score.cause) == ("ok", "turned")


async def test_a_trade_that_was_not_told_leaves_no_verdict_right(card: Card) -> None:
    """It may be the one that speaks against it."""
    await card.judge()
    for one in BUYERS[4:6]:
        await card.block(sells(one, 0.5, TOKEN), after_s=60)
    await card.block(after_s=DAY_S + SETTLED_S + 1)
    card.receipts.untold = {BUYERS[5]}
    for wait_s in WAITS_S:
        await card.settled()
        assert await card.scores() == []
        await card.block(after_s=wait_s)
    await card.settled()
    assert set(card.receipts.asked) == {BUYERS[4]}
    assert await card.scores() == [("ok", "undecided", "not_told")]
    assert await card.index.fetchval("SELECT count(*) FROM facts.score_wait") == 0


async def test_a_receipt_that_is_not_given_delays_its_own_verdict_alone(card: Card) -> None:
    """Nor does another verdict of its hour take its place."""
    waits = await card.judge()
    await card.block(sells(BUYERS[5], 0.5, TOKEN), after_s=5)
    other = await card.judge(OTHER, "unproven", "unknown")
    await card.block(after_s=DAY_S + SETTLED_S + 1)
    card.receipts.untold = {BUYERS[5]}
    found = await card.settled()
    assert (found.to_id, [one.id for one in found.scored]) == (other, [other])
    assert [(one.id, one.tries) for one in found.waiting] == [(waits, 1)]
    # Not before its time.
    assert await card.settled() == SettlementRun((), other, other, False)
    await card.index.execute("UPDATE facts.score_cursor SET evidence_id = 0")
    assert (await card.settled()).scored == ()
    card.receipts.untold = set()
    await card.block(after_s=WAITS_S[0])
    await card.settled()
    assert await card.scores() == [("ok", "right", "sold"), ("unproven", "undecided", "silent")]
    assert await card.index.fetchval("SELECT count(*) FROM facts.score_wait") == 0
    assert await card.counted()


async def test_while_the_node_is_away_nothing_is_settled_or_waits_less(card: Card) -> None:
    await card.judge()
    await card.block(sells(BUYERS[5], 0.5, TOKEN))
    await card.block(after_s=DAY_S + SETTLED_S + 1)
    card.receipts.is_away = card.node_is_away = True
    for _ in range(len(WAITS_S) + 3):
        with pytest.raises(NodeFault):
            await card.settled()
    assert await card.scores() == []
    card.receipts.is_away = card.node_is_away = False
    await card.settled()
    assert await card.scores() == [("ok", "right", "sold")]


# --- failed sells ----------------------------------------------------------------------------------


def fails(wallet: Address, token: Address = TOKEN) -> LoggedTransaction:
    """A sell that leaves no log."""
    router, weth = NETWORK.swap_router02, NETWORK.weth
    data = amm_v3.encode_exact_input_single(token, weth, 3000, wallet, 10**18)
    return sent(sender=wallet, to=router, input=data)


async def looked_at(card: Card) -> list[str]:
    rows = await card.index.fetch(
        "SELECT payload FROM jobs.job WHERE kind = 'failed_sell' AND payload->>'token' = $1", TOKEN
    )
    return [row["payload"] for row in rows]


async def test_failed_sells_of_checked_tokens_are_looked_at_once_in_a_while(card: Card) -> None:
    await card.block(fails(BUYERS[5]))
    assert await looked_at(card) == []
    await card.judge()
    await card.block(
        fails(BUYERS[5]), fails(BUYERS[5]), fails(BUYERS[5], OTHER), sells(BUYERS[4], 0.5, TOKEN)
    )
    assert len(await looked_at(card)) == 1
    await card.block(fails(BUYERS[5]), fails(BUYERS[6]), after_s=FAILED_EVERY_S - 1)
    assert len(await looked_at(card)) == 2
    await card.block(fails(BUYERS[5]))
    assert len(await looked_at(card)) == 3
    await card.block(fails(BUYERS[7]), after_s=DAY_S)
    assert len(await looked_at(card)) == 3


async def test_of_many_failed_sells_a_fixed_number_is_looked_at(card: Card) -> None:
    """Who fails on purpose from many wallets must not fill the queue."""
    await card.judge()
    crowd = [Address(f"0x{0xFA11 + number:040x}") for number in range(MAX_FAILED_A_TOKEN + 5)]
    await card.block(*map(fails, crowd))
    assert len(await looked_at(card)) == MAX_FAILED_A_TOKEN
    await card.block(*(fails(wallet) for wallet in reversed(crowd)), after_s=FAILED_EVERY_S)
    assert len(await looked_at(card)) == 2 * MAX_FAILED_A_TOKEN


async def test_a_failed_sell_is_kept_once_and_goes_with_its_block(card: Card) -> None:
    await card.judge()
    before = card.at
    await card.block(sells(BUYERS[5], 0.5, TOKEN), fails(BUYERS[6]))
    at = card.at
    sell = FailedSell(at.number, at.timestamp_s, TX, BUYERS[6], made.bought().received_raw)
    span_s = (before.timestamp_s, at.timestamp_s)
    for one in (sell, replace(sell, refused=False)):
        await failed_sells.put_sell(card.index, TOKEN, one)
    assert await failed_sells.sells_between(card.index, TOKEN, before.number, *span_s) == [sell]
    assert await failed_sells.sells_between(card.index, OTHER, before.number, *span_s) == []
    assert await failed_sells.sells_between(card.index, TOKEN, at.number, *span_s) == []
    await card.writer.rewind(card.index, card.at, before)
    assert await failed_sells.sells_between(card.index, TOKEN, before.number, *span_s) == []


async def test_a_failed_sell_decides_whoever_else_sold(card: Card) -> None:
    await card.judge()
    await card.block(sells(BUYERS[5], 0.5, TOKEN))
    at, raw = card.at, made.bought().received_raw
    await failed_sells.put_sell(card.index, TOKEN, FailedSell(at.number, at.timestamp_s, TX, BUYERS[6], raw))
    await card.over()
    assert await card.scores() == [("ok", "wrong", "failed")]
    await failed_sells.forget(card.index, at.timestamp_s)
    assert await card.index.fetchval("SELECT count(*) FROM facts.failed_sell") == 1
    await failed_sells.forget(card.index, at.timestamp_s + 1)
    assert await card.index.fetchval("SELECT count(*) FROM facts.failed_sell") == 0


# --- what is kept ----------------------------------------------------------------------------------


def scored(evidence_id: int, outcome: str, cause: str, from_s: int = 1_000_000) -> ScoredVerdict:
    decided = None if outcome == "undecided" else 7
    score = VerdictScore(outcome, cause, decided, decided, TX, BUYERS[0], 60)  # type: ignore[arg-type]
    return ScoredVerdict(evidence_id, TOKEN, "ok", "ok", 5, from_s, score)


async def test_however_often_a_token_was_checked_few_rows_are_read(card: Card) -> None:
    await card.index.execute(
        "INSERT INTO facts.evidence (checked_at, token, block_number, policy_version, verdict_code,"
        " verdict_level, document) SELECT $2, $1, n, '1', 'ok', 'ok', ''::bytea"
        " FROM generate_series(1, 5000) AS n",
        bytes.fromhex(TOKEN[2:]),
        NOW,
    )
    await card.index.execute("ANALYZE facts.evidence")
    token = bytes.fromhex(TOKEN[2:])
    for query, given in (
        (store.LATER, (token, 10, ["cannot_sell"], 50)),
        (store.SELLABLE_BEFORE, (token, 10, ["ok", "thin_pool"])),
    ):
        plan = await card.index.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", *given)
        assert rows_read(json.loads(plan)[0]["Plan"]) <= 50


def rows_read(plan: dict[str, Any]) -> int:
    """By scans of the table, also those that were then left out."""
    own = 0
    if plan.get("Relation Name") == "evidence":
        own = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return int(own) + sum(rows_read(one) for one in plan.get("Plans", []))


async def test_mistakes_are_shown_a_page_at_a_time(card: Card) -> None:
    wrong = [scored(n, "wrong", "sold", 4000 * n) for n in range(1, 2 * PAGE + 2)]
    await store.put(card.index, [*wrong, scored(900, "right", "sold", 1)], 0, 900, NOW)
    pages, params = [], ScorecardParams()
    answer = (await scorecard(card.ctx, params)).answer
    for _ in range(3):
        answer = (await scorecard(card.ctx, params)).answer
        pages.append([one.verdict_time.timestamp() for one in answer.mistakes])
        params = ScorecardParams(answer.next_s, answer.next_id)
    assert [len(page) for page in pages] == [PAGE, PAGE, 1]
    assert [one for page in pages for one in page] == [4000.0 * n for n in range(2 * PAGE + 1, 0, -1)]
    assert (answer.next_s, answer.right, answer.wrong) == (None, 1, 2 * PAGE + 1)
    assert answer.text == (
        "We scored 42 verdicts. Later events showed 41 to be wrong and 1 to be right. "
        "This is not an error rate: we do not see every failed sell."
    )


async def test_scores_outlive_a_rebuild(card: Card) -> None:
    await store.put(card.index, [scored(1, "wrong", "sold")], 0, 1, NOW)
    await forget(card.index)
    assert await card.scores() == [("ok", "wrong", "sold")]
    assert await store.scored_to(card.index) == 1
