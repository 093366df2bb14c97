"""The pages as routes: one loop over the table."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog
from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from roundtrip.api.dispatch import Dispatch, TracedFailure, Unexpected, with_request_id
from roundtrip.api.documents.landing import FRONT, prefers_html
from roundtrip.api.http.app import NotFoundPage
from roundtrip.api.request.callers import Callers
from roundtrip.console.pages.boards import board_events
from roundtrip.console.support.live_stream import MOST, LiveBoards
from roundtrip.console.support.page_request import (
    Console,
    PageRoute,
    Visit,
    form_in,
    same_site,
    session_in,
    sign_in_for,
)
from roundtrip.console.support.render import Templates
from roundtrip.console.support.static_files import StaticFiles
from roundtrip.domain.base.errors import CallerFault, RoundtripError

from .routes import PAGES

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_GUARDS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "vary": "accept, cookie",
}
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PageEndpoint:
    """All that one path of the pages serves, by method, as an ASGI application."""

    console: Console
    by_method: Mapping[str, PageRoute]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        page = self.by_method["GET" if scope["method"] == "HEAD" else scope["method"]]
        session = session_in(scope, self.console.cookie)
        query = dict(QueryParams(scope.get("query_string", b"")))
        visit = Visit(self.console, scope, session, scope["path_params"], query)
        try:
            response = await self._answer(visit, page, receive)
        except TracedFailure as error:
            response = _fault(visit, error)
        except RoundtripError as error:
            shown = with_request_id(error)
            if isinstance(shown, TracedFailure):
                self.console.dispatch.failures.write(shown, page.path, "pages")
            response = _fault(visit, shown)
        except Exception:
            unexpected = Unexpected()
            log.exception("page failed", request=unexpected.request_id, page=page.path)
            response = _fault(visit, unexpected)
        await _with_guards(response)(scope, receive, send)

    async def _answer(self, visit: Visit, page: PageRoute, receive: Receive) -> Response:
        if page.signed_in and visit.session is None:
            return visit.go(sign_in_for(visit.scope))
        if page.method == "POST":
            if not same_site(visit.scope):
                raise CallerFault("bad_input", "Another site sent this form; nothing was done.")
            visit.form = await form_in(visit.scope, receive)
            if page.signed_in and not visit.has_token():
                raise CallerFault("bad_input", "This form is of another session. Load the page again.")
        return await page.handler(visit)


@dataclass(frozen=True, slots=True)
class FrontDoor:
    """GET /, as an ASGI application: a page for people, a short JSON for programs."""

    people: PageEndpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        asks_for_page = scope["method"] != "OPTIONS" and prefers_html(scope["headers"])
        await (self.people if asks_for_page else FRONT)(scope, receive, send)


def _with_guards(response: Response) -> Response:
    for name, value in _GUARDS.items():
        response.headers.setdefault(name, value)
    return response


def _fault(visit: Visit, error: RoundtripError) -> Response:
    if error.code == "bad_key" and visit.session is not None:
        visit.session = None
        response = visit.go("/sign-in")
        visit.console.end_cookie(response)
        return response
    piece = visit.is_piece()
    allowances = visit.console.dispatch.ctx.allowances
    shown = visit.show(
        "fault_piece.html" if piece else "fault.html",
        200 if piece else error.status,
        error=error,
        free=allowances.anonymous.per_minute,
        keyed=allowances.key.per_minute,
    )
    if error.retry_after_s is not None:
        shown.headers["retry-after"] = str(error.retry_after_s)
    return shown


def console_routes(dispatch: Dispatch, callers: Callers, libraries: Path) -> tuple[list[Route], NotFoundPage]:
    """The pages and what they load, and the page of what is none. ``libraries``: where npm installed those of
    the browser. Raises LibraryMissing."""
    static = StaticFiles(libraries)
    secure = dispatch.ctx.public_url.startswith("https:")
    templates = Templates(static.paths)
    live = LiveBoards(functools.partial(board_events, dispatch, templates))
    dispatch.ctx.measures.watch("streams", "open", live.open)
    dispatch.ctx.measures.watch("streams", "most", lambda: MOST)
    console = Console(dispatch, callers, templates, secure, live)
    by_path: dict[str, dict[str, PageRoute]] = {}
    for page in PAGES:
        by_path.setdefault(page.path, {})[page.method] = page
    pages = {path: PageEndpoint(console, own) for path, own in by_path.items()}
    routes = [Route("/", FrontDoor(pages.pop("/")), methods=["GET", "OPTIONS"])]
    routes += [Route(path, page, methods=[*page.by_method]) for path, page in pages.items()]
    documents: Mapping[str, ASGIApp] = static.documents
    routes += [Route(path, document, methods=["GET"]) for path, document in documents.items()]

    def show_not_found(scope: Scope, fault: CallerFault) -> Response:
        return _with_guards(_fault(Visit(console, scope, session_in(scope, console.cookie), {}, {}), fault))

    return routes, show_not_found
