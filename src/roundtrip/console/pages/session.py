"""Signing in and out: one signature of a wallet, and no password."""

from starlette.responses import JSONResponse, Response

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.page_request import Visit, path_after_sign_in
from roundtrip.services.accounts.issue_key import KeyParams, TextToSign
from roundtrip.services.accounts.sessions import (
    LIFETIME_S,
    SessionBegun,
    SessionEnded,
    SessionParams,
    begin_session,
    end_session,
    session_text,
)
from roundtrip.services.support.wallet_params import WalletParams

_TEXT = Operation(
    name="session_text", title="The text to sign", description="", params=WalletParams, answer=TextToSign,
    handler=lambda call: session_text(call.ctx, call.params), method="POST", on_mcp=False, counts="minute",
)  # fmt: skip
_BEGIN = Operation(
    name="begin_session",
    title="Sign in",
    description="",
    params=KeyParams,
    answer=SessionBegun,
    handler=lambda call: begin_session(call.ctx, call.params),
    method="POST",
    writes=True,
    on_mcp=False,
    counts="minute",
    lane="calls",
)
_END = Operation(
    name="end_session",
    title="Sign out",
    description="",
    params=SessionParams,
    answer=SessionEnded,
    handler=lambda call: end_session(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    on_mcp=False,
    counts="never",
)


async def show_sign_in(visit: Visit) -> Response:
    """GET /sign-in: connects a wallet."""
    path = path_after_sign_in(visit.query.get("to", ""))
    return visit.redirect(path) if visit.session is not None else visit.show("sign_in.html", to=path)


async def send_text(visit: Visit) -> Response:
    """POST /sign-in/text: the text that the wallet has to sign, for the page's script."""
    return JSONResponse(await visit.ask_old(_TEXT, address=visit.form.get("address", "")))


async def sign_in(visit: Visit) -> Response:
    """POST /sign-in: starts a session for the signature, in a cookie that scripts cannot read and other sites
    cannot send."""
    params = {name: visit.form.get(name, "") for name in ("address", "signature")}
    session = await visit.ask_old(_BEGIN, **params, claim=visit.form.get("claim") or None)
    response = visit.redirect(path_after_sign_in(visit.form.get("to", "")))
    response.set_cookie(
        visit.console.cookie, session["session"], max_age=LIFETIME_S, path="/", secure=visit.console.secure,
        httponly=True, samesite="strict",
    )  # fmt: skip
    return response


async def sign_out(visit: Visit) -> Response:
    """POST /sign-out: ends the session, in the browser and in the database."""
    await visit.ask_old(_END, session=visit.session)
    response = visit.redirect("/")
    visit.console.end_cookie(response)
    return response
