"""What is written is read as it is meant, or refused with where and why; nothing else ever happens."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.errors import ParamFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.rules import VERBS, Over, Rule, Who
from roundtrip.services.watch.rule_parser import BELOW, MAX_CHARACTERS, parse
from support.ruled import rules

W, T = Address("0x" + "1a" * 20), Address("0x" + "b2" * 20)
SHOUTED = "0X" + "B2" * 20
FORM = "A rule is <who> <verb> [over <n> eth|usd|%] [on <token>], for example: any buying over 1 eth"
WHO = "who acts (follow, any, a wallet's address, deployer:<token> or creator:<token>)"
VERB = "a verb (buying, selling, launching, graduating, moving, draining or removing)"
TOKEN = "a token's address (0x and 40 hex digits)"
NUMBER = "a plain number such as 5 or 0.25"
ADDRESSES = st.from_regex(r"0x[0-9a-f]{40}", fullmatch=True).map(Address)

READ = {
    "any buying": Rule(Who("any"), "buying"),
    "follow selling": Rule(Who("follow"), "selling"),
    f"{W} launching": Rule(Who("wallet", W), "launching"),
    f"deployer:{T} graduating over 4.2 eth": Rule(Who("deployer", T), "graduating", Over("eth", 42 * 10**17)),
    f"creator:{T} moving over 5 % on {T}": Rule(Who("creator", T), "moving", Over("%", 50_000), T),
    "any draining over 99.9999 %": Rule(Who("any"), "draining", Over("%", 999_999)),
    "follow removing over 12.5 %": Rule(Who("follow"), "removing", Over("%", 125_000)),
    "any buying over 0 usd": Rule(Who("any"), "buying", Over("usd", 0)),
    "any launching over 0.000001 usd": Rule(Who("any"), "launching", Over("usd", 1)),
    "any buying over 0.000000000000000001 eth": Rule(Who("any"), "buying", Over("eth", 1)),
}
"""Canonical texts, and the rule that each is."""
SLOPPY = {
    "any buying over 5%": "any buying over 5 %",
    "any buying over 5eth": "any buying over 5 eth",
    "  ANY\tBuYiNg\n over\u00a0007.50\u2003USD  ": "any buying over 7.5 usd",
    f"Deployer : {SHOUTED} selling": f"deployer:{T} selling",
    f"CREATOR:{SHOUTED} MOVING ON {SHOUTED}": f"creator:{T} moving on {T}",
    f"{'0X' + '1A' * 20} selling": f"{W} selling",
    "any buying over 1.000000000000000000 eth": "any buying over 1 eth",
}
REFUSED = {
    "": (1, WHO, "the end"),
    "   ": (4, WHO, "the end"),
    "somebody buying": (1, WHO, '"somebody"'),
    "anybuying": (1, WHO, '"anybuying"'),
    "0x123 buying": (1, WHO, '"0x123"'),
    f"{W}0 buying": (1, WHO, f'"{W[:40]}..."'),
    "deployer buying": (1, WHO, '"deployer"'),
    "deployer:PEPE buying": (10, TOKEN, '"PEPE"'),
    "any": (4, VERB, "the end"),
    "any bying": (5, VERB, '"bying"'),
    "any  \n bying over 5 eth": (8, VERB, '"bying"'),
    "any over 5 eth": (5, VERB, '"over"'),
    # A long s is no s, though it becomes one where letters are compared without regard to capitals.
    "any \u017felling": (5, VERB, '"\u017felling"'),
    "any buying 5 eth": (12, '"over <n> eth|usd|%", "on <token>" or the end of the rule', '"5"'),
    "any buying over": (16, NUMBER, "the end"),
    "any buying over much": (17, NUMBER, '"much"'),
    "any buying over 1e18 eth": (17, NUMBER, '"1e18"'),
    "any buying over 1,000 usd": (17, NUMBER, '"1,000"'),
    "any buying over -1 usd": (17, NUMBER, '"-1"'),
    "any buying over +1 usd": (17, NUMBER, '"+1"'),
    "any buying over 5. usd": (17, NUMBER, '"5."'),
    "any buying over .5 usd": (17, NUMBER, '".5"'),
    "any buying over \u0665 eth": (17, NUMBER, '"\u0665"'),
    "any buying over $5": (17, NUMBER, '"$5"'),
    "any buying over 5": (18, "eth, usd or %", "the end"),
    "any buying over 5 weth": (19, "eth, usd or %", '"weth"'),
    "any buying over 5ethh": (18, "eth, usd or %", '"ethh"'),
    "any buying over 5 %%": (19, "eth, usd or %", '"%%"'),
    "any launching over 5 %": (22, "eth or usd (launching and graduating take no %)", '"%"'),
    "any graduating over 5%": (22, "eth or usd (launching and graduating take no %)", '"%"'),
    "any buying over 0.0000001 usd": (17, "at most 6 digits after the point for usd", '"0.0000001"'),
    "any buying over 0.00001 %": (17, "at most 4 digits after the point for %", '"0.00001"'),
    f"any buying over 0.{'0' * 18}1 eth": (
        17, "at most 18 digits after the point for eth", f'"0.{"0" * 18}1"',
    ),
    "any buying over 100 %": (17, "a number below 100 for %", '"100"'),
    "any buying over 1000000000000 eth": (17, "a number below 1,000,000,000,000 for eth", '"1000000000000"'),
    f"any buying over {'9' * 60} usd": (17, "a number below 1,000,000,000,000 for usd", f'"{"9" * 40}..."'),
    "any buying on": (14, TOKEN, "the end"),
    "any buying on PEPE": (15, TOKEN, '"PEPE"'),
    f"any buying on {T} over 5 eth": (58, "the end of the rule", '"over"'),
    "any buying over 5 eth over 6 eth": (23, '"on <token>" or the end of the rule', '"over"'),
    "any \x00\u202ebying\u200b": (5, VERB, '"bying"'),
    "any \u202e\x07": (5, VERB, "characters that cannot be shown"),
    'any b"y\u201ding': (5, VERB, "\"b'y'ing\""),
    "any \ud800": (5, VERB, "characters that cannot be shown"),
}  # fmt: skip
"""Where, what was expected there, and what stood there."""


@pytest.mark.parametrize("text", READ)
def test_a_rule_is_read_and_written_again(text: str) -> None:
    assert parse(text) == READ[text]
    assert READ[text].text() == text


def test_nothing_of_the_parser_is_left_in_a_rule() -> None:
    """Plain str, not the parser's Token, which is a str, too."""
    rule = parse(f"creator:{T} moving over 5 % on {T}")
    assert rule.over is not None
    left = (rule.who.kind, rule.who.address, rule.verb, rule.over.unit, rule.token)
    others = (parse(f"{W} buying").who.address, parse("any buying").who.kind)
    assert {type(each) for each in left + others} == {str}


@pytest.mark.parametrize("text", SLOPPY)
def test_sloppy_text_has_one_canonical_form(text: str) -> None:
    assert parse(text).text() == SLOPPY[text]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_read(verb: str) -> None:
    assert parse(f"any {verb}").verb == verb


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_rule_is_refused_with_where_and_why(text: str) -> None:
    at, expected, found = REFUSED[text]
    with pytest.raises(ParamFault) as caught:
        parse(text)
    assert caught.value.code == "bad_input"
    assert caught.value.message == f"At character {at}: found {found}, expected {expected}. {FORM}"


def test_at_most_two_hundred_characters() -> None:
    assert parse("any buying".ljust(MAX_CHARACTERS)).verb == "buying"
    with pytest.raises(ParamFault, match=r"at most 200 characters; this one has 201\. A rule is <who>"):
        parse("any buying".ljust(MAX_CHARACTERS + 1))


@given(rules(ADDRESSES, ADDRESSES, st.integers(0, BELOW["%"] * 10**4 - 1)))
def test_what_is_written_is_read_as_the_same_rule(rule: Rule) -> None:
    text = rule.text()
    assert parse(text) == rule
    assert parse(text).text() == text
    assert parse(text.upper().replace(" ", "\t\n")) == rule


@given(st.sampled_from(("eth", "usd")), st.integers(0, BELOW["eth"] * 10**6 - 1))
def test_thresholds_of_six_decimals_are_read_exactly(unit: str, raw: int) -> None:
    text = f"creator:{T} graduating over {raw // 10**6}.{raw % 10**6:06d} {unit} on {T}"
    rule = parse(text)
    assert rule.over is not None
    assert rule.over.raw == raw * (10**12 if unit == "eth" else 1)
    assert parse(rule.text()) == rule


WORDS = st.sampled_from(
    ["follow", "any", "ANY", W, T, f"deployer:{T}", "creator:", "buying", "launching", "over", "5", "0.5",
     "5%", "1e3", "%", "eth", "usd", "on", " ", "\n", "\u2028", "\x1c", "\x85", "0x", "-", ".", "\ud800", '"']
)  # fmt: skip


@given(
    st.text(max_size=210)
    | st.lists(WORDS, max_size=9).map(" ".join)
    | st.lists(WORDS, max_size=9).map("".join)
)
@example("any buying\x1c")
@example("any buying over 5\x85%")
@settings(max_examples=1000)
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    rule, fault = tried(text)
    if fault is None:
        assert rule is not None
        assert parse(rule.text()) == rule
        return
    place = re.fullmatch(r"At character (\d+): found [^\n]+, expected [^\n]+", fault.message)
    assert fault.code == "bad_input"
    assert fault.message.isprintable()
    assert len(fault.message) < 300
    assert (place is None) is (len(text) > MAX_CHARACTERS)
    if place is not None:
        # A word, or the end: never the space between.
        rest = text[int(place[1]) - 1 :]
        assert not rest[:1].isspace()
        assert (rest == "") is (": found the end, " in fault.message)


def tried(text: str) -> tuple[Rule | None, ParamFault | None]:
    try:
        return parse(text), None
    except ParamFault as fault:
        return None, fault
