"""Signing in and out: one signature of a wallet, and no password."""

from starlette.responses import JSONResponse, Response

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.page_request import Visit, after_sign_in
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


async def sign_in(visit: Visit) -> Response:
    """Where a wallet is connected."""
    to = after_sign_in(visit.query.get("to", ""))
    return visit.go(to) if visit.session is not None else visit.show("sign_in.html", to=to)


async def text(visit: Visit) -> Response:
    """For the page's script: what the wallet is asked to sign."""
    return JSONResponse(await visit.ask(_TEXT, address=visit.form.get("address", "")))


async def begin(visit: Visit) -> Response:
    """Opens a session for the signature, in a cookie that no script reads and no other site sends."""
    given = {name: visit.form.get(name, "") for name in ("address", "signature")}
    begun = await visit.ask(_BEGIN, **given, claim=visit.form.get("claim") or None)
    response = visit.go(after_sign_in(visit.form.get("to", "")))
    response.set_cookie(
        visit.console.cookie, begun["session"], max_age=LIFETIME_S, path="/", secure=visit.console.secure,
        httponly=True, samesite="strict",
    )  # fmt: skip
    return response


async def end(visit: Visit) -> Response:
    """Ends the session, here and in the database."""
    await visit.ask(_END, session=visit.session)
    response = visit.go("/")
    visit.console.end_cookie(response)
    return response
