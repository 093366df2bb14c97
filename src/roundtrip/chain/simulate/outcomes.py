"""Reads the outcome of a probe's simulation from balances. Pure.

Gas is added back. The quote side is read in wei for venues paid in eth, else in the quote's units.
"""

import re
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.check.evidence import (
    OVER_A_DAY,
    BuyOutcome,
    CellOutcome,
    CompletedBuy,
    Environment,
    HookCarry,
    Missing,
    Probe,
    RefusedCall,
    Sold,
)
from roundtrip.domain.check.refusals import NOTHING_ARRIVED, POOL_GOT_LESS, SETTLED_SHORT
from roundtrip.venues import abi

from .legs import VenuePlace, nearly_all_amounts, planned_sell_raw, sellable
from .request import Results, StepResult

NO_ROUTE = "no route to the money side"
BROUGHT_LESS = "a buy brought less after other trades"


def _quote_at(results: Results, moment: str) -> int | Missing:
    result = results[f"{moment}-quote"]
    raw = abi.uint_at(result.data, 0) if result.ok else None
    return Missing("node", "a balance of the money side could not be read") if raw is None else raw


def _tokens_at(results: Results, moment: str) -> int | Missing:
    result = results[f"{moment}-token"]
    raw = abi.uint_at(result.data, 0) if result.ok else None
    return Missing("token", "the token does not return balances") if raw is None else raw


def _read_payment(
    results: Results, place: VenuePlace, environment: Environment
) -> int | RefusedCall | Missing:
    """The cost of the buy, or why it failed."""
    refused = _first_refused_call(results, (("fund", "fund"), ("allow-0", "approve"), ("buy", "buy")))
    if refused is not None:
        # No real swap brought the money for the buy: this says nothing about the venue.
        return Missing("node", NO_ROUTE) if refused.step == "fund" else refused
    start, after = _quote_at(results, "start"), _quote_at(results, "bought")
    if isinstance(start, Missing):
        return start
    if isinstance(after, Missing):
        return after
    return start - after - _gas_between(results, ("allow-", "buy"), place, environment)


def read_buy(
    results: Results | Missing, place: VenuePlace, environment: Environment, amount_raw: int
) -> BuyOutcome:
    """The outcome of a buy of the buy round."""
    if isinstance(results, Missing):
        return results
    paid = _read_payment(results, place, environment)
    if not isinstance(paid, int):
        return paid
    start, after = _tokens_at(results, "start"), _tokens_at(results, "bought")
    if isinstance(start, Missing):
        return start
    if isinstance(after, Missing):
        return after
    received = after - start
    if paid <= 0 < received:
        # Routers are swept before, so it was the pool's hook that paid: that is no trade.
        return RefusedCall("buy", "the buy cost nothing, which no real trade does", results["buy"].gas_used)
    later = _list_numbered(results, "held-")
    if received <= 0 and paid * 100 >= amount_raw * 99:
        return RefusedCall("arrive", NOTHING_ARRIVED, results["buy"].gas_used)
    approvals = [result.gas_used for label, result in results.items() if label.startswith("approve-")]
    held = tuple(abi.uint_at(result.data, 0) if result.ok else None for result in later)
    return CompletedBuy(
        paid_raw=max(0, paid),
        received_raw=received,
        offered_raw=amount_raw,
        gas=results["buy"].gas_used,
        approve_gas=max(approvals, default=0),
        held_later_raw=tuple(received if raw is None else raw for raw in held),
    )


def read_sell(
    results: Results | Missing,
    place: VenuePlace,
    environment: Environment,
    probe: Probe,
    bought: CompletedBuy,
    policy: Policy,
    sell_at: VenuePlace | None = None,
    handed_raw: int | None = None,
) -> CellOutcome:
    """The outcome of a probe of the sell round. ``bought``: the outcome of its environment's buy in the buy
    round. ``sell_at``: another venue to sell on, which pays in its own quote. ``handed_raw``: the amount
    that reaches a receiver, where known."""
    if isinstance(results, Missing):
        return results
    paid = _read_payment(results, place, environment)
    if not isinstance(paid, int):
        return paid
    if paid <= 0:
        return RefusedCall("buy", "the buy cost nothing, which no real trade does", results["buy"].gas_used)
    held = sellable(bought, probe, policy)
    start = SellStart(paid, held, results["buy"].gas_used, handed_raw).of(probe, policy)
    return read_exit(results, sell_at or place, environment, probe, start)


def read_measured_trip(
    results: Results | Missing,
    place: VenuePlace,
    environment: Environment,
    probe: Probe,
    amount_raw: int,
    known: CompletedBuy,
    policy: Policy,
) -> CellOutcome:
    """The outcome of ``probe_plans.measured_trip_plan``. ``known``: the same buy in the buy round. Missing
    where the trades before it kept its buy from bringing enough: then its sell says nothing."""
    if isinstance(results, Missing):
        return results
    bought = read_buy(results, place, environment, amount_raw)
    if isinstance(bought, Missing):
        return bought
    held_raw = sellable(known, probe, policy)
    asked_raw = planned_sell_raw(probe, held_raw)
    if isinstance(bought, RefusedCall):
        return Missing("node", BROUGHT_LESS)
    # What is held changes until the sell as it did in the buy round.
    held_raw = bought.received_raw * held_raw // max(1, known.received_raw)
    if held_raw < asked_raw:
        return Missing("node", BROUGHT_LESS)
    before = _tokens_at(results, "start")
    prior_raw = before if isinstance(before, int) else 0
    start = SellStart(bought.paid_raw, held_raw, bought.gas, prior_raw=prior_raw)
    outcome = read_exit(results, place, environment, probe, start)
    if not isinstance(outcome, Sold):
        return outcome
    # What is left of a token that pays its holders grows in the sell itself: that was sold all the same.
    is_all = 10 * outcome.sold_raw >= 9 * asked_raw
    return replace(
        outcome,
        planned_raw=asked_raw,
        sold_raw=max(outcome.sold_raw, asked_raw) if is_all else outcome.sold_raw,
    )


def find_gap_in_history(results: Results | Missing) -> RefusedCall | None:
    """Why the last sell of ``probe_plans.traded_before_plan`` does not count: the last buy was refused; or
    the sell went through, but an earlier trade was refused, so that the wallet may have held more. None: it
    counts."""
    if isinstance(results, Missing):
        return None
    refused = _first_refused_call(results, (("fund", "fund"), ("allow-0", "approve"), ("buy", "buy")))
    if refused is not None:
        return replace(refused, step="buy")
    steps = ("first buy", r"first sell-\d+", "second buy", r"second sell-\d+", "second transfer")
    has_traded, has_sold = (
        [any(result.ok for label, result in results.items() if re.fullmatch(step, label)) for step in wanted]
        for wanted in (steps, (r"sell-\d+",))
    )
    if all(has_traded) or not any(has_sold):
        return None
    return RefusedCall("buy", "an earlier trade was refused", 0)


@dataclass(frozen=True, slots=True)
class SellStart:
    """The state before a sell: ``paid_raw`` for ``held_raw``, and the gas of the buy. ``handed_raw``: the
    amount that reached a receiver, where known. ``prior_raw``: held before the buy, and not for sale.
    ``attempts_raw``: the amounts that are tried, where nearly all is sold; before all but the first
    ``undisturbed`` of them another wallet bought."""

    paid_raw: int
    held_raw: int
    buy_gas: int
    handed_raw: int | None = None
    prior_raw: int = 0
    attempts_raw: tuple[int, ...] = ()
    undisturbed: int = 0

    def of(self, probe: Probe, policy: Policy) -> "SellStart":
        """The state before this probe's sell."""
        if probe.seller != "nearly all":
            return self
        rounds = nearly_all_amounts(self.held_raw, policy)
        return replace(self, attempts_raw=tuple(chain.from_iterable(rounds)), undisturbed=len(rounds[0]))

    def sold_only_after_others(self, sells: list[StepResult], sold: int) -> bool:
        """True where attempt ``sold`` went through only after another wallet had bought, though the pool had
        not received too little before: then it was not the amount that mattered."""
        if not self.attempts_raw or sold < self.undisturbed:
            return False
        return sells[self.undisturbed - 1].reason() not in (*POOL_GOT_LESS, SETTLED_SHORT)


def read_exit(
    results: Results, out: VenuePlace, environment: Environment, probe: Probe, start: SellStart
) -> CellOutcome:
    """The outcome of the blocks after a buy (``legs.exit_blocks``)."""
    by_receiver = probe.seller == "receiver"
    refused = _first_refused_call(results, (("transfer", "transfer"),))
    if refused is not None:
        return refused
    sells = _list_numbered(results, "sell-")
    completed = [number for number, result in enumerate(sells) if result.ok]
    if not completed or start.sold_only_after_others(sells, completed[0]):
        approval = _first_refused_call(results, (("approve-0", "approve"),))
        # The last attempt has the most gas. Of pieces, or where a later attempt sold, the first one counts.
        sell = sells[0 if completed or probe.seller in OVER_A_DAY else -1]
        return approval or RefusedCall("sell", sell.reason(), sell.gas_used)
    held = start.held_raw
    in_pieces = probe.seller in ("pieces", "small pieces")
    planned_raw = _accepted_raw(held, sells) if in_pieces else planned_sell_raw(probe, held)
    if start.attempts_raw:
        planned_raw = start.attempts_raw[completed[0]]
    before = _quote_at(results, "handed" if by_receiver else "held")
    # Token balances are read once, after all attempts. So where several attempts sold, the amount and the
    # money are known for all of them together, and the first one's share is computed from that.
    last = completed[-1] if start.attempts_raw else completed[0]
    after = _quote_at(results, "after" if in_pieces else f"after-{last}")
    remaining = _tokens_at(results, "after")
    if isinstance(before, Missing):
        return before
    if isinstance(after, Missing):
        return after
    if isinstance(remaining, Missing):
        return remaining
    remaining -= 0 if by_receiver else start.prior_raw
    all_sold_raw = held - remaining
    if len(completed) > 1 and not in_pieces:
        # Several attempts sold: only the first counts. It sold no more than it was asked to, nor more than
        # all of them together. The amount that reached a receiver is not known.
        remaining = held - planned_raw if by_receiver else max(remaining, held - planned_raw)
    # A receiver's balance is not read before it sells. Where the amount is not known otherwise, it is what
    # the receiver sold plus what is left; if that exceeds the held amount, the sell moved less than asked.
    reached = planned_raw + remaining if start.handed_raw is None else max(remaining, start.handed_raw)
    arrived = min(held, reached) if by_receiver else None
    # The gas of later attempts was paid after the quote balance was read.
    counted = range(len(sells) if in_pieces else last + 1)
    approvals = ("approve-",) if by_receiver else (f"approval-{number}-" for number in counted)
    gas = (*approvals, *(f"sell-{number}" for number in counted))
    sold_raw = (held if arrived is None else arrived) - remaining
    back_raw = after - before + _gas_between(results, gas, out, environment)
    if last != completed[0] and all_sold_raw > sold_raw:
        back_raw = back_raw * sold_raw // all_sold_raw
    return Sold(
        paid_raw=start.paid_raw,
        held_raw=held,
        planned_raw=planned_raw,
        sold_raw=sold_raw,
        back_raw=back_raw,
        buy_gas=start.buy_gas,
        sell_gas=max(sells[number].gas_used for number in (completed if in_pieces else completed[:1])),
        arrived_raw=arrived,
    )


def _accepted_raw(held_raw: int, pieces: list[StepResult]) -> int:
    """The part of the balance that the pieces which succeeded asked for: a sale that moves more than that was
    not asked to. The last piece takes the rest."""
    piece_raw, refused = held_raw // len(pieces), sum(not piece.ok for piece in pieces)
    return held_raw - piece_raw * refused if pieces[-1].ok else piece_raw * (len(pieces) - refused)


def read_handed(results: Results | Missing) -> int | None:
    """The amount that reached another wallet when all was transferred; None: not known."""
    if isinstance(results, Missing) or _first_refused_call(
        results, (("buy", "buy"), ("transfer", "transfer"))
    ):
        return None
    reached = _tokens_at(results, "handed")
    return None if isinstance(reached, Missing) else reached


def read_told(results: Results | Missing, label: str) -> RefusedCall | Missing | None:
    """The token's refusal of a direct transfer; None when it did not refuse."""
    if isinstance(results, Missing):
        return results
    result = results[label]
    leg: _Leg = "sell" if label == "pull" else "buy"
    return None if result.ok else RefusedCall(leg, result.reason(), result.gas_used)


def read_short(handed: Results | Missing, pulled: Results | Missing, moved_raw: int) -> int | None:
    """How much less than ``moved_raw`` arrived when it was sent to a v3 pool: what the pool held after that,
    against what it held in the other plan, where another wallet got it. None: not measured, or refused."""
    if isinstance(handed, Missing) or isinstance(pulled, Missing) or not pulled["pull"].ok:
        return None
    reads = [results.get("pool-held") for results in (handed, pulled)]
    before, after = (abi.uint_at(read.data, 0) if read and read.ok else None for read in reads)
    return None if before is None or after is None else moved_raw - (after - before)


def read_holder_pull(results: Results | Missing) -> RefusedCall | Missing | None:
    """The token's refusal of ``probe_plans.holder_pull_plan``; None also where the wallet holds nothing or
    could not approve."""
    if isinstance(results, Missing):
        return results
    is_approved = all(step.ok for label, step in results.items() if label.startswith("approve-"))
    held = _tokens_at(results, "held")
    return read_told(results, "pull") if is_approved and isinstance(held, int) and held > 0 else None


def read_carried(results: Results | Missing, moved_raw: int) -> HookCarry | RefusedCall | Missing:
    """The amounts that arrived when ``moved_raw`` tokens were transferred outside the pool."""
    if isinstance(results, Missing):
        return results
    refused = _first_refused_call(results, (("buy", "buy"), ("pull", "sell"), ("pay-out", "buy")))
    if refused is not None:
        return refused
    reads = [results[name] for name in ("pool-before", "pool-after", "paid-out", "pull-left")]
    before, after, received, remaining = (abi.uint_at(read.data, 0) if read.ok else None for read in reads)
    if before is None or after is None or received is None or remaining is None:
        return Missing("token", "the token does not return balances")
    # Tokens that stayed in the wallet were not taken: only the moved amount is compared.
    moved_part_raw = max(1, moved_raw - remaining)
    return HookCarry(moved_raw, (after - before) * moved_raw // moved_part_raw, received)


_Leg = Literal["fund", "buy", "approve", "transfer", "sell"]


def _list_numbered(results: Results, name: str) -> list[StepResult]:
    """The results of the steps whose label is this name and a number, in their order."""
    return [
        result
        for label, result in results.items()
        if label.startswith(name) and label[len(name) :].isdecimal()
    ]


def _first_refused_call(results: Results, legs: tuple[tuple[str, _Leg], ...]) -> RefusedCall | None:
    for label, step in legs:
        result = results.get(label)
        if result is not None and not result.ok:
            return RefusedCall(step, result.reason(), result.gas_used)
    return None


def _gas_between(
    results: Results, labels: tuple[str, ...], place: VenuePlace, environment: Environment
) -> int:
    """The wei that the wallet paid for gas in these calls; 0 where the venue is not paid in eth. A label that
    ends in a hyphen stands for all that begin with it."""
    if not place.pays_eth():
        return 0
    price = min(environment.max_fee_wei, environment.base_fee_wei + environment.tip_wei)
    exact, prefixes = frozenset(labels), tuple(label for label in labels if label.endswith("-"))
    counted = (name for name in results if name in exact or name.startswith(prefixes))
    return price * sum(results[name].gas_used for name in counted)
