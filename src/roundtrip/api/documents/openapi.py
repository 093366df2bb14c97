"""The OpenAPI document: every operation that has a path, from the table.

``examples.json`` has one real answer for each operation, by its name, recorded from a demo by ``roundtrip
tour``; keys and secrets in it are replaced."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from roundtrip.api.documents.about import INSTRUCTIONS
from roundtrip.api.documents.tool_schemas import MEANINGS, answer_components, input_components, tools_json
from roundtrip.api.operations.catalog import GROUPS, OPERATIONS, tools
from roundtrip.api.operations.operation import EVENTS, LINES, TEXT, AnyOperation
from roundtrip.api.request import min_block
from roundtrip.domain.base.errors import STATUS_BY_CODE
from roundtrip.services.support.answer_fields import QUOTED

PATH = Path(__file__).with_name("examples.json")

EXAMPLES: dict[str, dict[str, Any]] = msgspec.json.decode(PATH.read_bytes())
"""The recorded answers; where HTTP answers a part of the tool's answer, the tool's."""


def example_of(row: AnyOperation) -> dict[str, Any]:
    """The example of an operation's HTTP answer; empty until the tour has recorded one."""
    example = EXAMPLES.get(row.name, {})
    if row.path_answer is None:
        return example
    return {name: example[name] for name in row.path_answer.__struct_encode_fields__ if name in example}


Json = dict[str, Any]

_REF = "#/components/schemas/{name}"
_SECURITY: Json = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key of this service."},
    "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "The same key."},
}
_HEADERS: dict[str, tuple[str, Json]] = {
    "x-ratelimit-limit": ("Calls allowed in any sixty seconds.", {"type": "integer", "minimum": 1}),
    "x-ratelimit-remaining": ("Calls left of those.", {"type": "integer", "minimum": 0}),
    "x-cache": (
        "hit: a shared answer that existed or was already being made. miss: made for this request.",
        {"type": "string", "enum": ["hit", "miss"]},
    ),
    "retry-after": ("Seconds to wait before the next request.", {"type": "integer", "minimum": 0}),
}
_TAGS = {
    "tokens": "Checks, holders, liquidity and the stream of events.",
    "trades": "Simulated and prepared transactions of your own wallet.",
    "accounts": "Keys and credits.",
    "watch": "Coming unlocks of liquidity.",
    "system": "The service itself.",
}
"""The groups of operations that have a path."""
_TAG_BY_NAME = {row.name: tag for tag in _TAGS for row in GROUPS[tag]}
_MIN_BLOCK: Json = {
    "name": min_block.NAME,
    "in": "header",
    "required": False,
    "description": min_block.SAID,
    "schema": {"type": "integer", "minimum": 0, "maximum": min_block.MOST},
}
_ANSWERS = {
    "application/json": "The answer.",
    LINES: "The answer: lines, each one JSON object.",
    EVENTS: "The answer: server-sent events; the schema is that of their data.",
}
_LINES_AS_TEXT: Json = {"type": "string", "description": "The same lines, if you accept only text/plain."}
_REASONS = {
    400: "The request is not valid.",
    401: "The key or the signature is not valid, or a key is needed.",
    404: "Not found.",
    409: "The request conflicts with what exists.",
    422: "The request is valid, but cannot be carried out.",
    429: "Over a limit; retry-after says how long to wait.",
    500: "An error of this service.",
    502: "The chain did not answer.",
    503: "The service is overloaded or at a limit; try again.",
}
_ERROR: Json = {
    "type": "object",
    "description": "The body of every error.",
    "properties": {
        "error": {
            "type": "object",
            "description": "What went wrong.",
            "properties": {
                "code": {
                    "type": "string",
                    "enum": list(STATUS_BY_CODE),
                    "description": "For programs. Each response lists the codes that it can have.",
                },
                "message": {"type": "string", "description": f"What is wrong, for people. {QUOTED}"},
            },
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}


def openapi_json() -> Json:
    """The body of GET /v1/openapi.json. ``x-tools``: the answers of the tools by name, for which tools/list
    has short schemas only."""
    rows = [row for row in OPERATIONS if row.path is not None]
    taken = [row.params for row in rows]
    answered = [*(row.path_answer or row.answer for row in rows), *(row.answer for row in tools())]
    input_refs, inputs = input_components(taken, _REF)
    answer_refs, answers = answer_components(answered, _REF)
    refs_by_type = dict(zip([*taken, *answered], [*input_refs, *answer_refs], strict=True))
    schemas = {**answers, **inputs}
    assert len(schemas) == len(answers) + len(inputs), "a type is both taken and answered"
    paths: dict[str, Json] = {}
    for row in rows:
        assert row.path is not None
        paths.setdefault(row.path, {})[row.method.lower()] = _build_operation(row, refs_by_type, schemas)
    for row in rows:
        if not row.has_body():
            schemas.pop(_schema_name(refs_by_type[row.params]), None)
    paths["/v1/tools.json"] = {"get": _build_tools_path()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "roundtrip", "version": "1", "description": INSTRUCTIONS},
        "servers": [{"url": "/"}],
        "tags": [{"name": tag, "description": description} for tag, description in _TAGS.items()],
        "paths": paths,
        "x-tools": {row.name: {"answer": refs_by_type[row.answer]} for row in tools()},
        "components": {
            "schemas": {"Error": _ERROR, **dict(sorted(schemas.items()))},
            "securitySchemes": _SECURITY,
            "headers": {name: _build_header(name) for name in _HEADERS},
        },
    }


def _build_operation(row: AnyOperation, refs_by_type: dict[type[msgspec.Struct], Any], schemas: Json) -> Json:
    assert row.path is not None
    parameters, body = _split_parameters(
        row, schemas[_schema_name(refs_by_type[row.params])], refs_by_type[row.params]
    )
    limits = ("x-ratelimit-limit", "x-ratelimit-remaining") if row.counts != "never" else ()
    cache = ("x-cache",) if row.shared_by is not None else ()
    answer = {
        "description": _ANSWERS[row.media_type()],
        "headers": _build_headers((*limits, *cache), required=True),
        "content": {
            row.media_type(): {
                "schema": refs_by_type[row.path_answer or row.answer],
                "example": example_of(row),
            },
            **({} if row.each is None else {TEXT: {"schema": _LINES_AS_TEXT}}),
        },
    }
    return {
        "operationId": row.name,
        "tags": [_TAG_BY_NAME[row.name]],
        "summary": row.title,
        "description": row.description,
        "security": _build_security(row),
        **({"parameters": parameters} if parameters else {}),
        **({"requestBody": body} if body else {}),
        "responses": {"200": answer, **_build_errors(row, limits)},
    }


def _split_parameters(row: AnyOperation, schema: Json, ref: Json) -> tuple[list[Json], Json | None]:
    """The operation's path and query parameters, and its request body."""
    assert row.path is not None
    in_path = re.findall(r"\{(\w+)\}", row.path)
    parameters = []
    for name, field_schema in schema["properties"].items():
        location = "path" if name in in_path else "query" if name in row.query else None
        if location is not None:
            without_description = {key: value for key, value in field_schema.items() if key != "description"}
            parameters.append(
                {
                    "name": name, "in": location, "required": location == "path",
                    "description": field_schema.get("description", ""), "schema": without_description,
                }
            )  # fmt: skip
    if row.takes_min_block:
        parameters.append(_MIN_BLOCK)
    if not row.has_body():
        return parameters, None
    if row.needs_one_of:
        ref = {"allOf": [ref], "anyOf": [{"required": [name]} for name in row.needs_one_of]}
    return parameters, {"required": True, "content": {"application/json": {"schema": ref}}}


def _build_errors(row: AnyOperation, limits: tuple[str, ...]) -> Json:
    by_status: dict[int, list[str]] = {}
    for code in row.codes():
        by_status.setdefault(STATUS_BY_CODE[code], []).append(code)
    return {
        str(status): {
            "description": " ".join((_REASONS[status], *(f"{code}: {MEANINGS[code]}." for code in codes))),
            "headers": {
                **_build_headers(limits, required=status == 429),
                **_build_headers(
                    ("retry-after",) if status in (429, 502, 503) else (), required=status == 429
                ),
            },
            "content": {"application/json": {"schema": _narrow_error(codes)}},
        }
        for status, codes in sorted(by_status.items())
    }


def _narrow_error(codes: Iterable[str]) -> Json:
    code = {"type": "string", "enum": list(codes)}
    narrowed = {"properties": {"error": {"properties": {"code": code}}}}
    return {"allOf": [{"$ref": _REF.format(name="Error")}, narrowed]}


def _build_security(row: AnyOperation) -> list[Json]:
    """Alternative security requirements: no key where none is needed or looked at, and a key where calls are
    counted with it."""
    if row.ignores_key or (row.counts == "never" and not row.key):
        return []
    schemes: list[Json] = [{"bearer": []}, {"apiKey": []}]
    return schemes if row.key else [{}, *schemes]


def _build_headers(names: Iterable[str], required: bool) -> Json:
    return {name: _build_header(name, required) if required else _reference_header(name) for name in names}


def _reference_header(name: str) -> Json:
    return {"$ref": f"#/components/headers/{name}"}


def _build_header(name: str, required: bool = False) -> Json:
    description, schema = _HEADERS[name]
    return {"description": description, **({"required": True} if required else {}), "schema": schema}


def _schema_name(ref: Json) -> str:
    return str(ref["$ref"]).rsplit("/", 1)[1]


def _build_tools_path() -> Json:
    function = {
        "type": "object",
        "description": "The function definition.",
        "properties": {
            "name": {"type": "string", "description": "Name of the tool."},
            "description": {"type": "string", "description": "What it does, its limits and error codes."},
            "parameters": {"type": "object", "description": "JSON Schema of its arguments."},
        },
        "required": ["name", "description", "parameters"],
    }
    tool = {
        "type": "object",
        "properties": {
            "type": {"const": "function", "description": "Always function."},
            "function": function,
            "needsKey": {"type": "boolean", "description": "Whether it needs a key."},
            "writes": {"type": "boolean", "description": "Whether it changes something of the account."},
        },
        "required": ["type", "function", "needsKey", "writes"],
    }
    table = {
        "type": "object",
        "properties": {
            "about": {"type": "string", "description": "What the service is, and what holds for all tools."},
            "tools": {"type": "array", "items": tool, "description": "Every tool."},
        },
        "required": list(tools_json()),
    }
    content = {
        "application/json": {"schema": table, "example": {**tools_json(), "tools": tools_json()["tools"][:1]}}
    }
    return {
        "operationId": "tools",
        "tags": ["system"],
        "summary": "The table of tools",
        "description": "Returns every tool of POST /mcp as a plain function definition.",
        "security": [],
        "responses": {"200": {"description": "The table.", "content": content}},
    }
