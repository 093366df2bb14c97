"""The front door: a page for people, a short JSON for programs."""

import hashlib
from base64 import b64encode
from collections.abc import Iterable
from html import escape

import msgspec
from starlette.types import Receive, Scope, Send

import roundtrip

from .about import KEYS, STRANGERS, UNKNOWN, WHAT
from .catalog import OPERATIONS, tools
from .wire import Document

LINKS = {
    "openapi": "/v1/openapi.json",
    "tools": "/v1/tools.json",
    "llms": "/llms.txt",
    "health": "/v1/health",
    "mcp": "/mcp",
}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;"
    "background:#fff}code,pre{font-size:.9em;background:#f2f2f2;overflow-wrap:anywhere}pre{padding:.7rem;"
    "white-space:pre-wrap}td{padding:.1rem .8rem .1rem 0;vertical-align:top}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#16181c}code,pre{background:#25282e}"
    "a{color:#8ab4f8}}"
)
_STYLE_HASH = b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_VARY = (b"vary", b"accept")
_GUARDS = (
    _VARY,
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


def short_json() -> bytes:
    """What a program is told."""
    told = {"name": "roundtrip", "version": roundtrip.__version__, "about": WHAT, "links": LINKS}
    return msgspec.json.encode(told)


def page() -> str:
    """What a person is shown; it stands alone."""
    paths = "".join(
        f"<tr><td><code>{row.method} {escape(row.path)}</code><td>{escape(row.title)}"
        for row in OPERATIONS
        if row.path is not None
    )
    names = ", ".join(f"<code>{tool.name}</code>" for tool in tools())
    links = " · ".join(f'<a href="{path}">{path}</a>' for name, path in LINKS.items() if name != "mcp")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>roundtrip</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>roundtrip</h1><p>{escape(WHAT)}</p>"
        f"<ul><li>{escape(UNKNOWN)}</li><li>{escape(STRANGERS)}</li></ul>"
        "<h2>Ask</h2><pre>curl -s HERE/v1/check/0x...</pre>"
        f"<table>{paths}</table><p>{links}</p>"
        "<h2>For agents</h2><p>The Model Context Protocol at <code>POST /mcp</code>, with the tools "
        f"{names}.</p><h2>Keys</h2><p>{escape(KEYS)}</p></body></html>\n"
    )


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


class Front:
    """GET / as an ASGI application. ``public_url``: where the service is reached."""

    def __init__(self, public_url: str) -> None:
        shown = page().replace("HERE", escape(public_url))
        self._page = Document(shown.encode(), "text/html; charset=utf-8", _GUARDS)
        self._json = Document(short_json(), headers=(_VARY,))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        document = self._page if wants_page(scope["headers"]) else self._json
        await document(scope, receive, send)
