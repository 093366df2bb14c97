"""Places of a token that nobody knew of when it was read, on the real local chain."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError
from roundtrip.domain.base.types import Address
from roundtrip.services.holder_record import book_reader, collect, late_venues
from roundtrip.services.holder_record.sources import TokenSource, find_non_wallets, read_source
from roundtrip.services.runtime.book_cache import OpenBook, ReadBounds
from roundtrip.services.runtime.context import Context
from support.actors import ETH
from support.holding import SUPPLY, V3, V4, Held
from support.reading import NOT_TODAY, RANGE, ReadingProcess, ReadingService, later, pooled, trade
from support.recording import Answer, filter_of
from support.wallet import PoolSpec

UNREAD = "Some of its pools could not be read"


@dataclass
class Blind:
    """Nobody knows these places of a token; where ``opened_in`` has one, the index knows since when it is
    there."""

    hidden: frozenset[str] = frozenset()
    opened_in: dict[str, int] = field(default_factory=dict)
    second: str = ""

    async def source(self, ctx: Context, token: Address, meter: Meter) -> TokenSource:
        found = await read_source(ctx, token, meter)
        venues = {at: one for at, one in found.log_sources.venues.items() if at not in self.hidden}
        return replace(
            found,
            log_sources=replace(found.log_sources, venues=venues),
            places=find_non_wallets(token, venues, ctx.contracts),
            opened_in=self.opened_in,
        )


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> Blind:
    found = Blind()
    monkeypatch.setattr(collect, "read_source", found.source)
    monkeypatch.setattr(book_reader, "read_source", found.source)
    return found


SECOND = PoolSpec("weth", 10_000)


@pytest.mark.parametrize("place", [V3, V4], ids=["v3", "v4"])
async def test_trades_at_a_place_that_was_not_known_are_read_after_all(
    service: ReadingService, blind: Blind, place: PoolSpec
) -> None:
    held, one, other = pooled(service.stage, place), service.process(), service.process()
    trade(held, 5)
    await one.ctx.heads.refresh()
    all_known = await read_source(one.ctx, Address(held.token), Meter())
    blind.hidden = frozenset(all_known.log_sources.venues)
    before = await one.asked(held.token)
    assert [top["entryMarketCapUsd"] for top in before["top"]] == [None] * len(before["top"])
    assert before["snipers"] is None
    blind.hidden = frozenset()
    found = [await process.asked(held.token) for process in (one, other)]
    assert found[0]["snipers"] is not None
    assert found == [await service.fresh(held.token)] * 2


@pytest.mark.parametrize("known", [True, False], ids=["by the index", "by its logs"])
async def test_a_place_that_opened_later_or_where_nobody_traded_costs_nothing(
    service: ReadingService, blind: Blind, known: bool
) -> None:
    """And is nobody's wallet from then on."""
    stage = service.stage
    held = pooled(stage, V3)
    trade(held, 5)
    one = service.process()
    await one.asked(held.token)
    read_to = stage.number()
    stranger = stage.wallet("stranger")
    held.do(held.move(held.deployer, stranger, 1000))
    held.venue = SECOND
    held.pool(stranger, 1000, ETH)
    pool = next(at for at in held.pools if held.balance(at) < SUPPLY // 100)
    blind.hidden = frozenset() if known else frozenset({pool})
    blind.opened_in = {pool: read_to + 1} if known else {}
    asked_to = read_to
    if not known:
        asked_to = (await one.asked(held.token))["block"]
    blind.hidden = frozenset()
    one.node.spans.clear()
    trade(held, 1, "buyer there")
    found = await one.asked(held.token)
    assert any(first > asked_to for first, _ in one.node.spans)
    assert all(last <= asked_to or first > asked_to for first, last in one.node.spans)
    assert not known or all(first > asked_to for first, _ in one.node.spans)
    assert found == await service.fresh(held.token)


# --- a node that gives little at once, or nothing -------------------------------------------------------


async def with_an_empty_pool(
    service: ReadingService, blind: Blind, one: ReadingProcess, read_first: bool = True
) -> Held:
    """A token with a second pool, which nobody knows, and in which nobody trades; it is read by then."""
    stage = service.stage
    held = pooled(stage, V3)
    trade(held, 5)
    stranger = stage.wallet("stranger")
    held.do(held.move(held.deployer, stranger, 1000))
    held.venue = SECOND
    held.pool(stranger, 1000, ETH)
    pool = next(at for at in held.pools if held.balance(at) < SUPPLY // 100)
    stage.pass_blocks(3 * RANGE)
    blind.hidden = frozenset({pool})
    if read_first:
        assert (await one.asked(held.token))["status"] == "complete"
    return held


def of(process: ReadingProcess, held: Held) -> OpenBook:
    found = process.ctx.books.get(Address(held.token))
    assert found is not None
    return found


def to_venues(held: Held, answer: RpcError, above: int = 0) -> Callable[[RpcCall], Answer | None]:
    """A node that answers so where a venue's logs alone are asked for, of more blocks than that."""

    def instead(call: RpcCall) -> Answer | None:
        if call.method != "eth_getLogs" or held.token in filter_of(call).get("address", ()):
            return None
        asked = filter_of(call)
        if "fromBlock" not in asked:
            return None
        return answer if int(asked["toBlock"], 16) - int(asked["fromBlock"], 16) >= above else None

    return instead


async def test_a_node_that_gives_few_blocks_at_once_is_asked_for_few(
    service: ReadingService, blind: Blind
) -> None:
    one = service.process()
    held = await with_an_empty_pool(service, blind, one)
    before, read_to = of(one, held), service.stage.number()
    blind.hidden = frozenset()
    one.node.instead = to_venues(held, RpcError(-32000, "block range exceeds 9"), above=9)
    one.node.spans.clear()
    found = await one.asked(held.token)
    assert of(one, held) is before
    assert sum(last - first < 9 and last <= read_to for first, last in one.node.spans) > RANGE // 9
    assert found["status"] == "complete"
    one.node.spans.clear()
    await one.asked(held.token)
    assert one.node.spans == []
    assert found == await service.fresh(held.token)


@pytest.mark.parametrize(
    "error",
    [
        RpcError(-32000, "not today"),
        RpcError(4444, "pruned history unavailable"),
        RpcError(429, "rate limit"),
    ],
    ids=["not today", "pruned", "asked too much"],
)
async def test_a_node_that_does_not_say_whether_there_were_trades_leaves_it_partial(
    service: ReadingService, blind: Blind, error: RpcError
) -> None:
    """Nothing is read again, what is new is read on, and it is asked for again."""
    service.limits.late_venues_s = 0.3
    one, other = service.process(), service.process()
    held = await with_an_empty_pool(service, blind, one)
    before = of(one, held)
    blind.hidden = frozenset()
    for process in (one, other):
        process.node.instead = to_venues(held, error)
    service.limits.written_every = 1
    for _ in range(2):
        held.venue = V3
        trade(held, 1, "late")
        # Nor does the book that is kept know of that place.
        third = service.process()
        third.node.instead = one.node.instead
        for process in (one, other, third):
            found = await process.asked(held.token)
            assert (found["status"], found["transfersRead"]) == ("partial", held.transfers())
            assert UNREAD in found["text"]
    assert of(one, held) is before
    service.limits.late_venues_s = 30.0
    for process in (one, other, service.process()):
        process.node.instead = lambda call: None
        assert (await process.asked(held.token))["status"] == "complete"
    assert of(one, held) is before
    assert await one.asked(held.token) == await service.fresh(held.token)


async def test_it_goes_on_from_where_a_node_stopped_to_say(service: ReadingService, blind: Blind) -> None:
    service.limits.late_venues_s = 1.0
    one = service.process()
    held = await with_an_empty_pool(service, blind, one)
    blind.hidden = frozenset()
    begins = of(one, held).book.beginning.first_number
    stops = begins + 2 * RANGE

    def instead(call: RpcCall) -> Answer | None:
        is_late = call.method == "eth_getLogs" and int(filter_of(call).get("toBlock", "0x0"), 16) >= stops
        return to_venues(held, RpcError(-32000, "not today"))(call) if is_late else None

    one.node.instead = instead
    assert (await one.asked(held.token))["status"] == "partial"
    service.limits.late_venues_s = 30.0
    one.node.instead = lambda call: None
    one.node.spans.clear()
    assert (await one.asked(held.token))["status"] == "complete"
    assert begins + RANGE < min(first for first, _ in one.node.spans) <= stops


async def test_a_token_is_read_again_for_late_places_once_an_hour(
    service: ReadingService, blind: Blind
) -> None:
    one = service.process()
    held = await with_a_second_pool(service, blind)
    for time, is_soon in enumerate((False, True, False)):
        blind.hidden = frozenset({blind.second})
        held.do(held.buy(service.stage.wallet(f"late buyer {time}"), ETH // 1000))
        await one.asked(held.token)
        before = of(one, held)
        blind.hidden = frozenset()
        found = await one.asked(held.token)
        assert (found["status"], of(one, held) is before) == ("partial" if is_soon else "complete", is_soon)
        if is_soon:
            assert UNREAD in found["text"]
            later(one, late_venues.REREAD_EVERY_S)
            assert (await one.asked(held.token))["status"] == "complete"
            later(one, late_venues.REREAD_EVERY_S)
    assert await one.asked(held.token) == await service.fresh(held.token)


async def test_a_late_place_is_looked_at_from_where_it_opened(service: ReadingService, blind: Blind) -> None:
    one = service.process()
    held = await with_an_empty_pool(service, blind, one)
    (pool,) = blind.hidden
    blind.hidden = frozenset()
    blind.opened_in = {pool: service.stage.number() - 3 * RANGE}
    one.node.spans.clear()
    assert (await one.asked(held.token))["status"] == "complete"
    assert min(first for first, _ in one.node.spans) == service.stage.number() - 3 * RANGE


# --- places that were known -----------------------------------------------------------------------------


async def with_a_second_pool(service: ReadingService, blind: Blind) -> Held:
    """A token with a second pool in which somebody traded."""
    stage = service.stage
    held = pooled(stage, V3)
    trade(held, 5)
    first = set(held.pools)
    held.venue = SECOND
    held.pool(held.deployer, SUPPLY // 100, ETH)
    held.do(held.buy(stage.wallet("early"), ETH // 10))
    (blind.second,) = set(held.pools) - first
    return held


@pytest.mark.parametrize("traded", [True, False])
async def test_a_place_that_is_known_no_more_is_missed_until_it_is(
    service: ReadingService, blind: Blind, traded: bool
) -> None:
    """Also by a process that has what another one kept meanwhile."""
    service.limits.written_every = 1
    one, held = service.process(), await with_a_second_pool(service, blind)
    assert (await one.asked(held.token))["status"] == "complete"
    read_to = service.stage.number()
    blind.hidden = frozenset({blind.second})
    if traded:
        held.do(*(held.buy(buyer, ETH // 10) for buyer in service.stage.wallets("in the gap", 3)))
    held.venue = V3
    for part in range(2):
        trade(held, 2, f"meanwhile {part}")
        for process in (one, service.process()):
            found = await process.asked(held.token)
            assert (found["status"], found["transfersRead"]) == ("partial", held.transfers())
            assert UNREAD in found["text"]
    blind.hidden = frozenset()
    other = service.process()
    one.node.spans.clear()
    found_by = [await process.asked(held.token) for process in (one, other)]
    assert found_by[0]["status"] == "complete"
    assert all(first > read_to for first, _ in one.node.spans) is not traded
    assert found_by == [await service.fresh(held.token)] * 2


async def test_standard_places_that_nobody_opened_are_not_missed(service: ReadingService) -> None:
    """They are tried as long as some may be unknown."""
    stage, one, other = service.stage, service.process(), service.process()
    held = pooled(stage, V3)
    trade(held, 5)
    stage.pass_blocks(3)
    younger = VenueIndex(one.ctx.contracts, 1)
    one.ctx = replace(
        one.ctx, heads=Heads(one.node, one.ctx.chain_id, one.ctx.contracts, venue_index=younger)
    )
    assert (await one.asked(held.token))["status"] == "partial"
    begun = of(one, held).book.beginning.venues
    found = await other.asked(held.token)
    assert begun > of(other, held).book.beginning.venues
    assert found["status"] == "complete"


async def test_no_launch_is_told_while_trades_may_be_missing(service: ReadingService, blind: Blind) -> None:
    service.limits.late_venues_s = 0.3
    stage, one = service.stage, service.process()
    held = pooled(stage, V4)
    trade(held, 5)
    await one.ctx.heads.refresh()
    known = frozenset((await read_source(one.ctx, Address(held.token), Meter())).log_sources.venues)
    stage.pass_blocks(3 * RANGE)
    held.venue = SECOND
    held.pool(held.deployer, SUPPLY // 4, 20 * ETH)
    held.do(*(held.buy(wallet, ETH) for wallet in stage.wallets("crowd", 4)))
    for part in range(4):
        stage.pass_blocks(RANGE)
        trade(held, 3, f"trader {part}")
    blind.hidden = known
    service.limits.at_once = ReadBounds(logs=22, seconds=60.0)
    service.limits.piece = ReadBounds(10, 60.0)
    found = await one.asked(held.token)
    assert (found["status"], found["launch"] is None) == ("reading", False)
    blind.hidden = frozenset()
    one.node.instead = to_venues(held, NOT_TODAY)
    async with one.ctx.books.alone(Address(held.token)):
        # Before the job that reads on comes to look at them, too.
        assert (await one.asked(held.token))["launch"] is None
    for _ in range(2):
        found = await one.asked(held.token)
        assert (found["status"], found["launch"], found["bundle"]) == ("reading", None, None)
