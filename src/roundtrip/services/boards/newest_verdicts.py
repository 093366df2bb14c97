"""The newest verdicts of tokens, traps among them, and an example of each kind to look at."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.exposure import INSIDERS_HIGH_BPS
from roundtrip.domain.market.moving import SELLS, TRAP
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import TokenNamed, present_token, reading, when
from roundtrip.services.support.shown_verdict import PageOfRows, ShownVerdict, present_stored
from roundtrip.store.boards import market_figures, moving
from roundtrip.store.boards.moving import NewestCheck
from roundtrip.store.boards.reference_pools import most_used_of
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import Label, ids_of, labels_of
from roundtrip.store.server.rows import Connection

from .token_market import MarketRow, read_money

MAX_SHOWN = 50
MAX_CHOSEN = 12
_LOOKED_AT = 400
"""Newest checks that are read: so many that a token that is checked again and again hides no other one."""
_MAX_TOKENS = 60
"""Tokens whose verdicts are read: the chosen are the first of them, the examples may be any."""
_SHARED_MS = 5_000

ExampleKind = Literal["ok", "trap", "warn"]
_KINDS: tuple[ExampleKind, ...] = ("ok", "trap", "warn")


class NewestVerdict(MarketRow, frozen=True, rename="camel", kw_only=True):
    """A token's verdict, and its market. ``age_s``: since its launch, or since its oldest place opened."""

    token: TokenNamed
    verdict: ShownVerdict
    insiders_bps: int | None = None
    age_s: int | None = None


class NewestVerdicts(PageOfRows[NewestVerdict], frozen=True, rename="camel"):
    """The tokens that were checked last, the newest check first. ``before``: where the next page begins;
    None: there is none. ``made``: about how many checks were made up to the first of these. ``chosen``: some
    of them, those that people asked for before others. ``examples``: the first that sells and whose insiders
    hold little, the first trap, and the first that sells with a warning, as far as there are."""

    before: int | None
    made: int
    chosen: list[NewestVerdict]
    examples: list[NewestVerdict]


class NewestParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``before``: the check before which the page begins; None: it begins with the newest."""

    before: Annotated[int, msgspec.Meta(ge=1, le=2**62)] | None = None


async def newest_verdicts(ctx: Context, params: NewestParams) -> UseCaseAnswer[NewestVerdicts]:
    """The answer. Raises ServiceFull."""
    now_s = ctx.now_s()
    async with reading(ctx) as (connection, cursor):
        newest = await moving.read_newest(connection, _LOOKED_AT, params.before)
        # Each token once, at its newest check: a dict keeps the place of a key that comes again.
        all_tokens = list(dict.fromkeys(check.token for check in newest))
        asked = list(dict.fromkeys([check.token for check in newest if check.asked] + all_tokens))
        tokens, asked = all_tokens[:MAX_SHOWN], asked[:_MAX_TOKENS]
        checks = await moving.read_shown_checks(connection, {*tokens, *asked})
        names = await labels_of(connection, checks)
        markets = await _read_markets(ctx, connection, cursor, tokens, names)
    rows = {
        token: NewestVerdict(
            token=present_token(names[token]),
            verdict=verdict,
            insiders_bps=its.exposure.insiders(now_s),
            **markets.get(token, {}),
        )
        for token, its in checks.items()
        if (verdict := present_stored(its, now_s)) is not None
    }
    candidates = [rows[token] for token in asked if token in rows]
    answer = NewestVerdicts(
        "",
        cursor.block.number,
        when(cursor.block.timestamp_s),
        _sort_newest(rows[token] for token in tokens if token in rows),
        _find_next(newest, tokens, len(all_tokens)),
        newest[0].id if newest else 0,
        _sort_newest(candidates[:MAX_CHOSEN]),
        _find_examples(candidates),
    )
    return UseCaseAnswer(answer, ttl_ms=_SHARED_MS)


def _sort_newest(rows: Iterable[NewestVerdict]) -> list[NewestVerdict]:
    return sorted(rows, key=lambda row: row.verdict.checked_at, reverse=True)


def _find_next(newest: Sequence[NewestCheck], tokens: Collection[Address], found: int) -> int | None:
    """The check before which the next page begins: the oldest of those whose tokens are shown, unless all of
    the older ones are known to be of shown tokens."""
    if found <= len(tokens) and len(newest) < _LOOKED_AT:
        return None
    first_ids: dict[Address, int] = {}
    for check in newest:
        first_ids.setdefault(check.token, check.id)
    return min((first_ids[token] for token in tokens), default=None)


async def _read_markets(
    ctx: Context,
    connection: Connection,
    cursor: Cursor,
    tokens: Collection[Address],
    names: Mapping[Address, Label],
) -> dict[Address, Mapping[str, Any]]:
    """The age of each token that is known, and its market, if it was traded within a day."""
    numbers = await ids_of(connection, tokens)
    newest_s = cursor.block.timestamp_s
    places = await most_used_of(connection, list(numbers.values()), newest_s, ctx.contracts)
    traded = [_Traded(token_id, place.pool_id, place.at_s) for token_id, place in places.items()]
    lines = await market_figures.read_prices(connection, traded, newest_s, 0, ctx.contracts, many=0)
    depths = await market_figures.read_depths(connection, traded, ctx.contracts)
    opened = await market_figures.read_opened(connection, list(numbers.values()))
    money = await read_money(ctx, connection, cursor, list(depths.values()))
    markets: dict[Address, Mapping[str, Any]] = {}
    for token, number in numbers.items():
        line = lines.get(number)
        market = {} if line is None else money.market(line.newest, depths.get(number), names[token])
        age_s = max(0, newest_s - opened[number]) if number in opened else None
        markets[token] = {**market, "age_s": age_s}
    return markets


class _Traded(NamedTuple):
    token_id: int
    pool_id: int
    opened_s: int


def _find_examples(rows: Sequence[NewestVerdict]) -> list[NewestVerdict]:
    examples: dict[ExampleKind, NewestVerdict] = {}
    for row in rows:
        kind = _kind(row.verdict)
        # A good example is one whose insiders are known to hold little.
        if kind is not None and (kind != "ok" or _has_low_insiders(row)):
            examples.setdefault(kind, row)
    return [examples[kind] for kind in _KINDS if kind in examples]


def _has_low_insiders(row: NewestVerdict) -> bool:
    return row.insiders_bps is not None and row.insiders_bps < INSIDERS_HIGH_BPS


def _kind(verdict: ShownVerdict) -> ExampleKind | None:
    if verdict.code == TRAP:
        return "trap"
    if verdict.code not in SELLS:
        return None
    if verdict.level == "ok":
        return "ok"
    return "warn" if verdict.level == "warn" else None
