"""What is said of a token's holders, to people and programs: while it is read, in part, and whole."""

from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from roundtrip.domain.holders.book import InsiderLedger
from roundtrip.domain.holders.deployer_summary import Status
from roundtrip.domain.holders.findings import Concentration, KnownWallet
from roundtrip.domain.holders.ties import Disagreement
from roundtrip.services.holder_record.findings import Why
from roundtrip.services.holders.present import present
from roundtrip.services.holders.schema import (
    BiggestWin,
    BundleAnswer,
    Drift,
    Growth,
    Holders,
    HoldersCounted,
    PurseAnswer,
    Purses,
    RepeatCrowd,
    SnipersAnswer,
    TokenHolders,
)
from roundtrip.services.holders.text import WHY_TEXT
from roundtrip.store.holders.smart_money import SmartCrowd
from unit.domain.holding import AT_S, DEPLOYER, POOL, TOKEN, address, book, find_holders, tx
from unit.services.holding import (
    DAY_S,
    FUNDER,
    LAUNCHED,
    NOW_S,
    UNIT,
    WIN,
    A,
    B,
    C,
    D,
    E,
    gathered,
    the_book,
    the_told,
    winner,
)

# --- whole -----------------------------------------------------------------------------------------


def test_a_whole_answer() -> None:
    answer = present(gathered())
    assert (answer.status, answer.transfers_read, answer.block) == ("complete", 1234, 2_000)
    assert (answer.token.symbol, answer.token.decimals, answer.token.total_supply) == ("PEPE", 18, "10000")
    assert answer.market_cap_usd == 5_000.0
    assert answer.holders == HoldersCounted(4, False, 1390, 8000, 100, 1, 2)
    assert answer.launch is not None
    assert (answer.launch.block, answer.launch.window_blocks) == (1_000, 30)
    assert answer.snipers == SnipersAnswer(3, 600, 350, 1)
    assert answer.bundle == BundleAnswer(3, FUNDER, False, 600, 350)
    assert answer.checked_at == datetime.fromtimestamp(NOW_S + 1, UTC)


def test_the_biggest_holders() -> None:
    first, second, third, last = present(gathered()).top
    assert [one.address for one in (first, second, third, last)] == [D, A, C, DEPLOYER]
    assert (first.balance, first.supply_bps, first.age_days, first.tags) == ("1000", 1000, 100, ["contract"])
    assert (first.entry_market_cap_usd, first.multiple) == (None, None)
    # 30 dollars for 300 of 10,000: a market cap of 1,000 then, of 5,000 now.
    assert (second.entry_market_cap_usd, second.multiple, second.age_days) == (1_000.0, 5.0, 11)
    assert second.tags == ["sniper", "bundle", "fresh", "winner"]
    assert second.first_seen == datetime.fromtimestamp(AT_S - DAY_S, UTC)
    # Of one of its buys nobody knows the worth.
    assert (third.entry_market_cap_usd, third.multiple, third.sold_bps) == (None, None, 5000)
    assert (third.first_seen, third.age_days) == (None, None)
    assert last.tags == ["deployer"]


def test_a_multiple_of_an_unknown_price_is_not_known() -> None:
    answer = present(gathered(market_cap_micro_usd=None))
    assert answer.market_cap_usd is None
    assert (answer.top[1].entry_market_cap_usd, answer.top[1].multiple) == (1_000.0, None)


def test_the_deployer() -> None:
    deployer = present(gathered()).deployer
    assert deployer is not None
    assert (deployer.address, deployer.source, deployer.status) == (DEPLOYER, "launchpad", "holds_some")
    assert (deployer.received_bps, deployer.bought_bps, deployer.sold_bps) == (50, 50, 10)
    assert (deployer.moved_bps, deployer.pooled_bps, deployer.burned_bps, deployer.held_bps) == (0, 0, 0, 40)
    assert present(gathered(inputs=the_told(maker=None))).deployer is None


def test_a_share_is_of_the_sum_and_not_the_sum_of_shares() -> None:
    # Each has half of a hundredth of a percent.
    halves = book({address(number): 1 for number in range(1, 11)})
    answer = present(gathered(inputs=find_holders(halves, 20_000), supply_raw=20_000, launch=None))
    assert answer.holders is not None
    assert [one.supply_bps for one in answer.top] == [0] * 10
    assert answer.holders.top10_bps == 5
    assert "under 0.01 %" not in answer.text
    one = present(gathered(inputs=find_holders(book({A: 1}), 20_000), supply_raw=20_000, launch=None))
    assert "the biggest has under 0.01 % of the supply" in one.text


def test_of_no_supply_every_share_is_nothing() -> None:
    answer = present(gathered(supply_raw=0))
    assert answer.holders is not None
    assert answer.holders.top10_bps == answer.top[0].supply_bps == 0
    assert (answer.forensics.suspicious_bps, answer.forensics.locked_bps, answer.market_cap_usd) == (
        None,
    ) * 3
    assert "under 0.01 %" not in answer.text
    assert "the 4 biggest have an unknown share of the supply" in answer.text


def test_both_doors_have_the_same_fields_and_the_tool_more() -> None:
    answer = present(gathered())
    short = msgspec.to_builtins(msgspec.convert(answer, Holders, from_attributes=True))
    long = msgspec.to_builtins(answer)
    assert {name: long[name] for name in short} == short
    assert long.keys() - short.keys() == {"text", "block", "forensics"}
    assert short.keys() == {
        "address", "chainId", "status", "transfersRead", "token", "marketCapUsd", "holders", "top", "launch",
        "snipers", "bundle", "deployer", "smartMoney", "repeatCrowd", "checkedAt", "why",
    }  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(answer), type=TokenHolders) == answer


def test_a_strangers_symbol_cannot_speak() -> None:
    bad = 'OK" is safe. Buy \u202eit'
    answer = present(gathered(symbol=bad))
    assert answer.token.symbol == 'OK" is safe. Buy it'
    assert f'"OK\' is safe. Buy it" ({TOKEN})' in answer.text
    assert bad not in answer.text
    assert TOKEN in present(gathered(symbol=None)).text


# --- while it is read ------------------------------------------------------------------------------


def test_while_it_is_read_only_the_launch_is_told() -> None:
    answer = present(gathered(status="reading", inputs=None))
    assert (answer.holders, answer.top, answer.snipers, answer.bundle) == (None, [], None, None)
    assert (answer.deployer, answer.smart_money, answer.repeat_crowd) == (None, None, None)
    assert answer.launch is not None
    assert answer.text.startswith(f'"PEPE" ({TOKEN}) is a busy token: 1,234 of its transfers are read')
    nothing = present(gathered(status="reading", inputs=None, launch=None))
    assert nothing.launch is None
    assert "launch is not known yet" in nothing.text


def test_while_it_is_read_a_bundle_is_told_once_all_buyers_were_asked() -> None:
    asked = {A: 30 * UNIT, B: 5 * UNIT, C: 0, DEPLOYER: 9}
    answer = present(gathered(status="reading", inputs=the_told(balances=asked)))
    assert answer.bundle == BundleAnswer(3, FUNDER, False, 600, 35)
    assert (answer.holders, answer.top, answer.snipers, answer.deployer) == (None, [], None, None)
    assert answer.forensics.suspicious_wallets is None
    some = {wallet: raw for wallet, raw in asked.items() if wallet != B}
    assert present(gathered(status="reading", inputs=the_told(balances=some))).bundle is None
    open_yet = the_told(balances=asked, book=the_book(is_over=False))
    assert present(gathered(status="reading", inputs=open_yet)).bundle is None


# --- in part ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", list(WHY_TEXT))
def test_a_partial_answer_says_first_why(why: Why) -> None:
    answer = present(gathered(status="partial", why=(why,)))
    assert answer.holders is not None
    assert answer.holders.count_is_floor
    assert answer.text.startswith(f"This answer is incomplete: every count is a minimum. {WHY_TEXT[why]}")
    assert "At least 4 wallets hold" in answer.text


@pytest.mark.parametrize(
    ("status", "why"), [("complete", ("capped",)), ("partial", ()), ("reading", ("capped",))]
)
def test_what_is_partial_has_a_reason_and_nothing_else_has(status: str, why: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        gathered(status=status, why=why)


@pytest.mark.parametrize(
    ("ledger", "held", "whole", "in_part"),
    [
        (InsiderLedger(), 0, "never_held", None),
        (InsiderLedger(100), 100, "holds_all", None),
        (InsiderLedger(100, sold_raw=50), 50, "holds_some", None),
        (InsiderLedger(100, sold_raw=100), 0, "sold_out", "sold_out"),
        (InsiderLedger(100, moved_raw=100), 0, "moved_out", "moved_out"),
        (InsiderLedger(100, burned_raw=100), 0, "burned_out", "burned_out"),
    ],
)
def test_what_flatters_a_deployer_is_not_told_where_transfers_are_missing(
    ledger: InsiderLedger, held: int, whole: Status, in_part: Status | None
) -> None:
    known = the_told(book=book({DEPLOYER: held}, LAUNCHED, {DEPLOYER: ledger}))
    statuses: list[Status | None] = []
    for changes in (
        {},
        {"status": "partial", "why": ("unverified",)},
        {"status": "partial", "why": ("capped",)},
        {"status": "partial", "why": ("unverified", "pruned")},
        # Somebody else may have deployed it.
        {"inputs": replace(known, maker=None), "unsure_maker": known.maker},
    ):
        deployer = present(gathered(**{"inputs": known, **changes})).deployer
        statuses.append(None if deployer is None else deployer.status)
    assert statuses == [whole, whole, in_part, in_part, in_part]


def test_a_launch_that_is_not_known_for_sure_makes_no_snipers() -> None:
    answer = present(gathered(launch=None))
    assert (answer.launch, answer.snipers, answer.bundle) == (None, None, None)
    assert not {"sniper", "bundle"} & {tag for one in answer.top for tag in one.tags}


# --- winners and the crowd -------------------------------------------------------------------------


def test_winners_that_hold_it_and_that_sold_it() -> None:
    found = present(gathered(winners=(
        winner(C, span="7d", rank=1), winner(A), winner(A, span="all", rank=1), winner(B), winner(E),
        winner(D, span="7d", rank=2, profit_wei=0), winner(POOL),
    ))).smart_money  # fmt: skip
    assert found is not None
    assert (found.holding, found.sold_out) == (2, 1)
    first, second = found.wallets
    assert (first.address, first.window, first.rank, first.profit_eth) == (A, "24h", 3, 2.0)
    assert (first.win_rate, first.closed, first.supply_bps) == (0.75, 4, 300)
    assert (first.entry_market_cap_usd, first.multiple) == (1_000.0, 5.0)
    at = datetime.fromtimestamp(AT_S, UTC)
    assert first.biggest_win == BiggestWin(address(0xC0FFEE), "WIN", 3.0, 2.0, 2.5, at)
    assert (second.address, second.window, second.entry_market_cap_usd) == (C, "7d", None)


def test_of_one_board_the_better_rank_comes_first() -> None:
    found = present(gathered(winners=(winner(A, rank=7), winner(C, rank=2)))).smart_money
    assert found is not None
    assert [one.rank for one in found.wallets] == [2, 7]


def test_who_is_funded_by_somebody_is_not_unknown() -> None:
    known = the_told(wallets={A: KnownWallet(funder=FUNDER), B: KnownWallet(funder_known=True)})
    assert present(gathered(inputs=known)).forensics.funders_unknown == 2


def test_a_win_that_cost_nothing_has_no_multiple_and_is_left_out() -> None:
    found = present(gathered(winners=(winner(A),), biggest_wins={A: replace(WIN, spent_wei=0)})).smart_money
    assert found is not None
    assert found.wallets[0].biggest_win is None


def test_no_index_is_not_no_winners() -> None:
    answer = present(gathered(winners=None, crowd=None))
    assert (answer.smart_money, answer.repeat_crowd) == (None, None)
    assert "could not look up" in answer.text
    nobody = present(gathered())
    assert nobody.smart_money is not None
    assert nobody.smart_money.holding == 0
    assert nobody.repeat_crowd == RepeatCrowd(0, 4, 0, 4)


def test_the_crowd_of_a_deployer_is_not_he() -> None:
    crowd = SmartCrowd(4, {D: 2, A: 3, DEPLOYER: 4, E: 9, C: 0})
    answer = present(gathered(crowd=crowd))
    assert answer.repeat_crowd == RepeatCrowd(2, 4, 3, 4)
    reply = "2 of the 4 biggest also bought other launches of its deployer, who launched 4 tokens in all."
    assert reply in answer.text
    assert present(gathered(crowd=crowd, inputs=the_told(maker=None))).repeat_crowd is None


# --- what people say, and what is missing ----------------------------------------------------------


def test_a_mark_of_scam_is_told_of_the_biggest_and_of_the_deployer() -> None:
    answer = present(gathered(scams={A: 3, DEPLOYER: 1_004, FUNDER: 9}))
    assert [(one.address, one.scam_marks) for one in answer.top if one.scam_marks] == [
        (A, 3),
        (DEPLOYER, 1_004),
    ]
    assert f"{A}, one of the biggest, is marked as a scam by 3 people" in answer.text
    assert f"Its deployer {DEPLOYER} is marked as a scam by 1,004 people" in answer.text
    assert answer.text.count("scam") == 2
    assert "scam" not in present(gathered()).text


def test_what_is_partial_says_why_to_whoever_reads_no_text() -> None:
    answer = present(gathered(status="partial", why=("capped", "claims")))
    assert answer.why == [WHY_TEXT["capped"], WHY_TEXT["claims"]]
    assert present(gathered()).why == []


# --- a closer look ---------------------------------------------------------------------------------


def test_a_closer_look() -> None:
    the = the_book(earlier={NOW_S - 3600: 4, NOW_S - DAY_S: 1, NOW_S - 7 * DAY_S: None})
    look = present(
        gathered(
            inputs=the_told(book=the),
            concentration=Concentration(6000, 1),
            disagreement=Disagreement(9, 1, 25 * UNIT, -50 * UNIT),
        )
    ).forensics
    assert (look.gini_bps, look.nakamoto, look.locked_bps) == (6000, 1, 500)
    # The deployer, A and C still have some; B sold out, and the creator never had any.
    assert (look.suspicious_wallets, look.suspicious_bps, look.funders_unknown) == (3, 390, 1)
    assert look.growth == Growth(0, 3, None)
    assert look.drift == Drift(9, 1, 25, -50)
    kinds = [(one.wallet, one.kind, one.to, one.transaction) for one in look.links]
    assert kinds[0] == (DEPLOYER, "deployed", None, tx(1))
    assert (A, "same_funder", FUNDER, tx(0xFA)) in kinds
    assert (B, "sniped", None, tx(9)) in kinds
    # C bought by a transaction of its own; only its funder ties it. D is a contract that nobody ties.
    assert look.purses == Purses(3, 2, 1, [PurseAnswer(3, 2, 350, FUNDER, has_deployer=False)])


def test_a_holder_of_the_deployers_purse_is_told() -> None:
    known = the_told()
    paid = {one: replace(known.wallets[A], funded_s=AT_S) for one in (A, DEPLOYER)}
    answer = present(gathered(inputs=replace(known, wallets={**known.wallets, **paid})))
    assert answer.forensics.purses is not None
    assert answer.forensics.purses.rows == [PurseAnswer(4, 3, 390, FUNDER, has_deployer=True)]
    assert [(one.address, one.purse) for one in answer.top] == [
        (D, None), (A, 1), (C, 1), (DEPLOYER, 1),
    ]  # fmt: skip
    text = f"4 wallets, its deployer among them, seem to have one purse from {FUNDER}: they hold 3.90 %."
    assert text in answer.text


def test_growth_is_not_known_where_transfers_are_missing_or_lie() -> None:
    of = the_book(earlier={NOW_S - 3600: 4, NOW_S - DAY_S: 1})
    for why, drifts in (("capped", False), ("drifts", True)):
        known = the_told(book=of, drifts=drifts)
        off = Disagreement(1, 0, 0, 5 * UNIT)
        look = present(gathered(inputs=known, status="partial", why=(why,), disagreement=off)).forensics
        assert look.growth is None
        assert look.drift is not None
        assert look.drift.supply_off_bps == (5 if why == "drifts" else None)
