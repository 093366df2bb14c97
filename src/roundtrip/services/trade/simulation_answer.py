"""The answer of a simulation, and its parts that other trade answers share. The reason that a token gives
for refusing a transfer, where a router or pool withholds it."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate import outcomes, probe_plans
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.domain.check.refusals import PULL_REASONS, ROUTER_REASONS
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.trade.text import is_withheld
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.support.answer_fields import Flags, Reverts, Sentence, VerdictAnswer, says
from roundtrip.services.support.money import AssetAmount

TradeCode = Literal[
    "ok", "tx_reverts", "cannot_sell", "heavy_loss", "high_loss", "no_route", "nothing_received", "unproven",
]  # fmt: skip


class TradeVerdict(msgspec.Struct, frozen=True):
    """Code, level and a plain sentence."""

    code: Annotated[TradeCode, says("What decided. unproven means that the run could not find out.")]
    level: Annotated[Level, says("How good that is. unknown is not a pass; treat it as a no.")]
    text: Sentence


class CallOutcomeAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Result of one call."""

    ok: Annotated[bool, says("Whether the call went through.")]
    gas_used: Annotated[int, says("Gas that it used.")]
    reverts: Reverts


class ApprovalAnswer(msgspec.Struct, frozen=True):
    """An allowance that the calls gave."""

    token: Annotated[str, says("The token's address.")]
    spender: Annotated[str, says("Address that may take it.")]
    amount: Annotated[str | None, says("Whole tokens that it may take, a decimal number. null: unlimited.")]
    unlimited: Annotated[bool, says("Whether there is no bound.")]


class SellBack(msgspec.Struct, frozen=True, rename="camel"):
    """The sell of the received token: straight back where that goes through, else the first that does."""

    token: Annotated[str, says("Address of the token that was sold.")]
    venue: Annotated[VenueKind, says("Kind of venue that it was sold on.")]
    at: Annotated[str | None, says("Address of the pool or curve, or id of a v4 pool. null: not known.")]
    sold: Annotated[str, says("Whole tokens that were sold, a decimal number; 0: none that counts.")]
    back: Annotated[AssetAmount | None, says("What the sold part brought. null: nothing was sold.")]
    round_trip_loss_bps: Annotated[
        int | None,
        says(
            "Loss in hundredths of a percent of what the sold part had cost. null: not "
            "enough was sold, or the cost is not known."
        ),
    ]
    reverts: Reverts
    share_bps: Annotated[
        int,
        says("Share of the received tokens that was sold, in hundredths of a percent. 10000: all; 0: none."),
    ]
    after_s: Annotated[
        int | None,
        says(
            "Seconds between the buy and the block of this sell: 13 is straight back, 3600 "
            "an hour, 86400 a day. null: nothing was sold."
        ),
    ]
    price_impact_bps: Annotated[
        int | None,
        says(
            "How much less than a small buy this one got for its money, in hundredths of a "
            "percent. null: not known, or no loss is."
        ),
    ]
    later_loss_bps: Annotated[
        int | None,
        says(
            "Worst loss of selling all of it an hour and a day later, where that sells half or "
            "more, in hundredths of a percent; the rest counts as lost. null: it sold at neither time, or "
            "the loss is not known."
        ),
    ]


class ShortCheck(msgspec.Struct, frozen=True):
    """What a check of the token says."""

    address: Annotated[str, says("The token's address.")]
    verdict: Annotated[VerdictAnswer, says("What the check found.")]
    flags: Flags


class Simulation(msgspec.Struct, frozen=True, rename="camel"):
    """What a wallet's calls would do in the next block."""

    chain_id: Annotated[int, says("Id of the chain; Robinhood Chain is 4663.")]
    block: Annotated[int, says("Block that the calls ran on.")]
    sender: Annotated[str, says("The wallet that the calls came from.")] = msgspec.field(name="from")
    verdict: Annotated[TradeVerdict, says("What the calls came to.")]
    calls: Annotated[list[CallOutcomeAnswer], says("Result of each call, in order.")]
    spent: Annotated[list[AssetAmount], says("What left the wallet, gas not included.")]
    received: Annotated[list[AssetAmount], says("What the wallet received.")]
    approvals: Annotated[
        list[ApprovalAnswer], says("What a spender may take from the wallet that it could not before.")
    ]
    sell_back: Annotated[
        SellBack | None,
        says(
            "The sell of the received token. null: no token was received, or there was no venue to try it on."
        ),
    ]
    check: Annotated[
        ShortCheck | None,
        says(
            "What a check says of the received token. null: no token was received, or the check did not run."
        ),
    ]
    simulated_at: Annotated[datetime, says("When it was simulated.")]


async def find_tokens_reason(
    given: str | None, checks: list[BuyRoundResult], wallet: Address, meter: Meter
) -> str | None:
    """The cleaned reason of a token that refuses what failed with ``given``. A transfer to a wallet was tried
    in the buy rounds; one from it is tried now. None: ``given`` withholds nothing, or no token refuses with a
    reason."""
    if not is_withheld(given):
        return None
    for check in checks:
        if given in PULL_REASONS:
            reason = await find_pull_reason(check, wallet, meter)
        else:
            reason = _first_reason(trial.transfer_refusal for trial in check.data.venues)
        if reason is not None:
            return reason
    return None


async def find_pull_reason(check: BuyRoundResult, wallet: Address, meter: Meter) -> str | None:
    """The cleaned reason with which the token refuses a transfer of one unit from the wallet into a venue.
    One batch. None also where the wallet holds nothing or the node does not answer."""
    run = replace(check.run, meter=meter)
    env = replace(run.environments[0], buyer=wallet)
    plans = {
        number: (trial.place, probe_plans.holder_pull_plan(trial.place, run.setting, env))
        for number, trial in enumerate(check.venues_to_sell_on())
    }
    if not plans:
        return None
    try:
        _, results = await run.ask({}, plans)
    except NodeFault:
        return None
    return _first_reason(
        outcomes.read_holder_pull(result)
        for result in results.values()
        if not isinstance(result, RefusedCall)
    )


def _first_reason(refusals: Iterable[RefusedCall | Missing | None]) -> str | None:
    given = [names.reason(told.reason or "") for told in refusals if isinstance(told, RefusedCall)]
    return next((reason for reason in given if reason and reason not in ROUTER_REASONS), None)
