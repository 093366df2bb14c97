"""Who gets keys: wallets that sign texts, over the use cases themselves."""

import secrets
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from eth_account import Account as EthAccount
from eth_account.messages import encode_defunct

from roundtrip.api.dispatch import read_params
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import HandlerCall
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.types import Address
from roundtrip.services.accounts import manage_keys
from roundtrip.services.accounts.issue_key import KeyParams
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import WalletParams
from roundtrip.store.accounts import accounts, call_counts
from roundtrip.store.accounts.call_counts import CountedCall
from roundtrip.store.server.rows import Connection
from support.clocks import Clock

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""Of the group that signatures are made in."""
NOW_S = Clock().now_s
"""Twenty seconds into a window of a minute."""


def random_context(ctx: Context, clock: Clock) -> Context:
    """The same, its chance real and its clock standing: accounts of several tests share one database."""
    return replace(ctx, entropy=lambda: secrets.token_bytes(32), now_s=clock)


async def account_of_key(connection: Connection, hashed: bytes) -> Account | None:
    """Whose live key has this hash, asked as a call asks it; None: it is nobody's, or revoked."""
    (live,) = await call_counts.write(connection, [CountedCall(None, int(NOW_S * 1000), hashed)])
    return None if live is None else live.account


class Person:
    """Somebody with a wallet. ``key``: its private key; empty: a new one."""

    def __init__(self, key: str = "") -> None:
        self._account = EthAccount.from_key(key) if key else EthAccount.create()
        self.shown = str(self._account.address)
        self.address = Address(self.shown.lower())

    def sign(self, text: str) -> str:
        """As a wallet does it by personal_sign."""
        return "0x" + bytes(self._account.sign_message(encode_defunct(text=text)).signature).hex()

    def sign_hash(self, hashed: bytes) -> str:
        """The bare hash, which no wallet does for anybody."""
        return "0x" + bytes(self._account.unsafe_sign_hash(hashed).signature).hex()


async def asked(ctx: Context, name: str, /, **given: Any) -> dict[str, Any]:
    """The answer of an operation that needs no key. Raises as it does."""
    operation = next(one for one in OPERATIONS if one.name == name)
    answered = await operation.handler(HandlerCall(ctx, read_params(operation, given)))
    body = msgspec.json.encode(answered.answer)
    msgspec.json.decode(body, type=operation.answer)
    found: dict[str, Any] = msgspec.json.decode(body)
    return found


async def text_for(ctx: Context, address: str) -> str:
    """What this wallet is to sign now."""
    return str((await asked(ctx, "key_nonce", address=address))["message"])


async def claimed_text(ctx: Context, address: str) -> tuple[str, str]:
    """What this wallet may sign where it is a contract, and the claim to send with it."""
    answer = await asked(ctx, "key_nonce", address=address)
    return str(answer["claimMessage"]), str(answer["claim"])


async def code_of(ctx: Context, /, address: str, signature: str, **more: Any) -> str:
    """What sending it comes to: an error's code, or "ok"."""
    try:
        await asked(ctx, "make_key", address=address, signature=signature, **more)
    except RoundtripError as error:
        return error.code
    return "ok"


async def session_text_for(ctx: Context, address: str) -> tuple[str, str]:
    """The same for a session of the pages."""
    asked_for = (await manage_keys.session_text(ctx, WalletParams(address))).answer
    return asked_for.claim_message, asked_for.claim


async def session_code_of(ctx: Context, address: str, signature: str, claim: str | None) -> str:
    """What signing in comes to: an error's code, or "ok"."""
    try:
        await manage_keys.begin_session(ctx, KeyParams(address, signature, claim=claim))
    except RoundtripError as error:
        return error.code
    return "ok"


async def key_for(ctx: Context, person: Person, **more: Any) -> dict[str, Any]:
    """A new key, as the answer tells it."""
    signature = person.sign(await text_for(ctx, person.address))
    return await asked(ctx, "make_key", address=person.address, signature=signature, **more)


@dataclass(frozen=True, slots=True)
class Kept:
    """What the database has of a wallet."""

    keys_made: int
    starts: list[str]
    live: int


async def kept_of(ctx: Context, address: Address) -> Kept:
    """All its keys by their starts, the oldest first."""
    async with ctx.pool.acquire() as connection:
        found = await accounts.every_key(connection, address)
        made = await accounts.keys_made(connection, address)
    return Kept(made, [key.start for key in found], sum(key.revoked_at is None for key in found))


async def revoke_of(ctx: Context, address: Address, place: int) -> None:
    """The wallet's key of this place, the oldest is the first."""
    async with ctx.pool.acquire() as connection:
        key = (await accounts.every_key(connection, address))[place]
        assert await accounts.revoke(connection, key.id, key.made_at)
