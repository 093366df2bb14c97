"""What wallet_history says."""

from dataclasses import replace

from roundtrip.chain.holders.wallet_views import UNREAD, WalletToken, WalletViews
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.services.wallets.history_answer import WalletBeginning, WalletRecord, present
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.deployers import NOTHING, DeployerLaunches
from roundtrip.store.index.tokens import Label
from roundtrip.store.wallets.wallets import ClosingsSummary, TradeTotals, WalletClosing, WalletClosings
from unit.domain.holding import address

WALLET, FUNDER, TOKEN = address(0xA1), address(0xF1), address(0xC2)
NOW_S, DAY_S, ETH = 1_800_000_000, 86_400, 10**18
_NO_CLOSINGS = WalletClosings(0, 0, 0, 0, False)
NOTHING_KNOWN = WalletRecord(
    index_cursor=Cursor(0, BlockRef(9, "0x09", NOW_S)),
    scams={},
    family=0,
    record=NOTHING,
    into_pools=0,
    launches=(),
    traded=TradeTotals(0, 0, 0, 0, 0, 0, 0, 0, False),
    ended=ClosingsSummary(_NO_CLOSINGS, _NO_CLOSINGS, None, None),
    held=(),
    last_trades={},
    labels={},
)
TRADER = replace(
    NOTHING_KNOWN,
    scams={WALLET: 4},
    family=2,
    record=DeployerLaunches(3, 1, 0),
    into_pools=1,
    traded=TradeTotals(2, 1_234, 1, 0, 0, 0, 1, 0, True),
    ended=ClosingsSummary(
        WalletClosings(5, 3, 3 * ETH, 10**18, False), _NO_CLOSINGS, WalletClosing(7, NOW_S, 1, ETH), None
    ),
    labels={7: Label(TOKEN, "PEPE", None, None, None)},
)
BEGINNING = WalletBeginning(FirstSeen(1, NOW_S - DAY_S, FUNDER), "known")


def test_the_text_of_a_wallet_that_traded() -> None:
    views = WalletViews(False, 1_234_567 * 10**12, 0, 0, {TOKEN: WalletToken()})
    assert present(1, WALLET, BEGINNING, TRADER, 9, views).text == (
        "This wallet is marked as a scam by 4 people: that is their word, not proof. "
        "It was first seen 2027-01-14 08:00 UTC, 1 day ago. "
        f"Its first eth in a plain transfer came from {FUNDER}, which sent 2 wallets their first eth. "
        "It launched 3 tokens: 1 graduated. It sold half or more of what it had bought of none of them. "
        "It launched 1 token straight into a pool. "
        "It traded 2 tokens: 1,234 buys and 1 sell. "
        "It closed 5 positions, 3 with a profit: a total loss of 2 eth. "
        f'Its best position was "PEPE" ({TOKEN}) with a profit of 0.9999 eth. '
        "There is more: only the newest 4,000 are counted. "
        "By its trades it still holds 1 token; 0 are listed. It has 1.234 eth. "
        "It may also hold tokens that it never traded: those are not listed."
    )


def test_what_could_not_be_read_is_not_nothing() -> None:
    beginning = WalletBeginning(None, "unknown")
    assert present(1, WALLET, beginning, NOTHING_KNOWN, None, UNREAD).text == (
        "Its age and funder are not known: the index saw nothing reach it, or does not show whether that was "
        "the first. It launched no token that we know of. We know of no trade by it. "
        "By its trades it holds no token. "
        "We could not read what it holds now: the chain did not answer. Ask again. "
        "It may also hold tokens that it never traded: those are not listed."
    )
    searching = present(1, WALLET, WalletBeginning(None, "searching"), NOTHING_KNOWN, None, UNREAD)
    assert searching.text.startswith("We are searching older blocks for its age and funder: ask again in a")
