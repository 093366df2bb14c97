"""The parameters and the answer of a simulation of a wallet's own calls."""

import re
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, ZERO_ADDRESS, Address, parse_address, plain_decimal
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.flags import JudgedCheck, raised_flags
from roundtrip.domain.check.price import quote_decimals
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.check.verdict import Judgement
from roundtrip.domain.check.verdict_text import sell_reason_text
from roundtrip.domain.trade.judge import ExitFinding
from roundtrip.services.check.schema import VerdictAnswer
from roundtrip.services.support.money import AssetAmount, amount
from roundtrip.services.support.strangers_text import Reverts, Sentence
from roundtrip.venues.base import Call, Contracts

MOST_CALLS = 6
_HEX = re.compile(r"0x([0-9a-fA-F]{2})*")
_VALUE = re.compile("[0-9]{1,78}|0x[0-9a-fA-F]{1,64}")
_MOST_WEI = 2**256 - 1

AddressField = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$")]
DataField = Annotated[str, msgspec.Meta(pattern="^0x([0-9a-fA-F]{2})*$", description="Calldata as hex.")]
ValueField = Annotated[
    str,
    msgspec.Meta(
        pattern="^([0-9]{1,78}|0x[0-9a-fA-F]{1,64})$", description="Wei, a whole number or hex. Default 0."
    ),
]

TradeCode = Literal[
    "ok", "tx_reverts", "cannot_sell", "heavy_loss", "high_loss", "no_route", "nothing_received", "unproven",
]  # fmt: skip


class CallParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call of several."""

    to: AddressField
    data: DataField = "0x"
    value: ValueField = "0"


class SimulateParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose calls, and which."""

    sender: Annotated[AddressField, msgspec.Meta(description="The wallet that would send them.")] = (
        msgspec.field(name="from")
    )
    to: Annotated[AddressField, msgspec.Meta(description="Whom it calls.")] | None = None
    data: DataField = "0x"
    value: ValueField = "0"
    calls: (
        Annotated[
            list[CallParams],
            msgspec.Meta(
                min_length=1,
                max_length=MOST_CALLS,
                description="Up to six calls in order; they replace to, data and value.",
            ),
        ]
        | None
    ) = None
    fund: Annotated[bool, msgspec.Meta(description="Run as if the wallet held plenty of eth.")] = False

    def wallet(self) -> Address:
        """Who sends."""
        return _address(self.sender)

    def own_calls(self) -> tuple[Call, ...]:
        """The calls in order. Raises CallerFault (bad_input)."""
        if self.calls:
            return tuple(_call(one.to, one.data, one.value) for one in self.calls)
        if self.to is None:
            raise CallerFault("bad_input", "Give to, or calls: a transaction needs somebody to call.")
        return (_call(self.to, self.data, self.value),)


def _call(to: str, data: str, value: str) -> Call:
    if not _HEX.fullmatch(data):
        raise CallerFault("bad_input", "data is no calldata: 0x and whole bytes in hex.")
    if not _VALUE.fullmatch(value):
        raise CallerFault("bad_input", "value is no whole number of wei, nor hex.")
    wei = int(value, 16 if value.startswith("0x") else 10)
    if wei > _MOST_WEI:
        raise CallerFault("bad_input", "value is more than a transaction can carry.")
    return Call(_address(to), data.lower(), wei)


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError:
        raise CallerFault("bad_input", "An address is 0x and 40 hex digits.") from None


class TradeVerdict(msgspec.Struct, frozen=True):
    """Code, level and a plain sentence."""

    code: TradeCode
    level: Level
    text: Sentence


class CallOutcomeAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """What one call came to."""

    ok: bool
    gas_used: int
    reverts: Reverts


class ApprovalAnswer(msgspec.Struct, frozen=True):
    """What a spender may newly take. ``amount`` null: no bound."""

    token: str
    spender: str
    amount: Annotated[str | None, msgspec.Meta(description="Whole tokens; null where it is unlimited.")]
    unlimited: bool


class SellBack(msgspec.Struct, frozen=True, rename="camel"):
    """What selling the received token came to: straight back where that goes, else as the first way that
    goes."""

    token: str
    venue: VenueKind
    at: str | None
    sold: str
    back: AssetAmount | None
    round_trip_loss_bps: int | None
    reverts: Reverts
    share_bps: Annotated[
        int,
        msgspec.Meta(description="How much of what was received this sell sold. 10000: all of it; 0: none."),
    ]
    after_s: Annotated[
        int | None,
        msgspec.Meta(
            description="How many seconds after the purchase the block of this sell is: 13 is straight back, "
            "3600 and 86400 are an hour and a day. Null where nothing sold."
        ),
    ]


class ShortCheck(msgspec.Struct, frozen=True):
    """What a check of the token says."""

    address: str
    verdict: VerdictAnswer
    flags: list[str]


class Simulation(msgspec.Struct, frozen=True, rename="camel"):
    """What a wallet's own calls would come to in the next block."""

    chain_id: int
    block: int
    sender: str = msgspec.field(name="from")
    verdict: TradeVerdict
    calls: list[CallOutcomeAnswer]
    spent: list[AssetAmount]
    received: list[AssetAmount]
    approvals: list[ApprovalAnswer]
    sell_back: SellBack | None
    check: ShortCheck | None
    simulated_at: datetime


def short_check(evidence: Evidence, judgement: Judgement, policy: Policy) -> ShortCheck:
    """The check's verdict and flags."""
    verdict = judgement.verdict
    answer = VerdictAnswer(verdict.code, verdict.level, verdict.text)  # type: ignore[arg-type]
    return ShortCheck(evidence.token, answer, list(raised_flags(JudgedCheck(evidence, judgement, policy))))


def sell_back(found: ExitFinding, evidence: Evidence, contracts: Contracts) -> SellBack | None:
    """The sell that decided; None where there was no place to try it."""
    if found.venue is None or found.reading is None:
        return None
    venue, shown = found.venue.venue, found.shown_sell()
    probe, sold = shown if shown is not None else (None, None)
    decimals = evidence.facts.decimals if isinstance(evidence.facts.decimals, int) else 0
    back = None
    if sold is not None and found.code != "cannot_sell":
        asset = ZERO_ADDRESS if venue.quote == "weth" else venue.quote_address
        back = amount(sold.back_raw, asset, quote_decimals(venue.quote, evidence.market), None, contracts)
    return SellBack(
        token=found.exit.token,
        venue=venue.kind,
        at=venue.pool or venue.pool_id,
        sold=plain_decimal(max(0, sold.sold_raw), decimals) if sold is not None else "0",
        back=back,
        round_trip_loss_bps=_loss(found),
        reverts=sell_reason_text(found.venue, found.reading),
        share_bps=0 if sold is None else max(0, min(BPS, -(-sold.sold_raw * BPS // max(1, sold.held_raw)))),
        after_s=None if probe is None else probe.delay_s,
    )


def _loss(found: ExitFinding) -> int | None:
    """Of what is shown; null where what was paid has no price."""
    _, sold = found.shown_sell() or (None, None)
    if found.code in ("cannot_sell", "no_route", "unproven") or sold is None or sold.paid_raw <= 0:
        return None
    cost_raw = max(1, sold.paid_raw * sold.sold_raw // max(1, sold.held_raw))
    return -((sold.back_raw - cost_raw) * 10_000 // cost_raw)
