"""The row of an alert, as the inbox and deliveries show it. Large removals of liquidity, as answers show
them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_amount
from roundtrip.domain.base.types import WEI_PER_ETH
from roundtrip.domain.liquidity.unlocks import LARGE_BPS, LARGE_BY_DEPLOYER_BPS, Removal
from roundtrip.domain.watch.alerts import Alert, Draft, Kind
from roundtrip.domain.watch.rules import VERBS
from roundtrip.services.support.answer_fields import WRITTEN, Sentence, says
from roundtrip.services.support.index_reader import when

RETRACTED = "retracted"
_TAKEN_BACK = "Retracted, a reorg removed it:"
_MICRO, _PPM_PER_PERCENT = 1_000_000, 10_000

Symbol = Annotated[
    str | None,
    says(
        "The token's symbol; identify a token by its address. null: no token, or none "
        f"that can be shown. {WRITTEN}"
    ),
]
Eth = Annotated[float | None, says("Worth of what moved, in eth. null: not known.")]
Usd = Annotated[float | None, says("The same in dollars. null: not known.")]
Pct = Annotated[
    float | None,
    says(
        "Percent of the token's supply; for draining, of the pool's liquidity; for removing, of "
        "its active liquidity. null: does not apply."
    ),
]
Ts = Annotated[
    datetime,
    says("The time of its block; of an unlock, when it unlocks; without a block, when it was raised."),
]


RuleVerb = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(VERBS)})]
AlertVerb = Annotated[str, msgspec.Meta(extra_json_schema={"enum": [*VERBS, "verdict", RETRACTED]})]
"""Text in Python; the enum is for the schema alone."""


class AlertRow(msgspec.Struct, frozen=True):
    """One alert. What does not apply to it is null."""

    id: Annotated[
        int, says("Id of the alert; the same in the inbox, in deliveries and when it is taken back.")
    ]
    kind: Annotated[
        Kind,
        says(
            "What raised it: rule, follow, bag_guard (a token you hold or watch), unlock "
            "(of a token's locked liquidity), service "
            "(news of the service, such as a failing channel), test (a channel's test)."
        ),
    ]
    who: Annotated[
        str | None,
        says(
            "Who did it: your name for the wallet, its address, the rule's who, or deployer. "
            "null: does not apply."
        ),
    ]
    verb: Annotated[
        AlertVerb | None,
        says(
            "What happened. verdict: a check's verdict changed; retracted: a reorg removed it from the "
            "chain. null: does not apply."
        ),
    ]
    wallet: Annotated[
        str | None,
        says(
            "The wallet that did it; of an unlock, who can then withdraw; of a graduation, the deployer. "
            "null: does not apply."
        ),
    ]
    token: Annotated[str | None, says("The token's address. null: does not apply.")]
    symbol: Symbol
    eth: Eth
    usd: Usd
    pct: Pct
    tx: Annotated[str | None, says("The transaction. null: does not apply.")]
    block: Annotated[int | None, says("Its block. null: does not apply.")]
    ts: Ts
    rule: Annotated[str | None, says("The rule that it is a hit of. null: not a rule's.")]
    text: Sentence
    link: Annotated[
        str | None, says("The token's page. null: no token, or the service has no public address.")
    ]


def rows(alerts: Sequence[Alert], public_url: str | None = None) -> list[AlertRow]:
    """The rows of alerts, in the same order. ``public_url``: the public address of this service, if set."""
    return [_row(alert, public_url) for alert in alerts]


def _row(alert: Alert, public_url: str | None) -> AlertRow:
    draft = alert.draft
    return AlertRow(
        id=alert.id,
        kind=draft.kind,
        # A follow may have no name.
        who=draft.who or draft.wallet,
        verb=RETRACTED if alert.retracted else draft.verb,
        wallet=draft.wallet,
        token=draft.token,
        symbol=None if alert.symbol is None else names.symbol(alert.symbol),
        eth=_part(draft.eth_wei, WEI_PER_ETH),
        usd=_part(draft.micro_usd, _MICRO),
        pct=_part(draft.share_ppm, _PPM_PER_PERCENT),
        tx=draft.tx_hash,
        block=draft.block_number,
        ts=when(draft.at_s),
        rule=draft.rule,
        text=_text(draft, alert.retracted),
        link=None if public_url is None or draft.token is None else f"{public_url}/token/{draft.token}",
    )


def _text(draft: Draft, retracted: bool) -> str:
    return f"{_TAKEN_BACK} {draft.said}" if retracted else draft.said


def _part(raw: int | None, whole: int) -> float | None:
    """``raw`` in wholes, as a float for display only; None: not known."""
    return None if raw is None else raw / whole


_PERCENT_DECIMALS = 2


class RemovalRow(msgspec.Struct, frozen=True, rename="camel"):
    """A removal of much of a pool's active liquidity."""

    token: Annotated[str, says("The token.")]
    pool: Annotated[str, says("The pool: its address, or a v4 pool's id.")]
    wallet: Annotated[str, says("The wallet that sent the transaction.")]
    by_deployer: Annotated[bool, says("Whether a launchpad names that wallet as the token's deployer.")]
    share_bps: Annotated[
        int,
        says(
            "Share of the pool's active liquidity just before, in hundredths of a percent, "
            f"rounded down: above {LARGE_BPS}, or {LARGE_BY_DEPLOYER_BPS} by the deployer."
        ),
    ]
    tx: Annotated[str, says("The transaction.")]
    block: Annotated[int, says("Its block.")]
    at: Annotated[datetime, says("The time of its block.")]


def present_removal(removal: Removal) -> RemovalRow:
    """The removal as answers show it."""
    spot = removal.spot
    return RemovalRow(
        token=removal.token,
        pool=removal.pool,
        wallet=removal.wallet,
        by_deployer=removal.by_deployer,
        share_bps=removal.share_bps,
        tx=spot.tx_hash,
        block=spot.block_number,
        at=when(spot.at_s),
    )


def describe_removal(removal: Removal) -> str:
    """One sentence: who removed how much, from which pool."""
    who = f"{removal.wallet}, its deployer," if removal.by_deployer else removal.wallet
    share = format_amount(removal.share_bps, _PERCENT_DECIMALS)
    return f"{who} removed {share} % of the active liquidity of a pool of {removal.token} ({removal.pool})."
