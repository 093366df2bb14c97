"""Contracts that are known by their code to keep what they are given until a time."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class KnownLocker(NamedTuple):
    """``end_view``: tells when the lock of an NFT ends, by its manager and number, in word ``end_word``."""

    name: str
    end_view: str
    end_word: int


KNOWN_CODES: Mapping[str, KnownLocker] = MappingProxyType(
    {
        "0xd8328b9b9f2409dd2b4906da8765f22ce16c95fc1fe3c8a476f9c828df8b0ab5": KnownLocker(
            "time lock", "unlockTime(address,uint256)", 0
        ),
        "0x99cd4d83d9d939087fc68957500b1ec04a39260b5f785de0d51f7c089b984b2e": KnownLocker(
            "vault lock", "locks(address,uint256)", 5
        ),
    }
)
"""By keccak256 of the runtime code. Each was read whole: no function of it lets anybody take a position
before its time. That holds whatever its storage was: whoever makes a contract can fill that before its code
is there. What managers let others do for the contract is read beside it. These two are ``time_lock.vy`` and
``vault_lock.vy`` of this project's ``contracts/liquidity``."""
