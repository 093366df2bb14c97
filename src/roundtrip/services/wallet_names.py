"""What enough people call wallets, or mark them as."""

from dataclasses import dataclass
from typing import Annotated

import asyncpg
import msgspec

from roundtrip.domain import names
from roundtrip.domain.marks import MOST_NAME, OLD, PEOPLE, Mark, Public, name_key, public
from roundtrip.domain.types import Address
from roundtrip.store import marks

from .context import Answered, Context
from .index_answer import IndexAnswer, Nothing, reading, when

SHOWN = 50
_AT_ONCE, _MOST_LOOKED_AT = 200, 2000
"""Wallets of which enough accounts said the same: of so many it is looked at how many people those are."""
_SAID = 3
_RULE = (
    f"Each was said by at least {PEOPLE} different people, as far as can be told by who paid for their "
    f"wallets, whose accounts are {OLD.days} days old and whose wallets have traded. They are "
    "strangers' words and no proof of anything."
)


class NameSaid(msgspec.Struct, frozen=True, rename="camel"):
    """A name that people gave a wallet."""

    name: Annotated[str, msgspec.Meta(description="As most of them wrote it: strangers' words.")]
    people: Annotated[int, msgspec.Meta(description="How many gave it.")]


class MarkSaid(msgspec.Struct, frozen=True, rename="camel"):
    """A mark that people gave a wallet."""

    mark: Mark
    people: Annotated[int, msgspec.Meta(description="How many gave it.")]


class WalletNamed(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet with what enough people say of it; people may contradict each other."""

    wallet: str
    names: Annotated[list[NameSaid], msgspec.Meta(description="What most call it first; empty: no name.")]
    marks: Annotated[list[MarkSaid], msgspec.Meta(description="What most mark it first; empty: no mark.")]


class WalletNames(IndexAnswer, frozen=True, rename="camel"):
    """Wallets of which enough people say the same: what most say first."""

    rows: Annotated[list[WalletNamed], msgspec.Meta(description=f"At most {SHOWN}.")]


async def wallet_names(ctx: Context, params: Nothing) -> Answered[WalletNames]:
    """What is public by now. Raises ServiceFull."""
    made_before = when(int(ctx.now_s())) - OLD
    async with reading(ctx) as (connection, stands):
        found: list[Public] = []
        for offset in range(0, _MOST_LOOKED_AT, _AT_ONCE):
            wallets = await marks.candidates(connection, made_before, _AT_ONCE, offset)
            given = await marks.given(connection, wallets, made_before)
            found += public(given, await marks.purses(connection, given), stands.block.timestamp_s)
            if len(wallets) < _AT_ONCE:
                break
    found.sort(key=lambda one: (-one.people, one.wallet))
    rows = [_row(one) for one in found[:SHOWN]]
    answer = WalletNames(
        text=_text(rows),
        chain_id=ctx.chain_id,
        block=stands.block.number,
        block_time=when(stands.block.timestamp_s),
        rows=rows,
    )
    return Answered(answer, ctx.policy.answer_ttl_ms)


@dataclass(frozen=True, slots=True)
class Bearer:
    """A wallet that enough people call by a name, and how many."""

    wallet: Address
    people: int


async def called_so(ctx: Context, connection: asyncpg.Connection, name: str, newest_s: int) -> list[Bearer]:
    """Wallets that enough people call so, what most call so first."""
    made_before, key = when(int(ctx.now_s())) - OLD, name_key(name)
    wallets = await marks.called(connection, key, made_before, _AT_ONCE)
    given = await marks.given(connection, wallets, made_before)
    found = public(given, await marks.purses(connection, given), newest_s)
    borne = [
        Bearer(one.wallet, said.people) for one in found for said in one.names if name_key(said.what) == key
    ]
    return sorted(borne, key=lambda one: (-one.people, one.wallet))


def _row(one: Public) -> WalletNamed:
    shown = [(names.clean(said.what, MOST_NAME), said.people) for said in one.names]
    return WalletNamed(
        one.wallet,
        [NameSaid(name, people) for name, people in shown if name],
        [MarkSaid(said.what, said.people) for said in one.marks],  # type: ignore[arg-type]
    )


def _text(rows: list[WalletNamed]) -> str:
    if not rows:
        return f"No wallet has a name or a mark that enough people gave it. {_RULE}"
    first = " ".join(_line(row) for row in rows[:_SAID])
    more = f" {len(rows) - _SAID} more are in the rows." if len(rows) > _SAID else ""
    wallets = (
        "1 wallet has a name or a mark" if len(rows) == 1 else f"{len(rows)} wallets have names or marks"
    )
    return f"{wallets} that enough people gave. {first}{more} {_RULE}"


def _line(row: WalletNamed) -> str:
    called = [f'called "{names.reason(one.name)}" by {one.people} people' for one in row.names[:1]]
    marked = [f"marked {one.mark} by {one.people}" for one in row.marks]
    return f"{row.wallet} is {', '.join([*called, *marked])}."
