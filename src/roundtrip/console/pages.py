"""THE TABLE of pages. Routes, the sweep of screenshots and the tests loop over it."""

from .page import Page
from .rooms import session, token

PAGES: tuple[Page, ...] = (
    Page("/search", token.search),
    Page("/token/{address}", token.token),
    Page("/sign-in", session.sign_in),
    Page("/sign-in/text", session.text, "POST"),
    Page("/sign-in", session.begin, "POST"),
    Page("/sign-out", session.end, "POST", signed_in=True),
)
