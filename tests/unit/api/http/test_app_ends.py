"""The application's end: what is under way is waited for while everything that it needs is still there."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import cast

import pytest

from roundtrip.api.admission.gate import Gate
from roundtrip.api.dispatch import Dispatch
from roundtrip.api.http.app import create_app
from roundtrip.api.request.callers import Callers
from roundtrip.api.sharing.single_flight import SharedAnswer, SharedAnswers
from roundtrip.domain.base.metrics import Measures
from roundtrip.services.runtime.context import Context


class Nowhere:
    public_url = "http://127.0.0.1"

    def __init__(self) -> None:
        self.measures = Measures()


@pytest.mark.parametrize("fails", [False, True])
async def test_runs_end_before_what_they_need_and_whatever_else_fails(fails: bool) -> None:
    order: list[str] = []
    shared = SharedAnswers(asyncio.get_running_loop().time)

    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        try:
            yield
        finally:
            order.append("closed")

    async def make() -> SharedAnswer:
        for _ in range(200):
            await asyncio.sleep(0)
        order.append("run")
        return SharedAnswer(b"", 0, False)

    dispatch = Dispatch(cast(Context, Nowhere()), cast(Gate, object()), shared)
    app = create_app(dispatch, Callers(), lifespan)
    # The tool server's own tasks make a group of it.
    with contextlib.suppress(ExceptionGroup):
        async with app.router.lifespan_context(app):
            asking = asyncio.create_task(shared.get("k", make))
            await asyncio.sleep(0)
            if fails:
                raise ZeroDivisionError
    assert order == ["run", "closed"]
    await asking
