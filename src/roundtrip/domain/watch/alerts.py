"""What an account is told, one row each."""

from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.types import Address, TxHash

Kind = Literal["rule", "follow", "bag_guard", "service", "test"]
MOST_RULES, MOST_FOLLOWS, MOST_CHANNELS = 50, 200, 5
"""Of one account."""
MOST_A_MINUTE = 20
"""Rows that one rule, follow or bag raises in a minute of the chain's clock; of the others it is told how
many."""
MINUTE_S = 60
INBOX_S = 7 * 86_400
BAG = "bag guard"
"""What it is called where rules and follows have names."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A row before it has a number. ``source_id``: of the rule, the follow, or the channel that it is about;
    of the bag
    guard, ``bag.source_of``. ``who``: as the account calls who did it, or the rule's ``who``. ``at_s``:
    when it happened. ``rule``: the canonical text. ``said``: the sentence. ``more``: not a fact, but so many
    that became no rows. ``block_number`` and what goes with it is None where it is about no fact."""

    account_id: int
    kind: Kind
    source_id: int | None
    at_s: int
    said: str
    verb: str | None = None
    who: str | None = None
    wallet: Address | None = None
    token: Address | None = None
    eth_wei: int | None = None
    micro_usd: int | None = None
    share_ppm: int | None = None
    tx_hash: TxHash | None = None
    block_number: int | None = None
    log_index: int | None = None
    rule: str | None = None
    more: int = 0


@dataclass(frozen=True, slots=True)
class Alert:
    """A row as it is kept. ``symbol``: as the token gave it, cut but not cleaned."""

    id: int
    draft: Draft
    retracted: bool = False
    symbol: str | None = None
