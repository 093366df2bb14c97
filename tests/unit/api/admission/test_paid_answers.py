"""What an answer costs whoever paid for it, by how it ends."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from roundtrip.api.dispatch import DEADLINE_S, DoorReply
from roundtrip.api.operations.operation import AnyOperation, HandlerCall
from roundtrip.api.server.protocol import BODY_S
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.services.runtime.context import UseCaseAnswer
from roundtrip.store.accounts.credits import HOLD_MS
from support.paid_calls import KEYED, PLAIN, SHARED, PaidDispatch, PaidParams, PaidText, flushed, say


@pytest.fixture
async def house() -> PaidDispatch:
    return await PaidDispatch().prepare()


def failing(error: BaseException) -> Callable[..., Awaitable[UseCaseAnswer[Any]]]:
    async def handler(call: HandlerCall[PaidParams]) -> UseCaseAnswer[Any]:
        raise error

    return handler


async def spoiled(call: HandlerCall[PaidParams]) -> UseCaseAnswer[PaidText]:
    return UseCaseAnswer(PaidText("x"), counted=False)


@pytest.mark.parametrize("operation", [PLAIN, SHARED], ids=["own", "shared"])
@pytest.mark.parametrize(
    ("handler", "status", "cost", "counted"),
    [
        (say, 200, 1, 1),
        (failing(CallerFault("not_found", "No.")), 404, 0, 1),
        (spoiled, 200, 0, 0),
        (failing(NodeFault("it took too long")), 502, 0, 0),
        (failing(ValueError("of ours")), 500, 0, 0),
    ],
)
async def test_an_answer_costs_one_and_an_error_nothing(
    house: PaidDispatch, operation: AnyOperation, handler: Any, status: int, cost: int, counted: int
) -> None:
    """By the time it goes out."""
    reply = await house.run(replace(operation, handler=handler))
    assert reply.status == status
    if cost:
        assert house.has() == (4, 0, 1)
        assert reply.headers["x-ratelimit-remaining"] == "5"
    await flushed()
    assert house.has() == (5 - cost, 0, cost)
    assert house.minute() == counted


async def test_parameters_that_do_not_fit_count_and_cost_nothing(house: PaidDispatch) -> None:
    reply = await house.dispatch.run(PLAIN, {"address": 5}, KEYED)
    await flushed()
    assert (reply.status, house.has(), house.minute()) == (400, (5, 0, 0), 1)


async def test_an_answer_that_was_there_already_costs_one(house: PaidDispatch) -> None:
    replies = [await house.run(SHARED) for _ in range(3)]
    assert [reply.headers["x-cache"] for reply in replies] == ["miss", "hit", "hit"]
    assert house.has() == (2, 0, 3)


async def test_what_takes_too_long_costs_nothing(house: PaidDispatch) -> None:
    async def forever(call: HandlerCall[PaidParams]) -> UseCaseAnswer[PaidText]:
        await asyncio.Event().wait()
        raise AssertionError

    house.dispatch = replace(house.dispatch, deadline_s=0.0)
    assert (await house.run(replace(PLAIN, handler=forever))).status == 503
    await flushed()
    assert house.has() == (5, 0, 0)


@pytest.mark.parametrize("operation", [PLAIN, SHARED], ids=["own", "shared"])
async def test_whoever_is_gone_before_its_answer_pays_nothing_and_others_get_theirs(
    house: PaidDispatch, operation: AnyOperation
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(call: HandlerCall[PaidParams]) -> UseCaseAnswer[PaidText]:
        begun.set()
        await go.wait()
        return UseCaseAnswer(PaidText("x"))

    operation = replace(operation, handler=slow)
    asking = [asyncio.create_task(house.run(operation)) for _ in range(2)]
    await begun.wait()
    await flushed()
    assert house.has() == (3, 2, 0)
    asking[0].cancel()
    await flushed()
    assert house.has() == (4, 1, 0)
    go.set()
    gone, there = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(gone, asyncio.CancelledError)
    assert isinstance(there, DoorReply)
    assert (there.status, house.has()) == (200, (4, 0, 1))


async def test_an_answer_goes_out_where_it_cannot_be_paid_for(house: PaidDispatch) -> None:
    async def away(call: HandlerCall[PaidParams]) -> UseCaseAnswer[PaidText]:
        house.ledger.moving_fault = OSError()
        return UseCaseAnswer(PaidText("x"))

    assert (await house.run(replace(PLAIN, handler=away))).status == 200
    assert house.has() == (4, 1, 0)


def test_a_hold_outlives_every_call() -> None:
    assert (BODY_S + DEADLINE_S) * 2 * 1_000 <= HOLD_MS
