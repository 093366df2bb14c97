"""tools/list: every tool with its schemas in a short form, together under 60 KB."""

from typing import Any

from roundtrip.api.operations.catalog import tools
from roundtrip.api.operations.operation import AnyOperation

from .short_schemas import shorten_answer, shorten_parameters
from .tool_schemas import answer_schema, params_schema

Json = dict[str, Any]


def listed_tools() -> list[Json]:
    """The ``tools`` of a tools/list result, in the table's order."""
    return [_list_tool(operation) for operation in tools()]


def _list_tool(operation: AnyOperation) -> Json:
    return {
        "name": operation.name,
        "title": operation.title,
        "description": operation.tool_description(),
        "inputSchema": shorten_parameters(params_schema(operation)),
        "outputSchema": shorten_answer(answer_schema(operation)),
        "annotations": _list_hints(operation),
    }


def _list_hints(operation: AnyOperation) -> Json:
    """The protocol's hints, without those that equal its defaults or mean nothing for a tool that reads."""
    if not operation.writes:
        return {"readOnlyHint": True}
    return {"destructiveHint": operation.destroys, "idempotentHint": operation.repeatable}
