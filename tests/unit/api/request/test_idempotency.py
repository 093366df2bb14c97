"""Idempotency keys: what is one, and that no two are meant at once."""

from dataclasses import replace

import pytest

from roundtrip.api.request.idempotency import read_idempotency_key, shown_idempotency_keys
from roundtrip.domain.base.errors import CallerFault
from unit.api.test_dispatch import PLAIN


@pytest.mark.parametrize("one", ["a", "x" * 200, "ü ~!", "7f3c-22", b"a", b" a ", "ü".encode()])
def test_what_is_one(one: object) -> None:
    text = one.decode().strip() if isinstance(one, bytes) else one
    assert read_idempotency_key((one,)) == text
    assert read_idempotency_key((one, one)) == text


@pytest.mark.parametrize(
    "one", ["", "x" * 201, "a\n", "a\x00b", "\u200b", b"", b" ", b"\xff", 5, None, ["a"], {"a": 1}, True]
)
def test_what_is_none(one: object) -> None:
    with pytest.raises(CallerFault, match="bad_input: idempotency-key must be 1 to 200 printable characters"):
        read_idempotency_key((one,))


def test_two_different_ones_are_none() -> None:
    with pytest.raises(CallerFault, match="two different"):
        read_idempotency_key(("a", b"b"))
    assert read_idempotency_key(()) is None


def test_where_they_are_found() -> None:
    headers = [(b"idempotency-key", b"a"), (b"x-api-key", b"b"), (b"idempotency-key", b"c")]
    assert shown_idempotency_keys(headers, {"idempotencyKey": "d", "other": 1}) == (b"a", b"c", "d")
    nothing: tuple[object, ...] = (None, {}, [], "idempotencyKey", {"idempotencyKey": None})
    assert [shown_idempotency_keys([], meta) for meta in nothing] == [()] * 5


def test_only_what_writes_for_a_keys_owner_is_done_once() -> None:
    with pytest.raises(ValueError, match="needs an account and a write"):
        replace(PLAIN, once=True)
    with pytest.raises(ValueError, match="needs an account and a write"):
        replace(PLAIN, once=True, key=True)
    assert "bad_input" in replace(PLAIN, once=True, key=True, writes=True).codes()
