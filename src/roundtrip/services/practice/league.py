"""This week's practice league; and the agent tag, by which an account declares that it is a program."""

from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.accounts.account import AGENT_NAME_PATTERN, MAX_AGENT_NAME, Account, agent_name
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.figures import format_count, format_eth
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.market.fairness import FAIRNESS
from roundtrip.domain.practice.practice import MIN_SELLS, WEEK_S, Who, monday_s
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import WRITTEN, AnswerText, ChainId, Designation, IsAgent, says
from roundtrip.services.support.index_reader import (
    TokenNamed,
    accounts,
    looking,
    present_token,
    quote_token,
    when,
)
from roundtrip.store.index.tokens import Label, ids_of, labels
from roundtrip.store.practice import league as league_store
from roundtrip.store.practice.league import LeagueCounts, LeagueRank
from roundtrip.store.server.rows import Connection

SHOWN, PODIUM = 100, 3
_QUOTED = 3
"""The most entries that the text describes."""
_ETH_DECIMALS = 18
_DAY = "%A %Y-%m-%d"
_RULES = (
    "A sell counts, gain or loss, if its token is at least a day old and, as far as we know, at least "
    f"{FAIRNESS.least_buyers} different people bought it, if it is sold where it was launched or trades "
    "most, and if the seller is not linked to its deployer. "
    f"An entry needs {MIN_SELLS} such sells. The eth is pretend."
)


class LeagueParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which accounts' entries to list."""

    who: Annotated[
        Literal["all", "agents", "people"],
        says("all, agents (accounts with the agent tag) or people (the others)."),
    ] = "all"


class BestSell(msgspec.Struct, frozen=True, rename="camel"):
    """The sell with the most profit."""

    token: Annotated[TokenNamed, says("The token that was sold.")]
    profit_eth: Annotated[str, says("Profit of the sell, in practice eth.")]


class LeagueRow(msgspec.Struct, frozen=True, rename="camel"):
    """An account and its week."""

    rank: Annotated[int, says("Place; 1 made the most profit.")]
    designation: Designation
    agent: IsAgent
    agent_name: Annotated[str | None, says(f"Name that its owner gave the agent. null: none. {WRITTEN}")]
    profit_eth: Annotated[str, says("Profit of its sells that count, losses subtracted, in practice eth.")]
    sells: Annotated[int, says("Sells that count.")]
    won: Annotated[int, says("Sells of those with a profit.")]
    best: Annotated[BestSell | None, says("Its sell with the most profit. null: none had a profit.")]


class LastWeek(msgspec.Struct, frozen=True, rename="camel"):
    """How the week before ended."""

    week_start: Annotated[datetime, says("Start of last week: Monday, 00:00 UTC.")]
    on_board: Annotated[int, says("Accounts that had an entry.")]
    podium: Annotated[list[LeagueRow], says("Its first three.")]


class League(msgspec.Struct, frozen=True, rename="camel"):
    """The most profit first; of equal profit fewer sells, then the earlier last sell."""

    text: AnswerText
    chain_id: ChainId
    who: Annotated[Literal["all", "agents", "people"], says("Which entries are listed.")]
    week_start: Annotated[datetime, says("Start of the week: Monday, 00:00 UTC.")]
    week_end: Annotated[datetime, says("End of the week: the next Monday, 00:00 UTC.")]
    on_board: Annotated[int, says("Accounts with three or more sells that count.")]
    too_few: Annotated[int, says("Accounts with one or two.")]
    rows: Annotated[list[LeagueRow], says("The first 100, the largest profit first.")]
    last_week: Annotated[LastWeek, says("How last week ended.")]


async def league(ctx: Context, params: LeagueParams) -> UseCaseAnswer[League]:
    """This week's board, and last week's podium. Raises ServiceFull."""
    now_s, who = ctx.now_s(), params.who
    began_s = monday_s(int(now_s))
    async with looking(ctx) as (connection, _):
        counts = await league_store.count_entered(connection, began_s, who)
        entries = await league_store.board(connection, began_s, who, SHOWN)
        last_counts = await league_store.count_entered(connection, began_s - WEEK_S, who)
        podium = await league_store.board(connection, began_s - WEEK_S, who, PODIUM)
        tokens = await _read_labels(connection, [*entries, *podium])
    answer = League(
        text=_league_text(who, began_s, counts, entries, podium, tokens),
        chain_id=ctx.chain_id,
        who=who,
        week_start=when(began_s),
        week_end=when(began_s + WEEK_S),
        on_board=counts.on_board,
        too_few=counts.too_few,
        rows=_rows(entries, tokens),
        last_week=LastWeek(when(began_s - WEEK_S), last_counts.on_board, _rows(podium, tokens)),
    )
    week_left_ms = int((began_s + WEEK_S - now_s) * 1000)
    return UseCaseAnswer(answer, min(ctx.policy.answer_ttl_ms, week_left_ms))


async def _read_labels(connection: Connection, entries: list[LeagueRank]) -> dict[Address, Label]:
    """The labels of the entries' best tokens. A rebuilt index may not know some of them."""
    ids = await ids_of(connection, {entry.best_token for entry in entries})
    known_labels = await labels(connection, list(ids.values()))
    unnamed = {entry.best_token: Label(entry.best_token, None, None, None, None) for entry in entries}
    return unnamed | {label.address: label for label in known_labels.values()}


def _rows(entries: tuple[LeagueRank, ...], tokens: dict[Address, Label]) -> list[LeagueRow]:
    return [
        LeagueRow(
            rank=rank,
            designation=entry.designation,
            agent=entry.is_agent,
            agent_name=entry.agent_name,
            profit_eth=plain_decimal(entry.profit_wei, _ETH_DECIMALS),
            sells=entry.sells,
            won=entry.won,
            best=_best(entry, tokens),
        )
        for rank, entry in enumerate(entries, 1)
    ]


def _best(entry: LeagueRank, tokens: dict[Address, Label]) -> BestSell | None:
    if not entry.won:
        return None
    return BestSell(
        present_token(tokens[entry.best_token]), plain_decimal(entry.best_profit_wei, _ETH_DECIMALS)
    )


# --- text ------------------------------------------------------------------------------------------

_SINGULAR: dict[Who, str] = {"all": "account", "agents": "agent", "people": "account without an agent tag"}
_PLURAL: dict[Who, str] = {"all": "accounts", "agents": "agents", "people": "accounts without an agent tag"}


def _league_text(
    who: Who,
    began_s: int,
    counts: LeagueCounts,
    entries: tuple[LeagueRank, ...],
    podium: tuple[LeagueRank, ...],
    tokens: dict[Address, Label],
) -> str:
    week = f"the week from {when(began_s):{_DAY}}, 00:00 UTC, to the next Monday"
    quoted = entries[:_QUOTED]
    board = f"Practice league of {_PLURAL[who]}, {week}" + (":" if quoted else ": no entry yet.")
    rows = [f"{rank}. {_row_text(entry, tokens)}" for rank, entry in enumerate(quoted, 1)]
    more = counts.on_board - len(quoted)
    rest = f"{format_count(more, 'more entry', 'more entries')}." if quoted and more > 0 else ""
    lines = [board, *rows, rest, _too_few_text(who, counts.too_few), _RULES, _last_week_text(podium)]
    return "\n".join(line for line in lines if line)


def _row_text(entry: LeagueRank, tokens: dict[Address, Label]) -> str:
    best = ""
    if entry.won:
        best = f", best {quote_token(tokens[entry.best_token])} {format_eth(entry.best_profit_wei)}"
    return (
        f"{_account_text(entry)}: {_profit_text(entry.profit_wei)}, {format_count(entry.sells, 'sell')}, "
        f"{entry.won:,} won{best}"
    )


def _profit_text(wei: int) -> str:
    return f"profit {format_eth(wei)}" if wei >= 0 else f"loss {format_eth(-wei)}"


def _account_text(entry: LeagueRank) -> str:
    if not entry.is_agent:
        return entry.designation
    tag = f'agent "{entry.agent_name}"' if entry.agent_name else "agent"
    return f"{entry.designation} ({tag})"


def _too_few_text(who: Who, count: int) -> str:
    if not count:
        return ""
    subject, have = (_SINGULAR[who], "has") if count == 1 else (_PLURAL[who], "have")
    return f"{count:,} {subject} {have} fewer than {MIN_SELLS} sells that count."


def _last_week_text(podium: tuple[LeagueRank, ...]) -> str:
    if not podium:
        return ""
    entries = enumerate(podium, 1)
    rows = [f"{rank}. {_account_text(entry)}: {_profit_text(entry.profit_wei)}" for rank, entry in entries]
    return "\n".join(["Last week:", *rows])


_BAD_NAME = f'name must be at most {MAX_AGENT_NAME} Latin letters, digits and spaces, such as "Trader 1".'


class AgentParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the agent is called, or that there is none."""

    name: Annotated[
        Annotated[str, msgspec.Meta(pattern=AGENT_NAME_PATTERN, max_length=MAX_AGENT_NAME)] | None,
        says(
            "The agent's public name: at most 24 Latin letters, digits and spaces. Left out: the name stays."
        ),
    ] = None
    off: Annotated[bool, says("true: removes the tag and the agent's name.")] = False

    def agents_name(self) -> str | None:
        """The agent's name; None if none was given. Raises CallerFault (bad_input)."""
        if self.name is None:
            return None
        if self.off:
            raise CallerFault("bad_input", "off removes the tag and the name: give off or name, not both.")
        try:
            return agent_name(self.name)
        except ValueError:
            raise CallerFault("bad_input", _BAD_NAME) from None


class AgentMarked(msgspec.Struct, frozen=True, rename="camel"):
    """The account's tag as it is now."""

    text: AnswerText
    designation: Designation
    agent: Annotated[bool, says("Whether the account carries the agent tag now.")]
    agent_name: Annotated[str | None, says("The agent's name. null: it has none.")]


async def mark_as_agent(ctx: Context, params: AgentParams, account: Account) -> UseCaseAnswer[AgentMarked]:
    """Sets or removes the tag; this week's league shows it at once. Raises CallerFault (bad_input),
    ServiceFull."""
    name, now = params.agents_name(), datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        if params.off:
            tagged = await league_store.untag(connection, account.id, now)
        else:
            tagged = await league_store.tag(connection, account.id, name, now)
    return UseCaseAnswer(AgentMarked(_text(tagged), tagged.designation, tagged.is_agent, tagged.agent_name))


def _text(account: Account) -> str:
    if not account.is_agent:
        name = account.designation
        return f"{name} has no agent tag: the league counts it among people. Nothing else changed."
    name = f', called "{account.agent_name}"' if account.agent_name else ""
    return f"{account.designation} is tagged as an agent{name}, also in the league. Nothing else changed."
