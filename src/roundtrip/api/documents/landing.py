"""The front door as programs see it: a short JSON. People are shown a page of the console."""

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
_VARY = (b"vary", b"accept")


def short_json() -> bytes:
    """What a program is told."""
    told = {"name": "roundtrip", "version": roundtrip.__version__, "about": WHAT, "links": LINKS}
    return msgspec.json.encode(told)


def wants_page(asked: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether these request headers like a page at least as well as JSON, and name it."""
    weights: dict[str, float] = {}
    for name, value in asked:
        if name == b"accept":
            weights.update(_weights(value.decode("latin-1")))
    html = weights.get("text/html", 0.0)
    return html > 0 and html >= weights.get("application/json", 0.0)


def _weights(accept: str) -> dict[str, float]:
    found = {}
    for one in accept.lower().split(","):
        kind, *rest = (part.strip() for part in one.split(";"))
        weight = next((part[2:] for part in rest if part.startswith("q=")), "1")
        try:
            found[kind] = float(weight)
        except ValueError:
            found[kind] = 0.0
    return found


FRONT = Document(short_json(), headers=(_VARY,))
"""GET / for programs."""
