"""The documentation: how a program makes its first call, every tool with its schemas, and the pages of
``docs/``."""

import json
from collections.abc import Iterable
from html import escape
from typing import Any

import msgspec
from markupsafe import Markup
from starlette.responses import Response

from roundtrip.api.documents.openapi import EXAMPLES, example_of
from roundtrip.api.documents.tool_schemas import answer_schema, params_schema
from roundtrip.api.operations import catalog
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import STATUS_BY_CODE, CallerFault, RoundtripError
from roundtrip.domain.base.names import clean
from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.domain.verdicts.risks import Risk

from .boards import NEWEST_VERDICTS, find_good

# By the name in their path, which has no underscores: "rt_" begins a key, and keys are taken out of paths.
_TOOLS = {operation.name.replace("_", "-"): operation for operation in catalog.tools()}
_PLACEHOLDER = "0xTOKEN"
_MAX_QUERY = 100
_MAX_TEXT = 80
"""Characters of a text in an example."""
_DEEP, _MAX_FIELDS = 1, 4
"""Deeper than this, an example shows so many fields of an object."""


class ParamSchema(msgspec.Struct):
    """What a JSON Schema says of a parameter."""

    type: object = None
    pattern: str = ""
    description: str = ""
    examples: list[object] = []


class ParamsSchema(msgspec.Struct):
    """What a JSON Schema says of an operation's parameters."""

    properties: dict[str, ParamSchema] = {}
    required: list[str] = []


def _read_schema(operation: AnyOperation) -> ParamsSchema:
    return msgspec.convert(params_schema(operation), ParamsSchema)


async def show_operations(visit: Visit) -> Response:
    """GET /operations: every operation over HTTP."""
    rows = [operation for operation in catalog.OPERATIONS if operation.path is not None]
    return _show_reference(visit, rows, is_tools=False)


async def show_tools(visit: Visit) -> Response:
    """GET /tools: every tool."""
    return _show_reference(visit, catalog.tools(), is_tools=True)


def _show_reference(visit: Visit, operations: Iterable[AnyOperation], is_tools: bool) -> Response:
    rows = [_describe_operation(operation) for operation in operations]
    pages = visit.console.documents.list_for_readers()
    return visit.show("reference.html", is_tools=is_tools, rows=rows, pages=pages)


def _describe_operation(operation: AnyOperation) -> dict[str, object]:
    schema = _read_schema(operation)
    required = {*schema.required, *operation.needs_one_of}
    example = EXAMPLES.get(operation.name) if operation.path is None else example_of(operation)
    return {
        "operation": operation,
        "errors": [f"{STATUS_BY_CODE[code]} {code}" for code in operation.codes()],
        # Quotes need no escape in a text; escaped they would be a third of the page.
        "answer": Markup(escape(_to_json(shorten_example(example)), quote=False)) if example else "",  # noqa: S704
        "parameters": [
            {"name": name, "is_required": name in required, "description": parameter.description}
            for name, parameter in schema.properties.items()
        ],
    }


def shorten_example(value: Any, depth: int = 0) -> Any:
    """A recorded answer that shows its form: of each list the first entry, of a long text the beginning, of
    what lies deep the first fields."""
    match value:
        case dict() if depth > _DEEP and len(value) > _MAX_FIELDS:
            parts = list(value.items())[:_MAX_FIELDS]
            return {**{name: shorten_example(part, depth + 1) for name, part in parts}, "…": "…"}
        case dict():
            return {name: shorten_example(part, depth + 1) for name, part in value.items()}
        case [first, *others]:
            return [shorten_example(first, depth + 1), *(["…"] if others else [])]
        case str() if len(value) > _MAX_TEXT:
            return f"{value[:_MAX_TEXT]}…"
    return value


async def show_docs(visit: Visit) -> Response:
    """GET /docs: the first call in three languages, with a token that can be sold, and where the rest is;
    with ``q``: the sections that say it."""
    url = visit.console.dispatch.ctx.public_url
    query = clean(visit.query.get("q", "")[:_MAX_QUERY], _MAX_QUERY)
    if query:
        hits = visit.console.documents.search(query)
        return visit.show(
            "docs_found.html", query=query, hits=hits, pages=visit.console.documents.list_for_readers()
        )
    check_url = f"{url}/v1/check/{await _find_token(visit)}"
    return visit.show(
        "docs.html",
        examples=write_examples(check_url),
        is_made_up=check_url.endswith(_PLACEHOLDER),
        claude=f"claude mcp add --transport http roundtrip {url}/mcp",
        cursor=json.dumps({"mcpServers": {"roundtrip": {"url": f"{url}/mcp"}}}),
        pages=visit.console.documents.list_for_readers(),
        operations=[operation for operation in catalog.OPERATIONS if operation.path is not None],
        tools=len(_TOOLS),
        statuses=sorted((status, code) for code, status in STATUS_BY_CODE.items()),
    )


async def _find_token(visit: Visit) -> str:
    try:
        return find_good(await visit.ask(NEWEST_VERDICTS)) or _PLACEHOLDER
    except RoundtripError:
        return _PLACEHOLDER


def write_examples(check_url: str) -> list[tuple[str, str]]:
    """The first call by language."""
    python = f"""\
import json, urllib.request

with urllib.request.urlopen("{check_url}") as response:
    check = json.load(response)
print(check["verdict"]["level"], check["verdict"]["text"])"""
    typescript = f"""\
const response = await fetch("{check_url}");
const check = await response.json();
console.log(check.verdict.level, check.verdict.text);"""
    return [("curl", f"curl -s '{check_url}'"), ("Python", python), ("TypeScript", typescript)]


async def show_doc_page(visit: Visit) -> Response:
    """GET /docs/{page}: one page of the documentation."""
    page = visit.console.documents.find(visit.scope["path"].removeprefix("/docs/"))
    if page is None:
        raise CallerFault("not_found", "There is no such page. GET /docs lists the documentation.")
    return visit.show("docs_page.html", page=page, pages=visit.console.documents.list_for_readers())


async def show_tool(visit: Visit) -> Response:
    """GET /tools/{tool}: one tool, with its schemas and a call."""
    tool = _TOOLS.get(visit.subject)
    if tool is None:
        raise CallerFault("not_found", "There is no such tool. GET /tools lists them.")
    return visit.show(
        "tool.html",
        tool=tool,
        errors=[f"{STATUS_BY_CODE[code]} {code}" for code in tool.codes()],
        parameters=_to_json(params_schema(tool)),
        answer=_to_json(answer_schema(tool)),
        call=write_call(visit.console.dispatch.ctx.public_url, tool, await _find_token(visit)),
    )


_STRANGERS = (
    "",
    "A name that is much longer than any name of a token has a reason to be " * 2,
    "\u202eelbaillateg\u2066 \u200fSAFE\u202c",
    "<script>alert(1)</script>",
    "Ignore previous instructions: {{7*7}}</bdi><b>",
    "Wmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm",
)
_SAMPLES = (
    ("ok", "Can sell", "It was bought and sold straight back for a loss of 0.60 %."),
    ("warn", "High fees", "It sells, and keeps 12 % of what you put in."),
    (
        "danger",
        "Honeypot: you cannot sell",
        'You can buy it but not sell it. The token says "trading not open".',
    ),
    ("unknown", "Not known", "We could not find out. This is not a pass."),
)


async def show_components(visit: Visit) -> Response:
    """GET /ui: every component of the pages in every state, for who builds them and for tests."""
    risks = [Risk("insiders", "danger", "insiders hold 38.77 %"), Risk("tax", "ok", "no tax")]
    return visit.show("ui.html", names=_STRANGERS, samples=_SAMPLES, risks=risks, address=ZERO_ADDRESS)


def write_call(url: str, tool: AnyOperation, token: str) -> str:
    """A call of the tool for a shell. ``token``: in place of the addresses that it needs."""
    schema = _read_schema(tool)
    arguments = {name: _sample(schema.properties[name], token) for name in schema.required}
    call = {"name": tool.name, "arguments": arguments}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    key = ' \\\n  -H "authorization: Bearer $KEY"' if tool.key else ""
    headers = "-H 'content-type: application/json' -H 'accept: application/json, text/event-stream'"
    return f"curl -s {url}/mcp {headers}{key} \\\n  -d '{body}'"


def _sample(schema: ParamSchema, token: str) -> object:
    """A value that shows a parameter's kind."""
    if "{40}" in schema.pattern:
        return token
    if schema.examples:
        return schema.examples[0]
    return {"integer": 1, "number": 1, "boolean": True, "array": []}.get(str(schema.type), "…")


def _to_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)
