"""A key for a signature: the text to sign, and the key for whoever signed it."""

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

import asyncpg

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.wallet import signatures
from roundtrip.domain.accounts import keys, sign_in
from roundtrip.domain.accounts.account import MOST_TRIES, Account, designation
from roundtrip.domain.base.errors import CallerFault, LimitReached
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.store.accounts import accounts as accounts_store
from roundtrip.store.practice import league
from roundtrip.venues.abi import checksum_address

from .database import accounts, allowance_of
from .key_schema import PERSONAL_SIGN, KeyMade, KeyParams, TextToSign, limits, present_account

_SECRET = "nonce"  # noqa: S105


async def text_to_sign(ctx: Context, params: WalletParams) -> UseCaseAnswer[TextToSign]:
    """What the wallet signs for its next key. Raises CallerFault (bad_address), ServiceFull."""
    return UseCaseAnswer(await to_sign(ctx, params.wallet()))


async def make_key(ctx: Context, params: KeyParams) -> UseCaseAnswer[KeyMade]:
    """A key for the wallet that signed. Raises CallerFault (bad_input, bad_signature, too_many_keys),
    NodeFault where a contract had to be asked, ServiceFull."""
    new = _NewKey(params.cleaned_label(), params.agent, params.agents_name(), keys.format_key(ctx.entropy()))
    meter = Meter()
    wallet = await signed_in(ctx, params, meter)
    # Before the key is there: what fails or is left behind it would take the key along, unseen.
    allowance = await allowance_of(ctx, wallet.address)
    async with accounts(ctx) as connection:
        account = await _keep(ctx, connection, wallet, new)
    return UseCaseAnswer(KeyMade(new.key, True, present_account(account), limits(allowance)), meter=meter)


async def to_sign(ctx: Context, address: Address, purpose: str = sign_in.FOR_A_KEY) -> TextToSign:
    """What a wallet signs for this. Raises ServiceFull."""
    wallet, secret = await _wallet(ctx, address)
    asker, window, claim = _asker(ctx), sign_in.window(ctx.now_s()), ctx.entropy()
    message = sign_in.text(asker, wallet, secret, window, purpose)
    claim_message = sign_in.text(asker, wallet, secret, window, purpose, claim)
    return TextToSign(message, PERSONAL_SIGN, claim.hex(), claim_message)


async def signed_in(
    ctx: Context, params: KeyParams, meter: Meter, purpose: str = sign_in.FOR_A_KEY
) -> sign_in.SignInWallet:
    """The wallet as it stood when it signed a text that is good now. Raises CallerFault (bad_input,
    bad_signature), NodeFault where a contract had to be asked, ServiceFull."""
    signature, claim = params.signature_bytes(), params.claim_bytes()
    wallet, secret = await _wallet(ctx, params.wallet())
    asker, now_s = _asker(ctx), ctx.now_s()
    plain = _hashes(sign_in.good_texts(asker, wallet, secret, now_s, purpose))
    claimed = (
        [] if claim is None else _hashes(sign_in.good_texts(asker, wallet, secret, now_s, purpose, claim))
    )
    # By the wallet's own key first, which costs no trip: also of one that runs a contract's code (EIP-7702).
    if any(signatures.signer(hashed, signature) == wallet.address for hashed in (*plain, *claimed)):
        return wallet
    # A contract's approval may be public: it is worth something only to whoever holds the text's claim.
    if not claimed or not await _contract_accepts(ctx, wallet.address, claimed, signature, meter):
        raise bad_signature()
    return wallet


@dataclass(frozen=True, slots=True)
class _NewKey:
    """What is asked for beside the key. It is never shown by accident."""

    label: str
    agent: bool
    name: str | None
    key: str

    def __repr__(self) -> str:
        return "_New(...)"


async def _wallet(ctx: Context, address: Address) -> tuple[sign_in.SignInWallet, bytes]:
    """As it stands now, and the secret that its texts are made from."""
    async with accounts(ctx) as connection:
        secret = await accounts_store.secret(connection, _SECRET, ctx.entropy())
        made = await accounts_store.keys_made(connection, address)
    return sign_in.SignInWallet(address, checksum_address(address), made), secret


def _asker(ctx: Context) -> sign_in.SignInSite:
    return sign_in.SignInSite(ctx.public_url, ctx.chain_id)


def _hashes(texts: Sequence[str]) -> list[bytes]:
    return [signatures.hash_of(text) for text in texts]


async def _contract_accepts(
    ctx: Context, wallet: Address, hashes: Sequence[bytes], signature: bytes, meter: Meter
) -> bool:
    at = ctx.heads.current().block
    return await signatures.contract_accepts(ctx.node, at, wallet, hashes, signature, meter)


async def _keep(
    ctx: Context, connection: asyncpg.Connection, wallet: sign_in.SignInWallet, new: _NewKey
) -> Account:
    """Writes the key in the transaction of ``connection``. Raises CallerFault (bad_signature,
    too_many_keys)."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    found = await lock_account(ctx, connection, wallet, now)
    if await accounts_store.live_count(connection, found.account.id) >= keys.MOST_LIVE:
        raise CallerFault(
            "too_many_keys", f"This wallet has {keys.MOST_LIVE} live keys: one has to be revoked first."
        )
    hashed, start = keys.hash_of(new.key), keys.start_of(new.key)
    await accounts_store.add_key(connection, found.account.id, hashed, start, new.label, now)
    if not new.agent:
        return found.account
    return await league.tag(connection, found.account.id, new.name, now)


async def lock_account(
    ctx: Context, connection: asyncpg.Connection, wallet: sign_in.SignInWallet, now: datetime
) -> accounts_store.AccountRecord:
    """The wallet's account, made where it had none. Of several that come at once with texts of the same count
    of keys, the first has it. Raises CallerFault (bad_signature)."""
    found = await accounts_store.lock_account(
        connection, wallet.address, _designations(ctx), now, ctx.heads.last_number()
    )
    if found.keys_made != wallet.keys_made:
        raise bad_signature()
    if found.is_new and ctx.address is not None:
        await _count_account(ctx, connection, ctx.address, now)
    return found


async def _count_account(ctx: Context, connection: asyncpg.Connection, address: str, now: datetime) -> None:
    """Bounds the new accounts of an address. Only a keyed hash of it is kept, for the day. Raises
    LimitReached (rate_limited), with which the account is not made."""
    secret = await accounts_store.secret(connection, _SECRET, ctx.entropy())
    hashed = hmac.digest(secret, f"account from {address}".encode(), hashlib.sha256)
    most = ctx.allowances.address.accounts
    if await accounts_store.made_from(connection, hashed, now.date()) > most:
        midnight = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
        wait_s = int((midnight - now).total_seconds()) + 1
        said = f"Your address made {most} new accounts today, and may make no more before midnight UTC."
        raise LimitReached("rate_limited", said, wait_s, ctx.allowances.anonymous.per_minute)


def _designations(ctx: Context) -> Iterator[str]:
    return (designation(ctx.entropy(), tries) for tries in range(MOST_TRIES))


def bad_signature() -> CallerFault:
    """For all that was signed wrongly, or too late, or once before."""
    return CallerFault(
        "bad_signature",
        "That is not this wallet's signature of a text that is good now. Ask for one at POST /v1/keys/nonce, "
        "sign it as it is, and send the signature within ten minutes; it brings one key. A wallet that is a "
        "contract signs claimMessage instead, and sends the claim of the same answer.",
    )
