"""What an alert says."""

import pytest

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.watch.alert_text import (
    describe_happening,
    draft_alert,
    more_alerts_text,
    verdict_change_text,
)
from roundtrip.domain.watch.rule_index import AlertSource
from roundtrip.domain.watch.rules import VERBS, Happening, Verb

WALLET, TOKEN = Address("0x" + "ab" * 20), Address("0x" + "cd" * 20)
SPOT = Spot(7, 3, 1_760_000_000, TxHash("0x" + "11" * 32))
DEPLOYER = f"The deployer of {TOKEN}, which you hold,"
ETH, USD, SHARE = 1_234_567 * 10**12, 2_500_000, 12_345


def happening(
    verb: Verb = "buying", eth: int | None = ETH, usd: int | None = USD, part: int | None = SHARE
) -> Happening:
    return Happening(verb, SPOT, WALLET, TOKEN, eth, usd, part, None if part is None else 10**6)


@pytest.mark.parametrize(
    ("verb", "sentence"),
    [
        ("buying", f"{WALLET} bought 1.234 eth of {TOKEN}."),
        ("selling", f"{WALLET} sold 1.234 eth of {TOKEN}."),
        ("launching", f"{WALLET} launched {TOKEN}, and bought 1.234 eth of it at once."),
        ("graduating", f"{TOKEN} graduated, with 1.234 eth raised."),
        ("moving", f"{WALLET} moved 1.234 eth of {TOKEN}."),
        ("draining", f"{WALLET} took 1.234 eth of the liquidity of {TOKEN} away."),
    ],
)
def test_it_says_who_did_what_for_how_much(verb: Verb, sentence: str) -> None:
    assert describe_happening(happening(verb)) == sentence


@pytest.mark.parametrize(
    ("verb", "sentence"),
    [
        ("buying", f"whale bought {TOKEN}."),
        ("selling", f"whale sold {TOKEN}."),
        ("launching", f"whale launched {TOKEN}."),
        ("graduating", f"{TOKEN} graduated."),
        ("moving", f"whale moved {TOKEN}."),
        ("draining", f"whale took liquidity of {TOKEN} away."),
    ],
)
def test_what_is_not_known_is_not_said(verb: Verb, sentence: str) -> None:
    assert describe_happening(happening(verb, None, None, None), "whale") == sentence


def test_a_launch_that_nothing_was_bought_of_is_only_a_launch() -> None:
    assert describe_happening(happening("launching", 0, 0, None)) == f"{WALLET} launched {TOKEN}."
    assert describe_happening(happening("graduating", 0, 0, None)) == f"{TOKEN} graduated."


def test_every_verb_has_its_sentence() -> None:
    for verb in VERBS:
        assert "{" not in describe_happening(happening(verb)) + describe_happening(
            happening(verb, None, None, None)
        )


@pytest.mark.parametrize(
    ("eth", "usd", "part", "worth"),
    [
        (1, USD, SHARE, "0.000000000000000001 eth"),
        (10**18, USD, SHARE, "1 eth"),
        (123_456_789 * 10**18 + 1, USD, SHARE, "123456789 eth"),
        (0, USD, SHARE, "0 eth"),
        (None, USD, SHARE, "2.5 usd"),
        (None, 12_345_678_901, SHARE, "12345 usd"),
        (None, None, SHARE, "1.234%"),
    ],
)
def test_worth_is_said_in_what_is_known_first(
    eth: int | None, usd: int | None, part: int | None, worth: str
) -> None:
    assert describe_happening(happening("buying", eth, usd, part)) == f"{WALLET} bought {worth} of {TOKEN}."


def test_a_row_of_a_follow_and_of_a_rule() -> None:
    follow = draft_alert(AlertSource("follow", 5, 9, "whale", 0), happening())
    assert (follow.account_id, follow.kind, follow.source_id, follow.who) == (9, "follow", 5, "whale")
    assert (follow.rule, follow.said) == (None, f"whale bought 1.234 eth of {TOKEN}.")
    unnamed = draft_alert(AlertSource("follow", 5, 9, "", 0), happening())
    assert (unnamed.who, unnamed.said) == (WALLET, f"{WALLET} bought 1.234 eth of {TOKEN}.")
    text = f"deployer:{TOKEN} buying over 1 eth"
    rule = draft_alert(AlertSource("rule", 6, 9, text, 0), happening())
    assert (rule.kind, rule.source_id, rule.who, rule.rule) == ("rule", 6, f"deployer:{TOKEN}", text)
    assert (rule.eth_wei, rule.micro_usd, rule.share_ppm) == (ETH, USD, SHARE)
    assert (rule.block_number, rule.log_index, rule.at_s, rule.tx_hash) == SPOT[:2] + SPOT[2:]


def test_how_many_more_is_said() -> None:
    assert more_alerts_text("any buying", 7) == "And 7 more in that minute: any buying."


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (happening("selling"), f"{DEPLOYER} sold 1.234 eth of it: 1.234% of the supply."),
        (happening("selling", part=None), f"{DEPLOYER} sold 1.234 eth of it."),
        (happening("selling", None, None), f"{DEPLOYER} sold 1.234% of it."),
        (happening("selling", None, None, None), f"{DEPLOYER} sold some of it."),
        (
            happening("draining"),
            f"{WALLET} took 1.234 eth of the liquidity of {TOKEN}, which you hold, away: 1.234% of "
            "what the pool had.",
        ),
    ],
)
def test_a_holder_is_told_that_it_holds_the_token(given: Happening, sentence: str) -> None:
    draft = draft_alert(AlertSource("bag_guard", 3, 3, "bag guard", 0), given)
    assert draft.said == sentence
    assert (draft.kind, draft.source_id, draft.account_id, draft.rule) == ("bag_guard", 3, 3, None)
    assert draft.who == ("deployer" if given.verb == "selling" else WALLET)


def test_a_verdict_that_changed_says_what_it_was_and_why() -> None:
    assert verdict_change_text(TOKEN, "ok (ok)", "danger (cannot_sell)", "It cannot be sold.") == (
        f"The verdict on {TOKEN}, which you hold, was ok (ok) and is danger (cannot_sell) now."
        " It cannot be sold."
    )
    assert verdict_change_text(TOKEN, "ok (ok)", "warn", "").endswith("was ok (ok) and is warn now.")
