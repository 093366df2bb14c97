"""THE TABLE of pages. Routes, the sweep of screenshots and the tests loop over it."""

from roundtrip.console.pages.account_sections import keys
from roundtrip.console.support.page_request import PageRoute

from .pages import account, boards, front, live, reference, scorecard, session, token, token_flags, wallet

PAGES: tuple[PageRoute, ...] = (
    PageRoute("/", front.front),
    PageRoute("/status", front.status),
    PageRoute("/operations", reference.operations),
    PageRoute("/tools", reference.tools),
    PageRoute("/scorecard", scorecard.scorecard),
    PageRoute("/scorecard/report", scorecard.report, signed_in=True),
    PageRoute("/scorecard/report", scorecard.send_report, "POST", signed_in=True),
    PageRoute("/search", token.search),
    PageRoute("/token/{address}", token.token),
    PageRoute("/token/{address}/holders", token.holders),
    PageRoute("/token/{address}/flags", token_flags.flags),
    PageRoute("/token/{address}/flags", token_flags.flag, "POST", signed_in=True),
    PageRoute("/boards", boards.boards),
    PageRoute("/boards/{board}", boards.board),
    PageRoute("/boards/{board}/rows", boards.rows),
    PageRoute("/boards/{board}/live", live.live, streams=True),
    PageRoute("/league", boards.league),
    PageRoute("/wallet/{address}", wallet.wallet),
    PageRoute("/wallet/{address}/linked", wallet.show_linked),
    PageRoute("/wallet/{address}/said", wallet.say, "POST", signed_in=True),
    PageRoute("/transaction/{hash}", wallet.transaction),
    PageRoute("/sign-in", session.sign_in),
    PageRoute("/sign-in/text", session.text, "POST"),
    PageRoute("/sign-in", session.begin, "POST"),
    PageRoute("/account", account.account, signed_in=True),
    PageRoute("/account/{room}", account.room, signed_in=True),
    PageRoute("/account/keys/text", keys.text, "POST", signed_in=True),
    PageRoute("/account/do/{tool}", account.act, "POST", signed_in=True),
    PageRoute("/sign-out", session.end, "POST", signed_in=True),
)
