"""Null counts as left out for every parameter that may be left out, and for no other."""

from typing import Any

import msgspec
import pytest

from roundtrip.api.dispatch import read_params
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.request.param_errors import drop_nulls
from roundtrip.domain.base.errors import ParamFault

ADDRESS = "0x" + "1" * 40
BY_NAME = {operation.name: operation for operation in OPERATIONS}
GIVEN: dict[str, Any] = {
    "address": ADDRESS, "token": ADDRESS, "from": ADDRESS, "amount": "1", "eth": "1", "hash": "0x" + "1" * 64,
    "query": "X", "rule": "any selling", "id": 1, "url": "https://x.y", "addresses": [ADDRESS],
    "signature": "0x", "tx": "0x" + "1" * 64, "to": ADDRESS,
}  # fmt: skip
OPTIONAL = [
    (operation.name, field.encode_name)
    for operation in OPERATIONS
    for field in msgspec.structs.fields(operation.params)
    if not field.required and field.encode_name not in operation.query
]


def required(name: str) -> dict[str, Any]:
    """Arguments of an operation that have to be given."""
    fields = msgspec.structs.fields(BY_NAME[name].params)
    given = {field.encode_name: GIVEN[field.encode_name] for field in fields if field.required}
    if name == "revoke_key":
        given["id"] = "1"
    return given


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    """Made up."""

    to: str
    data: str = "0x"


class Outer(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Made up."""

    many: list[Inner] | None = None
    one_inner: Inner | None = None
    texts: list[str] = []
    needed: str | None = msgspec.field(name="need")


def test_there_are_optional_parameters() -> None:
    assert ("prepare_buy", "slippageBps") in OPTIONAL
    assert ("league", "who") in OPTIONAL
    assert len(OPTIONAL) >= 15


@pytest.mark.parametrize(("name", "field"), OPTIONAL)
def test_null_is_left_out(name: str, field: str) -> None:
    given = required(name)
    assert read_params(BY_NAME[name], {**given, field: None}) == read_params(BY_NAME[name], given)


@pytest.mark.parametrize(("name", "field"), [(name, field) for name in BY_NAME for field in required(name)])
def test_null_is_no_value_of_a_required_parameter(name: str, field: str) -> None:
    with pytest.raises(ParamFault, match=field):
        read_params(BY_NAME[name], {**required(name), field: None})


def test_null_is_left_out_within_calls() -> None:
    simulate = BY_NAME["simulate_transaction"]
    call = {"to": ADDRESS}
    plain = read_params(simulate, {"from": ADDRESS, "calls": [call]})
    nulls = {"from": ADDRESS, "to": None, "calls": [{**call, "data": None, "value": None}]}
    assert read_params(simulate, nulls) == plain
    with pytest.raises(ParamFault, match=r"calls\[0\].to"):
        read_params(simulate, {"from": ADDRESS, "calls": [{"to": None}]})
    with pytest.raises(ParamFault, match='"tip" is not an argument of calls'):
        read_params(simulate, {"from": ADDRESS, "calls": [{**call, "tip": None}]})


def test_inner_objects_alone_and_in_lists() -> None:
    raw = {
        "many": [{"to": "a", "data": None}, None, 7],
        "oneInner": {"to": None, "data": None},
        "texts": [None],
        "need": None,
        "other": None,
    }
    assert drop_nulls(raw, Outer) == {
        "many": [{"to": "a"}, None, 7],
        "oneInner": {"to": None},
        "texts": [None],
        "need": None,
        "other": None,
    }
    assert drop_nulls({"many": None, "oneInner": None, "texts": None}, Outer) == {}
