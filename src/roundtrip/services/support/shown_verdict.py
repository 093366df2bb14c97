"""What a row of a page shows of a token: its verdict, or its name and its verdict."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Generic, TypeVar

import msgspec

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.moving import CheckedLevel, TokenChecks
from roundtrip.services.support.index_reader import TokenNamed, present_token
from roundtrip.store.boards.moving import read_shown_checks
from roundtrip.store.index.tokens import labels_of
from roundtrip.store.server.rows import Connection

R = TypeVar("R")
"""A row."""

SHARED_MS = 2_000
"""One answer of a page's rows serves all readers for so long."""


class ShownVerdict(msgspec.Struct, frozen=True, rename="camel"):
    """A check. ``level``: whose colour it is shown in. ``age_s`` None: not known. ``loss_bps``: of the round
    trip; None: not measured."""

    code: str
    level: str
    checked_at: datetime
    age_s: int | None
    loss_bps: int | None = None


class PageOfRows(msgspec.Struct, Generic[R], frozen=True, rename="camel"):
    """The answer behind a page of rows. ``text``: what is not counted, or not known."""

    text: str
    block: int
    block_time: datetime
    rows: list[R]


def present_verdict(checks: TokenChecks, now_s: float) -> ShownVerdict | None:
    """The check that a page shows; None: none is young enough."""
    checked = checks.to_show(now_s)
    return None if checked is None else _present(checked, now_s)


def present_stored(checks: TokenChecks, now_s: float) -> ShownVerdict | None:
    """As ``present_verdict``, but where no check is young enough an old one, with level unknown, since it
    proves nothing now. None: no check is stored."""
    young = present_verdict(checks, now_s)
    if young is not None or checks.checked is None:
        return young
    return msgspec.structs.replace(_present(checks.checked, now_s), level="unknown")


def _present(checked: CheckedLevel, now_s: float) -> ShownVerdict:
    at = datetime.fromtimestamp(int(checked.at_s), UTC)
    return ShownVerdict(checked.code, checked.level, at, checked.age_s(now_s), checked.loss_bps)


class TokenState(msgspec.Struct, frozen=True):
    """A token and the check of it that people are shown. ``verdict`` None: no check is stored. An old one has
    level unknown."""

    token: TokenNamed
    verdict: ShownVerdict | None


async def read_states(
    connection: Connection, tokens: Collection[Address], now_s: float
) -> dict[str, TokenState]:
    """The state of each of these tokens, by address."""
    checks, labels = await read_shown_checks(connection, tokens), await labels_of(connection, tokens)
    return {
        token: TokenState(present_token(labels[token]), present_stored(checks[token], now_s))
        for token in set(tokens)
    }
