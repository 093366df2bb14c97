"""Tokens of which not all is read: they have too much, or the node has let some of it go."""

from collections.abc import Callable
from typing import Any

import pytest

from roundtrip.chain.blocks.span_stream import ForkSeen
from roundtrip.chain.rpc.client import RpcCall
from roundtrip.domain.base.types import Address
from roundtrip.services.holder_record import book_reader
from roundtrip.services.runtime.book_cache import ReadBounds
from roundtrip.store.server import jobs
from support.reading import GONE, RANGE, ReadingService, know_first, later, launched, refused, to_logs, trade
from support.recording import Answer, filter_of, says_nothing_else


async def test_of_a_token_with_too_many_transfers_no_more_are_read(service: ReadingService) -> None:
    service.limits.at_once = ReadBounds(5, 60.0)
    service.limits.piece = ReadBounds(8, 60.0)
    service.limits.max_transfers = 20
    held, one = launched(service.stage), service.process()
    await one.asked(held.token)
    await service.done(one)
    kept = await service.kept(held.token)
    assert kept is not None
    assert kept.state == "capped"
    trade(held, 3, "later")
    giver = held.stage.wallet("trader 0 1")
    held.do(held.move(giver, held.stage.wallet("taker"), held.balance(giver)))
    other = service.process()
    for process in (one, other):
        process.node.spans.clear()
        found = await process.asked(held.token)
        assert process.node.spans == []
        assert (found["status"], found["transfersRead"]) == ("partial", kept.transfers)
        assert found["holders"]["countIsFloor"] is True
        assert "more transfers than we read" in found["text"]
        assert found["block"] == service.stage.number()
        for top in found["top"]:
            assert int(float(top["balance"])) == held.balance(top["address"]) // 10**18
        assert giver not in [top["address"] for top in found["top"]]
    await jobs.enqueue(service.row, "holders", held.token)
    assert await service.done(other) == 1
    assert await service.kept(held.token) == kept


async def test_where_the_oldest_logs_are_gone_it_is_partial(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = service.stage
    held, one = launched(stage), service.process()
    know_first(monkeypatch, held)
    gone = stage.number() - 3 * RANGE
    one.node.instead = to_logs(GONE, below=gone)
    for _ in range(2):
        found = await one.asked(held.token)
        assert (found["status"], found["launch"], found["snipers"]) == ("partial", None, None)
        assert 0 < found["transfersRead"] < held.transfers()
        assert "no longer has its oldest transfers" in found["text"]
        assert found["holders"]["countIsFloor"] is True
    kept = await service.kept(held.token)
    assert kept is not None
    assert (kept.pruned, kept.first_number) == (True, gone)


async def test_where_what_comes_next_is_gone_for_good_it_is_begun_anew(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the node has said so twice, and not in the same moment."""
    stage = service.stage
    held, one = launched(stage), service.process()
    know_first(monkeypatch, held)
    await one.asked(held.token)
    stage.pass_blocks(2 * RANGE)
    trade(held, 3, "late")
    since = stage.number() - 1
    one.node.instead = to_logs(GONE, below=since)
    for _ in range(2):
        assert (await refused(one, held.token)).code == "holders_failed"
    later(one, book_reader.CONFIRMED_AFTER_S)
    for process in (one, service.process()):
        process.node.instead = one.node.instead
        found = await process.asked(held.token)
        assert (found["status"], found["launch"]) == ("partial", None)
        assert 0 < found["transfersRead"] < held.transfers()
    kept = await service.kept(held.token)
    assert kept is not None
    assert (kept.pruned, kept.first_number, kept.state) == (True, since, "whole")


async def test_a_node_that_says_once_that_what_comes_next_is_gone_costs_no_book(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one that says so again, when it gave some meanwhile."""
    stage = service.stage
    held, one = launched(stage), service.process()
    know_first(monkeypatch, held)
    await one.asked(held.token)
    before = one.ctx.books.get(Address(held.token))
    for part in range(3):
        trade(held, 3, f"late {part}")
        one.node.instead = to_logs(GONE)
        assert (await refused(one, held.token)).code == "holders_failed"
        later(one, book_reader.CONFIRMED_AFTER_S)
        one.node.instead = says_nothing_else
        found = await one.asked(held.token)
        assert (found["status"], found["transfersRead"]) == ("complete", held.transfers())
    assert one.ctx.books.get(Address(held.token)) is before
    assert await one.asked(held.token) == await service.fresh(held.token)


async def test_what_was_gone_is_read_once_a_node_gives_it_again(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for once an hour, also by who did not read the rest himself."""
    held, one = launched(service.stage), service.process()
    number = know_first(monkeypatch, held)
    one.node.instead = to_logs(GONE, below=service.stage.number() - 3 * RANGE)
    assert (await one.asked(held.token))["status"] == "partial"
    later(one, book_reader.PROBED_EVERY_S)
    one.node.spans.clear()
    for _ in range(2):
        assert (await one.asked(held.token))["status"] == "partial"
    assert one.node.spans == [(number, number)]
    other = service.process()
    for process in (one, other):
        process.node.instead = says_nothing_else
        assert (await process.asked(held.token))["status"] == "partial"
    later(other, book_reader.PROBED_EVERY_S + 60)
    found = await other.asked(held.token)
    assert (found["status"], found["transfersRead"]) == ("complete", held.transfers())
    kept = await service.kept(held.token)
    assert kept is not None
    assert (kept.pruned, kept.first_number) == (False, number)
    assert found == await service.fresh(held.token)


async def test_what_one_node_once_let_go_is_soon_asked_for_again(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, one = launched(service.stage), service.process()
    know_first(monkeypatch, held)
    one.node.instead = to_logs(GONE, below=service.stage.number() - 3 * RANGE)
    assert (await one.asked(held.token))["status"] == "partial"
    one.node.instead = says_nothing_else
    assert (await one.asked(held.token))["status"] == "partial"
    later(one, book_reader.CONFIRMED_AFTER_S)
    found = await one.asked(held.token)
    assert (found["status"], found["transfersRead"]) == ("complete", held.transfers())


async def test_where_nodes_take_turns_in_that_it_is_read_once_an_hour(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, one = launched(service.stage), service.process()
    number = know_first(monkeypatch, held)
    gone, probes = service.stage.number() - 3 * RANGE, 0

    def instead(call: RpcCall) -> Answer | None:
        """Gives what it is first asked for, and nothing after."""
        nonlocal probes
        answer = to_logs(GONE, below=gone)(call)
        if answer is None or not probes:
            return answer
        probes -= 1
        return None

    one.node.instead = instead
    assert (await one.asked(held.token))["status"] == "partial"
    for after_s, is_asked in (
        (book_reader.CONFIRMED_AFTER_S, True),
        (book_reader.CONFIRMED_AFTER_S, False),
        (3600, True),
    ):
        later(one, after_s)
        one.node.spans.clear()
        probes = 2
        assert (await one.asked(held.token))["status"] == "partial"
        assert ((number, number) in one.node.spans) is is_asked


# --- a hole --------------------------------------------------------------------------------------------


def hole(first: int, end: int) -> Callable[[RpcCall], Answer | None]:
    """A node that has no logs of these blocks."""

    def instead(call: RpcCall) -> Answer | None:
        if call.method != "eth_getLogs" or "fromBlock" not in filter_of(call):
            return None
        return GONE if first <= int(filter_of(call)["fromBlock"], 16) < end else None

    return instead


@pytest.mark.parametrize("last_gone", [True, False])
async def test_where_only_the_oldest_are_given_again_what_was_read_is_told(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch, last_gone: bool
) -> None:
    held, one = launched(service.stage), service.process()
    number = know_first(monkeypatch, held)
    gone = service.stage.number() - 2 * RANGE
    one.node.instead = to_logs(GONE, below=gone)
    before = await one.asked(held.token)
    assert before["status"] == "partial"
    opened = one.ctx.books.get(Address(held.token))
    one.node.instead = hole(number + RANGE, gone if last_gone else gone - 1)
    for _ in range(3):
        later(one, book_reader.PROBED_EVERY_S)
        one.node.spans.clear()
        if last_gone:
            assert await one.asked(held.token) == before
            assert one.node.spans == [(number, number), (gone - 1, gone - 1)]
        else:
            # Once an hour it is found out.
            assert (await refused(one, held.token)).code == "holders_failed"
        one.node.spans.clear()
        assert await one.asked(held.token) == before
        assert one.node.spans == []
        assert one.ctx.books.get(Address(held.token)) is opened
    # Nor did it say of that one that what comes next is gone.
    trade(held, 1, "late")
    one.node.instead = to_logs(GONE)
    later(one, book_reader.CONFIRMED_AFTER_S)
    assert (await refused(one, held.token)).code == "holders_failed"
    assert one.ctx.books.get(Address(held.token)) is opened
    one.node.instead = says_nothing_else
    later(one, book_reader.PROBED_EVERY_S)
    assert await one.asked(held.token) == await service.fresh(held.token)


@pytest.mark.parametrize("by_job", [True, False])
async def test_behind_what_is_gone_for_good_it_is_begun(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch, by_job: bool
) -> None:
    held, one = launched(service.stage), service.process()
    number = know_first(monkeypatch, held)
    gone = service.stage.number() - 2 * RANGE
    one.node.instead = hole(number + RANGE, gone)
    if by_job:
        service.limits.at_once = ReadBounds(5, 60.0)
    else:
        assert (await refused(one, held.token)).code == "holders_failed"
    assert (await one.asked(held.token))["status"] == "reading"
    for _ in range(6):
        await one.work()
        later(one, book_reader.CONFIRMED_AFTER_S)
    service.limits.at_once = ReadBounds(10**6, 60.0)
    found = await one.asked(held.token)
    assert (found["status"], found["launch"]) == ("partial", None)
    assert found["transfersRead"] > 0
    kept = await service.kept(held.token)
    assert kept is not None
    assert (kept.pruned, kept.first_number) == (True, gone)


@pytest.mark.parametrize("by_job", [True, False])
async def test_what_is_read_of_a_book_that_is_begun_anew_is_not_lost_by_a_fault(
    service: ReadingService, monkeypatch: pytest.MonkeyPatch, by_job: bool
) -> None:
    held, one = launched(service.stage), service.process()
    number = know_first(monkeypatch, held)
    stage, before = service.stage, service.stage.number()
    await one.asked(held.token)
    stage.pass_blocks(2 * RANGE)
    trade(held, 3, "late")
    forks = iter([ForkSeen(before + 1)])
    brought_on = book_reader._read_spans

    async def read_spans(*given: Any) -> Any:
        for fork in forks:
            raise fork
        return await brought_on(*given)

    monkeypatch.setattr(book_reader, "_read_spans", read_spans)
    there = iter([True])

    async def is_still_there(*given: object) -> bool:
        return next(there, False)

    monkeypatch.setattr(book_reader, "_is_on_chain", is_still_there)
    one.node.instead = hole(before - RANGE, 2**63)
    if by_job:
        await jobs.enqueue(service.row, "holders", held.token)
        await one.work()
    else:
        assert (await one.asked(held.token))["status"] == "reading"
    kept = await service.kept(held.token)
    assert kept is not None
    assert (kept.state, number < kept.block.number < before) == ("reading", True)
