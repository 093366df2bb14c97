"""Encrypts channel secrets that must be stored and read back."""

import hashlib
import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12
_VERSION = b"\x01"
_ASSOCIATED_DATA = b"roundtrip channel secret" + _VERSION
"""Authenticated with the text: data that this key sealed for another purpose does not unseal here."""
_HASH_PREFIX = b"roundtrip channel target "
_FINGERPRINT = b"roundtrip channel key fingerprint"


class Unsealable(Exception):
    """The data was not sealed with this key, or was changed."""


class Seal:
    """AES-256-GCM. ``key``: 32 bytes that are not stored in the database. Raises ValueError for another
    length."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"the sealing key must have {KEY_BYTES} bytes")
        self._cipher = AESGCM(key)
        self._hasher = hmac.new(key, _HASH_PREFIX, hashlib.sha256)
        self.fingerprint = hmac.new(key, _FINGERPRINT, hashlib.sha256).digest()
        """32 bytes that identify the key without revealing it."""

    def hash_of(self, text: str) -> bytes:
        """A keyed hash of 32 bytes, by which a sealed text can be looked up."""
        hasher = self._hasher.copy()
        hasher.update(text.encode())
        return hasher.digest()

    def seal(self, text: str, entropy: bytes) -> bytes:
        """Encrypts a text. Returns a version byte, the nonce and the ciphertext. ``entropy``: at least 12
        random bytes, never used twice."""
        if len(entropy) < NONCE_BYTES:
            raise ValueError(f"sealing needs {NONCE_BYTES} random bytes")
        nonce = entropy[:NONCE_BYTES]
        return _VERSION + nonce + self._cipher.encrypt(nonce, text.encode(), _ASSOCIATED_DATA)

    def unseal(self, sealed: bytes) -> str:
        """Decrypts a sealed text. Raises Unsealable."""
        version, nonce, ciphertext = sealed[:1], sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
        if version != _VERSION or len(nonce) != NONCE_BYTES:
            raise Unsealable("not a sealed secret")
        try:
            return self._cipher.decrypt(nonce, ciphertext, _ASSOCIATED_DATA).decode()
        except InvalidTag:
            raise Unsealable("encrypted with a different key, or changed since") from None
