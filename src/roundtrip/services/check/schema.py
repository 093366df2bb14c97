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
            description="true, or 1: also tries what the owner may call, and sells as real holders.",
            extra_json_schema={"enum": ["0", "1", "false", "true"]},
        ),
    ] = "0"
    amount: Annotated[
        str,
        msgspec.Meta(
            description="Eth to buy for, 0.001 to 10.", extra_json_schema={"pattern": AMOUNT_PATTERN}
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
