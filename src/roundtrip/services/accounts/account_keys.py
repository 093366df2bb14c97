"""Lists and revokes an account's keys, for a caller with one of them."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts import keys
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import Nothing
from roundtrip.store.accounts import accounts as accounts_store

from .manage_keys import MAX_REVOKED, OwnKey, describe_live_keys, present_key

_MAX_ID = 2**63 - 1


class ListedKeys(msgspec.Struct, frozen=True, rename="camel"):
    """The keys of the account."""

    text: Annotated[str, says("The answer in plain sentences.")]
    most_live: Annotated[int, says("Live keys that an account may have.")]
    live: Annotated[list[OwnKey], says("Live keys, the oldest first.")]
    revoked: Annotated[list[OwnKey], says(f"Revoked keys, the last revoked first, {MAX_REVOKED} at most.")]


class RevokeParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which key."""

    id: Annotated[
        str, msgspec.Meta(pattern=r"^[0-9]{1,19}\Z", description="The key's id, as GET /v1/keys lists it.")
    ]


class RevokedKey(msgspec.Struct, frozen=True, rename="camel"):
    """A key that is revoked now."""

    text: Annotated[str, says("The answer in plain sentences.")]
    key: Annotated[OwnKey, says("The key.")]


async def list_keys(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[ListedKeys]:
    """Live and revoked keys of the account, without their secret parts. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        live = await accounts_store.live_keys(connection, account.id)
        revoked = await accounts_store.revoked_keys(connection, account.id, MAX_REVOKED)
    return UseCaseAnswer(
        ListedKeys(
            describe_live_keys(len(live)),
            keys.MAX_LIVE,
            [present_key(key) for key in live],
            [present_key(key) for key in revoked],
        )
    )


async def revoke_key(ctx: Context, params: RevokeParams, account: Account) -> UseCaseAnswer[RevokedKey]:
    """Revokes a key of the account, also the caller's own. A session is not a key: only a session ends one.
    Raises CallerFault (not_found), ServiceFull."""
    key_id = int(params.id)
    async with accounts(ctx) as connection:
        key = await accounts_store.key_of(connection, account.id, min(key_id, _MAX_ID))
        if key is None or key.id != key_id or key.kind != "key":
            raise CallerFault("not_found", f"Your account has no key {key_id}. GET /v1/keys lists its keys.")
        now = datetime.fromtimestamp(ctx.now_s(), UTC)
        was_live = await accounts_store.revoke(connection, key.id, now)
        revoked = await accounts_store.key_of(connection, account.id, key.id)
    assert revoked is not None
    text = f"Key {key.start}… is revoked{'' if was_live else ' already'}."
    return UseCaseAnswer(RevokedKey(text, present_key(revoked)))
