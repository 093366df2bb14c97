"""This week's practice league."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.market.fairness import FAIRNESS
from roundtrip.domain.practice.league import LEAST_SELLS, Who
from roundtrip.domain.practice.practice import WEEK_S, monday_s
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import (
    TokenNamed,
    eth_text,
    looking,
    present_token,
    quote_token,
    when,
)
from roundtrip.services.support.strangers_text import WRITTEN, AnswerText
from roundtrip.store.index.addresses import ids_of
from roundtrip.store.index.tokens import Label, labels
from roundtrip.store.practice import league as boards
from roundtrip.store.practice.league import LeagueCounts, LeagueRank
from roundtrip.store.server.rows import Connection

SHOWN, PODIUM = 100, 3
_SAID = 3
_ETH_DECIMALS = 18
_DAY = "%A %Y-%m-%d"
_RULES = (
    "Only sells count, losses as gains do, of tokens that are a day old, sold where they were "
    "launched or are traded most, and that at least "
    f"{FAIRNESS.least_buyers} different people bought, as far as can be told, and not by kin of the "
    f"deployer; an entry needs {LEAST_SELLS} of them. The eth is pretend."
)


class LeagueParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose entries."""

    who: Annotated[
        Literal["all", "agents", "people"],
        msgspec.Meta(description="all, those tagged as agents, or the others. Left out: all."),
    ] = "all"


class BestSell(msgspec.Struct, frozen=True, rename="camel"):
    """The sell with the most profit."""

    token: TokenNamed
    profit_eth: Annotated[str, msgspec.Meta(description="Its profit in practice eth, a plain number.")]


class LeagueRow(msgspec.Struct, frozen=True, rename="camel"):
    """An account and its week."""

    rank: Annotated[int, msgspec.Meta(description="1 made the most profit.")]
    designation: Annotated[str, msgspec.Meta(description="What the account is called in public.")]
    agent: Annotated[bool, msgspec.Meta(description="Whether it says that it is a program.")]
    agent_name: Annotated[
        str | None, msgspec.Meta(description=f"What its owner calls that program. {WRITTEN}")
    ]
    profit_eth: Annotated[
        str,
        msgspec.Meta(description="Of its sells that count, losses taken off, in practice eth; a number."),
    ]
    sells: Annotated[int, msgspec.Meta(description="How many sells count.")]
    won: Annotated[int, msgspec.Meta(description="How many of them with a profit.")]
    best: Annotated[BestSell | None, msgspec.Meta(description="null: none of them had a profit.")]


class LastWeek(msgspec.Struct, frozen=True, rename="camel"):
    """How the week before ended."""

    week_start: datetime
    on_board: Annotated[int, msgspec.Meta(description="Mites that had entered it.")]
    podium: Annotated[list[LeagueRow], msgspec.Meta(description=f"Its first {PODIUM}.")]


class League(msgspec.Struct, frozen=True, rename="camel"):
    """The most profit first; of equal profit fewer sells, then whose last sell was earlier."""

    text: AnswerText
    chain_id: int
    who: Literal["all", "agents", "people"]
    week_start: Annotated[datetime, msgspec.Meta(description="Monday, 00:00 UTC.")]
    week_end: Annotated[datetime, msgspec.Meta(description="The next Monday: nobody has a sell then.")]
    on_board: Annotated[int, msgspec.Meta(description=f"Mites with {LEAST_SELLS} sells that count, or more.")]
    too_few: Annotated[int, msgspec.Meta(description="Mites with fewer of them, but one at least.")]
    rows: Annotated[list[LeagueRow], msgspec.Meta(description=f"The first {SHOWN} at most.")]
    last_week: LastWeek


async def league(ctx: Context, params: LeagueParams) -> UseCaseAnswer[League]:
    """The board as it stands. Raises ServiceFull."""
    now_s, who = ctx.now_s(), params.who
    began_s = monday_s(int(now_s))
    async with looking(ctx) as (connection, _):
        entered = await boards.count_entered(connection, began_s, who)
        entries = await boards.board(connection, began_s, who, SHOWN)
        before = await boards.count_entered(connection, began_s - WEEK_S, who)
        podium = await boards.board(connection, began_s - WEEK_S, who, PODIUM)
        tokens = await _labels(connection, [*entries, *podium])
    answer = League(
        text=_league_text(who, began_s, entered, entries, podium, tokens),
        chain_id=ctx.chain_id,
        who=who,
        week_start=when(began_s),
        week_end=when(began_s + WEEK_S),
        on_board=entered.on_board,
        too_few=entered.too_few,
        rows=_rows(entries, tokens),
        last_week=LastWeek(when(began_s - WEEK_S), before.on_board, _rows(podium, tokens)),
    )
    left_ms = int((began_s + WEEK_S - now_s) * 1000)
    return UseCaseAnswer(answer, min(ctx.policy.answer_ttl_ms, left_ms))


async def _labels(connection: Connection, entries: list[LeagueRank]) -> dict[Address, Label]:
    """What the tokens call themselves. Of an index that was begun anew some may be unknown."""
    ids = await ids_of(connection, {one.best_token for one in entries})
    known = await labels(connection, list(ids.values()))
    nameless = {one.best_token: Label(one.best_token, None, None, None, None) for one in entries}
    return nameless | {label.address: label for label in known.values()}


def _rows(entries: tuple[LeagueRank, ...], tokens: dict[Address, Label]) -> list[LeagueRow]:
    return [
        LeagueRow(
            rank=rank,
            designation=one.designation,
            agent=one.is_agent,
            agent_name=one.agent_name,
            profit_eth=plain_decimal(one.profit_wei, _ETH_DECIMALS),
            sells=one.sells,
            won=one.won,
            best=_best(one, tokens),
        )
        for rank, one in enumerate(entries, 1)
    ]


def _best(one: LeagueRank, tokens: dict[Address, Label]) -> BestSell | None:
    if not one.won:
        return None
    return BestSell(present_token(tokens[one.best_token]), plain_decimal(one.best_profit_wei, _ETH_DECIMALS))


# --- in words --------------------------------------------------------------------------------------

_WHOM: dict[Who, str] = {"all": "mite", "agents": "agent", "people": "mite without an agent's tag"}
_WHOMS: dict[Who, str] = {"all": "mites", "agents": "agents", "people": "mites without an agent's tag"}


def _league_text(
    who: Who,
    began_s: int,
    entered: LeagueCounts,
    entries: tuple[LeagueRank, ...],
    podium: tuple[LeagueRank, ...],
    tokens: dict[Address, Label],
) -> str:
    week = f"the week from {when(began_s):{_DAY}}, 00:00 UTC, to the next Monday"
    board = f"Nobody has entered the practice league of {_WHOMS[who]} yet, {week}."
    if entries:
        first = " ".join(f"{rank}. {_line(one, tokens)}" for rank, one in enumerate(entries[:_SAID], 1))
        more = entered.on_board - len(entries[:_SAID])
        rest = f" {more:,} more are in it." if more > 1 else " One more is in it." if more else ""
        board = f"Practice league of {_WHOMS[who]}, {week}: {first}{rest}"
    parts = [board, _too_few(who, entered.too_few), _RULES, _last_week(podium)]
    return " ".join(part for part in parts if part)


def _line(one: LeagueRank, tokens: dict[Address, Label]) -> str:
    made = "made" if one.profit_wei >= 0 else "lost"
    best = ""
    if one.won:
        best = f"; its best was {quote_token(tokens[one.best_token])}, {eth_text(one.best_profit_wei)}"
    return (
        f"{_account(one)} {made} {eth_text(abs(one.profit_wei))} in {one.sells} sells, {one.won} won{best}."
    )


def _account(one: LeagueRank) -> str:
    if not one.is_agent:
        return one.designation
    return f'{one.designation} (agent "{one.agent_name}")' if one.agent_name else f"{one.designation} (agent)"


def _too_few(who: Who, count: int) -> str:
    if not count:
        return ""
    whom, have = (_WHOM[who], "has") if count == 1 else (_WHOMS[who], "have")
    return f"{count:,} {whom} {have} fewer than {LEAST_SELLS} sells that count so far."


def _last_week(podium: tuple[LeagueRank, ...]) -> str:
    if not podium:
        return ""
    first = ", ".join(f"{_account(one)} {eth_text(one.profit_wei)}" for one in podium)
    return f"Last week's first: {first}."
