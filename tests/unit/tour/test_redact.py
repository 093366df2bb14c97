"""What a page of the tour keeps of an answer, and what it says in the place of what differs."""

from typing import Any

import msgspec
import pytest

from roundtrip.tour.redact import (
    CUT,
    WIDTH,
    Placeholders,
    format_json,
    mask,
    mask_fields,
    mask_text,
    shape,
    shapes_agree,
    shorten,
)

OLD, NEW = "0x" + "a" * 64, "0x" + "b" * 64
KNOWN = Placeholders(
    head=1291, head_s=1_760_000_000, hashes=frozenset({OLD}), names={"127.0.0.1:41": "receiver"}
)
WALLET = "0x" + "c" * 40


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("block", 1291, 1291),
        ("block", 1292, "<block>"),
        ("fromBlock", 5000, "<block>"),
        ("count", 5000, 5000),
        ("tx", OLD, OLD),
        ("tx", NEW, "<hash>"),
        ("at", WALLET, WALLET),
        ("at", "2025-10-09T08:53:20Z", "2025-10-09T08:53:20Z"),
        ("at", "2025-10-09T08:53:21Z", "<time>"),
        ("at", "2026-11-23T00:28:44.373586Z", "<time>"),
        ("secret", "whsec_abc", "<secret>"),
        ("secret", None, None),
        ("key", "rt_abc", "<secret>"),
        ("ageS", 12, "<ageS>"),
        ("price", 12, "<price>"),
        ("is", True, True),
        ("block", True, True),
        ("url", "http://127.0.0.1:41/x", "http://receiver/x"),
    ],
)
def test_what_differs_from_run_to_run_is_a_word(name: str, value: Any, said: Any) -> None:
    assert mask({"rows": [{name: value}]}, KNOWN, ("price",)) == {"rows": [{name: said}]}


def test_a_text_says_words_for_it_too() -> None:
    text = (
        f"Up to block 1292, 9 seconds ago, at 2026-11-23 00:28:44 UTC, in {NEW}; block 1291, {OLD}, 9 days."
    )
    message = f"Up to block <block>, <time> ago, at <time>, in <hash>; block 1291, {OLD}, 9 days."
    assert mask_text(text, KNOWN) == message
    assert mask_fields("8.7 a minute, 18.7, 8.75", {"a": 8.7}, ("a", "b")) == "<a> a minute, 18.7, 8.75"


def test_lists_texts_and_calldata_are_cut() -> None:
    given = {"text": "said", "rows": [1, 2, 3], "two": [1, 2], "long": "x" * 161, "data": "0x" + "1" * 200}
    assert shorten(given, "said") == {
        "rows": [1, 2, CUT], "two": [1, 2], "long": "x" * 160 + CUT, "data": "0x" + "1" * 8 + CUT,
    }  # fmt: skip
    assert shorten({"rows": [{"text": "other"}]}, "said") == {"rows": [{"text": "other"}]}


def test_lines_are_json_in_few_lines() -> None:
    given = {
        "rows": [{"wallet": WALLET, "n": n, "of": {"a": WALLET, "b": WALLET}} for n in range(3)],
        "x": [],
    }
    json = format_json(given)
    assert msgspec.json.decode(json) == given
    # A field alone may be longer than a line; nothing here is.
    assert max(len(line) for line in json.splitlines()) <= WIDTH
    assert len(json.splitlines()) < 20
    assert format_json({"a": 1, "b": [1, 2]}) == '{"a": 1, "b": [1, 2]}'


def test_shapes_fit_as_far_as_both_say_something() -> None:
    one = shape({"a": [{"b": 1}], "c": None, "d": {"e": "x"}})
    assert shapes_agree(one, shape({"a": [], "c": {"f": 1}, "d": {"e": 5}}))
    assert not shapes_agree(one, shape({"a": [{"other": 1}], "c": None, "d": {"e": "x"}}))
    assert not shapes_agree(one, shape({"a": [{"b": 1}], "c": None, "d": {"e": "x", "more": 1}}))
    assert not shapes_agree(one, shape({"a": [{"b": 1}], "c": None}))
