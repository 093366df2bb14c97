"""Signing in and out: one signature of a wallet, and no password."""

from dataclasses import replace
from functools import lru_cache
from urllib.parse import quote

import msgspec
import segno
from starlette.responses import Response

from roundtrip.console.support.page_operations import own_operation, page_operation
from roundtrip.console.support.page_request import Visit, path_after_sign_in
from roundtrip.services.accounts.issue_key import KeyParams
from roundtrip.services.accounts.manage_keys import LIFETIME_S, begin_session, end_session, session_text
from roundtrip.services.support.answer_fields import WalletParams

_TEXT = page_operation(session_text, method="POST", counts="minute")
_BEGIN = replace(page_operation(begin_session, method="POST", writes=True, counts="minute"), lane="calls")
_END = own_operation(end_session, method="POST", writes=True, counts="never")


class SignInForm(msgspec.Struct):
    """What the page's script sends. ``claim``: of a contract wallet. ``to``: the path after signing in."""

    address: str = ""
    signature: str = ""
    claim: str = ""
    to: str = ""


_PHONE_WALLETS = (
    ("MetaMask", "https://link.metamask.io/dapp/{bare}"),
    ("Coinbase Wallet", "https://go.cb-w.com/dapp?cb_url={quoted}"),
    ("Trust Wallet", "https://link.trustwallet.com/open_url?coin_id=60&url={quoted}"),
)
"""Links that open a page in the browser of a phone's wallet. ``bare``: the page's URL without its scheme."""


_MAX_DRAWN = 200
"""Longer URLs get no QR code: each carries a rule, so no drawing could be used twice."""


async def show_sign_in(visit: Visit) -> Response:
    """GET /sign-in: connects a wallet of this browser, or opens the page in one of a phone."""
    path = path_after_sign_in(visit.query.get("to", ""))
    if visit.session is not None:
        return visit.redirect(path)
    here = f"{visit.console.dispatch.ctx.public_url}/sign-in?to={quote(path, safe='')}"
    return visit.show(
        "sign_in.html",
        to=path,
        phones=list_phone_links(here),
        code=draw_code(here) if len(here) <= _MAX_DRAWN else None,
    )


def list_phone_links(url: str) -> list[tuple[str, str]]:
    """Wallets of phones by name, with the link that opens ``url`` in each. Empty: a wallet would
    refuse the URL, as it is not served over TLS."""
    scheme, _, bare = url.partition("://")
    if scheme != "https":
        return []
    return [(name, link.format(bare=bare, quoted=quote(url, safe=""))) for name, link in _PHONE_WALLETS]


@lru_cache(256)
def draw_code(url: str) -> tuple[int, str]:
    """The URL as a QR code: the width of a square drawing with its quiet edge, and the path of the dark
    fields."""
    code = segno.make(url, error="m", micro=False)
    rows = list(code.matrix_iter(border=4))
    fields = [(x, y) for y, row in enumerate(rows) for x, is_dark in enumerate(row) if is_dark]
    return len(rows), "".join(f"M{x} {y}h1v1h-1z" for x, y in fields)


async def send_text(visit: Visit) -> Response:
    """POST /sign-in/text: the text that the wallet has to sign, for the page's script."""
    form = msgspec.convert(visit.form, SignInForm)
    text = await visit.ask_json(_TEXT, WalletParams(form.address))
    return Response(text, media_type="application/json")


async def sign_in(visit: Visit) -> Response:
    """POST /sign-in: starts a session for the signature, in a cookie that scripts cannot read and other sites
    cannot send."""
    form = msgspec.convert(visit.form, SignInForm)
    session = await visit.ask(_BEGIN, KeyParams(form.address, form.signature, claim=form.claim or None))
    response = visit.redirect(path_after_sign_in(form.to))
    response.set_cookie(
        visit.console.cookie, session.session, max_age=LIFETIME_S, path="/", secure=visit.console.secure,
        httponly=True, samesite="strict",
    )  # fmt: skip
    return response


async def sign_out(visit: Visit) -> Response:
    """POST /sign-out: ends the session, in the browser and in the database."""
    await visit.ask(_END, {"session": visit.session})
    response = visit.redirect("/")
    visit.console.end_cookie(response)
    return response
