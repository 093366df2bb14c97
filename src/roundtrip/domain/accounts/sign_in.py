"""The text that a wallet signs to show that it is its own: a message of EIP-4361. Pure.

Nothing is kept of a text that was handed out: it is made again when its signature comes. What it is made from
beside the clock is the wallet, a secret, and how many keys the wallet ever made, so that a text is of no use
once it brought a key.

There are two texts. The plain one is the same for everyone who asks in a minute: only the wallet's own key
can sign it. A contract may approve a text in public, where anyone can see it and post first; its text is
bound to a claim, random bytes that only the one who asked for it was given.
"""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime

from roundtrip.domain.base.types import Address

WINDOW_S = 60
"""Whoever asks again within a window of the clock is given the same text."""
LIFETIME_S = 600
"""A text is good from the start of its window on for so long."""
CLAIM_BYTES = 32
_NONCE_DIGITS = 32
_SCHEME = "://"


@dataclass(frozen=True, slots=True)
class SignInSite:
    """Who asks for the signature. ``public_url``: where people reach this service, without a path."""

    public_url: str
    chain_id: int

    def domain(self) -> str:
        """What stands before "wants you to sign in": host, and port where there is one."""
        return self.public_url.partition(_SCHEME)[2]


@dataclass(frozen=True, slots=True)
class SignInWallet:
    """Who is asked. ``shown``: its address in the capitals of EIP-55. ``keys_made``: in all its time."""

    address: Address
    shown: str
    keys_made: int


def window(now_s: float) -> int:
    """Which window of the clock it is. ``now_s``: seconds since 1970."""
    return int(now_s // WINDOW_S)


def good_windows(now_s: float) -> tuple[int, ...]:
    """Of which windows the texts are good now, the newest first: none of the future, none that is over."""
    newest = window(now_s)
    return tuple(
        one
        for one in range(newest, newest - LIFETIME_S // WINDOW_S - 1, -1)
        if one * WINDOW_S <= now_s < one * WINDOW_S + LIFETIME_S
    )


def nonce(secret: bytes, wallet: SignInWallet, of_window: int, claim: bytes = b"") -> str:
    """What nobody but us could have put there, in hex. ``claim``: empty for the plain text, else CLAIM_BYTES;
    who knows the text still does not know its claim. Raises ValueError for a claim of another length."""
    if len(claim) not in (0, CLAIM_BYTES):
        raise ValueError(f"a claim has {CLAIM_BYTES} bytes")
    made_from = (
        bytes.fromhex(wallet.address[2:]) + of_window.to_bytes(8, "big") + wallet.keys_made.to_bytes(8, "big")
    )
    return hmac.digest(secret, made_from + claim, hashlib.sha256).hex()[:_NONCE_DIGITS]


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


def good_texts(
    asker: SignInSite,
    wallet: SignInWallet,
    secret: bytes,
    now_s: float,
    purpose: str = FOR_A_KEY,
    claim: bytes = b"",
) -> tuple[str, ...]:
    """Every plain text that is good now, or every text of this claim, the newest first."""
    return tuple(text(asker, wallet, secret, start, purpose, claim) for start in good_windows(now_s))


def _format_time(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
