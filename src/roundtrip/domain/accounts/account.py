"""An account of this service: a wallet that once signed in. Paid calls: how many a payment buys."""

import re
from dataclasses import dataclass

from roundtrip.domain.base.types import Address, TxHash


@dataclass(frozen=True, slots=True)
class Account:
    """``designation``: its public name, ``mite-`` and four to seven characters. ``is_agent``: it declares
    itself a program; ``agent_name``: the program's name, with its spaces folded."""

    id: int
    designation: str
    wallet: Address
    is_agent: bool = False
    agent_name: str | None = None


@dataclass(frozen=True, slots=True)
class CallAllowance:
    """Calls of a caller in any sixty seconds and in a day of UTC; 0: no daily limit."""

    per_minute: int
    per_day: int = 0


@dataclass(frozen=True, slots=True)
class AddressAllowance:
    """Limits of one IP address, whatever keys it uses: ``keyed`` calls with keys and ``requests`` of any kind
    a minute, and ``accounts`` new ones a day. ``loopback``: the limits also apply to the service's own
    machine."""

    keyed: int = 600
    requests: int = 1_200
    accounts: int = 20
    loopback: bool = False


@dataclass(frozen=True, slots=True)
class Allowances:
    """``anonymous``: without a key, by IP address. ``key``: of an account, all its keys together. ``holder``:
    of an account whose wallet holds enough of the service's own token. ``views``: pages that people open, by
    IP address or account; what scripts ask of them counts apart."""

    anonymous: CallAllowance
    key: CallAllowance
    holder: CallAllowance
    address: AddressAllowance = AddressAllowance()
    views: CallAllowance = CallAllowance(120, 20_000)


# Without look-alikes: 0 and o, 1, i and l.
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_SHORTEST, _TRIES_A_LENGTH = 4, 8
"""Letters of the first designations drawn for an account, and how many are drawn before a letter is added."""
MAX_TRIES = 4 * _TRIES_A_LENGTH
"""The most designations drawn for one account; 31 letters in seven places do not run out."""
_AGENT_NAME = re.compile(r" *[0-9A-Za-z][0-9A-Za-z ]*")
MAX_AGENT_NAME = 24
AGENT_NAME_PATTERN = "^ *[A-Za-z0-9][A-Za-z0-9 ]*$"


def designation(chance: bytes, tries: int) -> str:
    """A name for a new account. ``tries``: how many drawn names were taken already; after every
    ``_TRIES_A_LENGTH`` of them a letter is added. ``chance``: random bytes, new for each try."""
    number, letters = int.from_bytes(chance, "big"), ""
    for _ in range(_SHORTEST + tries // _TRIES_A_LENGTH):
        number, place = divmod(number, len(_LETTERS))
        letters += _LETTERS[place]
    return f"mite-{letters}"


def agent_name(text: str) -> str:
    """An agent's name with its spaces folded. Raises ValueError for anything but Latin letters, digits and
    spaces, and past 24 of them: it is shown on public boards, where look-alikes would deceive."""
    if len(text) > MAX_AGENT_NAME or not _AGENT_NAME.fullmatch(text):
        raise ValueError(
            f'name must be 1 to {MAX_AGENT_NAME} Latin letters, digits and spaces, such as "Trader 7"'
        )
    return " ".join(text.split())


USDG_UNITS = 10**6
"""Base units of one usdg."""
MAX_CREDITS = 2**53 - 1
"""Of one account: the largest whole number that every JSON parser reads exactly."""


@dataclass(frozen=True, slots=True)
class Payments:
    """Where calls are paid for, and their price. ``calls_per_usdg``: for one whole usdg."""

    pay_to: Address
    calls_per_usdg: int


@dataclass(frozen=True, slots=True)
class CreditPayment:
    """A wallet's payment in one transaction. ``amount_raw``: base units of usdg; ``block_hash``: 0x and 64
    lower-case hex digits."""

    tx_hash: TxHash
    amount_raw: int
    block_number: int
    block_hash: str


def calls_for(amount_raw: int, calls_per_usdg: int) -> int:
    """Whole calls that ``amount_raw`` base units of usdg buy, rounded down."""
    return amount_raw * calls_per_usdg // USDG_UNITS
