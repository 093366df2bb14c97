"""The console's routes, built from the table of pages."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from gzip import compress
from pathlib import Path

import structlog
from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from roundtrip.api.admission.page_views import PageViews
from roundtrip.api.dispatch import Dispatch, Unexpected, add_request_id
from roundtrip.api.documents.landing import FRONT, prefers_html
from roundtrip.api.http.app import NotFoundPage
from roundtrip.api.request.callers import Callers
from roundtrip.api.request.failure_log import TracedFailure
from roundtrip.api.server.responses import WORTH_COMPRESSING_BYTES, accepts_gzip
from roundtrip.console.pages.boards import BoardReader
from roundtrip.console.support.doc_pages import DocPages
from roundtrip.console.support.live_stream import MOST, LiveBoards
from roundtrip.console.support.page_request import (
    Console,
    PageRoute,
    Visit,
    is_same_site,
    read_form,
    read_session,
    sign_in_path,
)
from roundtrip.console.support.render import Templates
from roundtrip.console.support.static_files import StaticFiles
from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.services.cards.pictures import Pictures

from .routes import PAGES, PICTURES

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_SECURITY_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "vary": "accept, accept-encoding, cookie, hx-request, hx-target, user-agent",
}
_COMPRESSED = ("text/html", "image/svg+xml")
"""Types of responses that are compressed. PNG is already."""
_FROM_MEMORY = "private, no-cache"
"""A browser may show the page again on *Back*, and asks for it in any other case."""
_LEVEL = 4
"""The gzip level: a higher one makes a page smaller by a hundredth, and takes twice the time."""
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PageEndpoint:
    """The pages of one path, by method, as an ASGI application."""

    console: Console
    by_method: Mapping[str, PageRoute]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        method = scope["method"]
        page = self.by_method["GET" if method == "HEAD" else method]
        session = read_session(scope, self.console.cookie)
        query = dict(QueryParams(scope.get("query_string", b"")))
        visit = Visit(self.console, scope, session, scope["path_params"], query)
        try:
            response = await self._answer(visit, page, receive)
        except TracedFailure as error:
            response = _show_error(visit, error)
        except RoundtripError as error:
            traced = add_request_id(error)
            if isinstance(traced, TracedFailure):
                self.console.dispatch.failures.write(traced, page.path, "pages")
            response = _show_error(visit, traced)
        except Exception:
            failure = Unexpected()
            log.exception("page failed", request=failure.request_id, page=page.path)
            response = _show_error(visit, failure)
        finally:
            visit.settle()
        is_page = page.method == "GET" and not page.streams and response.status_code == 200
        if is_page and visit.session is None:
            response.headers.setdefault("cache-control", _FROM_MEMORY)
        if visit.session is None:
            _compress(response, scope)
        await _with_security_headers(response)(scope, receive, send)

    async def _answer(self, visit: Visit, page: PageRoute, receive: Receive) -> Response:
        if page.signed_in and visit.session is None:
            return visit.redirect(sign_in_path(visit.scope))
        if page.method == "POST":
            if not is_same_site(visit.scope):
                raise CallerFault(
                    "bad_input", "Nothing was done: another site sent this form. Send it from our own page."
                )
            visit.form = await read_form(visit.scope, receive)
            if page.signed_in and not visit.has_token():
                raise CallerFault(
                    "bad_input",
                    "Nothing was done: this form belongs to another session. Load the page again.",
                )
        return await page.handler(visit)


@dataclass(frozen=True, slots=True)
class LandingPage:
    """GET / as an ASGI application: a page for browsers, a short JSON document for programs."""

    page: PageEndpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        asks_for_page = scope["method"] != "OPTIONS" and prefers_html(scope["headers"])
        await (self.page if asks_for_page else FRONT)(scope, receive, send)


def _with_security_headers(response: Response) -> Response:
    for name, value in _SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    # What a session may see must not outlast it on a shared computer.
    response.headers.setdefault("cache-control", "no-store")
    return response


def _compress(response: Response, scope: Scope) -> None:
    """Compresses the response if the client accepts that. Not for what a session saw: the length of a text
    that repeats a stranger's words beside a secret would tell of the secret (BREACH)."""
    kind = response.headers.get("content-type", "").partition(";")[0]
    if kind not in _COMPRESSED or len(response.body) <= WORTH_COMPRESSING_BYTES:
        return
    if accepts_gzip(scope["headers"]):
        response.body = compress(bytes(response.body), _LEVEL, mtime=0)
        response.headers["content-length"] = str(len(response.body))
        response.headers["content-encoding"] = "gzip"


def _show_error(visit: Visit, error: RoundtripError) -> Response:
    if error.code == "bad_key" and visit.session is not None:
        visit.session = None
        response = visit.redirect("/sign-in")
        visit.console.end_cookie(response)
        return response
    is_piece = visit.is_piece()
    # A whole page loads itself again, also after busy. A piece only shows busy: the page around it stays.
    repeated = ("rate_limited",) if is_piece else ("rate_limited", "busy")
    can_repeat = visit.scope["method"] == "GET" and error.code in repeated
    response = visit.show(
        "fault_piece.html" if is_piece else "fault.html",
        # On a 429 the page's script keeps what the piece showed before, and asks again.
        200 if is_piece and not can_repeat else error.status,
        error=error,
        comes_back_s=error.retry_after_s if can_repeat else None,
    )
    if error.retry_after_s is not None:
        response.headers["retry-after"] = str(error.retry_after_s)
    return response


@functools.cache
def _read_static_files(libraries: Path) -> StaticFiles:
    """Compressed once in a process. Raises LibraryMissing."""
    return StaticFiles(libraries)


def console_routes(
    dispatch: Dispatch, callers: Callers, libraries: Path, documents: Path
) -> tuple[list[Route], NotFoundPage]:
    """The routes of pages and static files, and a function that renders the not-found page. ``libraries``:
    the folder into which npm installed the browser's libraries; ``documents``: that of the documentation.
    Raises LibraryMissing."""
    static = _read_static_files(libraries)
    secure = dispatch.ctx.public_url.startswith("https:")
    templates = Templates(static.paths)
    live = LiveBoards(BoardReader(dispatch, templates).read_events)
    dispatch.ctx.measures.watch("streams", "open", live.count_streams)
    dispatch.ctx.measures.watch("streams", "most", lambda: MOST)
    pictures, doc_pages = Pictures(libraries), DocPages(documents)
    console = Console(
        dispatch, callers, templates, secure, live, pictures, doc_pages, PageViews(dispatch.gate)
    )
    by_path: dict[str, dict[str, PageRoute]] = {}
    for page in (*PAGES, *PICTURES):
        by_path.setdefault(page.path, {})[page.method] = page
    pages = {path: PageEndpoint(console, by_method) for path, by_method in by_path.items()}
    routes = [Route("/", LandingPage(pages.pop("/")), methods=["GET", "OPTIONS"])]
    routes += [Route(path, page, methods=[*page.by_method]) for path, page in pages.items()]
    files: Mapping[str, ASGIApp] = static.documents
    routes += [Route(path, file, methods=["GET"]) for path, file in files.items()]

    def show_not_found(scope: Scope, fault: CallerFault) -> Response:
        visit = Visit(console, scope, read_session(scope, console.cookie), {}, {})
        response = _show_error(visit, fault)
        if visit.session is None:
            _compress(response, scope)
        return _with_security_headers(response)

    return routes, show_not_found
