"""How a book is begun that takes long to begin, what a fault leaves of what was read, who pays, and who waits
for a place."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from roundtrip.chain.holders.first_block import NoArchive
from roundtrip.chain.rpc.client import RpcNode
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.holders.book import HolderBook, load
from roundtrip.services.holder_record import book_store, sources
from roundtrip.services.runtime.book_cache import (
    MAX_LOADING,
    MAX_READING,
    BookCache,
    ReadBounds,
    ReadLimits,
    reading_budget,
)
from support.reading import (
    GONE,
    NOT_TODAY,
    RANGE,
    ReadingProcess,
    ReadingService,
    know_first,
    later,
    launched,
    refused,
    to_logs,
    trade,
)
from support.recording import filter_of, says_nothing_else


def with_budget(process: ReadingProcess, calls: int) -> None:
    process.ctx = replace(
        process.ctx, books=BookCache(reading_budget(calls), limits=process.ctx.books.limits)
    )


# --- where it begins -------------------------------------------------------------------------------


async def test_what_takes_too_long_to_begin_is_begun_by_a_job(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody tries it again meanwhile, and whoever asks while the job begins does not wait for it."""
    held, one = launched(service.stage), service.process()
    with monkeypatch.context() as patched:
        begins: list[Address] = []

        async def first_block(node: RpcNode, token: Address, high: BlockRef) -> None:
            begins.append(token)
            await asyncio.Event().wait()

        patched.setattr(sources, "find_first_block", first_block)
        service.limits.at_once = ReadBounds(10**9, 60.0, patience_s=0.05)
        first = await one.asked(held.token)
        assert (first["status"], first["transfersRead"]) == ("reading", 0)
        assert (first["launch"], first["holders"], first["top"]) == (None, None, [])
        assert await service.jobs() == [("holders", held.token)]
        assert await one.asked(held.token) == first
        async with one.ctx.books.alone(Address(held.token)):
            assert await one.asked(held.token) == first
        assert len(begins) == 1
    assert await service.done(one) > 0
    found = await one.asked(held.token)
    assert found["status"] == "complete"
    assert found == await service.fresh(held.token)


async def test_the_calls_of_the_beginning_are_the_readings(service: ReadingService) -> None:
    held, one = launched(service.stage), service.process()
    with_budget(one, 10**9)
    assert (await one.asked(held.token))["status"] == "complete"
    codes = [(call.params, budgeted) for call, budgeted in one.node.batched if call.method == "eth_getCode"]
    searched = [budgeted for (of, at), budgeted in codes if of == held.token and isinstance(at, str)]
    assert searched
    assert not any(searched)
    assert one.ctx.books.budget.spent > len(searched)


async def test_so_are_those_that_search_its_first_transfer(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def first_block(node: RpcNode, token: Address, high: BlockRef) -> None:
        raise NoArchive("it has no states that old")

    monkeypatch.setattr(sources, "find_first_block", first_block)
    held, one = launched(service.stage), service.process()
    with_budget(one, 10)
    assert (await refused(one, held.token)).code == "holders_budget"
    assert one.node.spans == [(0, service.stage.number())]
    one.ctx.books.budget.calls_per_day = 10**9
    assert (await one.asked(held.token))["status"] == "complete"


async def test_so_are_those_that_search_what_the_node_has_let_go(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, one = launched(service.stage), service.process()
    know_first(monkeypatch, held)
    one.node.instead = to_logs(GONE, below=service.stage.number() - 3 * RANGE)
    with_budget(one, 15)
    assert (await refused(one, held.token)).code == "holders_budget"
    # Only the first block of each range that is under way.
    assert 0 < sum(low == high for low, high in one.node.spans) <= 4


# --- what a fault leaves ---------------------------------------------------------------------------


async def test_what_was_read_of_a_new_token_before_a_fault_is_not_lost(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, one = launched(service.stage), service.process()
    first = know_first(monkeypatch, held)
    with_budget(one, 16)
    assert (await refused(one, held.token)).code == "holders_budget"
    opened = one.ctx.books.get(Address(held.token))
    assert opened is not None
    block = opened.book.block
    assert block is not None
    assert block.number > first
    one.ctx.books.budget.calls_per_day = 0
    one.node.spans.clear()
    found = await one.asked(held.token)
    assert (found["status"], found["transfersRead"]) == ("reading", opened.book.transfers)
    await service.done(one)
    assert min(low for low, _ in one.node.spans) == block.number + 1
    assert await one.asked(held.token) == await service.fresh(held.token)


async def test_a_piece_that_is_cut_short_is_kept_as_far_as_it_goes(service: ReadingService) -> None:
    """And the next one waits for another day, without a try."""
    service.limits.at_once = ReadBounds(5, 60.0)
    service.limits.near_blocks = 0
    held, one = launched(service.stage), service.process()
    assert (await one.asked(held.token))["status"] == "reading"
    before = await service.kept(held.token)
    assert before is not None
    other = service.process()
    with_budget(other, 7)
    await other.work()
    kept = await service.kept(held.token)
    assert kept is not None
    assert (kept.state, kept.transfers > before.transfers) == ("reading", True)
    for _ in range(2):
        await other.work()
    assert await service.kept(held.token) == kept
    [row] = await service.row.fetch("SELECT tries, claim, run_at FROM jobs.job")
    assert (row["tries"], row["claim"]) == (0, None)
    day_s = 86_400
    assert row["run_at"].timestamp() // day_s == other.ctx.now_s() // day_s + 1
    # Nobody is told to ask again in half a minute meanwhile.
    waits_s = row["run_at"].timestamp() - other.ctx.now_s()
    for process in (other, service.process()):
        fault = await refused(process, held.token)
        assert fault.code == "holders_budget"
        assert fault.retry_after_s is not None
        assert waits_s - 60 < fault.retry_after_s <= waits_s
    now_s = other.ctx.now_s
    other.ctx.books.budget.calls_per_day = 10**9
    other.ctx = replace(other.ctx, now_s=lambda: now_s() + day_s)
    await service.done(other)
    found = await other.asked(held.token)
    assert found == await service.fresh(held.token)


async def test_where_the_job_fails_again_and_again_nobody_is_told_to_wait_for_it(
    service: ReadingService,
) -> None:
    service.limits.at_once = ReadBounds(5, 60.0)
    service.limits.piece = ReadBounds(8, 60.0, 2.0)
    held, one = launched(service.stage), service.process()
    assert (await one.asked(held.token))["status"] == "reading"
    one.node.instead = to_logs(NOT_TODAY)
    waits_s = 0.0
    while waits_s <= 60:
        assert (await one.asked(held.token))["status"] == "reading"
        await one.work()
        [row] = await service.row.fetch("SELECT run_at, failed_at FROM jobs.job")
        assert row["failed_at"] is None
        waits_s = row["run_at"].timestamp() - one.ctx.now_s()
        if waits_s <= 60:
            later(one, max(0.0, waits_s) + 1)
    fault = await refused(one, held.token)
    assert (fault.code, fault.retry_after_s) == ("holders_failed", int(waits_s))
    later(one, waits_s + 1)
    one.node.instead = says_nothing_else
    assert (await one.asked(held.token))["status"] == "reading"
    await service.done(one)
    assert await one.asked(held.token) == await service.fresh(held.token)


# --- who pays for little -----------------------------------------------------------------------------


async def test_what_is_new_of_a_token_that_is_read_is_told_when_the_budget_is_spent(
    service: ReadingService,
) -> None:
    """Off the budget of the node."""
    held, one = launched(service.stage), service.process()
    with_budget(one, 10**9)
    assert (await one.asked(held.token))["status"] == "complete"
    one.ctx.books.budget.calls_per_day = 1
    one.node.batched.clear()
    trade(held, 3, "late")
    found = await one.asked(held.token)
    assert (found["status"], found["transfersRead"]) == ("complete", held.transfers())
    logs = [entry for entry in one.node.batched if entry[0].method == "eth_getLogs"]
    assert [pays for call, pays in logs if held.token in filter_of(call).get("address", ())] == [True]
    service.stage.pass_blocks(10)
    service.limits.near_blocks = 9
    assert (await refused(one, held.token)).code == "holders_budget"


# --- who waits -------------------------------------------------------------------------------------


async def test_to_look_for_a_little_that_is_new_takes_no_place(service: ReadingService) -> None:
    held, one = launched(service.stage), service.process()
    await one.asked(held.token)
    trade(held, 3, "late")
    with contextlib.ExitStack() as others:
        for process in (one, service.process()):
            for _ in range(MAX_READING):
                others.enter_context(process.ctx.books.take_place())
            found = await process.asked(held.token)
            assert (found["status"], found["transfersRead"]) == ("complete", held.transfers())
        service.stage.pass_blocks(10)
        service.limits.near_blocks = 9
        assert (await refused(one, held.token)).code == "holders_busy"


async def test_few_books_are_unpacked_at_once(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = launched(service.stage)
    await service.process().asked(held.token)
    other = service.process()
    loads: list[HolderBook] = []

    def loading(packed: bytes) -> HolderBook:
        loads.append(load(packed))
        return loads[-1]

    monkeypatch.setattr(book_store, "load", loading)
    async with contextlib.AsyncExitStack() as others:
        for _ in range(MAX_LOADING):
            await others.enter_async_context(other.ctx.books.loading)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await book_store.load_book(other.ctx, Address(held.token), None)
        assert loads == []
    assert (await other.asked(held.token))["status"] == "complete"
    assert len(loads) == 1


async def test_who_waits_for_a_job_unpacks_each_of_its_pieces_once(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.limits.at_once = ReadBounds(5, 60.0)
    service.limits.piece = ReadBounds(8, 60.0)
    held, one, other = launched(service.stage), service.process(), service.process()
    await one.asked(held.token)
    loads: list[HolderBook] = []

    def loading(packed: bytes) -> HolderBook:
        loads.append(load(packed))
        return loads[-1]

    await other.work()
    monkeypatch.setattr(book_store, "load", loading)
    found = [await one.asked(held.token) for _ in range(3)]
    assert (found[0]["status"], found[0]) == ("reading", found[2])
    assert len(loads) == 1


def test_two_of_the_largest_books_are_held_at_once() -> None:
    assert ReadLimits().max_wallets_of_all == 2 * ReadLimits().max_wallets


async def test_without_a_place_nothing_is_begun(service: ReadingService) -> None:
    held, one = launched(service.stage), service.process()
    with contextlib.ExitStack() as others:
        for _ in range(MAX_READING):
            others.enter_context(one.ctx.books.take_place())
        fault = await refused(one, held.token)
    assert (type(fault), fault.code) == (ServiceFull, "holders_busy")
