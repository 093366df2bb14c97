"""Names and marks that enough people gave wallets."""

from typing import Annotated

import msgspec

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.community.marks import MAX_NAME, OLD, PEOPLE, PublicMarks
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import MarkSaid, NameSaid, says
from roundtrip.services.support.index_reader import IndexAnswer, Nothing, reading, when
from roundtrip.store.community import public_names

SHOWN = 50
_DESCRIBED = 3
_RULE = (
    f"At least {PEOPLE} different people (wallets that one wallet funded count once) gave each name or mark. "
    f"Their accounts are {OLD.days} days old and their wallets have traded. Names and marks are strangers' "
    "words, not proof."
)


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


def _present_row(public: PublicMarks) -> WalletNamed:
    shown = [(names.clean(mark.what, MAX_NAME), mark.people) for mark in public.names]
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
