"""What a token's code can read in a transfer is one sentence at the end of the verdict, and nothing else."""

from dataclasses import replace
from typing import get_args

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.evidence import CodeSign, Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.check.verdict_text import code_signs_sentence
from unit.domain.builders import (
    DRY,
    NODE,
    TOKEN_FACTS,
    cells,
    evidence,
    no_trade,
    refused_buys,
    refused_cells,
    venue,
)


@pytest.mark.parametrize(
    ("signs", "read"),
    [
        (("gas_price",), "the gas price"),
        (("gas_price", "origin"), "the gas price and which wallet sent the transaction"),
        (
            ("balance", "block_hash", "gas_price"),
            "how much eth an account has, the gas price and the hash of a block",
        ),
    ],
)
def test_several_signs_are_one_sentence(signs: tuple[CodeSign, ...], read: str) -> None:
    sentence = f"In a transfer its code can look at {read}, so it can treat trades differently."
    assert code_signs_sentence("ok", signs) == sentence


def test_every_sign_has_a_name() -> None:
    assert code_signs_sentence("ok", get_args(CodeSign)).count(",") == len(get_args(CodeSign)) - 1
    assert code_signs_sentence("ok", ()) == ""


NO_CODE = replace(TOKEN_FACTS, code_bytes=0)
NO_TOKEN = replace(TOKEN_FACTS, balance_answers=False)


@pytest.mark.parametrize(
    ("whole", "code", "is_said"),
    [
        (evidence(venue()), "ok", True),
        (evidence(venue(cells(6000))), "heavy_fees", True),
        (evidence(venue(refused_cells())), "cannot_sell", True),
        (evidence(no_trade(venue().facts, refused_buys())), "cannot_buy", True),
        (evidence(no_trade(DRY)), "empty_pool", False),
        (evidence(), "no_pool", False),
        (evidence(venue(cells(full=NODE))), "unproven", False),
        (evidence(facts=NO_CODE), "no_contract", False),
        (evidence(facts=NO_TOKEN), "not_a_token", False),
        (replace(evidence(), role="weth"), "quote_asset", False),
    ],
)
def test_it_is_said_where_a_trade_was_tried_and_changes_nothing_else(
    whole: Evidence, code: str, is_said: bool
) -> None:
    plain = judge(whole, POLICY).verdict
    assert plain.code == code
    signed = judge(replace(whole, code_signs=("gas_price",)), POLICY).verdict
    sentence = f" {code_signs_sentence(code, ('gas_price',))}" if is_said else ""
    assert signed == replace(plain, text=f"{plain.text}{sentence}")
    assert bool(sentence) is is_said
