"""Reads names and marks of wallets: the public ones of a wallet, and the account's own."""

from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base import names
from roundtrip.domain.community.marks import MAX_MARKS, MAX_NAME, Mark
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.public_marks import MarkSaid, NameSaid
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.store.community import marks, public_names
from roundtrip.store.community.marks import StoredMark

from .mark_wallet import Marked, MarkParams, mark_wallet

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
