"""The page of insider alerts: the board's rows, each with the verdict of its token."""

import msgspec

from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import Nothing, reading
from roundtrip.services.support.shown_verdict import SHARED_MS, PageOfRows, ShownVerdict, present_stored
from roundtrip.store.boards.newest_checks import read_shown_checks

from .signals import Signal, signals


class SignalRow(Signal, frozen=True, rename="camel"):
    """The row with the verdict of its token; None: it is not checked."""

    verdict: ShownVerdict | None


class SignalsPage(PageOfRows, frozen=True, rename="camel"):
    """The rows of ``signals`` for people."""

    signals: list[SignalRow]


async def signals_page(ctx: Context, params: Nothing) -> UseCaseAnswer[SignalsPage]:
    """The page's rows. Raises ServiceFull."""
    found = (await signals(ctx, params)).answer
    async with reading(ctx) as (connection, _):
        tokens = {Address(signal.token.address) for signal in found.signals}
        checks = await read_shown_checks(connection, tokens)
    now_s = ctx.now_s()
    rows = [
        SignalRow(
            **msgspec.structs.asdict(signal),
            verdict=present_stored(checks[Address(signal.token.address)], now_s),
        )
        for signal in found.signals
    ]
    answer = SignalsPage(found.text, found.block, found.block_time, rows)
    return UseCaseAnswer(answer, SHARED_MS)
