"""/llms.txt: the service described for language models, in markdown."""

from roundtrip.api.operations.catalog import OPERATIONS, tools
from roundtrip.api.operations.operation import AnyOperation

from .about import FAILS, KEYS, SHARED, STRANGERS, UNITS, UNKNOWN, WHAT
from .prompts import PROMPTS


def llms_txt() -> str:
    """The body of GET /llms.txt."""
    lines = [
        "# roundtrip",
        "",
        f"> {WHAT}",
        "",
        "## Rules that hold everywhere",
        "",
        f"- {STRANGERS}",
        f"- {UNKNOWN}",
        f"- {UNITS}",
        f"- {SHARED}",
        f"- {FAILS}",
        '- An HTTP error is `{"error": {"code", "message"}}`; a tool error is isError with `code: message`.',
        "- A tool error that quotes text says first that strangers wrote it.",
        "- Over a limit (429), `retry-after` is the number of seconds to wait. Listing tools is "
        "never counted.",
        "",
        "## Keys",
        "",
        KEYS,
        "",
        "## Endpoints",
        "",
        *(_format_endpoint(row) for row in OPERATIONS if row.path is not None),
        "- `GET /v1/tools.json`: the tools as plain function definitions.",
        "- `GET /v1/openapi.json`: all of the above as OpenAPI 3.1.",
        "",
        "## Tools",
        "",
        "Over the model context protocol: JSON-RPC, method `tools/call`, `POST /mcp`. No "
        "`initialize` is needed.",
        "",
        *(f"- Prompt `{prompt.name}`: {prompt.description}" for prompt in PROMPTS),
        "",
        *(f"- `{row.name}`: {row.tool_description()}" for row in tools()),
    ]
    return "\n".join(lines) + "\n"


def _format_endpoint(row: AnyOperation) -> str:
    fields = [
        field if is_required else f"{field}?"
        for field, is_required in zip(row.params.__struct_encode_fields__, _required_flags(row), strict=True)
        if row.has_body() or field in row.query
    ]
    parameters = f" ({', '.join(fields)})" if fields else ""
    return f"- `{row.method} {row.path}`{parameters}: {row.title}.{' Needs a key.' if row.key else ''}"


def _required_flags(row: AnyOperation) -> list[bool]:
    fields = row.params.__struct_encode_fields__
    required = len(fields) - len(row.params.__struct_defaults__)
    return [index < required for index in range(len(fields))]
