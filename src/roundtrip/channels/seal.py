"""Secrets that have to be kept and used again, encrypted."""


class Unsealable(Exception):
    """It was not sealed with this key, or was changed."""


class Seal:
    """``key``: 32 bytes that are not in the database."""

    def __init__(self, key: bytes) -> None:
        raise NotImplementedError

    def seal(self, text: str, entropy: bytes) -> bytes:
        """``entropy``: at least 12 random bytes, never used twice."""
        raise NotImplementedError

    def unseal(self, sealed: bytes) -> str:
        """Raises Unsealable."""
        raise NotImplementedError
