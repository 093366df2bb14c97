"""The picture of the two rounds in verdicts.md has the figures of the policy and of the drawn crowd."""

import re
from collections import Counter
from typing import get_args, get_type_hints

from roundtrip.domain.base.policy import POLICY
from roundtrip.services.engine.crowd import draw_crowd
from roundtrip.services.rehearsal.verdict import TradeVerdict
from roundtrip.services.support.answer_fields import VerdictAnswer
from support.documents import PROJECT, blocks
from unit.chain.trades import WETH
from unit.services.engine.crowds import HEAD

PAGE = "docs/verdicts.md"


def test_the_picture_of_the_sell_round_is_of_the_crowd_that_is_drawn() -> None:
    (picture,) = (block.text for block in blocks(PAGE, "text"))
    crowd = draw_crowd(bytes(32), WETH, HEAD, POLICY)[:-1]
    assert f"{len(crowd)} wallets buy" in picture
    assert len(crowd) == sum(POLICY.crowd_counts)
    counts = Counter(wallet.after_s for wallet in crowd)
    for after_s, row in ((POLICY.later_s, "13 s "), (POLICY.hour_s, "1 hour "), (POLICY.day_s, "1 day ")):
        (line,) = (line for line in picture.splitlines() if line.startswith(row))
        assert f"{counts.pop(after_s)} sell" in line
    (last_s,) = (after_s for after_s in counts if after_s > POLICY.day_s)
    assert counts.pop(last_s) == 1
    own_hours = [at_s // POLICY.hour_s for at_s in counts.elements()]
    for text, hours in (("first", (0,)), ("next two", (1, 2)), ("rest of the", tuple(range(3, 24)))):
        count = sum(hour in hours for hour in own_hours)
        assert f"{count} sell, each at a time of its own, in the {text}" in picture


def test_the_table_of_what_decides_has_every_code_of_a_check_and_of_a_trade() -> None:
    section = (PROJECT / PAGE).read_text().split("## Which figure decides a code")[1].split("\n## ")[0]
    _, check, trade = section.split("| code of a ")
    for table, answer in ((check, VerdictAnswer), (trade, TradeVerdict)):
        first_cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        codes = re.findall(r"`([a-z_]+)`", " ".join(first_cells))
        hint = get_type_hints(answer, include_extras=True)["code"]
        assert sorted(codes) == sorted(get_args(get_args(hint)[0]))
