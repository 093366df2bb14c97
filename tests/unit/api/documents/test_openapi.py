"""The OpenAPI document against the table, and against the specification's words."""

from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from roundtrip.api.documents.about import ABOUT, INSTRUCTIONS
from roundtrip.api.documents.llms_txt import llms_txt
from roundtrip.api.documents.openapi import openapi_json
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import COMMON_CODES, AnyOperation
from roundtrip.domain.base.errors import STATUS_BY_CODE

DOCUMENT = openapi_json()
WITH_PATH = [row for row in OPERATIONS if row.path is not None]
ROWS = pytest.mark.parametrize("row", WITH_PATH, ids=lambda row: str(row.name))
OWN = {"rate_limited", "daily_limit", "bad_key", "internal"}
SPECIFIED = {
    "check_token": {"bad_address", "upstream", "busy", "budget_spent"},
    "token_holders": {
        "bad_address", "not_a_token", "upstream", "holders_failed", "busy", "budget_spent", "holders_busy",
        "holders_budget", "holders_no_archive",
    },
    "simulate_transaction": {"bad_input", "bad_json", "busy", "budget_spent"},
    "prepare_buy": {"bad_input", "not_a_token", "no_route", "would_fail", "too_small"},
    "prepare_sell": {"bad_input", "no_route", "nothing_to_sell", "would_fail"},
}  # fmt: skip
"""What the specification lists, beside what every counted operation has."""


def documented(row: AnyOperation) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][row.path][row.method.lower()]
    return found


def test_it_is_openapi_of_version_one() -> None:
    assert DOCUMENT["openapi"].startswith("3.1")
    assert DOCUMENT["info"]["version"] == "1"
    assert "written by strangers" in DOCUMENT["info"]["description"]
    assert "treat it as a no" in DOCUMENT["info"]["description"]


def test_every_operation_with_a_path_is_in_it_and_nothing_else() -> None:
    found = {(method.upper(), path) for path, one in DOCUMENT["paths"].items() for method in one}
    assert found == {(row.method, row.path) for row in WITH_PATH} | {("GET", "/v1/tools.json")}


def test_every_operation_has_a_tag_that_is_described() -> None:
    used = [operation["tags"] for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    assert {len(tags) for tags in used} == {1}
    described = {tag["name"]: tag["description"] for tag in DOCUMENT["tags"]}
    assert {tag for tags in used for tag in tags} == described.keys()
    assert all(described.values())


def test_every_reference_leads_somewhere_and_every_part_is_used() -> None:
    refs: set[str] = set()

    def walk(part: object) -> None:
        if isinstance(part, dict):
            refs.update(value for key, value in part.items() if key == "$ref")
            for value in part.values():
                walk(value)
        elif isinstance(part, list):
            for value in part:
                walk(value)

    walk(DOCUMENT)
    components = DOCUMENT["components"]
    schemas = {f"#/components/schemas/{name}" for name in components["schemas"]}
    headers = {f"#/components/headers/{name}" for name in components["headers"]}
    assert refs <= schemas | headers
    assert schemas <= refs
    for schema in components["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


@ROWS
def test_an_operation_lists_its_codes_by_status(row: AnyOperation) -> None:
    listed: set[str] = set()
    for status, response in documented(row)["responses"].items():
        if status == "200":
            continue
        reference, narrowed = response["content"]["application/json"]["schema"]["allOf"]
        assert reference == {"$ref": "#/components/schemas/Error"}
        codes = narrowed["properties"]["error"]["properties"]["code"]["enum"]
        assert {STATUS_BY_CODE[code] for code in codes} == {int(status)}
        listed |= set(codes)
    assert listed == set(row.codes())
    if row.name in SPECIFIED:
        assert SPECIFIED[row.name] | OWN <= listed


@ROWS
def test_a_tools_description_says_every_code_of_its_own_and_the_instructions_the_rest(
    row: AnyOperation,
) -> None:
    assert "Fails with" not in row.description
    _, _, fails = row.tool_description().lower().partition("fails with ")
    message = [word.strip(".,") for word in fails.replace(" or ", " ").split()]
    # Where bad_input is the code of an unknown argument alone, no tool names it.
    is_of_unknown = not row.params.__struct_fields__ or row.bad_params != "bad_input"
    of_http = {"internal", "bad_json"} | ({"bad_input"} if is_of_unknown else set())
    assert message == [code for code in row.codes() if code not in of_http | COMMON_CODES]
    for text in (INSTRUCTIONS, ABOUT, llms_txt()):
        assert all(code in text for code in COMMON_CODES)
    assert ("Needs a key" in row.tool_description()) is row.key


def test_an_answer_for_one_key_is_never_shared() -> None:
    row = next(one for one in OPERATIONS if one.key)
    with pytest.raises(ValueError, match="shared by everyone"):
        replace(row, shared_by=str)


@ROWS
def test_the_three_ways_in_and_the_headers(row: AnyOperation) -> None:
    operation = documented(row)
    answer = operation["responses"]["200"]
    if row.counts == "never":
        assert operation["security"] == []
        assert answer["headers"] == {}
        return
    assert operation["security"][-2:] == [{"bearer": []}, {"apiKey": []}]
    assert (operation["security"][0] == {}) is not row.key
    headers = {"x-ratelimit-limit", "x-ratelimit-remaining"} | ({"x-cache"} if row.shared_by else set())
    assert set(answer["headers"]) == headers
    assert operation["responses"]["429"]["headers"]["retry-after"]["required"] is True


def test_a_simulation_needs_somebody_to_call() -> None:
    body = DOCUMENT["paths"]["/v1/simulate"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    fits = jsonschema.Draft202012Validator({**body, "components": DOCUMENT["components"]})
    here = "0x" + "1" * 40
    for good in ({"from": here, "to": here}, {"from": here, "calls": [{"to": here}]}):
        assert fits.is_valid(good)
    for bad in ({"from": here}, {"from": here, "to": None}, {"to": here}, {"from": here, "calls": []}):
        assert not fits.is_valid(bad)


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: str(row.name))
def test_language_models_are_told_of_every_operation(row: AnyOperation) -> None:
    text = llms_txt()
    if row.path is not None:
        assert f"`{row.method} {row.path}`" in text
    assert (f"- `{row.name}`: {row.tool_description()}" in text) is row.on_mcp


def test_language_models_are_told_the_rules() -> None:
    text = llms_txt()
    assert text.startswith("# roundtrip\n\n> ")
    for rule in ("written by strangers", "identified by its address", "treat it as a no", "POST /v1/keys"):
        assert rule in text
