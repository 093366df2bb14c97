"""The reference pages of operations and tools, for developers."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from roundtrip.api.documents.tool_schemas import params_schema
from roundtrip.api.operations import catalog
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import STATUS_BY_CODE


async def show_operations(visit: Visit) -> Response:
    """GET /operations: every operation over HTTP."""
    rows = [_describe_operation(operation) for operation in catalog.OPERATIONS if operation.path is not None]
    return visit.show("reference.html", is_tools=False, rows=rows)


async def show_tools(visit: Visit) -> Response:
    """GET /tools: every tool."""
    return visit.show(
        "reference.html",
        is_tools=True,
        rows=[_describe_operation(operation) for operation in catalog.tools()],
    )


def _describe_operation(operation: AnyOperation) -> Mapping[str, Any]:
    schema = params_schema(operation)
    required = {*schema.get("required", ()), *operation.needs_one_of}
    return {
        "operation": operation,
        "errors": [f"{STATUS_BY_CODE[code]} {code}" for code in operation.codes()],
        "parameters": [
            {"name": name, "is_required": name in required, "description": parameter.get("description", "")}
            for name, parameter in schema.get("properties", {}).items()
        ],
    }
