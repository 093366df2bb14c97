"""Actors decide by the seed alone; their decisions stay within what the market holds."""

import json
from itertools import pairwise
from random import Random

from roundtrip_development.devnet.actors import (
    DUMPER,
    SERIAL,
    SNIPERS,
    ActorMarket,
    ActorStep,
    StepOutcome,
    choose,
    give_up,
    live_role,
    record,
)
from roundtrip_development.devnet.history import HISTORY_S, ROLES, TURNS, schedule
from roundtrip_development.devnet.launchpad import NATIVE_TERMS


def play(seed: int, turns: int = TURNS) -> tuple[ActorMarket, list[ActorStep]]:
    """A history without a chain: a curve is sold out once four fifths of the threshold lie in it."""
    market, rng, done = ActorMarket(), Random(seed), []
    for _, role in schedule(rng, turns):
        for step in choose(market, rng, role):
            held = sum(market.tokens[step.token].stakes.values()) if step.action == "buy" else 0
            sold_out = held + step.amount >= NATIVE_TERMS[1] * 4 // 5 and step.amount < 10**20
            record(
                market, step, StepOutcome(f"token {step.token}", "curve", sold_out and step.action == "buy")
            )
            done.append(step)
    return market, done


def test_the_same_seed_makes_the_same_steps_and_another_makes_others() -> None:
    assert play(1) == play(1)
    assert play(1) != play(2)


def test_the_history_has_every_role() -> None:
    market, steps = play(3)
    launches = [step for step in steps if step.action == "launch"]
    assert len(launches) == len(ROLES) == 30
    assert [step.actor for step in launches].count(SERIAL) == 6
    assert {step.actor for step in steps} >= {*SNIPERS, SERIAL, DUMPER}
    graduated = {step.token for step in steps if step.action == "graduate"}
    assert graduated
    assert not graduated & {step.token for step in launches if step.actor == SERIAL}
    assert any(listed.kind == "graduated" for listed in market.tokens)


def test_the_dumping_launcher_sells_all_it_bought() -> None:
    _, steps = play(4)
    (launch,) = (step for step in steps if step.actor == DUMPER and step.action == "launch")
    assert launch.amount > 0
    sold = [step for step in steps if step.actor == DUMPER and step.action == "sell"]
    assert [(step.token, step.amount) for step in sold] == [(launch.token, 10_000)]


def test_snipers_buy_in_the_turn_of_the_launch_and_sell_later() -> None:
    market, rng = ActorMarket(), Random(5)
    sniped = 0
    for _ in range(40):
        first, *others = choose(market, rng, "hot")
        assert first.action == "launch"
        assert [step.actor for step in others] in ([], list(SNIPERS))
        sniped += bool(others)
    assert 5 < sniped < 35
    assert len([step for _, step in market.later if step.actor in SNIPERS]) == 3 * sniped


def test_nobody_sells_what_he_does_not_hold() -> None:
    market, rng = ActorMarket(), Random(6)
    for _, role in schedule(rng):
        for step in choose(market, rng, role):
            if step.action == "sell":
                assert market.tokens[step.token].stakes[step.actor] > 0
            assert market.tokens[step.token].kind == "curve" if step.action == "buy" else True
            record(market, step, StepOutcome("token", "curve"))


def test_what_the_chain_refused_is_not_tried_again() -> None:
    market, rng = ActorMarket(), Random(7)
    (launch, *_) = choose(market, rng, "serial")
    give_up(market, launch)
    assert choose(market, rng) == []
    record(market, launch, StepOutcome("token", "curve"))
    (buy,) = choose(market, rng)
    assert (buy.action, buy.token) == ("buy", 0)
    give_up(market, buy)
    assert choose(market, rng) == []


def test_a_market_survives_being_written_down() -> None:
    market, _ = play(8, 200)
    written = json.dumps(market.pack())
    packed = json.loads(written)
    copy, rng = ActorMarket.unpack(packed), Random(1)
    assert copy == market
    for step in choose(copy, rng) + choose(copy, rng):
        record(copy, step, StepOutcome())
    assert copy != market
    assert json.dumps(packed) == written


def test_turns_rise_through_the_nine_days() -> None:
    times = [at_s for at_s, _ in schedule(Random(9))]
    assert len(times) == TURNS
    assert all(later - earlier > 60 for earlier, later in pairwise(times))
    assert times[0] < 86_400 // 10
    assert HISTORY_S - 86_400 // 10 < times[-1] < HISTORY_S


def test_some_live_turns_are_launches() -> None:
    rng = Random(10)
    roles = [live_role(rng) for _ in range(2000)]
    assert 50 < len([role for role in roles if role]) < 250
