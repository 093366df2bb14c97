"""Alerts of an account, one row each."""

from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.types import Address, Numeric, TxHash

Kind = Literal["rule", "follow", "bag_guard", "unlock", "service", "test"]
MAX_RULES, MAX_FOLLOWS, MAX_CHANNELS, MAX_WATCHED = 50, 200, 5, 50
"""Of one account."""
MAX_A_MINUTE = 20
"""Rows that one rule, follow or bag raises in a minute of the chain's clock; the account gets the number of
the others."""
MINUTE_S = 60
INBOX_S = 7 * 86_400
BAG = "bag guard"
"""Its name where rules and follows have names."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A row before it has an id. ``source_id``: the id of the rule, the follow or the channel; for the bag
    guard, ``bag_guard.guard_source_id``. ``who``: the account's name for the wallet, or the rule's ``who``.
    ``at_s``: when it happened. ``rule``: the canonical text. ``said``: the sentence. ``more``: not a fact,
    but the number of alerts that got no row. ``block_number`` and the other fields of a fact are None where
    the row is about none."""

    account_id: int
    kind: Kind
    source_id: int | None
    at_s: int
    said: str
    verb: str | None = None
    who: str | None = None
    wallet: Address | None = None
    token: Address | None = None
    eth_wei: Numeric | None = None
    micro_usd: Numeric | None = None
    share_ppm: int | None = None
    tx_hash: TxHash | None = None
    block_number: int | None = None
    log_index: int | None = None
    rule: str | None = None
    more: int = 0


@dataclass(frozen=True, slots=True)
class Alert:
    """A stored row. ``symbol``: as the token returned it, cut but not cleaned."""

    id: int
    draft: Draft
    retracted: bool = False
    symbol: str | None = None
