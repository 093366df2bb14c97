"""What boards say: a heading, one row a line, then the notes."""

from datetime import UTC, datetime

import pytest

from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.market.moving import CheckedLevel, MoneyFlow, MovingBoard
from roundtrip.domain.market.signals import SignalFacts
from roundtrip.services.boards import chain_vitals, graduating_soon, moving_now, signals, winners
from roundtrip.services.boards.chain_vitals import ChainVitals, FollowedSince
from roundtrip.services.boards.graduating_soon import CurveFilling, LaunchDeployer
from roundtrip.services.support.index_reader import TokenNamed
from roundtrip.store.boards.winners import ClosingTotals, RankedClosings, WinnersBoard
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import Label

ETH = 10**18
TOKEN, WALLET, OTHER = (Address("0x" + digits * 20) for digits in ("cd", "ab", "ef"))
NOW = datetime(2025, 10, 9, 8, 53, 20, tzinfo=UTC)
NOW_S = int(NOW.timestamp())
LABEL = Label(TOKEN, "FR\nSH", None, 18, None)


def vitals(**changes: object) -> ChainVitals:
    fields: dict[str, object] = {
        "text": "", "chain_id": 4663, "block": 1527, "block_time": NOW, "block_time_ms": 100,
        "gas_price_wei": "7", "gas_price_gwei": 7e-9, "eth_usd": 3512.345, "launches_last_hour": 1,
        "graduations_last_day": 0, "trades_per_minute": 1234.5, "blocks_behind": 1, "seconds_behind": 2,
        "followed_from": FollowedSince(0, NOW),
    }  # fmt: skip
    return ChainVitals(**{**fields, **changes})  # type: ignore[arg-type]


describe_vitals = chain_vitals._describe


def test_vitals() -> None:
    assert describe_vitals(vitals(), None, 10**6, is_whole=True) == (
        "Figures as of block 1,527, made 2025-10-09 08:53:20 UTC. A block takes 100 ms. Gas costs 7 wei. "
        "1 eth is worth 3,512 dollars. The last hour had 1 launch. The last day had no graduation from a "
        "curve to a pool. The last ten minutes had 1,234 trades a minute. The node does not answer: the gas "
        "price, the price of eth and how far the index is behind the chain are unknown."
    )


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (3499.999999, "3,500"),
        (3500.49, "3,500"),
        (3500.5, "3,501"),
        (9999.9, "10,000"),
        (0.12345678, "0.1235"),
    ],
)
def test_a_price_of_eth_is_the_nearest(usd: float, text: str) -> None:
    said = describe_vitals(vitals(eth_usd=usd), None, 10**6, is_whole=True)
    assert f"1 eth is worth {text} dollars." in said


def test_vitals_of_a_young_index_say_what_is_missing() -> None:
    text = describe_vitals(vitals(trades_per_minute=None), None, 30, is_whole=False)
    assert text.endswith(
        " The index begins at 2025-10-09 08:53:20 UTC: earlier trades, launches and graduations are not "
        "counted."
    )


def flow(net_wei: int, level: str | None = None) -> MoneyFlow:
    checked = None if level is None else CheckedLevel("code", level, NOW_S - 5.0)
    return MoneyFlow(7, TOKEN, None, NOW_S, "amm_v3", net_wei, 0, None, 3, 0, tuple(range(12)), 0, checked)


def moving(*flows: MoneyFlow, unproven: int = 0, traps: int = 0) -> str:
    window, followed_s = (NOW_S - 600, NOW_S), 0
    return moving_now._describe(MovingBoard(flows, unproven, traps), {7: LABEL}, NOW_S, window, followed_s)


def test_what_moves_is_one_row_a_line() -> None:
    assert moving(*(flow(n * ETH // 3, "ok") for n in (4000, 3, 2, 1)), unproven=1, traps=30).split("\n") == [
        "In the ten minutes up to 2025-10-09 08:53:20 UTC 4 tokens took in more eth than came out and had "
        "3 or more buyers (wallets that one wallet funded count once):",
        f'1. "FR SH" ({TOKEN}): 1,333 eth more in than out, 12 buyers.',
        f'2. "FR SH" ({TOKEN}): 1 eth more in than out, 12 buyers.',
        f'3. "FR SH" ({TOKEN}): 0.6666 eth more in than out, 12 buyers.',
        "The rows hold 1 more.",
        "1 token is left out: no sell of it is proven yet. 30 or more tokens are left out: a check found "
        "that you cannot sell them.",
    ]


@pytest.mark.parametrize(
    ("level", "caution"),
    [
        ("danger", f'You lose half or more of your money when you buy and sell "FR SH" ({TOKEN}).'),
        ("unknown", f'We could not find out whether you can sell "FR SH" ({TOKEN}): treat that as a no.'),
        (None, "1 launchpad token was not checked in the last hour: run check_token before you buy."),
    ],
)
def test_cautions_follow_the_rows(level: str | None, caution: str) -> None:
    assert moving(flow(ETH, level)).split("\n")[2] == caution


def filling(fill_bps: int, buys: int = 5, launches: int = 12) -> CurveFilling:
    return CurveFilling(
        TokenNamed(TOKEN, None, None), OTHER, "eth", fill_bps, None, None, "0", "0", buys, min(buys, 3), NOW,
        9, None, LaunchDeployer(WALLET, launches, 1, 0, sold=False),
    )  # fmt: skip


def test_what_graduates_soon_is_one_row_a_line_numbered_from_one() -> None:
    shown = [filling(10_000), filling(9_876), filling(5_000, buys=0, launches=1)]
    block = BlockRef(5, "0x", NOW_S)
    text = graduating_soon._describe([(LABEL, one) for one in shown], Cursor(1000, block))
    assert text.split("\n") == [
        "Closest to filling their curve:",
        f'1. "FR SH" ({TOKEN}): 98.76 % full, 5 buys by 3 wallets in ten minutes; 1 of its deployer\'s '
        "newest 12 launches graduated.",
        f'2. "FR SH" ({TOKEN}): 50.00 % full, no buy in ten minutes; no other launch of its deployer is '
        "known.",
        "Already full, their pool is not open yet:",
        f'1. "FR SH" ({TOKEN})',
        "A full curve is closed and then becomes a pool; until the pool is open, the token cannot be traded. "
        "A full curve does not show that you can sell the token later: check it. Launches before block 1,000 "
        "are not counted.",
    ]


BEHIND = f"{WALLET}, the deployer of X or a wallet that it funded,"
SOLD = SignalFacts(token_raw=5, supply_raw=100, eth_wei=12_345 * ETH // 10_000)


@pytest.mark.parametrize(
    ("kind", "facts", "sentence"),
    [
        ("insider_sold", SOLD, f"{BEHIND} sold 5.00 % of the supply for 1.234 eth."),
        (
            "insider_sold",
            SignalFacts(eth_wei=ETH),
            f"{BEHIND} sold an unknown share of the supply for 1 eth.",
        ),
        ("insider_moved", SOLD, f"{BEHIND} moved 5.00 % of the supply to {OTHER}."),
        ("large_burn", SOLD, f"{WALLET} burned 5.00 % of the supply of X."),
        (
            "liquidity_left",
            SignalFacts(eth_wei=ETH, pool_bps=1234),
            f"{WALLET} removed 12.34 % of the liquidity of a pool of X, 1 eth of it on the quote side.",
        ),
        ("liquidity_left", SignalFacts(), f"{WALLET} removed liquidity from a pool of X."),
        (
            "serial_launcher",
            SignalFacts(launches=1200, graduated=3),
            f"{WALLET} launched X. It made 1,200 launches; 3 became a pool.",
        ),
    ],
)
def test_a_signal(kind: signals.Kind, facts: SignalFacts, sentence: str) -> None:
    signal = signals._PossibleSignal(kind, 1, 2, facts, recipients=1)
    assert signals._describe_signal(signal, "X", WALLET, OTHER) == sentence


def test_the_board_of_winners_is_one_row_a_line() -> None:
    rows = tuple(
        RankedClosings(n, WALLET, ETH // n, ETH, closed, 1, 7, ETH // 2, 3 * ETH, NOW_S)
        for n, closed in ((1, 1), (3, 2), (4, 1), (5, 1))
    )
    lines = winners._describe_board(WinnersBoard("24h", 1527, NOW_S, rows), rows, {7: LABEL}, 600).split("\n")
    best = f'Best: "FR SH" ({TOKEN}), 0.5 eth became 3 eth.'
    assert lines[:-1] == [
        "Most profit closed in the 24 hours up to block 1,527 (600 seconds before the newest block):",
        f"1. {WALLET} made 1 eth with 1 closed position. {best}",
        f"2. {WALLET} made 0.3333 eth with 2 closed positions (1 with a profit). {best}",
        f"3. {WALLET} made 0.25 eth with 1 closed position. {best}",
        "The rows hold 1 more.",
    ]
    assert lines[-1].startswith("A token counts once it is a day old and was bought by at least 20 different")


@pytest.mark.parametrize(
    ("totals", "why"),
    [
        (ClosingTotals(0, 0, 0, 0, None), "No wallet sold out of a token in that time. A token counts once"),
        (ClosingTotals(1, 1, 0, 1, None), "a token 1 time, but no wallet that counts made a profit."),
        (ClosingTotals(2, 1, 1, 0, None), "2 times. All those tokens are younger than a day, so they do not"),
        (
            ClosingTotals(9, 2, 1, 0, None),
            "none of those tokens counts: 1 of 2 tokens are younger than a day,",
        ),
        (
            ClosingTotals(9, 2, 0, 0, None),
            "none of those tokens counts: all were bought by fewer than 20 diff",
        ),
    ],
)
def test_an_empty_board_of_winners_says_why(totals: ClosingTotals, why: str) -> None:
    assert why in winners._explain_empty(totals, WinnersBoard("24h", 1527, NOW_S, ()))
