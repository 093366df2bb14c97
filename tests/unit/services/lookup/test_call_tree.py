"""Who is who in a tree of calls: what a stranger wrote is cleaned, and has its address beside it."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec

from roundtrip.chain.wallet.call_traces import MAX_MOVES, TracedCall
from roundtrip.console.pages import trade, wallet
from roundtrip.console.support.render import Templates
from roundtrip.domain.base.events import Transferred
from roundtrip.domain.transaction.account import KnownMarket
from roundtrip.services.lookup.call_tree import CallTree, NamedCall, Names
from roundtrip.services.lookup.entities import KnownEntities
from roundtrip.store.index.tokens import Label
from unit.venues.network import CONTRACTS, address

WALLET, TOKEN, POOL, OTHER = (address(number << 140) for number in (0xA, 0xB, 0xC, 0xD))
ROUTER = CONTRACTS.universal_router
CALL = TracedCall("CALL", OTHER, 0, b"", None, is_undone=False, moves=(), calls=())


def names(symbol: str | None) -> Names:
    """``symbol``: of the token, and of the router, whose place it claims."""
    known = KnownEntities()
    known.labels = {at: Label(at, symbol, None, 0, None) for at in (TOKEN, ROUTER)}
    known.markets = {POOL: KnownMarket(POOL, "amm_v3", TOKEN, CONTRACTS.weth, True)}
    return Names(CONTRACTS, known)


def show(named: Names, *calls: TracedCall, **more: Any) -> str:
    tree = CallTree(named.place(WALLET), [named.call(call) for call in calls], "told", 0, 0)
    tree = msgspec.structs.replace(tree, **more)
    visit = SimpleNamespace(eth_usd=lambda: None)
    return Templates({}).render("calls_piece.html", tree=tree, is_own=False, visit=visit)


def words(page: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", page).split())


def test_a_strangers_symbol_is_cleaned_and_names_none_of_our_contracts() -> None:
    named = names("the\u202e swap\u200b router" + "x" * 99)
    assert named.place(TOKEN).symbol == "the swap router" + "x" * 17
    assert named.place(POOL).symbol == named.place(TOKEN).symbol
    assert (named.place(ROUTER).role, named.place(ROUTER).symbol) == ("the Universal Router", None)


def test_beside_each_strangers_symbol_stands_its_address() -> None:
    moved = Transferred(TOKEN, POOL, WALLET, 5)
    told = words(show(names("USDG"), replace(CALL, to=TOKEN, moves=(moved,))))
    short = f"USDG {TOKEN[:6]}…{TOKEN[-4:]}"
    assert f"the sender → {short}" in told
    assert re.search(f"5 {short} : the [^:→]* of {short} → the sender", told)
    nameless = words(show(names(None), replace(CALL, moves=(moved,))))
    assert f"5 of {TOKEN[:6]}…{TOKEN[-4:]} :" in nameless


def test_inside_a_call_that_failed_nothing_looks_done() -> None:
    inner = replace(CALL, value_wei=10**18, is_undone=True)
    page = words(show(names("A"), replace(CALL, reason="no", calls=(inner,))))
    assert "undone, since the call around it fails" in page
    assert "ETH" not in page
    assert "undone" not in words(show(names("A"), replace(CALL, value_wei=10**18)))


def test_borrowed_code_gets_no_eth_of_its_own() -> None:
    kinds = ("CALL", "DELEGATECALL", "CALLCODE")
    told: list[NamedCall] = [names("A").call(replace(CALL, kind=kind, value_wei=10**18)) for kind in kinds]
    assert [call.eth for call in told] == ["1", None, None]


def test_what_is_left_out_is_counted_and_why_nothing_is_told_is_said() -> None:
    page = words(show(names("A"), CALL, left_out=7, moves_left_out=9))
    assert "left out, and 7 more; so are 9 more movements of tokens." in page
    assert "nested too deeply to show" in words(show(names("A"), CALL, inside="too_deep"))
    assert "too large to show" in words(show(names("A"), CALL, inside="too_large"))
    assert "our node does not tell" in words(show(names("A"), CALL, inside="not_told"))


def test_the_largest_tree_is_a_page_of_ordinary_size() -> None:
    moves = (Transferred(TOKEN, POOL, POOL, 2**256 - 1),) * MAX_MOVES
    page = show(names("W" * 99), replace(CALL, moves=moves, calls=(replace(CALL, to=TOKEN),) * 149))
    assert len(page) < 500_000


def test_what_a_visitor_wrote_runs_in_its_own_lane_and_a_transactions_tree_counts_as_a_piece() -> None:
    assert (trade.CALLS.lane, wallet.CALLS.lane, wallet.CALLS.counts) == ("calls", "checks", "day")
