"""Names and marks that enough people gave wallets."""

from typing import Annotated

import msgspec

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.community.marks import MOST_NAME, OLD, PEOPLE, Mark, PublicMarks, name_key
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import IndexAnswer, Nothing, reading, when
from roundtrip.services.support.strangers_text import WRITTEN
from roundtrip.store.community import public_names
from roundtrip.store.community.public_names import Bearer
from roundtrip.store.server.rows import Connection

SHOWN = 50
MOST_BEARERS = 200
"""Limit of wallets with one name."""
_DESCRIBED = 3
_RULE = (
    f"At least {PEOPLE} different people (wallets that one wallet funded count once) gave each name or mark. "
    f"Their accounts are {OLD.days} days old and their wallets have traded. Names and marks are strangers' "
    "words, not proof."
)


class NameSaid(msgspec.Struct, frozen=True, rename="camel"):
    """A name that people gave a wallet."""

    name: Annotated[str, says(f"As most of them wrote it. {WRITTEN}")]
    people: Annotated[int, says("People who gave it.")]


class MarkSaid(msgspec.Struct, frozen=True, rename="camel"):
    """A mark that people gave a wallet."""

    mark: Annotated[Mark, says("The mark.")]
    people: Annotated[int, says("People who gave it.")]


class WalletNamed(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet with what enough people say of it; people may contradict each other."""

    wallet: Annotated[str, says("The wallet.")]
    names: Annotated[list[NameSaid], says("Names that people gave it, the most used first; empty: none.")]
    marks: Annotated[list[MarkSaid], says("Marks that people gave it, the most used first; empty: none.")]


class WalletNames(IndexAnswer, frozen=True, rename="camel"):
    """Wallets of which enough people say the same: what most say first."""

    rows: Annotated[list[WalletNamed], says("At most 50 wallets, those with the most people first.")]


async def wallet_names(ctx: Context, params: Nothing) -> UseCaseAnswer[WalletNames]:
    """The public names and marks, as last counted. Raises ServiceFull."""
    async with reading(ctx) as (connection, index_cursor):
        rows = [_present_row(public) for public in await public_names.first(connection, SHOWN)]
    answer = WalletNames(
        text=_describe(rows),
        chain_id=ctx.chain_id,
        block=index_cursor.block.number,
        block_time=when(index_cursor.block.timestamp_s),
        rows=rows,
    )
    return UseCaseAnswer(answer, ctx.policy.answer_ttl_ms)


def scam_text(subject: str, people: int) -> str:
    """``subject``: the wallet in a sentence. ``people``: how many mark it as a scam."""
    return f"{subject} is marked as a scam by {people:,} people: that is their word, not proof."


async def find_wallets_named(connection: Connection, name: str) -> list[Bearer]:
    """Wallets with that name by enough people, those named by the most people first."""
    return await public_names.bearers(connection, name_key(name), MOST_BEARERS)


def _present_row(public: PublicMarks) -> WalletNamed:
    shown = [(names.clean(mark.what, MOST_NAME), mark.people) for mark in public.names]
    return WalletNamed(
        public.wallet,
        [NameSaid(name, people) for name, people in shown if name],
        [MarkSaid(mark.what, mark.people) for mark in public.marks],  # type: ignore[arg-type]
    )


def _describe(rows: list[WalletNamed]) -> str:
    if not rows:
        return f"No wallet has a name or a mark that enough people gave it. {_RULE}"
    have = "has a name or a mark" if len(rows) == 1 else "have names or marks"
    lines = [f"{format_count(len(rows), 'wallet')} {have} that enough people gave:"]
    lines += [f"{number}. {_describe_row(row)}" for number, row in enumerate(rows[:_DESCRIBED], 1)]
    if len(rows) > _DESCRIBED:
        lines.append(f"The rows hold {len(rows) - _DESCRIBED} more.")
    return "\n".join([*lines, _RULE])


def _describe_row(row: WalletNamed) -> str:
    called = [f'called "{names.reason(claim.name)}" by {claim.people} people' for claim in row.names[:1]]
    marked = [f"marked {claim.mark} by {claim.people}" for claim in row.marks]
    return f"{row.wallet} is {', '.join([*called, *marked])}."
