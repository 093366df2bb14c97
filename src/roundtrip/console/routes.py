"""The tables of all pages and pictures. Routes, screenshots and tests loop over them."""

from roundtrip.console.pages.account_sections import keys
from roundtrip.console.support.page_request import PageRoute

from .pages import (
    account,
    boards,
    cards,
    chart,
    docs,
    front,
    scorecard,
    session,
    token,
    token_acts,
    token_steps,
    trade,
    wallet,
)

PAGES: tuple[PageRoute, ...] = (
    PageRoute("/", front.show_front),
    PageRoute("/status", front.show_status),
    PageRoute("/operations", docs.show_operations),
    PageRoute("/tools", docs.show_tools),
    PageRoute("/tools/{tool}", docs.show_tool),
    PageRoute("/ui", docs.show_components),
    PageRoute("/docs", docs.show_docs),
    PageRoute("/docs/{page}", docs.show_doc_page),
    PageRoute("/docs/decisions/{page}", docs.show_doc_page),
    PageRoute("/scorecard", scorecard.show_scorecard),
    PageRoute("/search", front.search),
    PageRoute("/suggest", front.show_suggestions),
    PageRoute("/token/{address}", token.show_token),
    PageRoute("/token/{address}/holders", token.show_holders),
    PageRoute("/token/{address}/liquidity", token.show_liquidity),
    PageRoute("/token/{address}/own", token.show_own, signed_in=True),
    PageRoute("/token/{address}/steps", token_steps.stream_steps, streams=True),
    PageRoute("/token/{address}/request", token_steps.show_request),
    PageRoute("/token/{address}/chart", chart.show_chart),
    PageRoute("/token/{address}/trades", chart.show_trades),
    PageRoute("/token/{address}/flags", token_acts.show_flags),
    PageRoute("/token/{address}/flags", token_acts.add_flag, "POST", signed_in=True),
    PageRoute("/token/{address}/watch", token_acts.set_watch, "POST", signed_in=True),
    PageRoute("/boards", boards.show_first_board),
    PageRoute("/boards/{board}", boards.show_board),
    PageRoute("/boards/{board}/rows", boards.show_rows),
    PageRoute("/boards/{board}/live", boards.stream_board, streams=True),
    PageRoute("/league", boards.show_league),
    PageRoute("/wallet/{address}", wallet.show_wallet),
    PageRoute("/wallet/{address}/linked", wallet.show_linked),
    PageRoute("/wallet/{address}/said", wallet.mark_wallet, "POST", signed_in=True),
    PageRoute("/transaction/{hash}", wallet.show_transaction),
    PageRoute("/trade", trade.show_trade),
    PageRoute("/simulate", trade.show_simulate),
    PageRoute("/simulate", trade.simulate, "POST"),
    PageRoute("/sign-in", session.show_sign_in),
    PageRoute("/sign-in/text", session.send_text, "POST"),
    PageRoute("/sign-in", session.sign_in, "POST"),
    PageRoute("/account", account.show_first_room, signed_in=True),
    PageRoute("/account/{room}", account.show_room, signed_in=True),
    PageRoute("/account/keys/text", keys.send_text, "POST", signed_in=True),
    PageRoute("/account/do/{tool}", account.submit_form, "POST", signed_in=True),
    PageRoute("/sign-out", session.sign_out, "POST", signed_in=True),
)

PICTURES: tuple[PageRoute, ...] = (
    PageRoute("/t/{address}", cards.show_short_link),
    PageRoute("/t/{address}/card.svg", cards.show_card_svg),
    PageRoute("/t/{address}/card.png", cards.show_card_png),
    PageRoute("/t/{address}/badge.svg", cards.show_badge),
)
"""What other sites embed of a token, and the short link to its page."""
