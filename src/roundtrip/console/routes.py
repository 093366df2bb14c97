"""THE TABLE of pages. Routes, the sweep of screenshots and the tests loop over it."""

from roundtrip.console.pages.account_sections import keys
from roundtrip.console.support.page_request import Page

from .pages import account, boards, front, live, reference, scorecard, session, token, token_flags, wallet

PAGES: tuple[Page, ...] = (
    Page("/", front.front),
    Page("/status", front.status),
    Page("/operations", reference.operations),
    Page("/tools", reference.tools),
    Page("/scorecard", scorecard.scorecard),
    Page("/scorecard/report", scorecard.report, signed_in=True),
    Page("/scorecard/report", scorecard.send_report, "POST", signed_in=True),
    Page("/search", token.search),
    Page("/token/{address}", token.token),
    Page("/token/{address}/holders", token.holders),
    Page("/token/{address}/flags", token_flags.flags),
    Page("/token/{address}/flags", token_flags.flag, "POST", signed_in=True),
    Page("/boards", boards.boards),
    Page("/boards/{board}", boards.board),
    Page("/boards/{board}/rows", boards.rows),
    Page("/boards/{board}/live", live.live, streams=True),
    Page("/league", boards.league),
    Page("/wallet/{address}", wallet.wallet),
    Page("/wallet/{address}/linked", wallet.show_linked),
    Page("/wallet/{address}/said", wallet.say, "POST", signed_in=True),
    Page("/transaction/{hash}", wallet.transaction),
    Page("/sign-in", session.sign_in),
    Page("/sign-in/text", session.text, "POST"),
    Page("/sign-in", session.begin, "POST"),
    Page("/account", account.account, signed_in=True),
    Page("/account/{room}", account.room, signed_in=True),
    Page("/account/keys/text", keys.text, "POST", signed_in=True),
    Page("/account/do/{tool}", account.act, "POST", signed_in=True),
    Page("/sign-out", session.end, "POST", signed_in=True),
)
