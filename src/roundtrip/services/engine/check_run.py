"""One check from its inputs to its judgement: buy round, sell round, isolation round, deep round, judge."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.services.runtime.check_context import CheckContext
from roundtrip.services.runtime.check_steps import NoteStep, ignore_step
from roundtrip.services.support.cancel_on_error import at_once

from .buy_round import BuyRoundResult, run_buy_round
from .deep_round import read_deep_inputs, run_deep_round
from .inputs import CheckInputs
from .isolation_round import ReadEvidence, run_isolation_round
from .sell_round import run_sell_round

Round = Literal["buy round", "sell round"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check that was run: its inputs, the token after the buy round, the evidence of all rounds, and what
    that says."""

    inputs: CheckInputs
    bought: BuyRoundResult
    evidence: Evidence
    judgement: Judgement

    def policy(self) -> Policy:
        """The policy that it was run under."""
        return self.bought.run.means.policy


async def run_check(
    means: CheckContext,
    inputs: CheckInputs,
    meter: Meter,
    on_round: Callable[[Round], None] = lambda _: None,
    note_step: NoteStep = ignore_step,
) -> CheckResult:
    """Runs a check from its inputs, which ``prepare_inputs`` or a proof gives: buys on the candidates that
    ``choose_places`` keeps, sells on those that ``choose_venues`` keeps, tries alone what deviated, and in a
    deep check what an owner could do. ``on_round``: called before the buy and the sell round; ``note_step``:
    with each step done. Raises NodeFault when the buy round has no usable answer."""
    note_step(f"Found {format_count(len(inputs.candidates.venues), 'pool or curve', 'pools and curves')}")
    on_round("buy round")
    bought = await run_buy_round(means, inputs, meter)
    note_step("Buys simulated")
    on_round("sell round")
    evidence, read = await _try_sells(bought, meter, note_step, whole=False)
    return CheckResult(inputs, bought, evidence, judge(evidence, means.policy, read))


async def try_sells(bought: BuyRoundResult, meter: Meter) -> Evidence:
    """The evidence of all rounds after the buy round: of the sell round, the isolation round, and in a deep
    check the deep round. All of the crowd trades on every venue, for who chooses the venue by other figures
    than a check. Where the node fails, the cells are Missing."""
    return (await _try_sells(bought, meter, ignore_step, whole=True)).evidence


async def _try_sells(bought: BuyRoundResult, meter: Meter, note_step: NoteStep, whole: bool) -> ReadEvidence:
    """As ``try_sells``; ``whole`` False: the whole crowd trades only where it may decide a check."""
    selling, reading = Meter(), Meter()
    tried: ReadEvidence
    tried, deep_inputs = await at_once(_try_rounds(bought, selling, whole), read_deep_inputs(bought, reading))
    meter.add(selling, reading)
    note_step("Sells simulated: soon, after an hour, after a day")
    if deep_inputs is None:
        return tried
    evidence = await run_deep_round(bought, tried.evidence, deep_inputs, meter, note_step)
    return tried._replace(evidence=evidence)


async def _try_rounds(bought: BuyRoundResult, meter: Meter, whole: bool) -> ReadEvidence:
    sold = await run_sell_round(bought, meter, whole=whole)
    tried = await run_isolation_round(bought, sold)
    if not sold.few:
        return tried
    judgement = judge(tried.evidence, bought.run.means.policy, tried.read)
    if judgement.best not in sold.few or judgement.verdict.level == "danger":
        # More wallets make no danger milder.
        return tried
    # Whoever makes two better pools must not choose how many wallets try the one that decides.
    return await run_isolation_round(bought, await run_sell_round(bought, meter, whole=True))
