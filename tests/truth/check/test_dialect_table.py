"""The table of dialects: what is wrong with a row, when the bar is missed, and what the page says."""

import pytest

from truth.dialect_table import DialectRow, Said, bar_is_met, markdown, parse_table, sums

OK: Said = ("ok", "ok", "It sells.")
TRAP: Said = ("cannot_sell", "danger", "It does not sell.")
UNKNOWN: Said = (
    "unproven", "unknown", "The token prevented the check: the token may count blocks. This is not a pass."
)  # fmt: skip


def row(name: str, anvil: Said, geth: Said, nitro: Said, hides: bool = False) -> DialectRow:
    return DialectRow(name, {"anvil": anvil, "geth": geth, "nitro": nitro}, hides)


@pytest.mark.parametrize(
    ("made", "is_right"),
    [
        (row("plain", OK, OK, OK), True),
        (row("trap", TRAP, TRAP, TRAP), True),
        (row("plain", OK, OK, TRAP), False),
        (row("plain", OK, UNKNOWN, UNKNOWN), False),
        (row("plain", UNKNOWN, UNKNOWN, UNKNOWN), False),
        (row("zoo/transfer_callback", OK, UNKNOWN, UNKNOWN), True),
        (row("zoo/transfer_callback", OK, OK, OK), False),
        (row("zoo/detect_prevrandao", TRAP, TRAP, OK), True),
        (row("zoo/detect_prevrandao", TRAP, OK, OK), False),
        (row("zoo/detect_prevrandao", TRAP, TRAP, UNKNOWN), False),
        (row("notices", OK, UNKNOWN, UNKNOWN, hides=True), True),
        (row("notices", OK, OK, UNKNOWN, hides=True), False),
    ],
)
def test_a_verdict_differs_only_where_it_has_to(made: DialectRow, is_right: bool) -> None:
    assert (made.fault() == "") is is_right


def test_one_in_a_hundred_is_unproven_at_most_and_each_is_named() -> None:
    """What is made to hide is named, and not counted."""
    plain = [row(f"plain {n}", OK, OK, OK) for n in range(99)]
    unproven = row("zoo/transfer_callback", OK, UNKNOWN, UNKNOWN)
    hiding = row("notices", OK, UNKNOWN, UNKNOWN, hides=True)
    assert bar_is_met([*plain, unproven, hiding])
    assert not bar_is_met([*plain[1:], unproven, hiding])
    assert not bar_is_met([*plain, unproven, row("odd", OK, TRAP, OK)])
    assert sums([*plain, unproven, hiding])[2:] == [
        "unproven on geth and nitro: 1 of 100, 1.0% (zoo/transfer_callback)",
        "made to be unproven there: 1 (notices)",
    ]


def test_the_page_has_every_row_and_why_it_is_unproven() -> None:
    rows = [row("b", OK, OK, OK), row("a", OK, OK, OK), row("c", TRAP, TRAP, OK), row("d", OK, UNKNOWN, OK)]
    text = markdown(rows, "2026-11-26")
    assert parse_table(text) == {made.name: made.cells() for made in rows}
    assert "| `ok/ok` | same | same | 2: b, a |" in text
    assert "| d | the token may count blocks. |" in text
