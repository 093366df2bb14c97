"""What an alert says."""

import pytest

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.watch.alerts import (
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
        ("buying", f"{WALLET} bought {TOKEN} for 1.234 eth, 1.234 % of its supply."),
        ("selling", f"{WALLET} sold {TOKEN} for 1.234 eth, 1.234 % of its supply."),
        ("launching", f"{WALLET} launched {TOKEN} with a first buy of 1.234 eth."),
        ("graduating", f"{TOKEN} graduated with 1.234 eth raised."),
        ("moving", f"{WALLET} moved {TOKEN} worth 1.234 eth, 1.234 % of its supply."),
        (
            "draining",
            f"{WALLET} removed liquidity worth 1.234 eth from a pool of {TOKEN}, 1.234 % of what "
            "the pool had.",
        ),
        (
            "removing",
            f"{WALLET} removed liquidity worth 1.234 eth from a pool of {TOKEN}, 1.234 % of its active "
            "liquidity.",
        ),
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
        ("draining", f"whale removed liquidity from a pool of {TOKEN}."),
        ("removing", f"whale removed liquidity from a pool of {TOKEN}."),
    ],
)
def test_what_is_not_known_is_not_said(verb: Verb, sentence: str) -> None:
    assert describe_happening(happening(verb, None, None, None), "whale") == sentence


@pytest.mark.parametrize(
    ("verb", "sentence"),
    [
        ("buying", f"whale bought 1.234 % of the supply of {TOKEN}."),
        ("selling", f"whale sold 1.234 % of the supply of {TOKEN}."),
        ("launching", f"whale launched {TOKEN}."),
        ("graduating", f"{TOKEN} graduated."),
        ("moving", f"whale moved 1.234 % of the supply of {TOKEN}."),
        ("draining", f"whale removed 1.234 % of the liquidity of a pool of {TOKEN}."),
        ("removing", f"whale removed 1.234 % of the active liquidity of a pool of {TOKEN}."),
    ],
)
def test_without_a_value_the_share_is_said(verb: Verb, sentence: str) -> None:
    assert describe_happening(happening(verb, None, None), "whale") == sentence


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
        (1, USD, None, "1 wei"),
        (10**18, USD, None, "1 eth"),
        (123_456_789 * 10**18 + 1, USD, None, "123,400,000 eth"),
        (0, USD, None, "0 eth"),
        (None, USD, None, "2.5 usd"),
        (None, 12_345_678_901, None, "12,340 usd"),
        (None, USD, 0, "2.5 usd"),
        (None, USD, 1, "2.5 usd, 0.0001 % of its supply"),
    ],
)
def test_worth_is_said_in_what_is_known_first(
    eth: int | None, usd: int | None, part: int | None, worth: str
) -> None:
    assert describe_happening(happening("buying", eth, usd, part)) == f"{WALLET} bought {TOKEN} for {worth}."


def test_a_row_of_a_follow_and_of_a_rule() -> None:
    follow = draft_alert(AlertSource("follow", 5, 9, "whale", 0), happening())
    assert (follow.account_id, follow.kind, follow.source_id, follow.who) == (9, "follow", 5, "whale")
    assert (follow.rule, follow.said) == (None, f"whale bought {TOKEN} for 1.234 eth, 1.234 % of its supply.")
    unnamed = draft_alert(AlertSource("follow", 5, 9, "", 0), happening())
    assert (unnamed.who, unnamed.said) == (
        WALLET,
        f"{WALLET} bought {TOKEN} for 1.234 eth, 1.234 % of its supply.",
    )
    text = f"deployer:{TOKEN} buying over 1 eth"
    rule = draft_alert(AlertSource("rule", 6, 9, text, 0), happening())
    assert (rule.kind, rule.source_id, rule.who, rule.rule) == ("rule", 6, f"deployer:{TOKEN}", text)
    assert (rule.eth_wei, rule.micro_usd, rule.share_ppm) == (ETH, USD, SHARE)
    assert (rule.block_number, rule.log_index, rule.at_s, rule.tx_hash) == SPOT[:2] + SPOT[2:]


def test_how_many_more_is_said() -> None:
    assert more_alerts_text("any buying", 7) == "7 more alerts in that minute, not listed: any buying."
    assert more_alerts_text("whale", 1) == "1 more alert in that minute, not listed: whale."


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (happening("selling"), f"{DEPLOYER} sold 1.234 % of the supply for 1.234 eth."),
        (happening("selling", part=None), f"{DEPLOYER} sold some of it for 1.234 eth."),
        (happening("selling", None, None), f"{DEPLOYER} sold 1.234 % of the supply."),
        (happening("selling", None, None, None), f"{DEPLOYER} sold some of it."),
        (
            happening("draining"),
            f"{WALLET} removed liquidity worth 1.234 eth from a pool of {TOKEN}, which you hold, 1.234 % of "
            "what the pool had.",
        ),
        (
            happening("draining", None, None, None),
            f"{WALLET} removed liquidity from a pool of {TOKEN}, which you hold.",
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
        f"You hold {TOKEN}: its verdict changed from ok (ok) to danger (cannot_sell). It cannot be sold."
    )
    assert verdict_change_text(TOKEN, "", "danger (cannot_sell)", "No sale.") == (
        f"You hold {TOKEN}: its first checks say danger (cannot_sell). No sale."
    )
    assert verdict_change_text(TOKEN, "ok (ok)", "warn", "").endswith(
        ": its verdict changed from ok (ok) to warn."
    )
