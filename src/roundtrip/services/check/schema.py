"""The check's parameters."""

import re
from typing import Annotated, NamedTuple

import msgspec

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip.services.support.money import ETH_DECIMALS, parse_amount

AMOUNT_PATTERN = (
    r"^(10(\.0{1,18})?|[1-9](\.[0-9]{1,18})?|0\.(00[1-9][0-9]{0,15}|0[1-9][0-9]{0,16}|[1-9][0-9]{0,17}))$"
)
"""Eth, from 0.001 to 10."""
_AMOUNT = re.compile(AMOUNT_PATTERN)


class CheckParams(TokenParams, frozen=True, forbid_unknown_fields=True):
    """Which token."""

    deep: Annotated[
        str,
        msgspec.Meta(
            description="1 or true: also calls each function that the owner may call, with a sell after it, "
            "and names those that stop the sell; and sells as known holders: if at least half cannot, the "
            "code is cannot_sell. The answer is shared for a minute. Left out: 0.",
            extra_json_schema={"enum": ["0", "1", "false", "true"]},
        ),
    ] = "0"
    amount: Annotated[
        str,
        msgspec.Meta(
            description="Eth that the buy spends, from 0.001 to 10, such as 0.5: verdict, loss and text at "
            "that size. The larger round trip of the text spends ten times as much. A check of another size "
            "than 0.1 is not stored: it has no proof, and is in no history. Left out: 0.1.",
            extra_json_schema={"pattern": AMOUNT_PATTERN},
        ),
    ] = "0.1"

    def asks_deep(self) -> bool:
        """True for 1 and true. Raises CallerFault (bad_input)."""
        if self.deep not in ("0", "1", "false", "true"):
            raise CallerFault("bad_input", "deep must be 0, 1, false or true, such as ?deep=1.")
        return self.deep in ("1", "true")

    def probe_wei(self) -> int | None:
        """What the buy spends, in wei; None: the usual amount. Raises CallerFault (bad_input)."""
        if not _AMOUNT.fullmatch(self.amount):
            raise CallerFault("bad_input", "amount must be from 0.001 to 10 (eth), such as ?amount=0.5.")
        wei = parse_amount(self.amount, ETH_DECIMALS, "eth")
        return None if wei == POLICY.probe_wei else wei

    def read(self) -> "AskedCheck":
        """The parameters as values. Raises CallerFault."""
        probe_wei = self.probe_wei()
        return AskedCheck(self.token(), self.asks_deep(), probe_wei)

    def shared_as(self) -> str:
        """The key under which equal requests share an answer. Raises CallerFault."""
        return self.read().shared_as()


class AskedCheck(NamedTuple):
    """``probe_wei``: what the buy spends; None: the usual amount."""

    token: Address
    deep: bool
    probe_wei: int | None

    def shared_as(self) -> str:
        """The key under which equal requests share an answer."""
        size = "" if self.probe_wei is None else f" at {self.probe_wei}"
        return f"{self.token}{' deep' if self.deep else ''}{size}"
