"""The reason that a token gives for refusing a transfer, where a router or pool withholds it."""

from collections.abc import Iterable
from dataclasses import replace

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate import outcomes, probe_plans
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.domain.check.refusals import PULL_REASONS, ROUTER_REASONS
from roundtrip.domain.trade.text import is_withheld
from roundtrip.services.engine.buy_round import BuyRoundResult


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
