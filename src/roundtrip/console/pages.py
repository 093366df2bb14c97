"""THE TABLE of pages. Routes, the sweep of screenshots and the tests loop over it."""

from .page import Page
from .rooms import account, boards, front, live, session, token, wallet

PAGES: tuple[Page, ...] = (
    Page("/", front.front),
    Page("/status", front.status),
    Page("/search", token.search),
    Page("/token/{address}", token.token),
    Page("/token/{address}/holders", token.holders),
    Page("/boards", boards.boards),
    Page("/boards/{board}", boards.board),
    Page("/boards/{board}/rows", boards.rows),
    Page("/boards/{board}/live", live.live, streams=True),
    Page("/league", boards.league),
    Page("/wallet/{address}", wallet.wallet),
    Page("/wallet/{address}/linked", wallet.linked),
    Page("/transaction/{hash}", wallet.transaction),
    Page("/sign-in", session.sign_in),
    Page("/sign-in/text", session.text, "POST"),
    Page("/sign-in", session.begin, "POST"),
    Page("/account", account.account, signed_in=True),
    Page("/account/{room}", account.room, signed_in=True),
    Page("/account/do/{tool}", account.act, "POST", signed_in=True),
    Page("/sign-out", session.end, "POST", signed_in=True),
)
