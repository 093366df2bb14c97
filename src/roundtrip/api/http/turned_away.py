"""What the service says to requests that it refuses unread because it is overloaded, and whose they are."""

from dataclasses import dataclass

from starlette.types import Scope

from roundtrip.api.admission.gate import Gate
from roundtrip.api.dispatch import render_error
from roundtrip.api.documents.landing import prefers_html
from roundtrip.api.request.callers import Callers
from roundtrip.api.request.request_ids import HEADER, new_id
from roundtrip.api.server.arrivals import CallerSort
from roundtrip.api.server.drain import READY
from roundtrip.api.server.responses import CORS, HSTS, NO_STORE
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.metrics import Measures

HEALTH = "/v1/health"
TOOL_SERVER = "/mcp"
_CODE = "busy"
_REPLY = render_error(ServiceFull(_CODE, "The service is overloaded. Retry in 1 second.", 1))
"""The request's id is only in the header: the rest is encoded once, because it must cost almost nothing."""
_PAGE = b"The service is overloaded. Reload this page in a few seconds.\n"
_STATUS = b"HTTP/1.1 503 Service Unavailable\r\n"


@dataclass(frozen=True, slots=True)
class CallerSorter:
    """Finds out who sent a request, without asking the database."""

    callers: Callers
    gate: Gate

    def __call__(self, scope: Scope) -> CallerSort | None:
        """The sort; None: it never waits. A balancer that took a process without a health answer out would
        send its requests to the others, and a preflight costs nothing, and lets a page read a refusal."""
        path: str = scope["path"]
        if path in {HEALTH, READY} or scope["method"] == "OPTIONS":
            return None
        path_key = path.removeprefix(f"{TOOL_SERVER}/") if path.startswith(f"{TOOL_SERVER}/") else None
        key = self.callers.identify(scope["headers"], scope.get("client"), path_key).key
        # Anyone can write something that looks like a key.
        if key is not None and self.gate.knows(key):
            return "keyed"
        return "page" if prefers_html(scope["headers"]) else "other"


def _encode(body: bytes, kind: bytes, *more: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    headers = ((b"content-type", kind), (b"content-length", b"%d" % len(body)), (b"retry-after", b"1"))
    lines = (b"%s: %s\r\n" % header for header in (*headers, NO_STORE, *more))
    return _STATUS + b"".join(lines), body


class RefusalEncoder:
    """Encodes and counts refusals: in words for pages, else as errors are. ``over_https``: they carry HSTS,
    as every answer does."""

    def __init__(self, measures: Measures, over_https: bool = False) -> None:
        self._measures = measures
        fixed = (HSTS,) if over_https else ()
        self._page = _encode(_PAGE, b"text/plain; charset=utf-8", *fixed)
        self._tool = _encode(_REPLY.body, b"application/json", *fixed)
        self._api = _encode(_REPLY.body, b"application/json", *CORS, *fixed)

    def __call__(self, scope: Scope, waited_s: float, keeps_connection: bool) -> bytes:
        """The whole answer to one request, head and body."""
        is_tool = scope["path"].startswith(TOOL_SERVER)
        self._measures.observe("operation", "turned_away", "failed", waited_s)
        self._measures.count("requests", "mcp" if is_tool else "http", "failed")
        self._measures.count("errors", "turned_away", _CODE)
        self._measures.count("answers", "5xx")
        if prefers_html(scope["headers"]):
            head, body = self._page
        else:
            head, body = self._tool if is_tool else self._api
        return b"%s%s: %s\r\n%s\r\n%s" % (
            head,
            HEADER,
            new_id().encode(),
            b"" if keeps_connection else b"connection: close\r\n",
            b"" if scope["method"] == "HEAD" else body,
        )
