"""Contracts that are known by their code to keep what they are given until a time."""

from collections.abc import Mapping
from types import MappingProxyType

KNOWN_CODES: Mapping[str, str] = MappingProxyType({})
"""Names by keccak256 of the runtime code. Each was read whole: no function of it lets anybody take a position
before its time."""
