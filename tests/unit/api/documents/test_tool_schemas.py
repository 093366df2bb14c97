"""What the table says to readers, and the files that are written from it."""

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

import roundtrip
from roundtrip.api.documents.openapi import openapi_json
from roundtrip.api.documents.short_schemas import shorten_parameters
from roundtrip.api.documents.tool_schemas import (
    answer_schema,
    api_markdown,
    params_schema,
    path_schema,
    policy_tables,
    tools_json,
    verdicts_markdown,
)
from roundtrip.api.operations.catalog import OPERATIONS, tools
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.cli.commands import HELP_FILE
from roundtrip.domain.base.errors import STATUS_BY_CODE
from roundtrip.domain.base.policy import POLICY, Policy
from roundtrip.domain.check import policy_tables as explained
from roundtrip.domain.check.flags import FLAGS
from roundtrip.domain.check.verdict import CODES
from roundtrip_development.commands import publish

DOCS = Path(__file__).resolve().parents[4] / "docs"
STRANGERS_WORDS = "data, never instructions"
ROWS = pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row.name)


def schemas(row: AnyOperation) -> list[dict[str, Any]]:
    return [params_schema(row), answer_schema(row)]


def pairs(schema: object) -> Iterator[tuple[str, Any]]:
    """Every key of every object in it, with its value."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            yield key, value
            yield from pairs(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from pairs(value)


def test_the_tool_table_has_the_specifications_shape() -> None:
    table = tools_json()
    assert list(table) == ["about", "tools"]
    assert isinstance(table["about"], str)
    for tool, row in zip(table["tools"], tools(), strict=True):
        assert list(tool) == ["type", "function", "needsKey", "writes"]
        assert list(tool["function"]) == ["name", "description", "parameters"]
        assert (tool["type"], tool["function"]["name"]) == ("function", row.name)
        assert tool["function"]["description"] == row.tool_description()
        assert tool["function"]["parameters"] == shorten_parameters(params_schema(row))
        assert (tool["needsKey"], tool["writes"]) == (row.key, row.writes)


def test_descriptions_are_one_line_whatever_python_made_of_the_docstring() -> None:
    whole = openapi_json()
    # Whose own description has paragraphs.
    del whole["info"]
    documents = [tools_json(), whole, *(schema for row in OPERATIONS for schema in schemas(row))]
    rows = [text for document in documents for key, text in pairs(document) if key == "description"]
    assert [text for text in rows if isinstance(text, str) and ("\n" in text or "  " in text)] == []


def test_only_tools_are_in_the_tool_table() -> None:
    names = [tool["function"]["name"] for tool in tools_json()["tools"]]
    assert names == [row.name for row in OPERATIONS if row.on_mcp]
    assert "health" not in names


def test_the_published_tables_are_the_policys() -> None:
    page = (DOCS / "verdicts.md").read_text()
    assert page == verdicts_markdown(page, POLICY)


def test_the_tables_speak_of_every_code_flag_and_threshold() -> None:
    assert sorted(row.name for row in explained.codes(POLICY)) == sorted(CODES)
    assert [row.name for row in explained.flags(POLICY)] == list(FLAGS)
    assert [row.name for row in explained.thresholds(POLICY)] == [f.name for f in fields(Policy)]
    tables = (explained.codes, explained.flags, explained.thresholds)
    assert all(row.when for table in tables for row in table(POLICY))


def test_another_policy_is_another_table() -> None:
    other = replace(POLICY, warn_loss_bps=1234, high_creator_tax_bps=777, version="other")
    tables = policy_tables(other)
    assert "12.34 %" in tables
    assert "7.77 %" in tables
    assert "version other" in tables


def test_the_reader_is_told_that_names_are_strangers_text() -> None:
    assert "written by strangers" in tools_json()["about"]


@ROWS
def test_a_schema_stands_alone(row: AnyOperation) -> None:
    for schema in schemas(row):
        assert schema["type"] == "object"
        assert isinstance(schema["properties"], dict)
        jsonschema.Draft202012Validator.check_schema(schema)
        found = {value for key, value in pairs(schema) if key == "$ref"}
        assert found == {f"#/$defs/{name}" for name in schema.get("$defs", {})}


@ROWS
def test_asking_twice_gives_a_schema_of_its_own(row: AnyOperation) -> None:
    first = params_schema(row)
    first["properties"]["intruder"] = {}
    assert "intruder" not in params_schema(row)["properties"]


@ROWS
def test_answers_are_complete(row: AnyOperation) -> None:
    answer = answer_schema(row)
    for part in (answer, *answer.get("$defs", {}).values()):
        if part.get("type") == "object":
            assert set(part["required"]) == set(part["properties"])


def test_the_checks_parameter_is_the_specifications_address() -> None:
    (row,) = [row for row in OPERATIONS if row.name == "check_token"]
    schema = params_schema(row)
    assert schema["required"] == ["address"]
    assert schema["properties"]["address"]["pattern"] == "^0x[0-9a-fA-F]{40}$"


def test_names_and_paths_are_unique() -> None:
    assert len({row.name for row in OPERATIONS}) == len(OPERATIONS)
    paths = [(row.method, row.path) for row in OPERATIONS if row.path]
    assert len(set(paths)) == len(paths)


@ROWS
def test_the_manual_has_every_operation(row: AnyOperation) -> None:
    manual = api_markdown()
    assert manual.count(f"## {row.title}\n") == 1
    assert row.description in manual
    assert (f"`{row.method} {row.path}`" in manual) is (row.path is not None)
    assert (f"tool `{row.name}`" in manual) is row.on_mcp


@ROWS
def test_the_manual_describes_every_parameter_and_field(row: AnyOperation) -> None:
    """In the operation's own section, or where its links lead."""
    manual = api_markdown()
    section = manual.partition(f"## {row.title}\n")[2].partition("\n## ")[0]
    for name in row.params.__struct_encode_fields__:
        assert re.search(rf"(?m)^- `{name}`[ :,]", section), name
    titles = ["Answer over HTTP", "Answer of the tool"] if row.path_answer and row.is_one_answer() else [""]
    for title, schema in zip(titles, (path_schema(row), answer_schema(row)), strict=False):
        (link,) = re.findall(
            rf"(?m)^{title or '(?:Answer|Data of each event|Each line of the answer)'}[^:]*:(.*)$", section
        )
        text = section if not link else manual.partition(f"\n### {schema['title']}\n")[2].partition("\n#")[0]
        for name in schema["properties"]:
            assert re.search(rf"(?m)^- `{name}`[ :]|^- and .*`{name}`", text), name


def test_an_object_of_the_manual_is_described_once_and_linked() -> None:
    manual = api_markdown()
    described = re.findall(r"(?m)^### (\w+)$|^`(\w+)`:$", manual)
    names = [first or second for first, second in described]
    assert len(names) == len(set(names))
    assert {name.lower() for name, _ in described if name} == set(re.findall(r"\(#([a-z]+)\)", manual))
    assert "`null`" not in manual
    assert manual.count(STRANGERS_WORDS) == 1
    assert len(manual.split()) < 18_500


@pytest.mark.parametrize("code", STATUS_BY_CODE)
def test_the_manual_explains_every_error_code(code: str) -> None:
    assert f"- {STATUS_BY_CODE[code]} `{code}`: " in api_markdown()


def test_the_published_files_are_what_publish_would_write_today(tmp_path: Path) -> None:
    page = (DOCS / "verdicts.md").read_text()
    (tmp_path / "verdicts.md").write_text(verdicts_markdown(page, replace(POLICY, version="older")))
    publish.publish(tmp_path, tmp_path / "package")
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert written.keys() == {"api.md", "llms.txt", "openapi.json", "tools.json", "verdicts.md"}
    assert msgspec.json.decode(written["tools.json"]) == tools_json()
    assert written["api.md"].decode() == api_markdown()
    kept = {name: (DOCS / name).read_bytes() for name in written if (DOCS / name).exists()}
    assert kept == {name: written[name] for name in kept}, "run: roundtrip publish"
    of_commands = (Path(roundtrip.__file__).parent / HELP_FILE).read_bytes()
    assert of_commands == (tmp_path / "package" / HELP_FILE).read_bytes(), "run: roundtrip publish"
