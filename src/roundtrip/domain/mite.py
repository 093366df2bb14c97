"""An account of this service: a mite, which is a wallet that once showed that it is its own."""

from dataclasses import dataclass

from .types import Address


@dataclass(frozen=True, slots=True)
class Mite:
    """``designation``: what it is called, ``mite-`` and four characters. ``is_agent``: it says that it is a
    program; ``agent_name``: what that is called, as its owner wrote it."""

    id: int
    designation: str
    wallet: Address
    is_agent: bool = False
    agent_name: str | None = None


@dataclass(frozen=True, slots=True)
class Allowance:
    """How often a caller may ask, in any sixty seconds and in a day of UTC; 0: not limited by the day."""

    per_minute: int
    per_day: int = 0


@dataclass(frozen=True, slots=True)
class Allowances:
    """``anonymous``: without a key, by address. ``key``: of a mite, all its keys together. ``holder``: of one
    whose wallet holds enough of the service's own token."""

    anonymous: Allowance
    key: Allowance
    holder: Allowance
