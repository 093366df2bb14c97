"""The drawing of the ties among a token's holders."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from roundtrip.console.pages.holder_ties import MAX_DRAWN, MAX_IN_PURSE, draw_ties
from roundtrip.console.support.render import Templates
from roundtrip.services.holders.launch_bundle import LaunchBundle
from roundtrip.services.holders.schema import TokenHolders
from support.answers import build_answer


def wallet(number: int, share_bps: int, purse: int | None, *tags: str) -> dict[str, Any]:
    address = f"0x{number:040x}"
    return {
        "address": address,
        "supplyBps": share_bps,
        "heldBps": share_bps,
        "purse": purse,
        "tags": list(tags),
    }


def holders(
    top: list[dict[str, Any]], *sizes: int, deployer: str | None = None, sold_out: int | None = None
) -> TokenHolders:
    """``sold_out``: the number of a purse that holds nothing."""
    rows = [
        {"wallets": size, "holding": 0 if number == sold_out else size, "heldBps": 100,
         "funder": None if number else "0x" + "f" * 40, "hasDeployer": not number}
        for number, size in enumerate(sizes)
    ]  # fmt: skip
    named = None if deployer is None else {"address": deployer, "heldBps": 0}
    given = {"top": top, "forensics": {"purses": {"rows": rows}}, "deployer": named}
    return build_answer(TokenHolders, given)


def buyers(*others: dict[str, Any], group: Sequence[dict[str, Any]] = ()) -> LaunchBundle:
    return build_answer(LaunchBundle, {"groups": [{"wallets": group}], "others": others})


def test_wallets_of_one_purse_hang_on_one_line_and_no_line_crosses_a_name() -> None:
    top = [wallet(n, 500 - n, (1, 2, None)[n % 3], *(["bundle"] if n == 3 else [])) for n in range(9)]
    held = holders(top, 4, 3, deployer="0x" + "d" * 40)
    ties = draw_ties(held, buyers())
    assert ties is not None
    assert [[dot.purse for dot in group.dots] for group in ties.groups] == [[1] * 4, [2] * 3, [None] * 3]
    assert [one.purse for one in ties.wallets] == [1] * 4 + [2] * 3 + [None] * 3
    dots = [dot for group in ties.groups for dot in group.dots]
    assert [dot.y for dot in dots] == sorted({dot.y for dot in dots})
    assert max(dot.y + dot.radius for dot in dots) < ties.height
    page = Templates({}).render(
        "ties_piece.html", ties=ties, tag_words={"bundle": "bundle", "deployer": "deployer"},
        purses=held.forensics.purses,
    )  # fmt: skip
    ends = [float(x) for x in re.findall(r'<path d="M61 \d+H112V\d+H([\d.]+)" class="tie"/>', page)]
    assert ends == [dot.x - dot.radius for dot in dots if dot.purse]
    # Names stand on the other side of the dots, or left of where the lines begin to spread.
    assert all(float(x) >= 182 or float(x) <= 45 for x in re.findall(r'<text x="([\d.]+)"', page))
    assert page.count("<tr><td ") == len(dots)
    assert "deployer’s" in page
    assert page.count('class="ring"') == 1
    assert page.count('class="gone"') == 1


@pytest.mark.parametrize(("count", "drawn"), [(3, 3), (40, MAX_IN_PURSE)])
def test_what_is_not_drawn_is_counted(count: int, drawn: int) -> None:
    ties = draw_ties(holders([], count), buyers(group=[wallet(n, 10, 1) for n in range(count)]))
    assert ties is not None
    assert len(ties.groups[0].dots) == drawn
    assert ties.not_drawn == count - drawn
    assert len(ties.wallets) == count
    many = draw_ties(holders([], *[2] * 20), buyers(*(wallet(n, 1, n // 2 + 1) for n in range(40))))
    assert many is not None
    assert many.not_drawn == 40 - MAX_DRAWN


def test_without_a_tie_nothing_is_drawn() -> None:
    assert draw_ties(holders([wallet(1, 900, None)]), buyers()) is None
    assert draw_ties(build_answer(TokenHolders), buyers()) is None


def test_a_purse_that_sold_all_is_in_the_table_only() -> None:
    held = holders([wallet(1, 500, 1), wallet(2, 400, 1)], 2, 3, sold_out=1)
    sellers = [wallet(number, 0, 2, "sniper") for number in (3, 4, 5)]
    ties = draw_ties(held, buyers(*sellers))
    assert ties is not None
    assert [group.number for group in ties.groups] == [1]
    assert (len(ties.wallets), ties.not_drawn) == (5, 3)
