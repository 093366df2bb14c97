"""Issues a key for a wallet's signature: first the text to sign, then the key."""

import hashlib
import hmac
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Literal

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.wallet import signatures
from roundtrip.domain.accounts import keys
from roundtrip.domain.accounts.account import (
    AGENT_NAME_PATTERN,
    MAX_AGENT_NAME,
    MAX_TRIES,
    Account,
    CallAllowance,
    agent_name,
    designation,
)
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault, LimitReached, ParamFault
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import Designation, IsAgent, WalletParams, read_address, says
from roundtrip.services.support.index_reader import accounts, allowance_of
from roundtrip.store.accounts import accounts as accounts_store
from roundtrip.store.practice import league
from roundtrip.store.server.rows import Connection
from roundtrip.venues.abi import checksum_address

MAX_LABEL = 64
MAX_SIGNATURE_BYTES = 8192
"""Enough for a contract wallet with many owners; a signature by a wallet's own key has 65."""
_HEX = re.compile(r"0x([0-9a-fA-F]{2})*")
_CLAIM_DIGITS = 2 * keys.CLAIM_BYTES
_CLAIM = re.compile(rf"[0-9a-f]{{{_CLAIM_DIGITS}}}")


class KeyParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The wallet, and its signature."""

    address: Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$", description="The wallet's address.")]
    signature: Annotated[
        str,
        msgspec.Meta(
            pattern="^0x([0-9a-fA-F]{2})*$",
            max_length=2 + 2 * MAX_SIGNATURE_BYTES,
            description="Signature of message (by personal_sign) or of claimMessage, both from POST "
            "/v1/keys/nonce, as hex. For a claimMessage also send claim; a contract wallet "
            "signs by EIP-1271, one that is not deployed yet by EIP-6492.",
        ),
    ]
    label: Annotated[
        str,
        # The length is checked after invisible characters are removed.
        msgspec.Meta(extra_json_schema={"maxLength": MAX_LABEL}, description="Your name for this key."),
    ] = ""
    agent: Annotated[bool, says("true: the account is a program and gets the agent tag on the league.")] = (
        False
    )
    name: Annotated[
        Annotated[str, msgspec.Meta(pattern=AGENT_NAME_PATTERN, max_length=MAX_AGENT_NAME)] | None,
        says(
            "The agent's name on the league: at most 24 Latin letters, digits and spaces. "
            "Used only if agent is true; left out: no name."
        ),
    ] = None
    claim: Annotated[
        Annotated[str, msgspec.Meta(pattern=f"^[0-9a-f]{{{_CLAIM_DIGITS}}}$")] | None,
        says(
            "The claim that came with the claimMessage you signed; left out if you signed "
            "message. Required for a contract wallet whose signature other people can read before you send "
            "it, such as a Safe, and for a wallet that is not deployed yet."
        ),
    ] = None

    def wallet(self) -> Address:
        """The address, lower-cased. Raises CallerFault (bad_input)."""
        return read_address(self.address, code="bad_input")

    def signature_bytes(self) -> bytes:
        """The signature. Raises CallerFault (bad_input)."""
        if not _HEX.fullmatch(self.signature):
            raise ParamFault("bad_input", "signature must be bytes in hex: 0x and two digits for each byte.")
        return bytes.fromhex(self.signature[2:])

    def claim_bytes(self) -> bytes | None:
        """The claim; None if none was sent. Raises CallerFault (bad_input)."""
        if self.claim is None:
            return None
        if not _CLAIM.fullmatch(self.claim):
            raise ParamFault(
                "bad_input", f"claim must be the {_CLAIM_DIGITS} hex digits of POST /v1/keys/nonce."
            )
        return bytes.fromhex(self.claim)

    def cleaned_label(self) -> str:
        """The label as it is stored; may be empty. Raises CallerFault (bad_input)."""
        cleaned = names.clean(self.label, len(self.label))
        if len(cleaned) > MAX_LABEL:
            raise ParamFault(
                "bad_input", f'label must have at most {MAX_LABEL} characters, such as "laptop".'
            )
        return cleaned

    def agents_name(self) -> str | None:
        """The agent's name; None if none was given. Raises CallerFault (bad_input)."""
        try:
            return None if self.name is None else agent_name(self.name)
        except ValueError as error:
            raise CallerFault("bad_input", f"{error}.") from None


PERSONAL_SIGN: Literal["personal_sign"] = "personal_sign"


class TextToSign(msgspec.Struct, frozen=True, rename="camel"):
    """The text to sign, and how to sign it."""

    message: Annotated[
        str,
        says(
            "The text to sign, unchanged and with every line break. Valid for ten minutes from "
            "its Issued At; asking again within that minute returns the same text. A contract wallet "
            "whose signature other people can read before you send it, such as a Safe, signs claimMessage "
            "instead; so does a wallet that is not deployed yet."
        ),
    ]
    sign: Annotated[Literal["personal_sign"], says("The wallet method that signs the message.")]
    claim: Annotated[str, says("A random value that only you know. Keep it secret until you have the key.")]
    claim_message: Annotated[
        str,
        says(
            "The text to sign instead of message, and to send with claim, for a contract wallet "
            "(EIP-1271) whose signature other people can read before you send it, such as a Safe, and for "
            "a wallet that is not deployed yet. Any other wallet may sign it too. Each request returns a "
            "new one, valid as long as message."
        ),
    ]


class MiteNamed(msgspec.Struct, frozen=True):
    """An account."""

    designation: Designation
    wallet: Annotated[str, says("The account's wallet.")]
    agent: IsAgent


class Limits(msgspec.Struct, frozen=True, rename="camel"):
    """The call limits of an account, all its keys together."""

    per_minute: Annotated[int, says("Calls a minute.")]
    per_day: Annotated[int, says("Calls a day; the day begins at 00:00 UTC.")]


class KeyMade(msgspec.Struct, frozen=True, rename="camel"):
    """A new key."""

    key: Annotated[str, says("The API key. Store it: this answer is the only one that shows it.")]
    shown_once: Annotated[Literal[True], says("Always true: the key is not shown again.")]
    mite: Annotated[MiteNamed, says("The account that the key belongs to.")]
    limits: Annotated[Limits, says("How often the account may call.")]


def present_account(account: Account) -> MiteNamed:
    """The account as answers show it."""
    return MiteNamed(account.designation, account.wallet, account.is_agent)


def present_limits(allowance: CallAllowance) -> Limits:
    """The limits as answers show them."""
    return Limits(allowance.per_minute, allowance.per_day)


_SECRET = "nonce"  # noqa: S105
"""Name of the stored secret that the texts to sign are derived from."""


async def text_to_sign(ctx: Context, params: WalletParams) -> UseCaseAnswer[TextToSign]:
    """The text that a wallet signs for its next key. Raises CallerFault (bad_address), ServiceFull."""
    return UseCaseAnswer(await build_text_to_sign(ctx, params.wallet()))


async def make_key(ctx: Context, params: KeyParams) -> UseCaseAnswer[KeyMade]:
    """Makes a key for the wallet that signed. Raises CallerFault (bad_input, bad_signature, too_many_keys),
    LimitReached (rate_limited) for a new account, NodeFault when a contract wallet cannot be called, and
    ServiceFull."""
    new = _NewKey(params.cleaned_label(), params.agent, params.agents_name(), keys.format_key(ctx.entropy()))
    meter = Meter()
    wallet = await verify_signature(ctx, params, meter)
    # Read before the key is stored: an error after that would lose a key that was never shown.
    allowance = await allowance_of(ctx, wallet.address)
    async with accounts(ctx) as connection:
        account = await _store_key(ctx, connection, wallet, new)
    answer = KeyMade(new.key, True, present_account(account), present_limits(allowance))
    return UseCaseAnswer(answer, meter=meter)


async def build_text_to_sign(ctx: Context, address: Address, purpose: str = keys.FOR_A_KEY) -> TextToSign:
    """The texts that a wallet can sign for a purpose. Raises ServiceFull."""
    wallet, secret = await _read_wallet(ctx, address)
    site, window, claim = _site(ctx), keys.window(ctx.now_s()), ctx.entropy()
    message = keys.text(site, wallet, secret, window, purpose)
    claim_message = keys.text(site, wallet, secret, window, purpose, claim)
    return TextToSign(message, PERSONAL_SIGN, claim.hex(), claim_message)


async def verify_signature(
    ctx: Context, params: KeyParams, meter: Meter, purpose: str = keys.FOR_A_KEY
) -> keys.SignInWallet:
    """Checks that the wallet signed a text that is valid now. Returns the wallet as it was when it signed.
    Raises CallerFault (bad_input, bad_signature), NodeFault when a contract wallet cannot be called, and
    ServiceFull."""
    signature, claim = params.signature_bytes(), params.claim_bytes()
    wallet, secret = await _read_wallet(ctx, params.wallet())
    site, now_s = _site(ctx), ctx.now_s()
    plain = _hashes(keys.valid_texts(site, wallet, secret, now_s, purpose))
    claimed = [] if claim is None else _hashes(keys.valid_texts(site, wallet, secret, now_s, purpose, claim))
    # The wallet's own key first: that needs no request, and a wallet that delegates to a contract (EIP-7702)
    # still has its key.
    if any(signatures.recover_signer(hashed, signature) == wallet.address for hashed in (*plain, *claimed)):
        return wallet
    # A contract's approval may be public: then it counts only together with the secret claim of the text.
    if not await _contract_accepts(ctx, wallet.address, claimed or plain, signature, not claimed, meter):
        raise bad_signature()
    return wallet


@dataclass(frozen=True, slots=True)
class _NewKey:
    """A key to store, with its label and agent tag. Its repr does not show the key."""

    label: str
    agent: bool
    name: str | None
    key: str

    def __repr__(self) -> str:
        return "_NewKey(...)"


async def _read_wallet(ctx: Context, address: Address) -> tuple[keys.SignInWallet, bytes]:
    """The wallet as it is now, and the secret that its texts are derived from."""
    async with accounts(ctx) as connection:
        secret = await accounts_store.secret(connection, _SECRET, ctx.entropy())
        keys_made = await accounts_store.keys_made(connection, address)
    return keys.SignInWallet(address, checksum_address(address), keys_made), secret


def _site(ctx: Context) -> keys.SignInSite:
    return keys.SignInSite(ctx.public_url, ctx.chain_id)


def _hashes(texts: Sequence[str]) -> list[bytes]:
    return [signatures.hash_text(text) for text in texts]


async def _contract_accepts(
    ctx: Context,
    wallet: Address,
    hashes: Sequence[bytes],
    signature: bytes,
    must_be_secret: bool,
    meter: Meter,
) -> bool:
    """As ``signatures.contract_accepts``, at the node's newest block. Raises NodeFault."""
    # The wallet may have been deployed since the last poll.
    block = (await ctx.heads.read_now()).block
    return await signatures.contract_accepts(
        ctx.node, block, wallet, hashes, signature, meter, must_be_secret
    )


async def _store_key(
    ctx: Context, connection: Connection, wallet: keys.SignInWallet, new: _NewKey
) -> Account:
    """Writes the key in the transaction of ``connection``. Raises CallerFault (bad_signature,
    too_many_keys), LimitReached (rate_limited) for a new account."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    account = (await lock_account(ctx, connection, wallet, now)).account
    if await accounts_store.live_count(connection, account.id) >= keys.MAX_LIVE:
        raise CallerFault(
            "too_many_keys",
            f"This wallet already has {keys.MAX_LIVE} live keys, which is the limit. Revoke one first.",
        )
    hashed, start = keys.hash_of(new.key), keys.start_of(new.key)
    await accounts_store.add_key(connection, account.id, hashed, start, new.label, now)
    return await league.tag(connection, account.id, new.name, now) if new.agent else account


async def lock_account(
    ctx: Context, connection: Connection, wallet: keys.SignInWallet, now: datetime
) -> accounts_store.AccountRecord:
    """Locks the wallet's account, and creates it if there is none. Of concurrent requests whose texts were
    made at the same ``keys_made`` only the first succeeds. Raises CallerFault (bad_signature), LimitReached
    (rate_limited) for a new account."""
    record = await accounts_store.lock_account(
        connection, wallet.address, _designations(ctx), now, ctx.heads.last_number()
    )
    if record.keys_made != wallet.keys_made:
        raise bad_signature()
    if record.is_new and ctx.address is not None:
        await _count_account(ctx, connection, ctx.address, now)
    return record


async def _count_account(ctx: Context, connection: Connection, address: str, now: datetime) -> None:
    """Limits the new accounts of a network address in a day. Only a keyed hash of the address is stored,
    until the first new account of a later day. Raises LimitReached (rate_limited), which rolls the new
    account back."""
    secret = await accounts_store.secret(connection, _SECRET, ctx.entropy())
    hashed = hmac.digest(secret, f"account from {address}".encode(), hashlib.sha256)
    limit = ctx.allowances.address.accounts
    if await accounts_store.made_from(connection, hashed, now.date()) > limit:
        midnight = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
        wait_s = int((midnight - now).total_seconds()) + 1
        text = f"Your address made {limit} new accounts today, which is the limit. Retry after 00:00 UTC."
        raise LimitReached("rate_limited", text, wait_s, ctx.allowances.anonymous.per_minute)


def _designations(ctx: Context) -> Iterator[str]:
    return (designation(ctx.entropy(), tries) for tries in range(MAX_TRIES))


def bad_signature() -> CallerFault:
    """The error for a signature that is wrong, too late or already used."""
    return CallerFault(
        "bad_signature",
        "This is not the wallet's signature of a valid text. Get a text at POST /v1/keys/nonce, sign it "
        "unchanged, and send the signature within ten minutes. Each signature makes one key. A "
        "contract wallet whose signature other people can read before you send it, such as a Safe, and a "
        "wallet that is not deployed yet sign claimMessage instead: send the claim of the same answer, too.",
    )
