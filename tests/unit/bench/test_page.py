"""The page of ``make bench``: what each bench hands on, as Markdown."""

import socket
from datetime import UTC, datetime
from pathlib import Path

from bench.figures import SIDE_BY_SIDE, Table, beside, keep, kept
from bench.side_by_side import machine, page
from bench.timing import Times

ROW = beside("ours", Times([3.0] * 19 + [250.0]), "theirs", Times([2.0]))


def test_a_row_has_median_p95_and_the_ratio_of_the_medians() -> None:
    assert ROW == ["ours", "3.00 ms", "250 ms", "theirs", "2.00 ms", "1.50"]
    assert beside("long", Times([12_345.6] * 19), "short", Times([100.0]))[1:] == [
        "12.35 s", "-", "short", "100 ms", "123.46",
    ]  # fmt: skip


def test_tables_of_the_same_columns_become_one_with_machine_and_date_above(tmp_path: Path) -> None:
    tables = [
        Table("a first", SIDE_BY_SIDE, [ROW]),
        Table("who is right", ("technique", "right"), [["a quoter", "1 of 2"]]),
        Table("a second", SIDE_BY_SIDE, [ROW]),
    ]
    keep(tmp_path / "kept.json", tables)
    assert page(kept(tmp_path / "kept.json"), datetime(2026, 1, 2, tzinfo=UTC), "a machine") == (
        "2026-01-02, a machine.\n\n"
        "who is right:\n\n| technique | right |\n| --- | --- |\n| a quoter | 1 of 2 |\n\n"
        "a first; a second:\n\n"
        "| measured | median | p95 | beside it, in the same run | its median | ratio |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| ours | 3.00 ms | 250 ms | theirs | 2.00 ms | 1.50 |\n"
        "| ours | 3.00 ms | 250 ms | theirs | 2.00 ms | 1.50 |\n"
    )


def test_the_machine_is_told_by_what_it_can_do_and_by_nothing_that_names_it() -> None:
    text = machine()
    assert " cores of " in text
    assert " GiB, Linux, Python 3." in text
    assert socket.gethostname() not in text
