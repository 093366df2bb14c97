"""Tokens of which not all is read: they have too much, or the node has let some of it go."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from roundtrip.chain.width import Width
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.errors import RoundtripError
from roundtrip.domain.types import Address
from roundtrip.services import books, token_read
from roundtrip.services.context import Context
from roundtrip.services.token_read import Bounds
from roundtrip.store import jobs
from support.holding import Stage
from support.reading import GONE, RANGE, Process, Service, know_first, launched, service_over, to_logs, trade
from support.recording import says_nothing_else


@pytest.fixture
async def service(
    ctx: Context, rpc: SyncRpc, built: Built, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Service]:
    monkeypatch.setattr(books, "new_width", lambda: Width(RANGE, RANGE))
    async with service_over(ctx, Stage(rpc, built), database_url) as found:
        yield found


async def refused(process: Process, token: str) -> RoundtripError:
    with pytest.raises(RoundtripError) as raised:
        await process.asked(token)
    return raised.value


def later(process: Process, seconds: float) -> None:
    """So much time passes for it."""
    now_s = process.ctx.now_s
    process.ctx = replace(process.ctx, now_s=lambda: now_s() + seconds)


async def test_of_a_token_with_too_many_transfers_no_more_are_read(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_read, "AT_ONCE", Bounds(5, 60.0))
    monkeypatch.setattr(token_read, "PIECE", Bounds(8, 60.0))
    monkeypatch.setattr(token_read, "MOST_TRANSFERS", 20)
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
        assert "more transfers than are read" in found["text"]
        assert found["block"] == service.stage.number()
        for top in found["top"]:
            assert int(float(top["balance"])) == held.balance(top["address"]) // 10**18
        assert giver not in [top["address"] for top in found["top"]]
    await jobs.enqueue(service.row, "holders", held.token)
    assert await service.done(other) == 1
    assert await service.kept(held.token) == kept


async def test_where_the_oldest_logs_are_gone_it_is_partial(
    service: Service, monkeypatch: pytest.MonkeyPatch
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
    service: Service, monkeypatch: pytest.MonkeyPatch
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
    later(one, token_read.SURE_S)
    for process in (one, service.process()):
        process.node.instead = one.node.instead
        found = await process.asked(held.token)
        assert (found["status"], found["launch"]) == ("partial", None)
        assert 0 < found["transfersRead"] < held.transfers()
    kept = await service.kept(held.token)
    assert kept is not None
    assert (kept.pruned, kept.first_number, kept.state) == (True, since, "whole")


async def test_a_node_that_says_once_that_what_comes_next_is_gone_costs_no_book(
    service: Service, monkeypatch: pytest.MonkeyPatch
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
        later(one, token_read.SURE_S)
        one.node.instead = says_nothing_else
        found = await one.asked(held.token)
        assert (found["status"], found["transfersRead"]) == ("complete", held.transfers())
    assert one.ctx.books.get(Address(held.token)) is before
    assert await one.asked(held.token) == await service.fresh(held.token)


async def test_what_was_gone_is_read_once_a_node_gives_it_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for once an hour, also by who did not read the rest himself."""
    held, one = launched(service.stage), service.process()
    number = know_first(monkeypatch, held)
    one.node.instead = to_logs(GONE, below=service.stage.number() - 3 * RANGE)
    assert (await one.asked(held.token))["status"] == "partial"
    later(one, token_read.PROBED_EVERY_S)
    one.node.spans.clear()
    for _ in range(2):
        assert (await one.asked(held.token))["status"] == "partial"
    assert one.node.spans == [(number, number)]
    other = service.process()
    for process in (one, other):
        process.node.instead = says_nothing_else
        assert (await process.asked(held.token))["status"] == "partial"
    later(other, token_read.PROBED_EVERY_S + 60)
    found = await other.asked(held.token)
    assert (found["status"], found["transfersRead"]) == ("complete", held.transfers())
    kept = await service.kept(held.token)
    assert kept is not None
    assert (kept.pruned, kept.first_number) == (False, number)
    assert found == await service.fresh(held.token)
