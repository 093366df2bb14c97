"""Views of pages: a budget of people, under a clock that stands still until it is moved."""

from dataclasses import replace

import msgspec
import pytest

from roundtrip.api.admission.call_counter import CallCounter
from roundtrip.api.admission.gate import Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.admission.page_views import PIECES_PER_VIEW, PageViews
from roundtrip.api.request.callers import CallerRequest, Callers
from roundtrip.domain.accounts.account import AddressAllowance, Allowances, CallAllowance
from roundtrip.domain.base.errors import RoundtripError
from support.counting import Counts as Ledger
from support.counting import Wall, account, hashed, key_of

HOME = CallerRequest("address:203.0.113.7", is_local=True)
# Sessions and keys are looked up alike.
MEMBERS = {name: CallerRequest(f"address:{name}", key_of(name), is_local=True) for name in "ab"}
DAY_S = 86_400


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
def gate(wall: Wall) -> Gate:
    live = {hashed(name): account(number) for number, name in enumerate(MEMBERS, 1)}
    call = CallAllowance(3)
    allowances = Allowances(call, call, call, AddressAllowance(keyed=20), CallAllowance(4, 6))
    return Gate(MinuteLimits(wall), allowances, CallCounter(Ledger(live=live), wall))


@pytest.fixture
def views(gate: Gate) -> PageViews:
    return PageViews(gate)


async def take(views: PageViews, count: int, asking: CallerRequest = HOME, is_piece: bool = False) -> None:
    for _ in range(count):
        await views.take(asking, is_piece)


async def refusal(views: PageViews, asking: CallerRequest = HOME, is_piece: bool = False) -> str:
    with pytest.raises(RoundtripError) as caught:
        await views.take(asking, is_piece)
    return f"{caught.value.code} {caught.value.retry_after_s}"


async def test_views_have_a_minute_of_their_own_and_pieces_another(gate: Gate, views: PageViews) -> None:
    gate.allowances = replace(gate.allowances, views=CallAllowance(4))
    await take(views, 4)
    assert await refusal(views) == "rate_limited 60"
    await take(views, PIECES_PER_VIEW * 4, is_piece=True)
    assert await refusal(views, is_piece=True) == "rate_limited 60"
    # Calls are counted apart.
    assert [(await gate.admit(HOME, "day", False)).ticket is not None for _ in range(3)] == [True] * 3


async def test_a_free_view_is_given_back(views: PageViews) -> None:
    for _ in range(10):
        views.refund(await views.take(HOME, False))
    await take(views, 4)


async def test_a_day_of_views_ends_at_midnight(wall: Wall, views: PageViews) -> None:
    await take(views, 4)
    wall.ms += 60_000
    await take(views, 2)
    left_s = DAY_S - wall.ms // 1000 % DAY_S
    assert await refusal(views) == f"daily_limit {left_s}"
    wall.ms += left_s * 1000
    await take(views, 4)


async def test_who_is_signed_in_has_views_of_his_own_wherever_he_is(gate: Gate, views: PageViews) -> None:
    await take(views, 4, msgspec.structs.replace(MEMBERS["a"], name=HOME.name))
    assert await refusal(views, MEMBERS["a"]) == "rate_limited 60"
    await take(views, 4, msgspec.structs.replace(MEMBERS["b"], name=HOME.name))
    await take(views, 4)


async def test_a_refund_on_the_next_day_gives_no_view_more(wall: Wall, gate: Gate, views: PageViews) -> None:
    gate.allowances = replace(gate.allowances, views=CallAllowance(9, 6))
    ticket = await views.take(HOME, False)
    wall.ms += DAY_S * 1000
    await take(views, 1, MEMBERS["a"])
    views.refund(ticket)
    await take(views, 6)
    assert (await refusal(views)).startswith("daily_limit")


async def test_a_session_that_ended_is_told_so(views: PageViews) -> None:
    assert (await refusal(views, msgspec.structs.replace(HOME, key=key_of("z")))).startswith("bad_key")


async def test_networks_are_bounded_and_what_they_refuse_counts_nowhere(gate: Gate, views: PageViews) -> None:
    """Eight addresses' views for a /24; and an address's, whoever is signed in there."""
    gate.allowances = replace(gate.allowances, views=CallAllowance(4))
    callers = [Callers().identify([], (f"203.0.113.{host}", 1)) for host in range(9)]
    for caller in callers[:8]:
        await take(views, 4, caller)
    assert await refusal(views, callers[8]) == "rate_limited 60"
    gate.allowances = replace(gate.allowances, address=AddressAllowance(keyed=5))
    elsewhere = Callers().identify([], ("198.51.100.1", 1))
    await take(views, 4, elsewhere)
    member = msgspec.structs.replace(elsewhere, key=key_of("a"))
    await take(views, 1, member)
    assert await refusal(views, member) == "rate_limited 60"


async def test_a_call_within_a_view_takes_nothing_and_knows_its_account(gate: Gate) -> None:
    for _ in range(9):
        admitted = await gate.admit(msgspec.structs.replace(MEMBERS["a"], in_view=True), "day", False)
        assert (admitted.account, admitted.ticket) == (account(1), None)
        assert (await gate.admit(msgspec.structs.replace(HOME, in_view=True), "day", False)).ticket is None
