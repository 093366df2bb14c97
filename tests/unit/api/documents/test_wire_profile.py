"""Published schemas stay in the subset of JSON Schema that every client's library reads."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest

from roundtrip.api.dispatch import read_params
from roundtrip.api.documents.listing import listed_tools
from roundtrip.api.documents.openapi import openapi_json
from roundtrip.api.documents.tool_schemas import (
    answer_schema,
    params_schema,
    path_schema,
    publish_answer,
    publish_input,
    tools_json,
)
from roundtrip.api.operations.catalog import OPERATIONS, tools
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.domain.base.errors import ParamFault
from support.schema_readers import READERS, walk

LISTED = {tool["name"]: tool for tool in listed_tools()}
TABLE = {tool["function"]["name"]: tool["function"] for tool in tools_json()["tools"]}
DOCUMENT = openapi_json()
TOOLS = pytest.mark.parametrize("name", [row.name for row in tools()])
ROWS = pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: str(row.name))
REFUSED = ("additionalProperties", "not", "exclusiveMinimum", "exclusiveMaximum", "oneOf", "prefixItems")
NULL = {"type": "null"}
REQUIRED = {
    "check_token": {"address"}, "token_holders": {"address"}, "smart_money": {"address"},
    "launch_bundle": {"address"}, "wallet_history": {"address"}, "linked_wallets": {"address"},
    "explain_transaction": {"hash"}, "look_up": {"query"}, "simulate_transaction": {"from", "to"},
    "prepare_buy": {"token", "from", "amount"}, "prepare_sell": {"token", "from"},
    "practice_buy": {"token", "eth"}, "practice_sell": {"token"}, "follow_wallet": {"address"},
    "unfollow_wallet": {"address"}, "create_rule": {"rule"}, "test_rule": {"rule"}, "delete_rule": {"id"},
    "set_webhook": {"url"}, "remove_channel": {"id"},
}  # fmt: skip
"""The required parameters of the specification's tool table; other tools have none."""


def inputs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of parameters on the wire."""
    for name, tool in LISTED.items():
        yield f"tools/list {name}", tool["inputSchema"]
        yield f"tools.json {name}", TABLE[name]["parameters"]
    for row in OPERATIONS:
        yield f"schema of {row.name}", params_schema(row)
    for path, methods in DOCUMENT["paths"].items():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                yield f"{path} {parameter['name']}", parameter["schema"]
    for name, schema in DOCUMENT["components"]["schemas"].items():
        if name.endswith("Params"):
            yield f"openapi {name}", schema


def answers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of an answer on the wire."""
    for name, tool in LISTED.items():
        yield f"tools/list {name}", tool["outputSchema"]
    for row in OPERATIONS:
        yield f"schema of {row.name}", answer_schema(row)
        yield f"schema of {row.name}", path_schema(row)
    for name, schema in DOCUMENT["components"]["schemas"].items():
        yield f"openapi {name}", schema


def test_no_published_schema_has_what_a_client_refuses() -> None:
    for where, schema in (*inputs(), *answers()):
        for path, part in walk(schema):
            assert not part.keys() & set(REFUSED), (where, path)
            assert isinstance(part.get("type", ""), str), (where, path)
            assert None not in part.get("enum", ()), (where, path)
            assert "\\Z" not in part.get("pattern", ""), (where, path)
            assert "\\A" not in part.get("pattern", ""), (where, path)


def test_every_openapi_schema_is_in_the_subset_where_it_stands() -> None:
    """Bodies, errors and headers, too, which are no components."""
    text = msgspec.json.encode({key: part for key, part in DOCUMENT.items() if key != "info"}).decode()
    for keyword in (*REFUSED, "\\\\Z"):
        assert f'"{keyword}":' not in text


def test_no_parameter_is_null() -> None:
    for where, schema in inputs():
        for path, part in walk(schema):
            assert part != NULL, (where, path)
            assert part.get("default", "") is not None, (where, path)
            assert "anyOf" not in part, (where, path)
            assert part.get("type") or part.get("$ref"), (where, path)


@pytest.mark.parametrize("reader", READERS)
@TOOLS
def test_the_parameters_of_a_tool_load(reader: str, name: str) -> None:
    assert READERS[reader](LISTED[name]["inputSchema"]) == []
    assert READERS[reader](TABLE[name]["parameters"]) == []


@pytest.mark.parametrize(
    "part",
    [
        {"type": ["string", "null"]},
        {"type": "string", "not": {"pattern": "^0$"}},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"enum": ["a", "b"]},
        {"type": "integer", "enum": [1, 2]},
        {"type": "string", "default": None},
        {"allOf": [{"type": "string"}]},
    ],
)
@pytest.mark.parametrize("reader", READERS)
def test_the_readers_refuse_what_the_libraries_refuse(reader: str, part: dict[str, Any]) -> None:
    assert READERS[reader]({"type": "object", "properties": {"one": part}})


def test_all_tools_are_listed_and_require_what_the_specification_requires() -> None:
    assert len(LISTED) == 36
    required = {name: set(tool["inputSchema"].get("required", ())) for name, tool in LISTED.items()}
    assert {name: names for name, names in required.items() if names} == REQUIRED
    assert {name: set(tool["parameters"].get("required", ())) for name, tool in TABLE.items()} == required


@ROWS
def test_strangers_are_refused_though_no_schema_says_so(row: AnyOperation) -> None:
    for value in ("1", None):
        with pytest.raises(ParamFault, match='"stranger" is not an argument of'):
            read_params(row, {"stranger": value})


@ROWS
def test_a_published_schema_accepts_what_the_strict_one_accepts(row: AnyOperation) -> None:
    """Same names, and every keyword that stays says the same."""
    (root,), strict = msgspec.json.schema_components([row.params], ref_template="{name}")
    full = strict[root["$ref"]]
    published = publish_input(full)
    assert published["properties"].keys() == full["properties"].keys()
    assert published.get("required") == full.get("required")
    for name, field in published["properties"].items():
        given = full["properties"][name]
        options = [given, *(part for part in given.get("anyOf", ()) if part != NULL)]
        for key in field.keys() & {"maximum", "maxLength", "minLength", "minItems", "maxItems"}:
            assert field[key] in [option.get(key) for option in options]


def test_what_is_published() -> None:
    strict = {
        "type": "object", "additionalProperties": False, "required": ["hash"],
        "properties": {
            "hash": {"type": "string", "pattern": "^0x[0-9]{2}\\Z", "not": {"pattern": "^0x00$"}},
            "not": {"description": "its own", "default": None,
                    "anyOf": [{"type": "string", "description": "inner", "maxLength": 3}, NULL]},
            "share": {"type": "number", "exclusiveMinimum": 0},
            "many": {"type": "array", "items": {"anyOf": [{"enum": ["a", "b"]}, NULL]}},
            "yes": {"enum": [True]},
        },
        "$defs": {"Inner": {"type": "object", "additionalProperties": False}},
    }  # fmt: skip
    expected = {
        "type": "object", "required": ["hash"],
        "properties": {
            "hash": {"type": "string", "pattern": "^0x[0-9]{2}$"},
            "not": {"description": "its own", "type": "string", "maxLength": 3},
            "share": {"type": "number", "minimum": 0},
            "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "yes": {"type": "boolean"},
        },
        "$defs": {"Inner": {"type": "object"}},
    }  # fmt: skip
    assert publish_input(strict) == expected
    answered = publish_answer(strict)["properties"]
    assert answered["not"]["anyOf"][1] == NULL
    assert answered["many"]["items"] == {"anyOf": [{"type": "string", "enum": ["a", "b"]}, NULL]}


@TOOLS
def test_an_answer_with_null_fits_the_listed_schema(name: str) -> None:
    """Every field that may be null in the full schema may be null in the listed one."""
    (row,) = (row for row in tools() if row.name == name)
    full, listed = answer_schema(row), LISTED[name]["outputSchema"]
    for field, described in full["properties"].items():
        if NULL in described.get("anyOf", ()):
            shown = {"$defs": listed.get("$defs", {}), **listed.get("properties", {}).get(field, {})}
            jsonschema.Draft202012Validator(shown).validate(None)
