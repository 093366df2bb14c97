"""Sessions of the console: a separate key in a cookie, made for one signature."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts import keys, sign_in
from roundtrip.domain.accounts.account import Account
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.store.accounts import accounts as accounts_store

from .issue_key import (
    KeyParams,
    MiteNamed,
    TextToSign,
    build_text_to_sign,
    lock_account,
    present_account,
    verify_signature,
)

LIFETIME_S = 14 * 86_400
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
    return UseCaseAnswer(await build_text_to_sign(ctx, params.wallet(), sign_in.FOR_A_SESSION))


async def begin_session(ctx: Context, params: KeyParams) -> UseCaseAnswer[SessionBegun]:
    """Begins a session for the wallet that signed. Raises CallerFault (bad_input, bad_signature), NodeFault
    when a contract wallet cannot be called, and ServiceFull."""
    meter, now = Meter(), datetime.fromtimestamp(ctx.now_s(), UTC)
    wallet = await verify_signature(ctx, params, meter, sign_in.FOR_A_SESSION)
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
