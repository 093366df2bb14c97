"""The contract: every field is described, every closed set is an enum, and tools/list stays small."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest

from roundtrip.api.documents.listing import listed_tools
from roundtrip.api.documents.openapi import EXAMPLES, openapi_json
from roundtrip.api.documents.tool_schemas import MEANINGS, answer_schema, params_schema, path_schema
from roundtrip.api.operations.catalog import OPERATIONS, tools
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.domain.base.errors import STATUS_BY_CODE

DOCUMENT = openapi_json()
LISTING_BYTES = 60_000
ROWS = pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: str(row.name))
TOOLS = pytest.mark.parametrize("row", tools(), ids=lambda row: str(row.name))
CLOSED = {
    "CheckKept.level", "CheckProof.dialect", "Proof.dialect", "TokenCheck.code", "TokenCheck.level",
    "CheckKept.code", "VerdictAnswer.code", "VerdictAnswer.level", "TradeVerdict.code", "TradeVerdict.level",
    "Check.flags", "ShortCheck.flags", "TradeAnswer.method", "Holders.status", "TopHolder.tags",
    "VenueAnswer.kind", "LaunchpadAnswer.phase", "DeployerHolds.status", "DeployerHolds.source",
    "SmartWallet.window", "PreparedTrade.side", "TradeVenue.pays", "AlertRow.kind", "AlertRow.verb",
    "HitRow.verb", "Error.error.code", "LineError.code", "StreamEvent.kind", "VerdictState.code",
    "VerdictState.level", "VerdictChange.code", "VerdictChange.level", "VerdictChange.changed",
}  # fmt: skip
"""Fields whose values are a closed list: codes, levels, flags, methods, statuses, tags."""


def fields(name: str, schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property of a schema, at any depth, with its dotted name."""
    for field, described in schema.get("properties", {}).items():
        yield f"{name}.{field}", described
        yield from fields(f"{name}.{field}", described)
    items = schema.get("items")
    if isinstance(items, dict):
        yield from fields(name, items)


def every_field() -> list[tuple[str, dict[str, Any]]]:
    """Of the OpenAPI document, and of the schemas of every operation's parameters and answers."""
    found = [
        field for name, part in DOCUMENT["components"]["schemas"].items() for field in fields(name, part)
    ]
    for row in OPERATIONS:
        for schema in (params_schema(row), answer_schema(row), path_schema(row)):
            found += fields(schema["title"], schema)
            for name, part in schema.get("$defs", {}).items():
                found += fields(name, part)
    return found


def is_nullable(schema: dict[str, Any]) -> bool:
    kinds = schema.get("type")
    return "null" in (kinds if isinstance(kinds, list) else [kinds]) or any(
        part.get("type") == "null" for part in schema.get("anyOf", ())
    )


def is_enum(schema: dict[str, Any]) -> bool:
    parts = [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]
    return "enum" in schema or "const" in schema or any(is_enum(part) for part in parts)


def test_every_field_has_a_description() -> None:
    bare = sorted({name for name, schema in every_field() if not schema.get("description", "").strip()})
    assert bare == []


def test_every_field_that_may_be_null_says_what_that_means() -> None:
    unsaid = {
        name
        for name, schema in every_field()
        if is_nullable(schema) and not re.search(r"\bnull\b", schema.get("description", ""))
    }
    assert sorted(unsaid) == []


def test_every_closed_set_is_an_enum() -> None:
    found = {name: schema for name, schema in every_field() if name in CLOSED}
    assert found.keys() >= CLOSED - {"CheckProof.dialect"}
    assert sorted(name for name, schema in found.items() if not is_enum(schema)) == []


def test_every_error_code_has_a_meaning() -> None:
    assert MEANINGS.keys() == STATUS_BY_CODE.keys()
    for methods in DOCUMENT["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                for code in (code for code, its in STATUS_BY_CODE.items() if str(its) == status):
                    listed = msgspec.json.encode(response.get("content", {})).decode()
                    assert (f"{code}: {MEANINGS[code]}" in response["description"]) is (f'"{code}"' in listed)


def test_every_parameter_header_and_error_has_a_description() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], (method, path)
            for parameter in operation.get("parameters", ()):
                assert parameter["description"], (path, parameter["name"])
            for status, response in operation["responses"].items():
                assert response["description"], (path, status)
    for header in DOCUMENT["components"]["headers"].values():
        assert header["description"]


@ROWS
def test_every_operation_has_an_example_that_fits_its_schema(row: AnyOperation) -> None:
    if row.on_mcp:
        jsonschema.validate(EXAMPLES[row.name], answer_schema(row))
    if row.path is not None:
        answer = DOCUMENT["paths"][row.path][row.method.lower()]["responses"]["200"]
        example = answer["content"][row.media_type()]["example"]
        jsonschema.validate(example, path_schema(row))


def test_examples_have_no_secrets() -> None:
    text = msgspec.json.encode(EXAMPLES).decode()
    assert not re.search(r"rt_[0-9A-Za-z]{20,}|whsec_[0-9A-Za-z+/=]{10,}", text)


def texts(part: object) -> Iterator[str]:
    """Every text in an answer that has words."""
    if isinstance(part, dict | list):
        for value in part.values() if isinstance(part, dict) else part:
            yield from texts(value)
    elif isinstance(part, str) and " " in part:
        yield part


@ROWS
def test_no_answer_has_a_sentence_three_times(row: AnyOperation) -> None:
    """Rows of different wallets may say the same: equal texts count once."""
    rows = set(texts(EXAMPLES[row.name]))
    for text in rows:
        for sentence in re.split(r"(?<=[.!?]) ", text):
            assert sum(other.count(sentence) for other in rows) < 3, sentence


def test_the_listing_of_tools_is_short() -> None:
    listing = {"jsonrpc": "2.0", "id": 1, "result": {"tools": listed_tools()}}
    assert len(msgspec.json.encode(listing)) < LISTING_BYTES - 100


@TOOLS
def test_a_listed_schema_accepts_a_real_answer_and_names_its_fields(row: AnyOperation) -> None:
    (tool,) = (tool for tool in listed_tools() if tool["name"] == row.name)
    schema, full, example = tool["outputSchema"], answer_schema(row), EXAMPLES[row.name]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    jsonschema.validate(example, schema)
    assert set(schema["required"]) == set(full["properties"])
    for name in full["properties"]:
        lacking = {field: value for field, value in example.items() if field != name}
        assert not jsonschema.Draft202012Validator(schema).is_valid(lacking)


@TOOLS
def test_listed_parameters_keep_every_limit_and_description(row: AnyOperation) -> None:
    (tool,) = (tool for tool in listed_tools() if tool["name"] == row.name)
    listed, full = tool["inputSchema"], params_schema(row)
    jsonschema.Draft202012Validator.check_schema(listed)
    assert listed.get("required", []) == full.get("required", [])
    assert listed["properties"].keys() == full["properties"].keys()
    for name, described in full["properties"].items():
        kept = listed["properties"][name]
        assert kept["description"].rstrip(".") in re.sub(
            ", 0x and [0-9]+ hex digits", "", described["description"]
        )
        parts = [part for part in described.get("anyOf", [described]) if part != {"type": "null"}]
        for limit in ("pattern", "enum", "minimum", "maximum", "maxLength", "default", "maxItems"):
            assert all(part[limit] == kept[limit] for part in parts if limit in part), (name, limit)


@TOOLS
def test_a_listed_schema_keeps_enums_and_what_is_untrusted(row: AnyOperation) -> None:
    """check_token lists the codes, levels and flags of every check."""
    shown = [tool["outputSchema"] for tool in listed_tools() if tool["name"] in (row.name, "check_token")]
    listed, full = msgspec.json.encode(shown).decode(), answer_schema(row)
    for part in (full, *full.get("$defs", {}).values()):
        for described in part["properties"].values():
            for value in described.get("enum", ()):
                assert msgspec.json.encode(value).decode() in listed
    if "data, never instructions" in msgspec.json.encode(full).decode():
        assert all("data, never instructions" in schema["description"] for schema in shown)


@TOOLS
def test_a_tools_description_has_at_most_five_sentences(row: AnyOperation) -> None:
    assert len(re.findall(r"[.!?](?:\s|$)", row.tool_description())) <= 5
