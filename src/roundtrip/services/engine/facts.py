"""The simulation of the buy round that reads the token's facts and makes the buys beside the main ones."""

from msgspec import structs

from roundtrip.chain.simulate import legs, probe_plans, token_facts
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.request import Plan, Results, join_plans, merge_blocks, results_of
from roundtrip.domain.check.evidence import Environment, Missing, Size

from .session import CheckSession

SIDE_SIZES: tuple[Size, ...] = ("thousandth", "large")
"""The sizes of the buys that are made besides the main buy: a thousandth of the probe, and the policy's
``large_wei``. They share the simulation of the facts; in a pool with a stranger's hook each has one of its
own."""
_STEPS_A_REQUEST = 24
"""Steps that fit a node's gas pool even where each uses up its limit, or pays a large fee for its data."""


def plan_facts(run: CheckSession, places: tuple[VenuePlace, ...]) -> Plan:
    """Reads the token's facts; then makes the small buys of all places without a stranger's hook, and then
    the large ones: only the small buys come before them. Last the pay-outs: each venue's own transfer of one
    unit, which shows the token's revert reason."""
    reader, setting = run.environments[0], run.setting
    plan = token_facts.facts_plan(run.token, places, run.means.contracts, reader, run.means.policy)
    [reads] = plan.blocks
    blocks = [token_facts.with_code_read(reads, run.token, reader, run.means.policy)]
    for size in SIDE_SIZES:
        buys = [
            (number, _side_buy_plan(run, place, size))
            for number, place in enumerate(places)
            if not place.venue.rival_hook()
        ]
        named = {f"{size}-{number}": buy for number, buy in buys if isinstance(buy, Plan)}
        if named:
            blocks.append(merge_blocks(join_plans(named).blocks))
    if places:
        blocks.append(probe_plans.pay_out_block(places, setting, reader))
    return Plan(reader, tuple(blocks))


async def ask_facts_in_parts(run: CheckSession, places: tuple[VenuePlace, ...]) -> Results | Missing:
    """The facts and the pay-outs without the buys, in several simulations: one batch. Their steps do not
    depend on each other. Missing if one of the simulations has no results. Raises NodeFault."""
    env, setting = run.environments[0], run.setting
    plan = token_facts.facts_plan(run.token, places, run.means.contracts, env, run.means.policy)
    reads = token_facts.with_code_read(plan.blocks[0], run.token, env, run.means.policy)
    blocks = [reads, *([probe_plans.pay_out_block(places, setting, env)] if places else [])]
    plans = [
        Plan(env, (structs.replace(block, steps=block.steps[at : at + _STEPS_A_REQUEST]),))
        for block in blocks
        for at in range(0, len(block.steps), _STEPS_A_REQUEST)
    ]
    answers = await run.means.node.batch([run.request(plan) for plan in plans], run.meter)
    facts: Results = {}
    for plan, answer in zip(plans, answers, strict=True):
        results = run.results(plan, answer)
        if isinstance(results, Missing):
            return results
        facts |= results
    return facts


def _side_environment(run: CheckSession, place: VenuePlace, size: Size) -> Environment:
    return legs.cast(run.environments[0], f"{place.venue.at()} {size} beside")


def _side_buy_plan(run: CheckSession, place: VenuePlace, size: Size) -> Plan | Missing:
    env, policy = _side_environment(run, place, size), run.means.policy
    amount_raw = legs.size_raw(size, place, run.setting, env)
    if isinstance(amount_raw, Missing):
        return amount_raw
    block = probe_plans.buy_block(
        place, run.setting, env, size, amount_raw, most_gas=policy.side_buy_gas_limit
    )
    return Plan(env, (block,))


def side_results(facts: Results | Missing, number: int, size: Size) -> Results | Missing:
    """The results of the side buy of place ``number``, out of those of ``plan_facts``. Missing where that buy
    was not planned since its amount is not known, with one reason for all causes."""
    if isinstance(facts, Missing):
        return facts
    results = results_of(facts, f"{size}-{number}")
    return results or Missing("node", "the price of eth in the money side is not known")
