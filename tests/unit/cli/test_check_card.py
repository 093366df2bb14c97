"""A check as a card and as a line: what strangers wrote moves and colours nothing."""

from dataclasses import replace as with_fields

import pytest
from msgspec.structs import replace

from evidence.corpus import documents
from roundtrip.cli.check_card import draw_card, draw_failure, draw_line, draw_narrow_card
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence, RefusedCall
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.market.look_alikes import ListedToken
from roundtrip.services.check.card import CheckCard, read_card
from roundtrip.services.support.check_answer import Check, TokenAnswer, present
from support.terminal import printed
from unit.domain.builders import cells, evidence, refused_cells, sold, venue

HOSTILE = "\x1b[2J\x1b]0;x\x07[red]safe[/red]\r\u202e\x9b31m"


def answered(hour: bool = False) -> tuple[Check, CheckCard]:
    """A token that refuses a sell at once, for a hostile reason."""
    refused = RefusedCall("sell", HOSTILE, 1)
    cells = refused_cells(full=refused, full_again=refused, **({"hour": sold(60)} if hour else {}))
    found = evidence(venue(cells))
    judgement = judge(found, POLICY)
    answer = present(found, judgement, POLICY, 0.0)
    token = TokenAnswer(HOSTILE, HOSTILE, 18, "1", None, None)
    verdict = replace(answer.verdict, text=f"{answer.verdict.text} {HOSTILE}")
    return replace(answer, token=token, verdict=verdict), read_card(found, judgement, False, POLICY)


def test_a_card_shows_strangers_words_as_words() -> None:
    text = printed(draw_card(*answered()))
    assert "[red]safe[/red]" in text
    assert not {"\x1b", "\x07", "\r", "\u202e", "\x9b"} & set(text)


def test_a_line_shows_strangers_words_as_words() -> None:
    answer, card = answered()
    failure = draw_failure(answer.address, NodeFault(HOSTILE), True)
    for text in (printed(draw_line(answer, card)), printed(failure)):
        assert "[red]safe[/red]" in text
        assert not {"\x1b", "\x07", "\r", "\u202e", "\x9b"} & set(text)


def test_a_narrow_card_says_the_same_and_breaks_no_address() -> None:
    answer, card = answered(hour=True)
    lines = [line.plain for line in draw_narrow_card(answer, card)]
    assert lines[0] == "WARN  Sells, with a warning"
    assert any(line.startswith("token: ") and line.endswith(f", {answer.address}") for line in lines)
    assert not {"\x1b", "\x07", "\r", "\u202e", "\x9b"} & set("".join(lines))
    assert "  after 1 hour: sells, loss 0.60 %" in lines


def test_a_card_begins_with_level_and_word() -> None:
    assert printed(draw_card(*answered())).split("\n")[1].strip() == "DANGER  Honeypot: you cannot sell"
    assert "WARN  Sells, with a warning" in printed(draw_card(*answered(hour=True)))


def test_a_line_and_a_card_show_the_figure_that_decided() -> None:
    found = evidence(venue(cells(60, day=sold(3000))))
    judgement = judge(found, POLICY)
    answer, card = present(found, judgement, POLICY, 0.0), read_card(found, judgement, False, POLICY)
    assert (answer.verdict.code, answer.trade and answer.trade.round_trip_loss_bps) == ("high_fees", 60)
    line = printed(draw_line(answer, card))
    assert "30.00 %" in line
    assert "0.60 %" not in line.replace("30.00 %", "")
    drawn = " ".join(printed(draw_card(answer, card)).split())
    assert "decided by A round trip costs 30.00 % after a day" in drawn


def test_a_card_has_one_figure_for_a_tax() -> None:
    found = canonical_json.load(Evidence, documents()["v4_fee_on_sell"])
    judgement = judge(found, POLICY)
    card = draw_card(present(found, judgement, POLICY, 0.0), read_card(found, judgement, False, POLICY))
    text = " ".join(printed(card).split())
    assert "pool 0.60 %, token's tax 10.00 % to sell" in text
    assert "tax 10.00 % to sell; " in text.partition("risks ")[2]


def test_a_loss_says_for_how_much_of_it_it_holds() -> None:
    part = sold(41, 6001, BPS)
    found = evidence(
        venue(refused_cells(full=part, full_again=part, hour=part, day=part, half=sold(41, 5000)))
    )
    judgement = judge(found, POLICY)
    answer, card = present(found, judgement, POLICY, 0.0), read_card(found, judgement, False, POLICY)
    text = " ".join(printed(draw_card(answer, card)).split())
    assert "loss 0.41 % for the 60.01 % of it that sold of a round trip of 0.1 eth" in text


def test_a_card_without_proof_does_not_say_that_there_is_no_venue() -> None:
    answer, card = answered()
    for code, shown in (("no_pool", "none"), ("unproven", "not known")):
        found = replace(answer, venue=None, verdict=replace(answer.verdict, code=code, level="unknown"))
        assert f"venue {shown}" in " ".join(printed(draw_card(found, card)).split())


def test_a_card_has_the_grid_of_what_was_tried() -> None:
    text = printed(draw_card(*answered(hour=True)))
    assert "Buy for 0.1 eth, sell all" in text
    assert "sells, loss 0.60 %" in text
    assert "refused: " in text
    assert "not known for the whole; 0.60 % in: buy for 0.1 eth, sell all, after 1 hour" in " ".join(
        text.split()
    )
    assert "it was not sold" not in text


@pytest.mark.parametrize(
    ("wei", "size"), [(10**17, "0.1 eth"), (5 * 10**18, "5 eth"), (123_456 * 10**12, "0.123456 eth")]
)
def test_the_grid_names_the_sizes_of_its_policy(wei: int, size: str) -> None:
    policy = with_fields(POLICY, probe_wei=wei, large_wei=10 * wei)
    found = evidence(venue())
    card = read_card(found, judge(found, policy), False, policy)
    assert card.grid.rows[0].label == f"Buy for {size}, sell all"
    assert card.cost is not None
    assert card.cost.size == size


def test_a_card_names_the_listed_token_that_a_symbol_looks_like() -> None:
    answer, card = answered()
    looking = replace(answer, token=TokenAnswer("NVD\u0410", "Nvidia", 18, "1", None, None))
    listed = (ListedToken("NVDA", Address("0x" + "d0" * 20)),)
    sentence = f"NVDA, a listed token at 0x{'d0' * 20}; it is another"
    assert sentence in printed(draw_card(looking, card, listed))
    assert "looks like" not in printed(draw_card(looking, card))
    own = replace(looking, address=listed[0].address)
    assert "looks like" not in printed(draw_card(own, card, listed))
