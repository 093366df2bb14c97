"""Signing in and out: one signature of a wallet, and no password."""

from dataclasses import replace

import msgspec
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


async def show_sign_in(visit: Visit) -> Response:
    """GET /sign-in: connects a wallet."""
    path = path_after_sign_in(visit.query.get("to", ""))
    return visit.redirect(path) if visit.session is not None else visit.show("sign_in.html", to=path)


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
