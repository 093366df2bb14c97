"""Contracts that are known by their code to keep what they are given until a time."""

from collections.abc import Mapping
from types import MappingProxyType

KNOWN_CODES: Mapping[str, str] = MappingProxyType(
    {
        "0xd8328b9b9f2409dd2b4906da8765f22ce16c95fc1fe3c8a476f9c828df8b0ab5": "time lock",
        "0x546c2009929fa6dc04654afb1c9c14ab265962510b8f53915283062a8ecec386": "vault lock",
    }
)
"""Names by keccak256 of the runtime code. Each was read whole: no function of it lets anybody take a position
before its time. These two are ``contracts/liquidity/time_lock.vy`` and ``vault_lock.vy`` of this project."""
