"""Secrets that have to be kept and used again, encrypted."""

import hashlib
import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12
_VERSION = b"\x01"
_ABOUT = b"roundtrip channel secret" + _VERSION
"""Authenticated beside the text: what this key sealed for another purpose does not open here."""


_HASHED = b"roundtrip channel target "
_FINGERPRINT = b"roundtrip channel key fingerprint"


class Unsealable(Exception):
    """It was not sealed with this key, or was changed."""


class Seal:
    """AES-256-GCM. ``key``: 32 bytes that are not in the database. Raises ValueError for another length."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a sealing key has {KEY_BYTES} bytes")
        self._cipher = AESGCM(key)
        self._hashing = hmac.new(key, _HASHED, hashlib.sha256)
        self.fingerprint = hmac.new(key, _FINGERPRINT, hashlib.sha256).digest()
        """32 bytes by which the key is known again, and that tell nothing of it."""

    def hash_of(self, text: str) -> bytes:
        """32 bytes by which what is sealed is found again."""
        hashing = self._hashing.copy()
        hashing.update(text.encode())
        return hashing.digest()

    def seal(self, text: str, entropy: bytes) -> bytes:
        """``entropy``: at least 12 random bytes, never used twice. A version byte, the nonce, the rest."""
        if len(entropy) < NONCE_BYTES:
            raise ValueError(f"sealing takes {NONCE_BYTES} random bytes")
        nonce = entropy[:NONCE_BYTES]
        return _VERSION + nonce + self._cipher.encrypt(nonce, text.encode(), _ABOUT)

    def unseal(self, sealed: bytes) -> str:
        """Raises Unsealable."""
        version, nonce, rest = sealed[:1], sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
        if version != _VERSION or len(nonce) != NONCE_BYTES:
            raise Unsealable("not a sealed secret")
        try:
            return self._cipher.decrypt(nonce, rest, _ABOUT).decode()
        except InvalidTag:
            raise Unsealable("sealed with another key, or changed since") from None
