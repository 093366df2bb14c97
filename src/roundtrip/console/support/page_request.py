"""One request to a page: who asks, what is asked of the use cases, what is shown."""

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope

from roundtrip.api.dispatch import Dispatch
from roundtrip.api.http.app import read_body
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.api.request.callers import CallerRequest, Callers
from roundtrip.domain.accounts import keys
from roundtrip.domain.base.errors import CallerFault, RoundtripError

from .live_stream import LiveBoards
from .read_once import BriefCache
from .render import Templates

COOKIE = "roundtrip_session"
SECURE_COOKIE = f"__Host-{COOKIE}"
"""Behind https: browsers take a cookie of such a name from this very host alone, and only over TLS, so that
neither another host of the domain nor plain http can put a session of its own in its place."""
_MOST_FIELDS = 50
_LINK = re.compile(
    r"/account/(?:(?:practice\?token|watch\?address)=0x[0-9a-f]{40}|watch\?rule=[A-Za-z0-9%.]{1,400})"
)
"""Links of our pages that fill a form in: no other address is ever gone to after signing in."""
_BY_NAME = {operation.name: operation for operation in OPERATIONS}


@dataclass(frozen=True, slots=True)
class Console:
    """What all pages share."""

    dispatch: Dispatch
    callers: Callers
    templates: Templates
    secure: bool
    """The session's cookie goes over TLS only."""
    live: LiveBoards
    """Boards that change while they are looked at."""
    status: BriefCache[tuple[Any, Any]] = field(default_factory=BriefCache)
    """How the service is, by both operations that tell."""

    @property
    def cookie(self) -> str:
        """The name of the cookie that carries a session."""
        return SECURE_COOKIE if self.secure else COOKIE

    def end_cookie(self, response: Response) -> None:
        """Has the browser forget the session. A cookie of SECURE_COOKIE's name needs Secure for that, too."""
        response.delete_cookie(self.cookie, path="/", secure=self.secure, httponly=True, samesite="strict")


@dataclass(slots=True)
class Visit:
    """``session``: the key that the cookie carries; None: nobody is signed in."""

    console: Console
    scope: Scope
    session: str | None
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)

    async def ask(self, operation: str | AnyOperation, **params: Any) -> Any:
        """The answer of a use case, as its JSON says it; of one that is done once by the name that the form
        carries. Raises RoundtripError."""
        row = _BY_NAME[operation] if isinstance(operation, str) else operation
        once = (self.form.get("once", ""),) if row.once else ()
        reply = await self.console.dispatch.run(
            row, params, self._asking(), idempotency_keys=once, door="pages"
        )
        if reply.error is not None:
            raise reply.error
        return msgspec.json.decode(reply.body)

    def _asking(self) -> CallerRequest:
        """By the address, or by the session's key; whatever other key the request shows is not a page's."""
        headers = [one for one in self.scope["headers"] if one[0] not in (b"authorization", b"x-api-key")]
        asking = self.console.callers.identify(headers, self.scope.get("client"))
        return asking if self.session is None else replace(asking, key=self.session, by_cookie=True)

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page, or a piece of one."""
        body = self.console.templates.render(
            template, visit=self, csrf=self.csrf(), signed_in=self.session is not None, **values
        )
        return Response(body, status, media_type="text/html")

    def go(self, to: str) -> Response:
        """Elsewhere, by GET: the whole page, also where a piece of it was asked for."""
        if self.is_piece():
            return Response(status_code=200, headers={"hx-redirect": to})
        return RedirectResponse(to, 303)

    def is_piece(self) -> bool:
        """Whether a piece of a page is asked for, by the page's script."""
        return any(name == b"hx-request" for name, _ in self.scope["headers"])

    def csrf(self) -> str:
        """What a form of this session carries: nobody else's page can know it."""
        key = (self.session or "").encode()
        return hmac.digest(key, b"a form of this session", hashlib.sha256).hex()

    def once(self) -> str:
        """The name of one form that is done once: a reload sends the same, the next form another."""
        return self.console.dispatch.ctx.entropy().hex()[:32]

    def has_token(self) -> bool:
        """Whether the form that was sent is a page's of this session."""
        return hmac.compare_digest(self.form.get("csrf", "").encode(), self.csrf().encode())


Handler = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One row of the table of pages. ``signed_in``: who is not is led to where that is done. ``streams``: its
    answer has no end."""

    path: str
    handler: Handler
    method: Literal["GET", "POST"] = "GET"
    signed_in: bool = False
    streams: bool = False


def sign_in_for(scope: Scope) -> str:
    """Where who is not signed in is led to. What a link of ours fills in is kept through it."""
    wanted = f"{scope['path']}?{scope.get('query_string', b'').decode('latin-1')}"
    return f"/sign-in?{urlencode({'to': wanted})}" if _LINK.fullmatch(wanted) else "/sign-in"


def after_sign_in(wanted: str) -> str:
    """Where to go once signed in: a link of ours, or else the account."""
    return wanted if _LINK.fullmatch(wanted) else "/account"


def session_in(scope: Scope, cookie: str) -> str | None:
    """The session's key by the cookie of this name; None where none is there that could be one."""
    for name, value in scope["headers"]:
        if name == b"cookie":
            # Each for itself: what others on this host put beside it is not always well formed.
            cookies: list[str] = value.decode("latin-1").split(";")
            for one in cookies:
                written, _, shown = one.strip().partition("=")
                if written == cookie and keys.is_session(shown):
                    return shown
    return None


async def form_in(scope: Scope, receive: Receive) -> dict[str, str]:
    """The fields of a form, by name. Raises CallerFault (bad_input)."""
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    if [kind.split(b";")[0].strip().lower() for kind in kinds] != [b"application/x-www-form-urlencoded"]:
        raise CallerFault("bad_input", "This is no form of these pages.")
    body = await read_body(receive)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise CallerFault("bad_input", "This is no form of these pages.") from None


def same_site(scope: Scope) -> bool:
    """Whether a browser says that a page of ours sent this, by what pages cannot forge."""
    told = {
        name: value for name, value in scope["headers"] if name in (b"sec-fetch-site", b"origin", b"host")
    }
    site = told.get(b"sec-fetch-site")
    if site is not None and site not in (b"same-origin", b"none"):
        return False
    origin = told.get(b"origin")
    return origin is None or origin.partition(b"://")[2] == told.get(b"host")


__all__ = ["Console", "Handler", "PageRoute", "RoundtripError", "Visit"]
