"""Documents generated from the table of operations and the policy: tools.json, docs/api.md,
docs/verdicts.md."""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from roundtrip.api.operations.catalog import OPERATIONS, tools
from roundtrip.api.operations.operation import ONCE, AnyOperation
from roundtrip.api.request import min_block
from roundtrip.domain.base.errors import STATUS_BY_CODE
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.check import policy_tables as explanations

from .about import ABOUT
from .short_schemas import shorten_parameters
from .wire_profile import publish_answer, publish_input

PUBLISHED_NAMES = {
    "AssetAmount": "Amount",
    "CallOutcomeAnswer": "CallAnswer",
    "CheckProof": "Proof",
    "ExpectedAmount": "Expected",
    "LaunchTime": "Launch",
    "RpcRequest": "Request",
    "TradeStep": "StepAnswer",
}
"""Published schema names that differ from the class names. Clients generate types from them, so they stay."""


def params_schema(operation: AnyOperation) -> dict[str, Any]:
    """The parameters of the tool as one self-contained JSON Schema object."""
    schema = _inline_schema(operation.params, input_components)
    for name in operation.query:
        del schema["properties"][name]
    if operation.tool_requires:
        schema["required"] = [*schema.get("required", ()), *operation.tool_requires]
    return schema


def answer_schema(operation: AnyOperation) -> dict[str, Any]:
    """The answer as one self-contained JSON Schema object."""
    return _inline_schema(operation.answer, answer_components)


def path_schema(operation: AnyOperation) -> dict[str, Any]:
    """The answer over HTTP as one self-contained JSON Schema object."""
    return _inline_schema(operation.path_answer or operation.answer, answer_components)


def _inline_schema(kind: type[msgspec.Struct], read: "ReadComponents") -> dict[str, Any]:
    (schema,), components = read([kind], "#/$defs/{name}")
    name = PUBLISHED_NAMES.get(kind.__name__, kind.__name__)
    body: dict[str, Any] = copy.deepcopy(components.pop(name))
    assert schema == {"$ref": f"#/$defs/{name}"}
    body.setdefault("properties", {})
    if components:
        body["$defs"] = components
    return body


Components = tuple[tuple[dict[str, Any], ...], dict[str, Any]]
"""References to types, and the types' schemas by published name."""
ReadComponents = Callable[[Iterable[type[msgspec.Struct]], str], Components]


def input_components(kinds: Iterable[type[msgspec.Struct]], ref_template: str) -> Components:
    """References to types of parameters, and their schemas as they are published."""
    return _read_components(kinds, ref_template, publish_input)


def answer_components(kinds: Iterable[type[msgspec.Struct]], ref_template: str) -> Components:
    """References to types of answers, and their schemas as they are published."""
    return _read_components(kinds, ref_template, publish_answer)


def _read_components(
    kinds: Iterable[type[msgspec.Struct]],
    ref_template: str,
    publish: Callable[[dict[str, Any]], dict[str, Any]],
) -> Components:
    """Descriptions (docstrings) are put on one line: Python 3.13 strips the indentation of docstrings,
    earlier versions do not."""
    refs, components = msgspec.json.schema_components(kinds, ref_template=ref_template)
    renamed = {
        ref_template.format(name=class_name): ref_template.format(name=name)
        for class_name, name in PUBLISHED_NAMES.items()
    }
    published: dict[str, Any] = {}
    for class_name, schema in components.items():
        name = PUBLISHED_NAMES.get(class_name, class_name)
        if "title" in schema:
            schema["title"] = name
        if "description" in schema:
            schema["description"] = " ".join(schema["description"].split())
        published[name] = publish(_rename_refs(schema, renamed))
    return tuple(_rename_refs(ref, renamed) for ref in refs), published


def _rename_refs(schema: Any, renamed: Mapping[str, str]) -> Any:
    """The schema with its references renamed."""
    if isinstance(schema, dict):
        return {
            key: renamed.get(part, part) if key == "$ref" else _rename_refs(part, renamed)
            for key, part in schema.items()
        }
    return [_rename_refs(part, renamed) for part in schema] if isinstance(schema, list) else schema


def tools_json() -> dict[str, Any]:
    """The body of GET /v1/tools.json: every tool as a plain function definition."""
    return {
        "about": ABOUT,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": operation.name,
                    "description": operation.tool_description(),
                    "parameters": shorten_parameters(params_schema(operation)),
                },
                "needsKey": operation.key,
                "writes": operation.writes,
            }
            for operation in tools()
        ],
    }


POLICY_BEGINS, POLICY_ENDS = "<!-- policy: begin -->", "<!-- policy: end -->"


EMPTY_VERDICTS = f"# Verdicts\n\n{POLICY_BEGINS}\n{POLICY_ENDS}\n"


def verdicts_markdown(page: str, policy: Policy) -> str:
    """The page with the text between its two markers regenerated from the policy. Raises ValueError: a marker
    is missing."""
    before, rest = page.split(POLICY_BEGINS)
    _, after = rest.split(POLICY_ENDS)
    return f"{before}{POLICY_BEGINS}\n{policy_tables(policy)}{POLICY_ENDS}{after}"


def policy_tables(policy: Policy) -> str:
    """Codes, flags and thresholds as tables."""
    lines = [f"Policy version {policy.version}; written by `roundtrip publish`, do not edit by hand.", ""]
    for heads, rows in (
        (("code", "level", "when (the first that is proven)"), explanations.codes(policy)),
        (("flag", "line", "when"), explanations.flags(policy)),
        (("threshold", "value", "what it is"), explanations.thresholds(policy)),
    ):
        lines += [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
        for row in rows:
            cells = (f"`{row.name}`", row.value, row.when)[: len(heads)]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _titled_schemas(operation: AnyOperation) -> list[tuple[str, dict[str, Any]]]:
    """The schemas that docs/api.md shows of one operation, with their titles."""
    parameters = ("Parameters", _inline_schema(operation.params, input_components))
    if operation.path_answer is not None and not operation.is_one_answer():
        title = "The data of each event" if operation.streams else "Each line of the answer"
        return [parameters, (title, path_schema(operation))]
    if operation.path_answer is None:
        return [parameters, ("Answer", answer_schema(operation))]
    over_http = ("Answer over HTTP", path_schema(operation))
    return [parameters, over_http, ("The tool's answer", answer_schema(operation))]


def _format_codes(operation: AnyOperation) -> str:
    return ", ".join(f"{STATUS_BY_CODE[code]} {code}" for code in operation.codes())


def api_markdown() -> str:
    """docs/api.md: every operation with its path, parameters and answer."""
    lines = [
        "# The interface, operation by operation",
        "",
        "Written by `roundtrip publish` from the one table of operations; do not edit by hand.",
        "",
    ]
    for operation in OPERATIONS:
        lines += [f"## {operation.title}", "", operation.description, ""]
        if operation.path:
            lines += [f"- HTTP: `{operation.method} {operation.path}`"]
        if operation.on_mcp:
            lines += [f"- Tool: `{operation.name}`"]
        lines += [f"- Key: {'needed' if operation.key else 'not needed'}"]
        if operation.needs_one_of:
            lines += [f"- Needs one of: {', '.join(operation.needs_one_of)}"]
        if operation.once:
            lines += [f"- Repeats: {ONCE}"]
        if operation.takes_min_block:
            lines += [f"- Header `{min_block.NAME}`, or `{min_block.META}` in `_meta`: {min_block.SAID}"]
        lines += [f"- Errors: {_format_codes(operation)}", ""]
        for title, schema in _titled_schemas(operation):
            text = msgspec.json.format(msgspec.json.encode(schema), indent=1).decode()
            lines += [f"{title}:", "", "```json", text, "```", ""]
    return "\n".join(lines).rstrip() + "\n"
