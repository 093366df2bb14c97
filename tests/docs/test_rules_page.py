"""What ``docs/rules.md`` says of a rule is so: how it is kept, what it tells of, and what is refused."""

import itertools
import re
from collections.abc import Iterator
from fractions import Fraction

import pytest

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import MAX_A_MINUTE, MAX_FOLLOWS, MAX_RULES
from roundtrip.domain.watch.rule_index import AlertSource, RuleIndex
from roundtrip.domain.watch.rules import DECIMALS, VERBS, Happening, Verb, Watch
from roundtrip.services.watch.rule_parser import BELOW, MAX_CHARACTERS, parse
from support.documents import PAGES, spans, text_of
from support.documents import blocks as fenced_as
from support.ruled import happening

PAGE = text_of("docs/rules.md")
SUPPLY_RAW = 10**27


def blocks(kind: str) -> Iterator[list[tuple[str, str]]]:
    """The examples of the page: each line as what it is and what it says."""
    for fenced in fenced_as("docs/rules.md", kind):
        for block in fenced.text.strip().split("\n\n"):
            found = re.findall(r"^(rule|kept|who|told|not told|says) +(.+)$", block, re.M)
            assert len(found) == len(block.split("\n")), block
            yield found


READ, REFUSED = list(blocks("rules")), list(blocks("refused"))


def texts_of(line: list[tuple[str, str]], what: str) -> list[str]:
    return [text for each, text in line if each == what]


def happened(text: str) -> Happening:
    """``<wallet> <verb> <token>[, <n> eth][, <n> usd][, <n> %]``; what is left out is not known."""
    first, *worths = text.split(", ")
    wallet, verb, token = first.split()
    known = {unit: Fraction(number) for number, unit in (worth.split() for worth in worths)}
    eth, usd, share = known.pop("eth", None), known.pop("usd", None), known.pop("%", None)
    assert not known
    (which,) = (each for each in VERBS if each == verb)
    seen = happening(which, Address(wallet), Address(token))
    return seen._replace(
        eth_wei=None if eth is None else int(eth * 10**18),
        micro_usd=None if usd is None else int(usd * 10**6),
        part_raw=None if share is None else int(share * SUPPLY_RAW / 100),
        whole_raw=SUPPLY_RAW,
    )


@pytest.mark.parametrize("lines", READ, ids=lambda lines: lines[0][1][:60])
def test_an_example_is_kept_told_and_not_told_as_the_page_says(lines: list[tuple[str, str]]) -> None:
    (written,), (kept,), who = texts_of(lines, "rule"), texts_of(lines, "kept"), texts_of(lines, "who")
    rule, index = parse(written), RuleIndex()
    assert rule.text() == kept
    assert parse(kept) == rule
    assert bool(who) is (rule.who.kind in ("follow", "deployer", "creator"))
    wallets = {Address(each) for each in who} | ({rule.who.address} if rule.who.kind == "wallet" else set())
    watch = Watch(rule, None if rule.who.kind == "any" else {each for each in wallets if each})
    if rule.who.kind == "follow":
        index.add_rule(AlertSource("rule", 1, 1, kept, 0), rule, None)
        for id_, each in enumerate(who):
            index.add_follow(AlertSource("follow", id_, 1, "", 0), Address(each))
    else:
        index.add_rule(AlertSource("rule", 1, 1, kept, 0), rule, next(iter(wallets), None))
    answer, not_told = texts_of(lines, "told"), texts_of(lines, "not told")
    assert answer
    assert not_told
    for text in answer + not_told:
        seen = happened(text)
        assert watch.matches(seen) is (text in answer), text
        found = [source.id for source in index.matching(seen) if source.kind == "rule"]
        assert found == ([1] if text in answer else []), text


@pytest.mark.parametrize("lines", REFUSED, ids=lambda lines: lines[0][1])
def test_what_the_page_says_is_refused_is_refused_so(lines: list[tuple[str, str]]) -> None:
    (written,), (says,) = texts_of(lines, "rule"), texts_of(lines, "says")
    with pytest.raises(CallerFault) as caught:
        parse(written)
    assert caught.value.message.startswith(says)


def test_the_page_has_every_verb_unit_and_who() -> None:
    rules = [parse(text) for lines in READ for text in texts_of(lines, "rule")]
    assert {rule.verb for rule in rules} == set(VERBS)
    assert {rule.over.unit for rule in rules if rule.over} == set(DECIMALS)
    assert {rule.who.kind for rule in rules} == {"any", "follow", "wallet", "deployer", "creator"}
    assert len(REFUSED) >= 5


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_line(verb: Verb) -> None:
    (line,) = re.findall(rf"^\| `{verb}` \|.*\| (.*) \|$", PAGE, re.M)
    refused = False
    try:
        parse(f"any {verb} over 5 %")
    except CallerFault:
        refused = True
    assert (line == "refused") is refused


def test_the_page_names_the_limits_that_hold() -> None:
    limits = [
        f"at most {MAX_RULES} rules and follows at most {MAX_FOLLOWS} wallets",
        f"at most {MAX_A_MINUTE} rows in a minute",
        f"at most {MAX_CHARACTERS} characters",
        f"{DECIMALS['eth']} digits after the point for eth, {DECIMALS['usd']} for usd and",
        f"{DECIMALS['%']} for %",
        f"below {BELOW['eth']} and {BELOW['%']} %",
    ]
    assert BELOW["eth"] == BELOW["usd"]
    assert [limit for limit in limits if limit not in PAGE] == []


def test_the_form_above_all_else_is_that_of_a_rule() -> None:
    """Each way to fill in what stands in <> and to choose what stands in []."""
    (form,) = fenced_as("docs/rules.md", "text")
    who, verb, over, on = re.findall(r"<\w+>(?= )|\[[^]]+\]|<\w+>", form.text.strip())
    assert f"{who} {verb} {over} {on}" == form.text.strip()
    units = over.removesuffix("]").split()[-1].split("|")
    overs = ["", *(f" over 5 {unit}" for unit in units)]
    ons = ["", f" on 0x{'a' * 40}"]
    refused = []
    for each, more, where in itertools.product(VERBS, overs, ons):
        try:
            assert parse(f"any {each}{more}{where}").text() == f"any {each}{more}{where}"
        except CallerFault as fault:
            refused.append((each, more, str(fault)))
    assert {(each, more) for each, more, _ in refused} == {
        (each, " over 5 %") for each in ("launching", "graduating")
    }


def test_every_rule_that_a_page_writes_is_one() -> None:
    written = [span for page in PAGES for span in spans(page) if re.match(r"any \w+ing\b", span.text)]
    assert len(written) > 10
    for span in written:
        assert parse(span.text).text() == span.text, span
