"""The format of a key: ``rt_``, 32 random bytes in 43 characters, and a checksum in 6. Pure.

A session in a cookie has the same format, but begins with ``rs_``: neither can be used as the other.

The text that a wallet signs to prove ownership: an EIP-4361 message. Pure.

The service does not store the texts it hands out: it recomputes one when its signature arrives, from the
clock, the wallet, a secret, and the number of keys and sessions the wallet ever made, so that a text is
useless once it brought either.

There are two texts. The plain one is the same for everyone who asks in a minute: only the wallet's own
key can sign it. A contract wallet may approve a text in public, where anyone can see it and post it first.
So for it there is a second text, bound to a claim: random bytes given only to the one who requested it."""

import hashlib
import hmac
import re
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime

from roundtrip.domain.base.types import Address

PREFIX = "rt_"
SESSION_PREFIX = "rs_"
START_LENGTH = 8
"""Characters of a key, with its prefix, that are stored readable, to tell keys apart."""
MAX_LIVE = 5
"""Live keys of one account."""

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BODY, _CHECKSUM = 43, 6
_BYTES = 32
LENGTH = len(PREFIX) + _BODY + _CHECKSUM
"""Characters of a key, and of a session."""
_BEGINS = f"(?:{PREFIX}|{SESSION_PREFIX})"
_LIKE_ONE = re.compile(rf"({_BEGINS}[0-9A-Za-z]{{{START_LENGTH - len(PREFIX)}}})[0-9A-Za-z]+")
_FORM = re.compile(rf"{_BEGINS}[0-9A-Za-z]{{{_BODY + _CHECKSUM}}}")


def format_key(random_bytes: bytes, prefix: str = PREFIX) -> str:
    """The key made of 32 random bytes; with ``SESSION_PREFIX`` a session."""
    if len(random_bytes) != _BYTES:
        raise ValueError(f"a key is made of {_BYTES} bytes")
    body = prefix + _base62(int.from_bytes(random_bytes, "big"), _BODY)
    return body + _checksum(body)


def is_key(text: str) -> bool:
    """Whether the text has the format of a key: this finds most typos without a lookup."""
    return text.startswith(PREFIX) and is_key_or_session(text)


def is_session(text: str) -> bool:
    """Whether the text has the format of a session."""
    return text.startswith(SESSION_PREFIX) and is_key_or_session(text)


def is_key_or_session(text: str) -> bool:
    """Whether the text has either format."""
    return _FORM.fullmatch(text) is not None and _checksum(text[:-_CHECKSUM]) == text[-_CHECKSUM:]


def hash_of(key: str) -> bytes:
    """Its SHA-256, all that is stored of a key or a session but its start. Raises ValueError where it is
    neither."""
    if not is_key_or_session(key):
        raise ValueError("this is not how a key is written")
    return digest_of(key)


def digest_of(text: str) -> bytes:
    """The SHA-256 of any text. Only those of keys and sessions are stored."""
    return hashlib.sha256(text.encode()).digest()


def start_of(key: str) -> str:
    """Its first characters."""
    return key[:START_LENGTH]


def without_keys(text: str) -> str:
    """The text with everything that begins like a key or a session cut to its start."""
    return _LIKE_ONE.sub(r"\1...", text)


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), _CHECKSUM)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))


WINDOW_S = 60
"""Requests within one window of the clock get the same text."""
LIFETIME_S = 600
"""How long a text is valid, from the start of its window."""
CLAIM_BYTES = 32
_NONCE_DIGITS = 32
_SCHEME = "://"


@dataclass(frozen=True, slots=True)
class SignInSite:
    """The site that asks for the signature. ``public_url``: where people reach this service, without a
    path."""

    public_url: str
    chain_id: int

    def domain(self) -> str:
        """The part before "wants you to sign in": host, and port where there is one."""
        return self.public_url.partition(_SCHEME)[2]


@dataclass(frozen=True, slots=True)
class SignInWallet:
    """The wallet that is asked. ``shown``: its address in the capitals of EIP-55. ``keys_made``: keys and
    sessions, over all time."""

    address: Address
    shown: str
    keys_made: int


def window(now_s: float) -> int:
    """The number of the clock's window. ``now_s``: seconds since 1970."""
    return int(now_s // WINDOW_S)


def valid_windows(now_s: float) -> tuple[int, ...]:
    """Windows whose texts are valid now, the newest first: none in the future, none expired."""
    newest = window(now_s)
    return tuple(
        number
        for number in range(newest, newest - LIFETIME_S // WINDOW_S - 1, -1)
        if number * WINDOW_S <= now_s < number * WINDOW_S + LIFETIME_S
    )


def nonce(secret: bytes, wallet: SignInWallet, of_window: int, claim: bytes = b"") -> str:
    """A value that only this service can compute, in hex. ``claim``: empty for the plain text, else
    CLAIM_BYTES; the text does not reveal its claim. Raises ValueError for a claim of another length."""
    if len(claim) not in (0, CLAIM_BYTES):
        raise ValueError(f"a claim has {CLAIM_BYTES} bytes")
    message = (
        bytes.fromhex(wallet.address[2:]) + of_window.to_bytes(8, "big") + wallet.keys_made.to_bytes(8, "big")
    )
    return hmac.digest(secret, message + claim, hashlib.sha256).hex()[:_NONCE_DIGITS]


FOR_A_KEY = "Make an API key for this wallet."
FOR_A_SESSION = "Sign in to the pages of this service."


def text(
    asker: SignInSite,
    wallet: SignInWallet,
    secret: bytes,
    of_window: int,
    purpose: str = FOR_A_KEY,
    claim: bytes = b"",
) -> str:
    """The text of one window. ``purpose``: what the signature is for; one for a key opens no session.
    ``claim``: empty for the plain text."""
    issued_s = of_window * WINDOW_S
    return "\n".join(
        (
            f"{asker.domain()} wants you to sign in with your Ethereum account:",
            wallet.shown,
            "",
            f"{purpose} Signing moves nothing and costs nothing.",
            "",
            f"URI: {asker.public_url}",
            "Version: 1",
            f"Chain ID: {asker.chain_id}",
            f"Nonce: {nonce(secret, wallet, of_window, claim)}",
            f"Issued At: {_format_time(issued_s)}",
            f"Expiration Time: {_format_time(issued_s + LIFETIME_S)}",
        )
    )


def valid_texts(
    asker: SignInSite,
    wallet: SignInWallet,
    secret: bytes,
    now_s: float,
    purpose: str = FOR_A_KEY,
    claim: bytes = b"",
) -> tuple[str, ...]:
    """Every plain text that is valid now, or every text of this claim, the newest first."""
    return tuple(text(asker, wallet, secret, number, purpose, claim) for number in valid_windows(now_s))


def _format_time(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
