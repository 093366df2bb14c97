"""Words and colours of verdicts, and the catch of a token that sells."""

from dataclasses import replace
from typing import get_args

import pytest

from evidence.corpus import documents
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence, Missing
from roundtrip.domain.check.verdict import CODES, judge
from roundtrip.domain.verdicts.catch import Catch, find_catch
from roundtrip.domain.verdicts.words import code_text, level_colour, level_word

BADNESS = ("ok", "warn", "unknown", "danger")
CATCHES = {
    "time_bomb": "hour",
    "cooldown": "later",
    "max_transaction": "parts",
    "graduated_taxed": "tax",
    "v4_fee_on_sell": "tax",
    "curve_nearly_full": "curve",
}


def kept(name: str) -> Evidence:
    return canonical_json.load(Evidence, documents()[name])


@pytest.mark.parametrize("name", documents())
def test_a_catch_is_found_where_there_is_one(name: str) -> None:
    evidence = kept(name)
    assert find_catch(evidence, judge(evidence, POLICY), POLICY) == CATCHES.get(name)


def test_only_a_refusal_is_one_and_the_first_counts() -> None:
    evidence = kept("time_bomb")
    judgement = judge(evidence, POLICY)
    (reading,) = judgement.readings
    gap = Missing("node", "it took too long")
    for changes, catch in (({"hour": gap, "day": gap}, None), ({"hour": reading.full}, "day")):
        changed = replace(judgement, readings=(replace(reading, **changes),))
        assert find_catch(evidence, changed, POLICY) == catch


@pytest.mark.parametrize("code", [*CODES, "of_an_earlier_release"])
@pytest.mark.parametrize("level", BADNESS)
@pytest.mark.parametrize("catch", [None, *get_args(Catch)])
def test_no_verdict_looks_better_than_its_level(code: str, level: str, catch: Catch | None) -> None:
    word, colour = level_word(level, code, catch), level_colour(level, code, catch)
    assert word
    assert word != code
    assert " ok" not in f" {word.lower()}"
    if colour == "ok":
        assert (level, catch if code == "ok" else None) == ("ok", None)
    if word == "Can sell":
        assert (level, colour) == ("ok", "ok")
    if level == "danger" and code not in ("no_contract", "not_a_token", "quote_asset"):
        assert colour == "danger"


def test_a_time_bomb_is_red_and_a_trap_is_named() -> None:
    assert level_word("warn", "ok", "hour") == "Sells now, not in an hour"
    assert level_colour("warn", "ok", "hour") == "danger"
    assert level_word("danger", "cannot_sell") == "Honeypot: you cannot sell"
    assert level_word("warn", "not_a_token") == "Not a token"
    assert level_colour("warn", "not_a_token") == "unknown"
    assert level_colour("ok", "ok", "tax") == "warn"


def test_each_code_has_a_text() -> None:
    assert [code for code in CODES if not code_text("ok", code)] == []
