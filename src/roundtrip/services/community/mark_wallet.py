"""Names or marks a wallet: an action of the console."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account, agent_name
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.community.marks import MARKS, MAX_MARKS, MAX_NAME, PEOPLE, Mark
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.strangers_text import AnswerText
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.store.community import marks


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
