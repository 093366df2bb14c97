"""An account of this service: an account, which is a wallet that once showed that it is its own."""

import re
from dataclasses import dataclass

from roundtrip.domain.base.types import Address


@dataclass(frozen=True, slots=True)
class Account:
    """``designation``: what it is called, ``mite-`` and four characters. ``is_agent``: it says that it is a
    program; ``agent_name``: what that is called, as its owner wrote it."""

    id: int
    designation: str
    wallet: Address
    is_agent: bool = False
    agent_name: str | None = None


@dataclass(frozen=True, slots=True)
class CallAllowance:
    """How often a caller may ask, in any sixty seconds and in a day of UTC; 0: not limited by the day."""

    per_minute: int
    per_day: int = 0


@dataclass(frozen=True, slots=True)
class AddressAllowance:
    """What one address may do, whoever's keys it shows: ``keyed`` calls with keys, ``requests`` of any kind
    a minute, and ``accounts`` new ones a day. ``loopback``: the same holds on the service's own machine."""

    keyed: int = 600
    requests: int = 1_200
    accounts: int = 20
    loopback: bool = False


@dataclass(frozen=True, slots=True)
class Allowances:
    """``anonymous``: without a key, by address. ``key``: of an account, all its keys together. ``holder``: of
    one whose wallet holds enough of the service's own token."""

    anonymous: CallAllowance
    key: CallAllowance
    holder: CallAllowance
    address: AddressAllowance = AddressAllowance()


# Without what is mistaken for something else: 0 and o, 1, i and l.
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_SHORTEST, _TRIES_A_LENGTH = 4, 8
MOST_TRIES = 4 * _TRIES_A_LENGTH
"""So many designations are drawn at most; what 31 letters can say in seven places nobody uses up."""
_AGENT_NAME = re.compile(r" *[0-9A-Za-z][0-9A-Za-z ]*")
MOST_AGENT_NAME = 24


def designation(chance: bytes, tries: int) -> str:
    """What a new account may be called. ``tries``: how many names were taken already when it drew them: after
    some, most of that length are taken, and a letter is added. ``chance``: random, new for each try."""
    number, letters = int.from_bytes(chance, "big"), ""
    for _ in range(_SHORTEST + tries // _TRIES_A_LENGTH):
        number, place = divmod(number, len(_LETTERS))
        letters += _LETTERS[place]
    return f"mite-{letters}"


def agent_name(text: str) -> str:
    """An agent's name with its spaces folded. Raises ValueError for anything but Latin letters, digits and
    spaces, and past 24 of them: it stands on public boards, where look-alikes would deceive."""
    if len(text) > MOST_AGENT_NAME or not _AGENT_NAME.fullmatch(text):
        raise ValueError(f"a name is at most {MOST_AGENT_NAME} letters, digits and spaces")
    return " ".join(text.split())
