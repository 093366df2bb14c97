"""What a call past the day costs whoever paid, under clocks that stand still until they are moved."""

import asyncio

import asyncpg
import pytest

from roundtrip.api.admission.gate import Admitted, CallRefused
from roundtrip.api.request.callers import CallerRequest
from roundtrip.store.accounts.credits import HOLD_MS
from support.counting import Balance, key_of
from support.paid_calls import HOME, KEYED, PaidDispatch, flushed

MIDNIGHT_MS = 1_760_054_400_000


@pytest.fixture
async def house() -> PaidDispatch:
    return await PaidDispatch().prepare()


# --- the gate --------------------------------------------------------------------------------------


async def test_past_the_day_a_call_holds_a_credit_until_it_is_answered(house: PaidDispatch) -> None:
    admitted = [await house.ask() for _ in range(3)]
    assert [(one.day, one.hold and one.hold.until_ms) for one in admitted] == [
        (None, house.wall.ms + HOLD_MS)
    ] * 3
    assert (house.has(), house.minute()) == ((2, 3, 0), 3)
    await house.gate.charge(admitted[0])
    assert house.has() == (2, 2, 1)
    left = house.gate.refund(admitted[1]).ticket
    assert left is not None
    assert left.remaining == 5
    await flushed()
    assert (house.has(), house.minute(), sum(house.ledger.days.values())) == ((3, 1, 1), 2, 2)
    house.gate.release(admitted[2])
    await flushed()
    assert (house.has(), house.minute()) == ((4, 0, 1), 2)


async def test_without_a_credit_the_day_is_over_and_costs_nothing(house: PaidDispatch) -> None:
    house.ledger.balances[1] = Balance(0, 5)
    assert await house.refused() == ("daily_limit", 6)
    assert (house.has(), house.minute()) == ((0, 0, 5), 0)


async def test_who_never_paid_is_not_looked_up(house: PaidDispatch) -> None:
    other = CallerRequest(HOME, key_of("n"))
    for _ in range(2):
        await house.ask(other)
    assert await house.refused(other) == ("daily_limit", 4)
    assert house.ledger.moves == 0


async def test_the_minute_holds_for_calls_that_are_paid_for(house: PaidDispatch) -> None:
    house.ledger.balances[1] = Balance(5)
    for _ in range(5):
        await house.ask()
    await house.ask(counts="minute")
    assert await house.refused() == ("rate_limited", 0)
    assert house.has() == (0, 5, 0)


async def test_what_counts_by_the_minute_only_costs_no_credit(house: PaidDispatch) -> None:
    assert (await house.ask(counts="minute")).hold is None
    assert (await house.gate.admit(KEYED, "never", needs_key=True)).hold is None
    assert house.has() == (5, 0, 0)


async def test_credits_are_held_and_free_calls_come_back_at_midnight(house: PaidDispatch) -> None:
    house.wall.ms = MIDNIGHT_MS - 1
    late = await house.ask()
    house.wall.ms = MIDNIGHT_MS
    assert (await house.ask()).hold is None
    house.gate.refund(late)
    await flushed()
    assert house.has() == (5, 0, 0)
    assert sorted(house.ledger.days.values()) == [1, 2]


@pytest.mark.parametrize("can_be_paid", [True, False])
async def test_the_limit_says_whether_there_is_more_to_be_had(house: PaidDispatch, can_be_paid: bool) -> None:
    house.gate.can_be_paid = can_be_paid
    house.ledger.balances.clear()
    with pytest.raises(CallRefused) as caught:
        await house.ask()
    assert ("/v1/credits" in caught.value.error.message) == can_be_paid


async def test_everybody_who_comes_meanwhile_shares_one_statement(house: PaidDispatch) -> None:
    came = await asyncio.gather(*(house.ask() for _ in range(6)), return_exceptions=True)
    assert [isinstance(one, Admitted) for one in came] == [True] * 5 + [False]
    assert house.ledger.moves == 1
    await asyncio.gather(*(house.gate.charge(one) for one in came if isinstance(one, Admitted)))
    assert (house.ledger.moves, house.has()) == (2, (0, 0, 5))


async def test_what_is_given_back_can_be_spent_by_the_next_call(house: PaidDispatch) -> None:
    house.ledger.balances[1] = Balance(1, 4)
    for _ in range(4):
        house.gate.refund(await house.ask())
    await flushed()
    assert house.has() == (1, 0, 4)


async def test_a_hold_of_a_process_that_is_gone_goes_back(house: PaidDispatch) -> None:
    for _ in range(5):
        await house.ask()
    house.gate = house.made()
    house.wall.ms += HOLD_MS - 1
    assert (await house.refused())[0] == "daily_limit"
    house.wall.ms += 1
    assert (await house.ask()).hold is not None
    assert house.has() == (4, 1, 0)


async def test_past_as_many_as_may_wait_it_is_busy(house: PaidDispatch) -> None:
    house.spender.max_waiting = 2
    came = await asyncio.gather(*(house.ask() for _ in range(3)), return_exceptions=True)
    codes = [one.error.code if isinstance(one, CallRefused) else "in" for one in came]
    assert (codes, house.has(), house.minute()) == (["in", "in", "busy"], (3, 2, 0), 2)


# --- faults ----------------------------------------------------------------------------------------

GONE = [OSError("refused"), TimeoutError(), asyncpg.PostgresError("starting up"), ValueError("of ours")]


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("fault", GONE, ids=lambda fault: type(fault).__name__)
async def test_a_credit_that_may_be_held_goes_back(
    house: PaidDispatch, fault: Exception, is_done: bool
) -> None:
    house.ledger.moving_fault, house.ledger.is_moved = fault, is_done
    assert await house.refused() == ("busy", 6)
    assert house.has() == ((4, 1, 0) if is_done else (5, 0, 0))
    house.ledger.moving_fault, house.now_s = None, 1.0
    admitted = await house.ask()
    assert house.has() == (4, 1, 0)
    assert admitted.hold is not None
    assert list(house.ledger.holds) == [admitted.hold.id]


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("fault", GONE, ids=lambda fault: type(fault).__name__)
async def test_what_may_be_spent_is_spent_once(house: PaidDispatch, fault: Exception, is_done: bool) -> None:
    """The answer goes out all the same."""
    one, other = await house.ask(), await house.ask()
    house.ledger.moving_fault, house.ledger.is_moved = fault, is_done
    await house.gate.charge(one)
    await house.gate.charge(other)
    assert house.has() == ((3, 1, 1) if is_done else (3, 2, 0))
    house.ledger.moving_fault, house.now_s = None, 1.0
    await house.ask()
    assert house.has() == (2, 1, 2)


async def test_a_database_that_is_gone_is_not_asked_by_everybody(house: PaidDispatch) -> None:
    admitted = [await house.ask() for _ in range(3)]
    before = house.ledger.moves
    house.ledger.moving_fault = OSError()
    for one in admitted:
        await house.gate.charge(one)
        assert (await house.refused())[0] == "busy"
    assert house.ledger.moves == before + 1


async def charge_in_an_outage(house: PaidDispatch, admitted: Admitted) -> None:
    """Charges while the database is gone, and waits until that is tried again."""
    house.ledger.moving_fault = OSError()
    await house.gate.charge(admitted)
    house.ledger.came.clear()
    house.ledger.moving_fault = None
    async with asyncio.timeout(30):
        await house.ledger.came.wait()
    await flushed()


async def test_nobody_has_to_ask_for_what_is_left_to_be_tried_again() -> None:
    house = await PaidDispatch(retry_s=0.001).prepare()
    admitted = await house.ask()
    await charge_in_an_outage(house, admitted)
    assert house.has() == (4, 0, 1)


async def test_after_a_second_outage_it_is_tried_again_too() -> None:
    house = await PaidDispatch(retry_s=0.001).prepare()
    for spent in (1, 2):
        admitted = await house.ask()
        await charge_in_an_outage(house, admitted)
        house.now_s += 1.0
        assert house.has() == (5 - spent, 0, spent)


async def test_what_is_spent_while_the_database_is_gone_needs_nobody_to_be_tried_again() -> None:
    house = await PaidDispatch(retry_s=0.001).prepare()
    admitted = await house.ask()
    house.ledger.moving_fault = OSError()
    assert house.gate.spender is not None
    goes_away = asyncio.create_task(house.gate.spender.hold(1, None, house.wall()))
    await asyncio.sleep(0)
    goes_away.cancel()
    await flushed()
    await charge_in_an_outage(house, admitted)
    assert house.has() == (4, 0, 1)


async def test_a_hold_that_is_over_is_not_ended_any_more(house: PaidDispatch) -> None:
    """Somebody else may have it."""
    spent, given_up = await house.ask(), await house.ask()
    house.ledger.moving_fault = OSError()
    await house.gate.charge(spent)
    house.gate.release(given_up)
    house.wall.ms += HOLD_MS
    house.ledger.moving_fault, house.now_s = None, 1.0
    await house.ask()
    assert house.has() == (4, 1, 0)


@pytest.mark.parametrize("was_gone", [False, True])
async def test_what_is_left_at_the_end_is_done(house: PaidDispatch, was_gone: bool) -> None:
    async with house.gate.open():
        spent, back = await house.ask(), await house.ask()
        house.ledger.moving_fault = OSError() if was_gone else None
        settling = asyncio.create_task(house.gate.charge(spent))
        await (flushed() if was_gone else asyncio.sleep(0))
        house.ledger.moving_fault = None
        house.gate.refund(back)
    assert house.has() == (4, 0, 1)
    await settling


# --- who goes away ---------------------------------------------------------------------------------


async def test_who_goes_away_while_a_credit_is_asked_for_holds_none(house: PaidDispatch) -> None:
    """Before its flush began, while it is under way, and at the moment it was told."""
    house.ledger.go.clear()
    under_way = asyncio.create_task(house.ask())
    await house.ledger.came.wait()
    waiting = asyncio.create_task(house.ask())
    await flushed()
    under_way.cancel()
    waiting.cancel()
    house.ledger.go.set()
    came = await asyncio.gather(under_way, waiting, return_exceptions=True)
    assert [type(one) for one in came] == [asyncio.CancelledError] * 2
    await flushed()
    assert house.has() == (5, 0, 0)
    assert (await house.ask()).ticket.remaining == 5  # type: ignore[union-attr]


async def test_who_goes_away_at_the_moment_it_is_told_holds_none(house: PaidDispatch) -> None:
    """It is cancelled a turn of the loop later each time, until it is in before that."""

    async def gone_after(turns: int) -> bool:
        asked = asyncio.create_task(house.ask())
        for _ in range(turns):
            await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait([asked])
        await flushed()
        return asked.cancelled()

    turns = 0
    while await gone_after(turns):
        assert house.has() == (5, 0, 0), turns
        house.wall.ms += 60_000
        turns += 1
    assert turns > 3
    assert house.has() == (4, 1, 0)


async def test_who_goes_away_before_it_is_spent_has_it_back(house: PaidDispatch) -> None:
    under_way, waiting = await house.ask(), await house.ask()
    house.ledger.go.clear()
    house.ledger.came.clear()
    first = asyncio.create_task(house.gate.charge(under_way))
    await house.ledger.came.wait()
    second = asyncio.create_task(house.gate.charge(waiting))
    await flushed()
    first.cancel()
    second.cancel()
    house.ledger.go.set()
    await asyncio.gather(first, second, return_exceptions=True)
    await flushed()
    assert house.has() == (4, 0, 1)
