"""One request to a page: the session, calls of operations, responses. ``BriefCache`` bounds reads that count
against no caller's limit."""

import asyncio
import hashlib
import hmac
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeVar, cast
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope

from roundtrip.api.admission.page_views import PageViews, ViewTicket
from roundtrip.api.dispatch import Dispatch, DoorReply
from roundtrip.api.http.app import read_body
from roundtrip.api.operations.operation import A, AnyOperation, Operation, P
from roundtrip.api.request.callers import CallerRequest, Callers
from roundtrip.console.support.doc_pages import DocPages
from roundtrip.console.support.live_stream import LiveBoards
from roundtrip.console.support.render import Templates
from roundtrip.domain.accounts import keys
from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.domain.check.price import usd_per_eth
from roundtrip.services.cards.pictures import Pictures
from roundtrip.services.runtime.context import Context
from roundtrip.services.system.status import Health, ServiceStatus

FOR_S = 1.0
T = TypeVar("T")


class BriefCache(Generic[T]):
    """Runs at most one read at a time, and serves its answer for ``for_s`` seconds of ``clock``. A failure is
    raised to the callers that wait for it, and not cached."""

    def __init__(self, for_s: float = FOR_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._for_s, self._clock = for_s, clock
        self._reading: asyncio.Task[T] | None = None
        self._until_s = 0.0

    async def get(self, read: Callable[[], Awaitable[T]]) -> T:
        """The cached answer, else a new read's. Raises what ``read`` raises. Cancelling a caller does not
        cancel the read."""
        reading = self._reading
        if reading is None or (reading.done() and self._clock() >= self._until_s):
            reading = self._reading = asyncio.create_task(self._read(read))
        return await asyncio.shield(reading)

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        self._until_s = 0.0
        answer = await read()
        self._until_s = self._clock() + self._for_s
        return answer


COOKIE = "roundtrip_session"
SECURE_COOKIE = f"__Host-{COOKIE}"
"""The cookie's name over HTTPS: browsers accept a ``__Host-`` cookie only from this host and over TLS, so
neither another host of the domain nor plain HTTP can replace the session."""
SIZED = "sized"
"""The element of a verdict at a size: what replaces it is a check, and counts as a page."""
_MAX_FIELDS = 50
_LAG_S = 30
"""An index that is fewer seconds behind the chain is not called behind."""
_PREFILLED_LINK = re.compile(
    r"/account/(?:(?:practice\?token|watch\?address)=0x[0-9a-f]{40}|watch\?rule=[A-Za-z0-9%.]{1,400}"
    r"|practice|watch)|/token/0x[0-9a-f]{40}"
)
"""Links of the console that prefill a form or open its room, and a token's page, which has forms for who is
signed in: the only paths to which signing in redirects."""
_NO_PARAMS: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Console:
    """The resources that all pages share."""

    dispatch: Dispatch
    callers: Callers
    templates: Templates
    secure: bool
    """Whether the session's cookie is sent over TLS only."""
    live: LiveBoards
    """Live boards."""
    pictures: Pictures
    """Draws cards."""
    documents: DocPages
    views: PageViews
    """Counts what people look at."""
    status: BriefCache[tuple[Health, ServiceStatus]] = field(default_factory=BriefCache)
    """The answers of ``health`` and ``service_status``."""

    @property
    def cookie(self) -> str:
        """The name of the cookie that carries a session."""
        return SECURE_COOKIE if self.secure else COOKIE

    def end_cookie(self, response: Response) -> None:
        """Deletes the session's cookie. A ``__Host-`` cookie can only be deleted with Secure."""
        response.delete_cookie(self.cookie, path="/", secure=self.secure, httponly=True, samesite="strict")


@dataclass(slots=True)
class Visit:
    """One request to a page. ``session``: the session key in the cookie; None: not signed in. It counts as
    one view, however many operations it calls, unless all their answers are shared; ``view``: that view."""

    console: Console
    scope: Scope
    session: str | None
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    view: ViewTicket | None = None
    is_free: bool = True
    """Whether all answers so far were shared ones, or failed through no fault of the visitor."""

    @property
    def address(self) -> str:
        """The token or wallet that the page's path names."""
        return self.subject

    @property
    def subject(self) -> str:
        """What the page's path names: an address, a hash, a board, a room or a tool."""
        return next(iter(self.path.values()))

    async def ask(self, operation: Operation[P, A], params: P | Mapping[str, object] = _NO_PARAMS) -> A:
        """Calls an operation. ``params``: a mapping may hold what the visitor wrote: it is validated as from
        any door. A ``once`` operation takes its idempotency key from the form. What only reads is part of the
        view; all else counts as a call. Raises RoundtripError."""
        reply = await self._call(operation, params)
        if reply.answer is None:
            return msgspec.json.decode(reply.body, type=operation.answer)
        return cast(A, reply.answer)

    async def ask_json(self, operation: AnyOperation, params: msgspec.Struct | Mapping[str, object]) -> bytes:
        """As ``ask``: the answer as programs get it."""
        return (await self._call(operation, params)).body

    async def _call(self, row: AnyOperation, params: msgspec.Struct | Mapping[str, object]) -> DoorReply:
        raw: Mapping[str, object] = params if isinstance(params, Mapping) else msgspec.to_builtins(params)
        idempotency_keys = (self.form.get("once", ""),) if row.once else ()
        caller = self._identify()
        in_view = row.method == "GET" and row.counts != "never"
        if in_view:
            caller = msgspec.structs.replace(caller, in_view=True)
            if not self.console.dispatch.has_shared(row, raw):
                self.view = self.view or await self.console.views.take(
                    caller, self.is_piece() and not self.is_piece_for(SIZED)
                )
        reply = await self.console.dispatch.run(
            row, raw, caller, idempotency_keys=idempotency_keys, door="pages"
        )
        self.is_free &= not in_view or _is_free(reply)
        if reply.error is not None:
            raise reply.error
        return reply

    def settle(self) -> None:
        """Uncounts the view at the end of the request, if it was free."""
        if self.view is not None and self.is_free:
            self.console.views.refund(self.view)
            self.view = None

    def caller_name(self) -> str:
        """The visitor's address, as limits name it."""
        return self._identify().name

    def _identify(self) -> CallerRequest:
        """The caller: the session's key, else the address. Pages ignore API keys in headers."""
        headers = [
            header for header in self.scope["headers"] if header[0] not in (b"authorization", b"x-api-key")
        ]
        caller = self.console.callers.identify(headers, self.scope.get("client"))
        if self.session is None:
            return caller
        return msgspec.structs.replace(caller, key=self.session, by_cookie=True)

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        """Renders a page, or a piece of one."""
        ctx = self.console.dispatch.ctx
        made = datetime.fromtimestamp(ctx.now_s(), UTC).isoformat(timespec="seconds")
        body = self.console.templates.render(
            template,
            visit=self,
            csrf=self.csrf(),
            signed_in=self.session is not None,
            made=made,
            explorer=ctx.explorer_url,
            public_url=ctx.public_url,
            **values,
        )
        return Response(body, status, media_type="text/html")

    def lag_s(self, block_time: datetime) -> int:
        """How far an answer of the index, up to a block of this time, is behind the chain; 0: not worth
        saying, or not known."""
        return index_lag_s(self.console.dispatch.ctx, block_time)

    def eth_usd(self) -> float | None:
        """Dollars for one eth; None: not known now."""
        return read_eth_usd(self.console.dispatch.ctx)

    def redirect(self, path: str) -> Response:
        """Redirects to a path by GET; htmx requests load it as a whole page."""
        if self.is_piece():
            return Response(status_code=200, headers={"hx-redirect": path})
        return RedirectResponse(path, 303)

    def is_piece(self) -> bool:
        """Whether the page's script (htmx) requests a piece of a page."""
        return "hx-request" in Headers(scope=self.scope)

    def is_piece_for(self, target: str) -> bool:
        """Whether the page's script requests the piece that replaces the element of this id."""
        return self.is_piece() and Headers(scope=self.scope).get("hx-target") == target

    def is_head(self) -> bool:
        """Whether only the headers are asked for."""
        return bool(self.scope["method"] == "HEAD")

    def csrf(self) -> str:
        """The CSRF token of the session's forms; other sites cannot know it."""
        key = (self.session or "").encode()
        return hmac.digest(key, b"a form of this session", hashlib.sha256).hex()

    def once(self) -> str:
        """A new idempotency key for a form: a reload of its answer sends the same key, the next form
        another."""
        return self.console.dispatch.ctx.entropy().hex()[:32]

    def has_token(self) -> bool:
        """Whether the submitted form carries this session's CSRF token."""
        return hmac.compare_digest(self.form.get("csrf", "").encode(), self.csrf().encode())


def _is_free(reply: DoorReply) -> bool:
    if reply.error is not None:
        return not reply.error.counts
    return reply.headers.get("x-cache") == "hit"


def read_eth_usd(ctx: Context) -> float | None:
    """Dollars for one eth; None: not known now."""
    try:
        price = usd_per_eth(ctx.heads.current().market, ctx.policy)
    except RoundtripError:
        return None
    return None if price is None else float(price)


def index_lag_s(ctx: Context, block_time: datetime) -> int:
    """How many seconds the newest block is after one of this time; 0: less than ``_LAG_S``, or not known."""
    try:
        newest_s = ctx.heads.current().block.timestamp_s
    except RoundtripError:
        return 0
    lag_s = newest_s - int(block_time.timestamp())
    return lag_s if lag_s >= _LAG_S else 0


Handler = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One row of the table of pages. ``signed_in``: other visitors are redirected to sign in. ``streams``:
    the response does not end by itself."""

    path: str
    handler: Handler
    method: Literal["GET", "POST"] = "GET"
    signed_in: bool = False
    streams: bool = False


def sign_in_path(scope: Scope) -> str:
    """The sign-in page's path; it carries the requested path if signing in may lead back there."""
    query = scope.get("query_string", b"").decode("latin-1")
    wanted = f"{scope['path']}?{query}" if query else str(scope["path"])
    return f"/sign-in?{urlencode({'to': wanted})}" if _PREFILLED_LINK.fullmatch(wanted) else "/sign-in"


def path_after_sign_in(wanted: str) -> str:
    """The path after signing in: ``wanted`` if signing in may lead there, else the account."""
    return wanted if _PREFILLED_LINK.fullmatch(wanted) else "/account"


def read_session(scope: Scope, cookie: str) -> str | None:
    """The session key in the cookie of this name; None: there is no well-formed one."""
    for cookies in Headers(scope=scope).getlist("cookie"):
        # Each is parsed by itself: other applications' cookies on this host may be malformed.
        for cookie_text in cookies.split(";"):
            cookie_name, _, session = cookie_text.strip().partition("=")
            if cookie_name == cookie and keys.is_session(session):
                return session
    return None


async def read_form(scope: Scope, receive: Receive) -> dict[str, str]:
    """The fields of a form, by name. Raises CallerFault (bad_input)."""
    kinds = Headers(scope=scope).getlist("content-type")
    if [kind.split(";")[0].strip().lower() for kind in kinds] != ["application/x-www-form-urlencoded"]:
        raise CallerFault(
            "bad_input",
            "The body is not a form of these pages. Send it as application/x-www-form-urlencoded.",
        )
    body = await read_body(receive)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError:
        raise CallerFault(
            "bad_input",
            "The body is not a form of these pages. Send it as application/x-www-form-urlencoded.",
        ) from None


def is_same_site(scope: Scope) -> bool:
    """Whether this request comes from a page of this site, by headers that pages cannot forge."""
    values = {
        name: value for name, value in scope["headers"] if name in (b"sec-fetch-site", b"origin", b"host")
    }
    site = values.get(b"sec-fetch-site")
    if site is not None and site not in (b"same-origin", b"none"):
        return False
    origin = values.get(b"origin")
    return origin is None or origin.partition(b"://")[2] == values.get(b"host")


__all__ = ["Console", "Handler", "PageRoute", "RoundtripError", "Visit"]
