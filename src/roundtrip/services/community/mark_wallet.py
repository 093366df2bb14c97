"""Names or marks a wallet: an action of the console. Reads names and marks of wallets: the public ones of a
wallet, and the account's own."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account, agent_name
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.community.marks import MARKS, MAX_MARKS, MAX_NAME, PEOPLE, Mark
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import AnswerText, MarkSaid, NameSaid, WalletParams, says
from roundtrip.services.support.index_reader import Nothing, accounts
from roundtrip.store.community import marks, public_names
from roundtrip.store.community.marks import StoredMark


class MarkParams(WalletParams, frozen=True, forbid_unknown_fields=True):
    """Which wallet, and what it is called or marked."""

    name: (
        Annotated[
            str,
            msgspec.Meta(
                max_length=MAX_NAME, description="What you call it: Latin letters, digits and spaces."
            ),
        ]
        | None
    ) = None
    mark: Annotated[Mark | None, says("What you mark it as.")] = None
    off: Annotated[bool, says("true takes name and mark back.")] = False

    def parsed_name(self) -> str | None:
        """The name; None: none was given. Raises CallerFault (bad_input)."""
        if self.name is None:
            return None
        try:
            return agent_name(self.name)
        except ValueError:
            raise CallerFault(
                "bad_input",
                f"name must have at most {MAX_NAME} Latin letters, digits and spaces, such as Old fox.",
            ) from None


class Marked(msgspec.Struct, frozen=True, rename="camel"):
    """The account's name and mark for the wallet."""

    text: AnswerText
    address: str
    name: Annotated[str | None, says("As you call it; null: you gave it no name.")]
    mark: Annotated[Mark | None, says("null: you gave it none.")]
    wallets: Annotated[int, says(f"How many wallets you named or marked, {MAX_MARKS} at most.")]


async def mark_wallet(ctx: Context, params: MarkParams, account: Account) -> UseCaseAnswer[Marked]:
    """Names or marks a wallet, replacing the account's earlier name and mark, or removes both. Raises
    CallerFault (bad_address, bad_input), ServiceFull."""
    wallet, name, now = params.wallet(), params.parsed_name(), datetime.fromtimestamp(ctx.now_s(), UTC)
    if params.off == (name is not None or params.mark is not None):
        raise CallerFault(
            "bad_input",
            f"Give a name, a mark ({', '.join(MARKS)}) or both, such as mark: scam. To remove both, give "
            "only off: true.",
        )
    if wallet == account.wallet:
        raise CallerFault("bad_input", "This is your own wallet: you cannot name or mark it.")
    async with accounts(ctx) as connection:
        if params.off:
            was_there = await marks.delete_mark(connection, account.id, wallet)
            mark = marks.OwnWalletMark(None, None)
            text = f"You {'no longer name or mark' if was_there else 'had not named or marked'} {wallet}."
        else:
            try:
                mark = await marks.put(connection, account.id, wallet, name, params.mark, now)
            except marks.TooManyMarks:
                raise CallerFault(
                    "bad_input",
                    f"You have named or marked {MAX_MARKS} wallets, the maximum: remove one first "
                    "with off: true.",
                ) from None
            text = _mark_text(wallet, mark)
        wallets = await marks.count(connection, account.id)
    return UseCaseAnswer(Marked(text, wallet, mark.name, mark.mark, wallets))


def _mark_text(wallet: str, mark: marks.OwnWalletMark) -> str:
    name_text = [] if mark.name is None else [f'name {wallet} "{mark.name}"']
    mark_text = [] if mark.mark is None else [f"mark {'it' if name_text else wallet} as {mark.mark}"]
    return (
        f"You {' and '.join([*name_text, *mark_text])}. A name or mark becomes public once {PEOPLE} people "
        "give it. Their accounts must be seven days old, and their wallets must have traded."
    )


SHOWN = 60


class WalletSaid(msgspec.Struct, frozen=True, rename="camel"):
    """What enough people say of a wallet."""

    address: str
    names: Annotated[list[NameSaid], says("What most call it first; empty: no name.")]
    marks: Annotated[list[MarkSaid], says("What most mark it first; empty: no mark.")]


class OwnMark(msgspec.Struct, frozen=True, rename="camel"):
    """What the account said of a wallet."""

    address: str
    name: str | None
    mark: Mark | None
    made_at: Annotated[datetime, says("When it said so last.")]


class OwnMarks(msgspec.Struct, frozen=True, rename="camel"):
    """What the account said of wallets."""

    rows: Annotated[list[OwnMark], says(f"What was said last first, {SHOWN} at most.")]
    count: Annotated[int, says("How many wallets it named or marked.")]
    most: Annotated[int, says("How many it can.")]


class OwnOfWallet(msgspec.Struct, frozen=True, rename="camel"):
    """What the account said of one wallet."""

    own: Annotated[OwnMark | None, says("null: nothing.")]
    is_yours: Annotated[bool, says("It is the account's own wallet.")]


async def wallet_said(ctx: Context, params: WalletParams) -> UseCaseAnswer[WalletSaid]:
    """The public names and marks of a wallet at the last count. Raises CallerFault (bad_address),
    ServiceFull."""
    wallet = params.wallet()
    async with accounts(ctx) as connection:
        public = await public_names.of_wallet(connection, wallet)
    cleaned = [(names.clean(name.what, MAX_NAME), name.people) for name in public.names]
    return UseCaseAnswer(
        WalletSaid(
            wallet,
            [NameSaid(name, people) for name, people in cleaned if name],
            [MarkSaid(mark.what, mark.people) for mark in public.marks],  # type: ignore[arg-type]
        )
    )


async def own_of_wallet(ctx: Context, params: WalletParams, account: Account) -> UseCaseAnswer[OwnOfWallet]:
    """The account's own name and mark of one wallet. Raises CallerFault (bad_address), ServiceFull."""
    wallet = params.wallet()
    async with accounts(ctx) as connection:
        own = await marks.of_account(connection, account.id, wallet, 1)
    return UseCaseAnswer(OwnOfWallet(_own_mark(own[0]) if own else None, wallet == account.wallet))


async def own_marks(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[OwnMarks]:
    """The account's own names and marks, the latest first. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        stored = await marks.of_account(connection, account.id, None, SHOWN)
        count = await marks.count(connection, account.id)
    return UseCaseAnswer(OwnMarks([_own_mark(mark) for mark in stored], count, MAX_MARKS))


async def unmark_wallet(ctx: Context, params: WalletParams, account: Account) -> UseCaseAnswer[Marked]:
    """Removes the account's name and mark of a wallet. Raises CallerFault (bad_address), ServiceFull."""
    return await mark_wallet(ctx, MarkParams(params.address, off=True), account)


def _own_mark(stored: StoredMark) -> OwnMark:
    return OwnMark(stored.wallet, stored.own.name, stored.own.mark, stored.made_at)
