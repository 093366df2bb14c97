"""GET / for programs: a short JSON document. Browsers get a page of the console."""

import re
from collections.abc import Iterable

import msgspec

import roundtrip
from roundtrip.api.server.responses import Document

from .about import WHAT

LINKS = {
    "openapi": "/v1/openapi.json",
    "tools": "/v1/tools.json",
    "llms": "/llms.txt",
    "health": "/v1/health",
    "mcp": "/mcp",
}
_VARY = (b"vary", b"accept, user-agent")
_PREVIEWS = re.compile(rb"bot\b|externalhit|whatsapp|preview", re.IGNORECASE)
"""User agents that show people what a link leads to. Most of them accept anything."""


def front_json() -> bytes:
    """The JSON document of GET /."""
    document = {"name": "roundtrip", "version": roundtrip.__version__, "about": WHAT, "links": LINKS}
    return msgspec.json.encode(document)


def prefers_html(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the Accept headers name text/html with at least JSON's weight, or name neither where a link
    preview asks."""
    weights: dict[str, float] = {}
    is_preview = False
    for name, value in headers:
        if name == b"accept":
            weights.update(_parse_weights(value.decode("latin-1")))
        elif name == b"user-agent":
            is_preview = _PREVIEWS.search(value) is not None
    if weights.keys().isdisjoint({"text/html", "application/json"}):
        return is_preview
    html = weights.get("text/html", 0.0)
    return html > 0 and html >= weights.get("application/json", 0.0)


def _parse_weights(accept: str) -> dict[str, float]:
    weights = {}
    for media_range in accept.lower().split(","):
        kind, *rest = (part.strip() for part in media_range.split(";"))
        weight = next((part[2:] for part in rest if part.startswith("q=")), "1")
        try:
            weights[kind] = float(weight)
        except ValueError:
            weights[kind] = 0.0
    return weights


FRONT = Document(front_json(), headers=(_VARY,))
"""GET / for programs."""
