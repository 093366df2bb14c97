"""A book as bytes, and bytes that are none."""

import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.holders.book import HolderBook, HolderColumns, dump, load
from unit.domain.tokens import ALL, ANN, AT_S, BOB, CAT, CURVE, folded, minted, tx

QUICK = settings(max_examples=200, deadline=None)


def a_book() -> HolderBook:
    into_the_pool, bought = tx((ANN, CURVE, ALL // 100), block=3), tx((CURVE, BOB, 9), buys=9, block=4)
    book = folded(minted(), into_the_pool, bought, tx((BOB, CAT, 2)))
    book.advance_to(BlockRef(9, "0x" + "ab" * 32, AT_S))
    book.unreadable = 3
    return book


def test_a_book_is_the_same_as_what_was_written_down() -> None:
    book = a_book()
    assert load(dump(book)) == book
    assert load(dump(folded())) == folded()
    # In whatever order its wallets came.
    turned = replace_wallets(book, dict(reversed(book.wallets.items())))
    assert dump(turned) == dump(book)


def replace_wallets(book: HolderBook, wallets: dict[Address, HolderColumns]) -> HolderBook:
    other = load(dump(book))
    other.wallets = wallets
    return other


def with_head(data: bytes, **changed: object) -> bytes:
    """The same with something else in its first line."""
    head, rest = zlib.decompress(data).split(b"\n", 1)
    answer = {**json.loads(head), **changed}
    kept = {name: value for name, value in answer.items() if value is not LEFT_OUT}
    return zlib.compress(json.dumps(kept).encode() + b"\n" + rest)


LEFT_OUT = object()
TEXTS: list[object] = [None, 5, ["x"]]
LISTS: list[object] = [None, 5, "x", [5], [None], {"a": "b"}]
WHOLES: list[object] = ["x", 1.5, True, [], [1]]
WINDOWS: list[object] = [
    [],
    5,
    "x",
    [1, 2],
    [1, 2, 3, 4, [], [], []],
    [1, 2, 3, 4, ["x"], [], [], []],
    [1, 2, 3, 4, ["x"], [5], ["x"], [1]],
]
STRANGE: dict[str, list[object]] = {
    "version": [None, 0, 1, 2, 3, 4, 5, 7, "6", True],
    "rows": [None, -1, 4, 6, 10**9, "4", True],
    "token": TEXTS,
    "pools": LISTS,
    "beside": LISTS,
    "venues": LISTS,
    "lost_venues": [None, 1, [], {"0x1": None}, {"0x1": "1"}, {"0x1": True}],
    "insiders": LISTS,
    "first_number": [None, *WHOLES],
    "launch_number": WHOLES,
    "block": [5, "x", [], [1, "x"], [1, "x", 2, 3], ["1", "x", 2], [1, 2, 3]],
    "counts": [None, 5, [], [1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 3, "4"]],
    "ledgers": [None, 5, [1], {"x": 5}, {"x": [1]}, {"x": [1, 2, 3, 4, 5, "6"]}],
    "found": WINDOWS,
    "first": WINDOWS,
    "recent": [None, 5, "x", [5], *([window] for window in WINDOWS)],
    "quiet": [
        None,
        5,
        "x",
        [5],
        [["0x1"]],
        [[5, [1, 2, 3, 4, [], [], [], []]]],
        *([[["0x1", one]]] for one in WINDOWS),
    ],
    "large": WINDOWS,
    "sums": [None, 5, [], [1], [1, 2, 3], [1, "2"]],
    "moved_to": [None, 5, [1], {"x": 5}, {"x": {"y": "1"}}, {"x": [1]}],
    "parked": [None, 5, [], [1, [], []], [1, ["x"], [], []], [1, ["x"], [1], ["1"]], ["1", [], [], []]],
    "settled": [None, 0, 1, "true", []],
    "minutes": [None, 5, [], [[1]], [[1], []], [["1"], [1]], [1, 1]],
    "hours": [None, [], [[1], [1], [1]], [[1], [1], [], 1], [[1], [1], ["1"], 1], [[], [], [], "1"]],
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_first_line_that_is_none_is_refused(name: str) -> None:
    data = dump(a_book())
    assert load(with_head(data)) == a_book()
    for value in [*STRANGE[name], LEFT_OUT]:
        with pytest.raises(ValueError, match=r"."):
            load(with_head(data, **{name: value}))
    with pytest.raises(ValueError, match="no holder book"):
        load(with_head(data, more=1))


def test_bytes_that_are_no_book_are_refused() -> None:
    data = dump(a_book())
    plain = zlib.decompress(data)
    strange = [b"", b"book", data[:-1], data + b"\0", data + data]
    strange += [
        zlib.compress(other)
        for other in (
            b"",
            b"{}",
            b"[]\n",
            b"[" * 100_000,
            b"\xff\xff\n",
            plain[:-1],
            plain[:-1] + b"_",
            plain + b" 1",
            plain + b"\n1",
            plain.replace(b"\n", b"\n\n"),
            plain.replace(bytes.fromhex(BOB[2:]), bytes.fromhex(CAT[2:])),
        )
    ]
    for one in strange:
        with pytest.raises(ValueError, match=r"."):
            load(one)


@QUICK
@given(st.binary(max_size=200) | st.binary(max_size=200).map(zlib.compress))
def test_any_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        load(data)
