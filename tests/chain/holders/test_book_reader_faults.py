"""What a read does that cannot be done: nodes that give nothing or have let it go, limits, bytes that are no
book, and those who ask at the same time."""

import asyncio
import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.domain.base.errors import CallerFault, NodeFault, ReadFailed, RoundtripError, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.holders.book import load
from roundtrip.services.runtime.book_cache import MAX_READING, BookCache, ReadBounds, reading_budget
from roundtrip.store.holders import books
from roundtrip.store.server import jobs
from support.actors import ETH, MANY_GAS, Act, deeds_data
from support.fixtures import closed_database
from support.holding_asked import Holding
from support.reading import (
    NOT_TODAY,
    RANGE,
    ReadingProcess,
    ReadingService,
    know_first,
    launched,
    to_logs,
    trade,
)
from support.recording import Answer, filter_of
from support.wallet import UnsignedStep

WAIT_S = 30
NOBODY = "0x" + "7" * 40
TOO_WIDE = RpcError(-32000, "block range exceeds 5")


async def refused(process: ReadingProcess, token: str) -> RoundtripError:
    with pytest.raises(RoundtripError) as raised:
        await process.asked(token)
    assert not process.ctx.books.is_locked(Address(token))
    return raised.value


# --- nobody tells ----------------------------------------------------------------------------------


async def test_where_there_is_no_token_nothing_is_read(service: ReadingService) -> None:
    fault = await refused(service.process(), NOBODY)
    assert (type(fault), fault.code) == (CallerFault, "not_a_token")


async def test_a_node_that_is_away_is_told_as_such(service: ReadingService) -> None:
    held, one = launched(service.stage), service.process()

    def away(call: RpcCall) -> None:
        raise NodeFault("the connection to the node failed")

    one.node.instead = away
    assert (await refused(one, held.token)).code == "upstream"


@pytest.mark.parametrize("knows_first", [True, False])
async def test_a_node_that_gives_no_logs_fails_the_reading_in_time(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch, knows_first: bool
) -> None:
    service.limits.at_once = ReadBounds(10**9, 60.0, patience_s=0.4)
    held, one = launched(service.stage), service.process()
    one.node.instead = to_logs(NOT_TODAY)
    if knows_first:
        know_first(monkeypatch, held)
    fault = await refused(one, held.token)
    assert (type(fault), fault.code) == (ReadFailed, "holders_failed")
    assert await service.jobs() == []
    one.node.instead = to_logs(NOT_TODAY, below=0)
    # Where all else is slow, it is waited for longer.
    service.limits.at_once = ReadBounds(10**9, 60.0)
    assert (await one.asked(held.token))["status"] == "complete"


async def test_what_came_before_a_node_stopped_to_answer_is_not_lost(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.limits.at_once = ReadBounds(10**9, 60.0, patience_s=1.0)
    held, one = launched(service.stage), service.process()
    late = service.stage.number() - RANGE

    def instead(call: RpcCall) -> Answer | None:
        is_late = call.method == "eth_getLogs" and int(filter_of(call).get("toBlock", "0x0"), 16) >= late
        return NOT_TODAY if is_late else None

    know_first(monkeypatch, held)
    one.node.instead = instead
    found = await one.asked(held.token)
    assert found["status"] == "reading"
    assert 0 < found["transfersRead"] < held.transfers()
    one.node.instead = to_logs(NOT_TODAY, below=0)
    await service.done(one)
    assert (await one.asked(held.token))["transfersRead"] == held.transfers()


async def test_where_nobody_tells_where_it_begins_there_is_no_archive(service: ReadingService) -> None:
    held, one = launched(service.stage), service.process()
    one.node.instead = to_logs(TOO_WIDE)
    assert (await refused(one, held.token)).code == "holders_no_archive"


async def test_without_a_database_nothing_is_told(service: ReadingService) -> None:
    held, one = launched(service.stage), service.process()
    await one.asked(held.token)
    one.ctx = replace(one.ctx, pool=closed_database())
    for process in (one, ReadingProcess(replace(service.base, pool=closed_database()))):
        assert (await refused(process, held.token)).code == "busy"


# --- limits ----------------------------------------------------------------------------------------


async def test_few_are_read_at_once(service: ReadingService) -> None:
    held, one = launched(service.stage), service.process()
    with contextlib.ExitStack() as others:
        for _ in range(MAX_READING):
            others.enter_context(one.ctx.books.take_place())
        fault = await refused(one, held.token)
        assert (fault.code, fault.retry_after_s) == ("holders_busy", 2)
    assert (await one.asked(held.token))["status"] == "complete"


async def test_few_busy_tokens_are_taken_in(service: ReadingService, busy: None) -> None:
    service.limits.max_jobs = 2
    held, one = launched(service.stage), service.process()
    for key in ("one", "other"):
        await jobs.enqueue(service.row, "holders", key)
    for _ in range(2):
        assert (await refused(one, held.token)).code == "holders_busy"
    await service.row.execute("DELETE FROM jobs.job WHERE key = 'one'")
    assert (await one.asked(held.token))["status"] == "reading"
    await service.row.execute("DELETE FROM jobs.job WHERE key = 'other'")
    await service.done(one)
    assert (await one.asked(held.token))["status"] == "complete"


async def test_what_a_day_has_for_reading_ends(service: ReadingService) -> None:
    held = launched(service.stage)
    one = service.process()
    one.ctx = replace(one.ctx, books=BookCache(reading_budget(4)))
    fault = await refused(one, held.token)
    assert (type(fault), fault.code) == (ServiceFull, "holders_budget")
    one.ctx.books.budget.calls_per_day = 0
    assert (await one.asked(held.token))["transfersRead"] == held.transfers()


async def test_nobody_is_told_to_wait_for_a_job_that_was_given_up(
    service: ReadingService, busy: None
) -> None:
    held, one = launched(service.stage), service.process()
    assert (await one.asked(held.token))["status"] == "reading"
    now_s = one.ctx.now_s
    now = datetime.fromtimestamp(now_s(), UTC)
    (job,) = await jobs.claim(service.row, ["holders"], 1, 30, now)
    await jobs.give_up(service.row, job, now, "NodeFault")
    for process in (one, service.process()):
        fault = await refused(process, held.token)
        assert (type(fault), fault.code) == (ReadFailed, "holders_failed")
    one.ctx = replace(one.ctx, now_s=lambda: now_s() + timedelta(minutes=11).total_seconds())
    assert (await one.asked(held.token))["status"] == "reading"
    await service.done(one)
    assert (await one.asked(held.token))["status"] == "complete"


# --- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bytes_kept", [b"", b"of another release"])
async def test_what_is_no_book_is_written_over(
    service: ReadingService, busy: None, bytes_kept: bytes
) -> None:
    """However far it says that it goes."""
    held, one = launched(service.stage), service.process()
    await one.asked(held.token)
    await service.done(one)
    await service.row.execute("UPDATE facts.holder_read SET book = $1", bytes_kept)
    trade(held, 3, "late")
    other = service.process()
    assert (await other.asked(held.token))["status"] == "reading"
    for _ in range(30):
        # Nobody remembers what the last one read.
        await service.process().work()
    assert await service.jobs() == []
    kept = await books.load_book(service.row, Address(held.token))
    assert kept is not None
    assert load(kept.book).transfers == held.transfers()
    found = await other.asked(held.token)
    assert (await one.asked(held.token)) == found == await service.fresh(held.token)


async def test_what_is_no_book_harms_nobody_who_has_one(service: ReadingService, busy: None) -> None:
    held, one = launched(service.stage), service.process()
    first = await one.asked(held.token)
    number = service.stage.number()
    await service.row.execute("UPDATE facts.holder_read SET book = 'x', block_number = $1", number)
    one.node.spans.clear()
    assert await one.asked(held.token) == first
    assert one.node.spans == []
    await service.done(one)
    kept = await service.kept(held.token)
    assert kept is not None
    assert (kept.state, kept.transfers) == ("whole", held.transfers())


# --- at the same time ------------------------------------------------------------------------------


async def test_while_a_job_reads_on_nobody_waits(service: ReadingService, busy: None) -> None:
    held, one = launched(service.stage), service.process()
    first = await one.asked(held.token)
    async with asyncio.timeout(WAIT_S), one.ctx.books.alone(Address(held.token)):
        assert await one.asked(held.token) == first


async def test_a_job_that_ends_meanwhile_makes_no_answer_complete(
    service: ReadingService, busy: None
) -> None:
    held, one = launched(service.stage), service.process()
    first = await one.asked(held.token)
    opened = one.ctx.books.get(Address(held.token))
    assert opened is not None

    def ends(call: RpcCall) -> None:
        if call.method == "eth_getTransactionReceipt":
            opened.state = "whole"

    async with one.ctx.books.alone(Address(held.token)):
        one.node.instead = ends
        assert await one.asked(held.token) == first
    assert opened.state == "whole"


async def test_a_token_is_read_once_for_all_who_ask(service: ReadingService) -> None:
    held, one = launched(service.stage), service.process()
    found = await asyncio.gather(*(one.asked(held.token) for _ in range(MAX_READING + 2)))
    assert all(answer == found[0] for answer in found)
    assert found[0]["status"] == "complete"
    kept = await service.kept(held.token)
    assert kept is not None
    assert one.node.spans.count((kept.first_number, kept.first_number + RANGE - 1)) == 1


# --- the index -------------------------------------------------------------------------------------


async def test_without_an_index_all_but_winners_is_told(service: ReadingService) -> None:
    held = launched(service.stage)
    found = await service.process().asked(held.token)
    assert (found["status"], found["smartMoney"], found["repeatCrowd"]) == ("complete", None, None)
    assert found["deployer"]["address"] == held.deployer
    assert "could not look up" in found["text"]


async def test_an_index_that_lags_behind_is_no_hindrance(holding: Holding) -> None:
    """What it comes to know later is told as if it had known it at once."""
    stage = holding.stage
    sender = stage.wallet("sender")
    hands = stage.hands(sender)
    held, launch = stage.launch_act(hands, 1)
    step = UnsignedStep(hands, deeds_data([launch.step]), launch.step.value_wei)
    held.do(Act(sender, step, gas=MANY_GAS))
    stage.pass_blocks(40)
    held.one_by_one(held.buy(stage.wallet("buyer"), ETH // 10), held.buy(sender, ETH // 10))
    behind = await holding.asked(held.token, follows=False)
    assert (behind["status"], behind["transfersRead"]) == ("complete", held.transfers())
    caught_up = await holding.asked(held.token)
    await holding.forget()
    other = replace(holding, ctx=replace(holding.ctx, books=BookCache()))
    fresh = await other.asked(held.token)
    assert {**caught_up, "checkedAt": 0} == {**fresh, "checkedAt": 0}
    assert "creator" in {one["address"]: one["tags"] for one in fresh["top"]}[sender]
