"""An account's keys and sessions. The console begins sessions; with one, it lists and ends keys and sessions,
and makes keys. A program, with a key, lists and revokes keys. A session is a key of its own kind, which the
console keeps in a cookie. The wallet signs once for each new key or session."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts import keys
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.figures import format_count
from roundtrip.services.accounts.issue_key import (
    MAX_LABEL,
    KeyParams,
    MiteNamed,
    TextToSign,
    build_text_to_sign,
    lock_account,
    make_key,
    present_account,
    verify_signature,
)
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import AnswerText, WalletParams, says
from roundtrip.services.support.index_reader import Nothing, accounts
from roundtrip.store.accounts import accounts as accounts_store
from roundtrip.store.accounts.accounts import Key
from roundtrip.store.server.rows import Connection

LIFETIME_S = 14 * 86_400
"""How long a session lives."""
MAX_SESSIONS = 10
"""The most sessions of one account; when another begins, the oldest ends."""


class SessionBegun(msgspec.Struct, frozen=True, rename="camel"):
    """A new session."""

    session: Annotated[str, says("The cookie's value. It is secret.")]
    mite: MiteNamed
    ends_at: datetime


class SessionParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which session."""

    session: str


class SessionEnded(msgspec.Struct, frozen=True, rename="camel"):
    """Whether the session was live."""

    ended: bool


async def session_text(ctx: Context, params: WalletParams) -> UseCaseAnswer[TextToSign]:
    """The text that a wallet signs to sign in. Raises CallerFault (bad_address), ServiceFull."""
    return UseCaseAnswer(await build_text_to_sign(ctx, params.wallet(), keys.FOR_A_SESSION))


async def begin_session(ctx: Context, params: KeyParams) -> UseCaseAnswer[SessionBegun]:
    """Begins a session for the wallet that signed. Raises CallerFault (bad_input, bad_signature),
    LimitReached (rate_limited) for a new account, NodeFault when a contract wallet cannot be called, and
    ServiceFull."""
    meter, now = Meter(), datetime.fromtimestamp(ctx.now_s(), UTC)
    wallet = await verify_signature(ctx, params, meter, keys.FOR_A_SESSION)
    session = keys.format_key(ctx.entropy(), keys.SESSION_PREFIX)
    ends_at = now + timedelta(seconds=LIFETIME_S)
    async with accounts(ctx) as connection:
        account = (await lock_account(ctx, connection, wallet, now)).account
        await accounts_store.end_sessions(connection, account.id, now, keep=MAX_SESSIONS - 1)
        hashed, start = keys.hash_of(session), keys.start_of(session)
        await accounts_store.add_key(connection, account.id, hashed, start, "", now, ends_at)
    return UseCaseAnswer(SessionBegun(session, present_account(account), ends_at), meter=meter)


async def end_session(ctx: Context, params: SessionParams, account: Account) -> UseCaseAnswer[SessionEnded]:
    """Signs out. Raises ServiceFull."""
    hashed = keys.hash_of(params.session) if keys.is_session(params.session) else b""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        ended = await accounts_store.end_sessions(connection, account.id, now, hashed=hashed)
    return UseCaseAnswer(SessionEnded(ended > 0))


MAX_REVOKED = 20
"""How many revoked keys a list shows."""
_MAX_ID = 2**63 - 1
_USAGE_DAYS = 14


class OwnKey(msgspec.Struct, frozen=True, rename="camel"):
    """A key, without its secret part."""

    id: Annotated[int, says("Id of the key.")]
    start: Annotated[str, says("The first eight characters of the key.")]
    label: Annotated[str, says("As its owner wrote it; empty: it has none.")]
    made_at: Annotated[datetime, says("When it was made.")]
    revoked_at: Annotated[datetime | None, says("When it was revoked. null: it is live.")]


class OwnSession(msgspec.Struct, frozen=True, rename="camel"):
    """A browser in which the account is signed in."""

    id: int
    began_at: datetime
    ends_at: datetime
    is_this: Annotated[bool, says("Whether this request came with it.")]


class OwnKeys(msgspec.Struct, frozen=True, rename="camel"):
    """The keys and sessions of the account."""

    text: AnswerText
    wallet: str
    most_live: int
    live: Annotated[list[OwnKey], says("The oldest first.")]
    revoked: Annotated[list[OwnKey], says(f"The last revoked first, {MAX_REVOKED} at most.")]
    sessions: Annotated[list[OwnSession], says("The newest first; those that are live.")]


class NewKeyParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The wallet's signature of the text for a key, and what the key is called."""

    signature: str
    label: Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": MAX_LABEL})] = ""
    claim: str | None = None


class NewKey(msgspec.Struct, frozen=True, rename="camel"):
    """A new key."""

    key: Annotated[str, says("The key. Keep it: this answer is the only one that shows it.")]
    label: str


class EndParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which key or session, and the session that asks."""

    id: Annotated[int, msgspec.Meta(ge=1, le=_MAX_ID)]
    session: str


class EndedKeys(msgspec.Struct, frozen=True, rename="camel"):
    """Keys or sessions that were ended."""

    text: AnswerText


class DayCalls(msgspec.Struct, frozen=True, rename="camel"):
    """Calls of a day of UTC that counted against its limit."""

    day: str
    calls: int


class Usage(msgspec.Struct, frozen=True, rename="camel"):
    """How much the account asked, all its keys and sessions together."""

    text: AnswerText
    days: Annotated[list[DayCalls], says("The oldest first, today the last.")]


async def own_keys(ctx: Context, params: SessionParams, account: Account) -> UseCaseAnswer[OwnKeys]:
    """Live keys and sessions, and revoked keys. Raises CallerFault (bad_key), ServiceFull."""
    now = _now(ctx)
    async with accounts(ctx) as connection:
        session_id = await _check_session(connection, account, params.session, now)
        live = await accounts_store.live_keys(connection, account.id)
        revoked = await accounts_store.revoked_keys(connection, account.id, MAX_REVOKED)
        sessions = await accounts_store.live_sessions(connection, account.id, now)
    return UseCaseAnswer(
        OwnKeys(
            text=describe_live_keys(len(live)),
            wallet=account.wallet,
            most_live=keys.MAX_LIVE,
            live=[present_key(key) for key in live],
            revoked=[present_key(key) for key in revoked],
            sessions=[_present_session(session, session_id) for session in sessions],
        )
    )


async def own_key_text(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[TextToSign]:
    """The text that the account's wallet signs for its next key. Raises ServiceFull."""
    return UseCaseAnswer(await build_text_to_sign(ctx, account.wallet, keys.FOR_A_KEY))


async def make_own_key(ctx: Context, params: NewKeyParams, account: Account) -> UseCaseAnswer[NewKey]:
    """Makes a key for the account's wallet, which has to sign for it: a stolen session alone makes no key. A
    signature makes only one key, so a form that is sent twice makes one. Raises CallerFault (bad_input,
    bad_signature, too_many_keys), NodeFault when a contract wallet cannot be called, and ServiceFull."""
    key_params = KeyParams(account.wallet, params.signature, params.label, claim=params.claim or None)
    try:
        response = await make_key(ctx, key_params)
    except CallerFault as fault:
        if fault.code != "bad_signature":
            raise
        raise CallerFault(
            "bad_signature",
            "No key was made: the signature is not from this account's wallet, has expired, or already made "
            "a key. Sign the text again; each signature makes one key.",
        ) from None
    return UseCaseAnswer(NewKey(response.answer.key, key_params.cleaned_label()), meter=response.meter)


async def end_own(ctx: Context, params: EndParams, account: Account) -> UseCaseAnswer[EndedKeys]:
    """Ends a key or a session of the account. Raises CallerFault (bad_key, not_found), ServiceFull."""
    now = _now(ctx)
    async with accounts(ctx) as connection:
        await _check_session(connection, account, params.session, now)
        key = await accounts_store.key_of(connection, account.id, params.id)
        if key is None:
            raise CallerFault("not_found", f"Your account has no key or session {params.id}.")
        was_live = await accounts_store.revoke(connection, key.id, now)
    text = f"Key {key.start}… is revoked" if key.kind == "key" else "The session has ended"
    return UseCaseAnswer(EndedKeys(f"{text}." if was_live else f"{text} already."))


async def sign_out_everywhere(
    ctx: Context, params: SessionParams, account: Account
) -> UseCaseAnswer[EndedKeys]:
    """Ends every session of the account, including the caller's; keys stay live. Raises CallerFault
    (bad_key), ServiceFull."""
    now = _now(ctx)
    async with accounts(ctx) as connection:
        await _check_session(connection, account, params.session, now)
        await accounts_store.end_sessions(connection, account.id, now)
    return UseCaseAnswer(EndedKeys("You are signed out everywhere."))


async def own_usage(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[Usage]:
    """The account's calls on each of the last 14 days. Raises ServiceFull."""
    today = _now(ctx).date()
    async with accounts(ctx) as connection:
        counts = await accounts_store.calls_by_day(connection, account.id, today, _USAGE_DAYS)
    days = [DayCalls(day.isoformat(), calls) for day, calls in counts]
    total = sum(day.calls for day in days)
    text = (
        f"{format_count(total, 'call')} in {_USAGE_DAYS} days, all keys and sessions together. Days begin at "
        "00:00 UTC. Calls that count only against the minute are not included."
    )
    return UseCaseAnswer(Usage(text, days))


async def _check_session(connection: Connection, account: Account, session: str, now: datetime) -> int:
    """The id of the caller's session. Only a session can end sessions; a key can revoke keys
    (``revoke_key``). Raises CallerFault (bad_key)."""
    hashed = keys.hash_of(session) if keys.is_session(session) else b""
    session_id = await accounts_store.session_id(connection, account.id, hashed, now)
    if session_id is None:
        raise CallerFault("bad_key", "You are no longer signed in. Sign in again.")
    return session_id


def _now(ctx: Context) -> datetime:
    return datetime.fromtimestamp(ctx.now_s(), UTC)


def present_key(key: Key) -> OwnKey:
    """A key without its secret part."""
    return OwnKey(key.id, key.start, key.label, key.made_at, key.revoked_at)


def _present_session(session: Key, own_id: int) -> OwnSession:
    assert session.expires_at is not None
    return OwnSession(session.id, session.made_at, session.expires_at, session.id == own_id)


def describe_live_keys(live: int) -> str:
    """How many live keys an account has, and how many more it can make."""
    room = keys.MAX_LIVE - live
    count = f"You have {format_count(live, 'live key')}." if live else "You have no live key."
    return f"{count} You can make {room} more." if room > 0 else f"{count} Revoke one to make another."


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
