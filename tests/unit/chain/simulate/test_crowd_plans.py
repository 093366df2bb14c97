"""What a crowd's wallets do, in which block, and what they start with."""

from dataclasses import replace
from itertools import accumulate

import pytest
from eth_abi.abi import decode
from msgspec import structs

from roundtrip.chain.simulate.crowd_plans import (
    Attempt,
    Member,
    company_plan,
    crowd_buy_blocks,
    crowd_sell_plan,
    held_reads,
    isolated_plan,
    plain_wallet,
    sell_amounts,
    sell_waits,
)
from roundtrip.chain.simulate.legs import VenuePlace, route_to, size_raw
from roundtrip.chain.simulate.probe_plans import buy_block
from roundtrip.chain.simulate.request import Plan, SimulatedStep
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, ZERO_ADDRESS
from roundtrip.domain.check.evidence import CrowdWay, QuoteHop, QuoteRate
from roundtrip.venues import abi, amm_v3, amm_v4, erc20, launchpad_curve
from unit.chain.crowds import HELD, MONEY, SELL_GAS, SLOT, alone, crowd, member, wallet
from unit.chain.samples import ENVIRONMENT
from unit.chain.trades import (
    BOUGHT,
    ETH,
    EVERY_PLACE,
    READER,
    SETTING,
    TOKEN,
    USDG,
    WETH,
    steps_of,
    was_bought,
)
from unit.services.engine.crowds import CURVE, drawn
from unit.venues.network import CONTRACTS, address

RATE = QuoteRate(MONEY, 20 * 10**18, (QuoteHop(MONEY, 3000),), 18)
GIVEN = replace(SETTING, market=replace(SETTING.market, rates=(RATE,)), slots=(SLOT,))
ODD = VenuePlace(amm_v3.pool(TOKEN, MONEY, 3000, CONTRACTS), amm_v3)
WITH_CURVE = pytest.mark.parametrize("place", [WETH, USDG, ETH, CURVE], ids=["weth", "usdg", "eth", "curve"])


def members(place: VenuePlace, count: int = 27) -> tuple[Member, ...]:
    return tuple(Member(n, w, HELD + n, 300_000, SELL_GAS) for n, w in enumerate(drawn(place)[:count]))


def where(plan: Plan) -> dict[str, int]:
    """The block of every step, by its label."""
    return {step.label: n for n, block in enumerate(plan.blocks) for step in block.steps}


def moments(plan: Plan) -> list[int]:
    """Seconds after the main buy of each block."""
    first = plan.blocks[0].delay_s
    return [at_s - first for at_s in accumulate(block.delay_s for block in plan.blocks)]


def by_label(plan: Plan) -> dict[str, SimulatedStep]:
    actual = {step.label: step for step in steps_of(plan)}
    assert len(actual) == len(steps_of(plan)), "labels are unique"
    return actual


# --- a whole crowd ------------------------------------------------------------------------------------


LAST_BUY_S = 5
"""The last block of buys: all wait from there on."""


@WITH_CURVE
def test_a_crowd_takes_at_most_twenty_four_blocks_in_order_of_time(place: VenuePlace) -> None:
    plan = crowd(*members(place), place=place)
    assert 6 < len(plan.blocks) <= 24
    assert all(block.delay_s >= 1 for block in plan.blocks)
    assert moments(plan)[:6] == [0, 1, 2, 3, 4, 5]
    last = [POLICY.day_s, POLICY.day_s + POLICY.later_s]
    assert moments(plan)[-2:] == [LAST_BUY_S + wait_s for wait_s in last]


@WITH_CURVE
def test_each_wallet_sells_at_its_moment_and_approves_in_an_earlier_block(place: VenuePlace) -> None:
    known = members(place)
    plan = crowd(*known, place=place)
    at, times, actual = where(plan), moments(plan), by_label(plan)
    for seller in known:
        approvals = [label for label in at if label.startswith(f"m{seller.number}-approve-")]
        sells = [label for label in at if label.startswith(f"m{seller.number}-sell-")]
        assert len(approvals) == (1 if place is CURVE or (place is not ETH and _usual(seller)) else 2)
        assert len({at[label] for label in approvals}) == 1
        assert at[f"m{seller.number}-buy"] < at[sells[0]]
        assert at[approvals[0]] < at[sells[0]]
        assert {actual[label].sender for label in (*approvals, *sells)} == {seller.wallet.wallet}
        if seller.wallet.way == "pieces":
            waits = [LAST_BUY_S + wait_s for wait_s in sell_waits(seller, known, POLICY)]
            assert [times[at[label]] for label in sells] == waits
            assert len(sells) == POLICY.pieces
        else:
            assert [times[at[label]] for label in sells] == [LAST_BUY_S + seller.wallet.after_s]


def _usual(seller: Member) -> bool:
    return seller.wallet.way != "second route"


@WITH_CURVE
def test_wallets_buy_seven_a_block_and_again_in_the_next(place: VenuePlace) -> None:
    known = members(place)
    at = where(crowd(*known, place=place))
    for seller in known:
        assert at[f"m{seller.number}-buy"] == 1 + seller.number // 7
        assert at.get(f"m{seller.number}-again") == (
            2 + seller.number // 7 if seller.wallet.again_wei else None
        )
    twice = [seller.number for seller in known if seller.wallet.again_wei]
    assert twice
    # In a block those that buy again come first.
    order = list(at)
    for number in twice:
        later = f"m{(number // 7 + 1) * 7}-buy"
        if later in at:
            assert order.index(f"m{number}-again") < order.index(later)


@WITH_CURVE
def test_purse_nonce_and_money_are_set_before_the_first_of_the_crowds_buys(place: VenuePlace) -> None:
    known = members(place)
    plan = crowd(*known, place=place)
    first = plan.blocks[1]
    assert dict(first.nonces) == {seller.wallet.wallet: seller.wallet.nonce for seller in known}
    margin = 2 if place is USDG else 1
    assert dict(first.balances) == {
        w.wallet: w.purse_wei * (2 if w.usdg_raw else 1)
        + (w.size_wei + w.again_wei) * margin
        + w.weth_wei
        + 5 * 10**15
        for w in (seller.wallet for seller in known)
    }
    assert first.storage == ()
    assert not any(block.balances or block.nonces or block.storage for block in plan.blocks[2:])


def test_the_main_wallet_buys_first_as_in_the_buy_round() -> None:
    plan = crowd(member())
    main = buy_block(WETH, SETTING, ENVIRONMENT, "probe", 10**17, was_bought().gas)
    assert plan.blocks[0] == main


@EVERY_PLACE
def test_every_step_of_a_wallet_has_its_tip_and_reads_have_none(place: VenuePlace) -> None:
    plan = crowd(*members(place), place=place)
    tips = {seller.wallet.wallet: seller.wallet.tip_wei for seller in members(place)}
    assert len(set(tips.values())) > 5
    for block in plan.blocks[1:]:
        for step in block.steps:
            is_read = step.label.endswith(("-quote", "-token"))
            assert (step.sender == READER) is is_read
            assert step.tip_wei == (None if is_read else tips[step.sender])
            if is_read:
                assert step.gas_limit == POLICY.read_gas_limit


@EVERY_PLACE
def test_money_is_read_right_before_the_first_sell_and_right_after_the_last(place: VenuePlace) -> None:
    plan = crowd(*members(place), place=place)
    order = [step.label for step in steps_of(plan)]
    for seller in members(place):
        sells = [label for label in order if label.startswith(f"m{seller.number}-sell-")]
        first, last = order.index(sells[0]), order.index(sells[-1])
        name = f"m{seller.number}"
        assert order[first - 1] == f"{name}-before-quote"
        assert order[last + 1 : last + 3] == [f"{name}-after-quote", f"{name}-token"]
        assert sum(label in (f"{name}-before-quote", f"{name}-after-quote") for label in order) == 2
        # The token is asked for no balance before that.
        assert order.count(f"{name}-token") == 1


# --- what is sold, and how ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share_bps", "held", "amount"),
    [(BPS, HELD, HELD), (5000, HELD, HELD // 2), (100, 12_345, 123), (100, 99, 1), (BPS, 0, 1)],
)
def test_a_wallet_sells_its_share_of_what_it_holds(share_bps: int, held: int, amount: int) -> None:
    seller = member(held_raw=held, share_bps=share_bps)
    assert sell_amounts(seller, (seller,), POLICY) == [amount]
    actual = by_label(crowd(seller))
    approve, sell = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, amount, seller.wallet.wallet)
    assert (actual["m0-approve-0"].call, actual["m0-sell-0"].call) == (approve, sell)


@EVERY_PLACE
@pytest.mark.parametrize("way", ["usual", "second route"])
@pytest.mark.parametrize("approves_all", [True, False])
def test_a_wallet_sells_by_its_route_and_approves_as_it_does(
    place: VenuePlace, way: CrowdWay, approves_all: bool
) -> None:
    seller = member(way=way, approves_all=approves_all)
    plan_sell = place.file.plan_second_sell if way == "second route" else place.file.plan_sell
    raw = abi.MAX_UINT256 if approves_all else None
    expected = plan_sell(place.venue, TOKEN, CONTRACTS, HELD, seller.wallet.wallet, raw)
    actual = by_label(crowd(seller, place=place))
    calls = [actual[f"m0-approve-{n}"].call for n in range(len(expected) - 1)]
    assert (*calls, actual["m0-sell-0"].call) == expected


@pytest.mark.parametrize(
    ("others", "chosen"),
    [
        (0, [0, 1]),
        (1, [0, 1, 2]),
        (3, [0, 1, 2, 3, 4]),
        (8, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (9, [0, 1, 2, 3, 4, 5, 6, 7, 8, 10]),
        (20, [0, 2, 4, 7, 9, 11, 14, 16, 18, 21]),
    ],
)
def test_pieces_are_sold_at_moments_of_others_evenly_up_to_a_day(others: int, chosen: list[int]) -> None:
    """A moment at 13 s and one after a day are always there. What sells later is no moment for a piece."""
    pieces = member(0, 1_000_003, way="pieces", after_s=13)
    last = member(21, after_s=POLICY.day_s + 13)
    known = (pieces, *(member(n, after_s=100 * n + 13) for n in range(1, others + 1)), last)
    count = min(10, others + 2)
    amounts = sell_amounts(pieces, known, POLICY)
    assert amounts == ([100_000] * 9 + [100_003])[:count]
    plan = crowd(*known)
    actual, times, at = by_label(plan), moments(plan), where(plan)
    sells = [label for label in at if label.startswith("m0-sell-")]
    assert [times[at[label]] for label in sells] == [times[6:][number] for number in chosen]
    for label, raw in zip(sells, amounts, strict=True):
        (_, call) = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, raw, pieces.wallet.wallet)
        assert actual[label].call == call
    approve, _ = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, sum(amounts), pieces.wallet.wallet)
    assert actual["m0-approve-0"].call == approve


def test_of_few_units_there_are_fewer_pieces() -> None:
    pieces = member(0, 1, way="pieces")
    assert sell_amounts(pieces, (pieces,), POLICY) == [1]
    assert [label for label in where(crowd(pieces)) if "sell" in label] == ["m0-sell-0"]


@pytest.mark.parametrize(("measured", "limit"), [(0, 300_000), (200_000, 300_000), (200_002, 300_003)])
def test_approvals_have_half_as_much_again_as_was_measured(measured: int, limit: int) -> None:
    actual = by_label(crowd(member(), known=replace(was_bought(), approve_gas=measured)))
    assert actual["m0-approve-0"].gas_limit == limit
    assert actual["m0-buy"].gas_limit == 300_000
    assert actual["m0-sell-0"].gas_limit == SELL_GAS


# --- what is held before ------------------------------------------------------------------------------


def test_weth_and_usdg_that_a_wallet_holds_are_had_before_it_buys() -> None:
    seller = member(weth_wei=3 * 10**17, usdg_raw=5_000_000)
    order = list(where(crowd(seller)))
    assert order.index("m0-weth") < order.index("m0-usdg") < order.index("m0-buy")
    actual = by_label(crowd(seller))
    assert actual["m0-weth"].call.to == CONTRACTS.weth
    assert (actual["m0-weth"].call.data, actual["m0-weth"].call.value_wei) == ("0xd0e30db0", 3 * 10**17)
    swap = amm_v3.plan_eth_to(CONTRACTS, route_to("usdg", SETTING), 5_000_000, seller.wallet.purse_wei)
    assert actual["m0-usdg"].call == swap
    assert {"m0-weth", "m0-usdg"}.isdisjoint(where(crowd(member())))


def test_without_a_route_a_wallet_holds_no_usdg() -> None:
    blind = replace(SETTING, market=replace(SETTING.market, pool_fee_pips=None))
    assert "m0-usdg" not in where(crowd(member(usdg_raw=5_000_000), setting=blind))


def test_usdg_for_a_buy_is_bought_before_each_of_the_two() -> None:
    seller = member(again_wei=4 * 10**16)
    actual = by_label(crowd(seller, place=USDG))
    for name, wei in (("buy", 10**17), ("again", 4 * 10**16)):
        raw = wei * 3500 * 10**6 // WEI_PER_ETH
        fund = amm_v3.plan_eth_to(CONTRACTS, route_to("usdg", SETTING), raw, 2 * wei)
        approve, buy = amm_v3.plan_buy(USDG.venue, TOKEN, CONTRACTS, raw, seller.wallet.wallet)
        assert actual[f"m0-{name}-fund"].call == fund
        assert actual[f"m0-{name}-allow-0"].call == approve
        assert actual[f"m0-{name}"].call == buy


def test_money_that_no_swap_brings_is_set_in_storage_for_both_buys() -> None:
    plan = crowd(member(0, again_wei=3 * 10**16), member(1), place=ODD, setting=GIVEN)
    assert plan.blocks[1].storage == (
        (MONEY, SLOT.of(address(0xC00)), 20 * 13 * 10**16),
        (MONEY, SLOT.of(address(0xC01)), 20 * 10**17),
    )
    assert not [label for label in where(plan) if "fund" in label]
    actual = alone(wallet(again_wei=3 * 10**16), place=ODD, setting=GIVEN)
    assert actual.blocks[0].storage == ((MONEY, SLOT.of(address(0xC00)), 20 * 13 * 10**16),)
    assert alone(wallet()).blocks[0].storage == ()


def test_what_is_held_is_read_by_the_reader() -> None:
    (read,) = held_reads(SETTING, ENVIRONMENT, [member(3)])
    assert (read.label, read.sender, read.call.to) == ("m3-token", READER, TOKEN)
    assert read.call.data == abi.call(erc20.BALANCE_OF, address(0xC03))


def test_without_wallets_there_are_five_empty_blocks() -> None:
    blocks = crowd_buy_blocks(WETH, SETTING, ENVIRONMENT, [])
    assert [(block.delay_s, block.steps, block.balances) for block in blocks] == [(1, (), ())] * 5


# --- alone --------------------------------------------------------------------------------------------

DAY = (Attempt(13, BOUGHT), Attempt(3600, BOUGHT - 1), Attempt(86_400, BOUGHT - 2))


def test_a_wallet_alone_tries_at_its_times_and_approves_each_sell_before() -> None:
    plan = alone(wallet(), *DAY)
    at, times, actual = where(plan), moments(plan), by_label(plan)
    # The first comes after the crowd's last buy, the others when the main wallet sells.
    assert [times[at[f"alone-sell-{n}"]] for n in range(3)] == [LAST_BUY_S + 13, 3600, 86_400]
    for label, n in (("alone-approve-0", 0), ("alone-approve-1-0", 1), ("alone-approve-2-0", 2)):
        approve, _ = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, DAY[n].raw, address(0xC00))
        assert actual[label].call == approve
        assert at[label] < at[f"alone-sell-{n}"]
    order = list(at)
    for n, attempt in enumerate(DAY):
        start = order.index(f"alone-before-{n}-quote")
        assert order[start : start + 3] == [
            f"alone-before-{n}-quote", f"alone-sell-{n}", f"alone-after-{n}-quote"
        ]  # fmt: skip
        _, sell = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, attempt.raw, address(0xC00))
        assert (actual[f"alone-sell-{n}"].call, actual[f"alone-sell-{n}"].gas_limit) == (sell, 3_000_000)


def test_a_wallet_alone_has_its_purse_its_nonce_and_its_tip() -> None:
    seller = wallet(purse_wei=7 * 10**18, nonce=99, tip_wei=12_345, weth_wei=10**17, usdg_raw=10**6)
    plan = alone(seller)
    first = plan.blocks[0]
    assert first.nonces == ((seller.wallet, 99),)
    assert dict(first.balances) == {
        seller.wallet: 14 * 10**18 + 10**17 + 10**17 + 5 * 10**15,
        READER: WEI_PER_ETH,
    }
    for step in steps_of(plan):
        assert step.tip_wei == (12_345 if step.sender == seller.wallet else None)
    order = list(where(plan))
    # What it holds beside is not part of what the buy costs.
    assert order[:4] == ["sweep", "alone-weth", "alone-usdg", "alone-buy"]


def test_a_second_buy_alone_is_in_the_next_block_and_the_balance_is_read_last() -> None:
    plan = alone(wallet(again_wei=10**16))
    at = where(plan)
    assert (at["alone-buy"], at["alone-again"]) == (0, 1)
    assert [step.label for step in plan.blocks[1].steps] == ["alone-again"]
    # A token may react to a read of its balances.
    assert list(at)[-1] == "alone-token"
    assert [label for label in at if label.endswith("-token")] == ["alone-token"]
    assert "alone-again" not in where(alone(wallet()))


@pytest.mark.parametrize("sell", [False, True])
def test_others_buy_between_and_some_sell_before_the_wallet_does(sell: bool) -> None:
    others = members(WETH, 12)
    plan = alone(wallet(), *DAY, others=others, sell=sell)
    at, times = where(plan), moments(plan)
    assert all(at["alone-buy"] < at[f"m{n}-buy"] < at["alone-sell-0"] for n in range(12))
    selling = [label for label in at if label.startswith("m") and "-sell-" in label]
    assert selling == ([f"m{n}-sell-0" for n in range(12)] if sell else [])
    first = {at[label] for label in selling[:8]}
    assert len(first) == len(selling[:8]), "each of the first in a block of its own"
    assert all(at[label] < at["alone-sell-0"] for label in selling)
    # The first comes after the crowd's last buy, the others when the main wallet sells.
    assert [times[at[f"alone-sell-{n}"]] for n in range(3)] == [LAST_BUY_S + 13, 3600, 86_400]
    by_label(plan)


def test_others_sell_all_of_it_by_the_usual_route() -> None:
    seller = member(1, share_bps=100, way="second route", approves_all=True)
    actual = by_label(alone(wallet(), others=(seller,), sell=True))
    expected = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, HELD, seller.wallet.wallet)
    assert (actual["m1-approve-0"].call, actual["m1-sell-0"].call) == expected


def test_without_others_nothing_else_happens() -> None:
    assert alone(wallet(), sell=True) == alone(wallet())


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"purse_wei": 10**18}, {"again_wei": 10**16}, {"tip_wei": 5}, {"approves_all": True},
        {"way": "second route"}, {"delegates": True}, {"size_wei": 10**16}, {"share_bps": 100},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("company", [False, True])
def test_two_plans_alone_differ_in_what_the_wallets_differ_in(
    changes: dict[str, object], company: bool
) -> None:
    """Blocks and seconds are the same, with others or without, and so are all other calls of the wallet."""
    plain = alone(wallet(), *DAY)
    others = members(WETH, 12) if company else ()
    other = alone(wallet(0, **changes), *DAY, others=others, sell=company)
    assert [block.delay_s for block in other.blocks] == [block.delay_s for block in plain.blocks]
    same, own = (
        by_label(plain),
        {label: step for label, step in by_label(other).items() if not label.startswith("m")},
    )
    may_differ = {
        "again_wei": ("again",), "tip_wei": ("",), "approves_all": ("approve",), "size_wei": ("buy",),
        "way": ("approve", "sell"),
    }.get(next(iter(changes), ""), ())  # fmt: skip
    for label in same.keys() | own.keys():
        step, before = own.get(label), same.get(label)
        assert step == before or any(f"alone-{part}" in label for part in may_differ), label


@pytest.mark.parametrize("way", ["usual", "second route"])
def test_alone_the_second_route_is_used_too(way: CrowdWay) -> None:
    actual = by_label(alone(wallet(way=way, approves_all=True)))
    plan_sell = amm_v3.plan_second_sell if way == "second route" else amm_v3.plan_sell
    *approvals, sell = plan_sell(WETH.venue, TOKEN, CONTRACTS, BOUGHT, address(0xC00), abi.MAX_UINT256)
    assert [actual[f"alone-approve-{n}"].call for n in range(len(approvals))] == approvals
    assert actual["alone-sell-0"].call == sell


HOOK = address(0xC4)
HOOKED = VenuePlace(amm_v4.pool("amm_v4", TOKEN, "eth", ZERO_ADDRESS, 3000, 60, HOOK), amm_v4)


@pytest.mark.parametrize(("place", "limit"), [(ETH, 5 * 10**6), (HOOKED, POLICY.hook_gas_limit)])
def test_a_strangers_hook_gets_less_gas(place: VenuePlace, limit: int) -> None:
    amounts = (Attempt(13, BOUGHT),)
    seller = Member(-1, wallet(), BOUGHT, limit, SELL_GAS)
    plan = isolated_plan(place, SETTING, ENVIRONMENT, seller, amounts)
    assert by_label(plan)["alone-buy"].gas_limit == limit


def test_every_wallet_can_pay_for_its_gas_at_a_high_base_fee() -> None:
    """A node refuses a whole simulation in which one cannot."""
    dear = replace(ENVIRONMENT, base_fee_wei=10**11, max_fee_wei=2 * 10**11, tip_wei=0)
    poor = [
        member(0, purse_wei=5 * 10**15, tip_wei=3 * 10**9, way="pieces"),
        member(1, purse_wei=5 * 10**15, again_wei=10**16),
    ]
    sellers = (structs.replace(poor[0], sell_gas=3_000_000),)
    bought, one = was_bought(), wallet(purse_wei=5 * 10**15, tip_wei=3 * 10**9)
    alone_one = Member(-1, one, 1, 3_000_000, 3_000_000)
    for plan in (
        crowd_sell_plan(WETH, SETTING, dear, "probe", 10**17, bought, tuple(poor)),
        company_plan(WETH, SETTING, dear, "probe", 10**17, bought, tuple(poor), sellers),
        isolated_plan(WETH, SETTING, dear, alone_one, (Attempt(13, 1), Attempt(3600, 1))),
    ):
        balances = {who: wei for block in plan.blocks for who, wei in block.balances}
        for who in {one.wallet, *(seller.wallet.wallet for seller in poor)} & set(balances):
            trades = [s for s in steps_of(plan) if s.sender == who and "read" not in s.label]
            prices = {dear.max_fee_wei + (step.tip_wei or 0) for step in trades}
            gas = sum(s.gas_limit for s in trades if "approve" not in s.label)
            values_wei = sum(step.call.value_wei for step in trades)
            assert balances[who] >= values_wei + gas * max(prices), who


def test_a_curve_is_not_swept() -> None:
    assert "sweep" not in where(alone(wallet(), place=CURVE))
    assert "sweep" in where(alone(wallet(), place=WETH))
    assert CURVE.file is launchpad_curve


# --- in company ---------------------------------------------------------------------------------------


@WITH_CURVE
def test_in_company_all_buy_as_they_did_and_a_few_try_to_sell(place: VenuePlace) -> None:
    known, sellers = members(place), members(place)[3:6]
    amount = size_raw("probe", place, SETTING, ENVIRONMENT)
    assert isinstance(amount, int)
    plan = company_plan(place, SETTING, ENVIRONMENT, "probe", amount, was_bought(), known, sellers)
    among = crowd(*known, place=place)
    buys = 5
    assert len(plan.blocks) <= 16
    assert [block.delay_s for block in plan.blocks[: buys + 1]] == [
        block.delay_s for block in among.blocks[: buys + 1]
    ]
    assert plan.blocks[:buys] == among.blocks[:buys]
    sells = {label: at for label, at in where(plan).items() if "-sell-" in label}
    assert set(sells) == {f"m{member.number}-sell-{n}" for member in sellers for n in range(3)}
    assert len(set(sells.values())) == 9, "each in a block of its own"
    at_s = moments(plan)
    first = [at_s[sells[f"m3-sell-{n}"]] for n in range(3)]
    assert first == [LAST_BUY_S + wait_s for wait_s in (POLICY.later_s, POLICY.hour_s, POLICY.day_s)]


def test_in_company_each_sell_has_its_own_approval() -> None:
    """Some tokens sell only what was approved exactly."""
    seller = member(3)
    actual = by_label(
        company_plan(WETH, SETTING, ENVIRONMENT, "probe", 10**17, was_bought(), (seller,), (seller,))
    )
    for label, raw in (("m3-approve-0", HELD), ("m3-approve-1-0", HELD // 2), ("m3-approve-2-0", HELD)):
        approve, _ = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, raw, seller.wallet.wallet)
        assert actual[label].call == approve


def test_what_is_approved_already_is_not_approved_again() -> None:
    plan = alone(wallet(), Attempt(13, BOUGHT), Attempt(3600, BOUGHT))
    assert [label for label in where(plan) if "approve" in label] == ["alone-approve-0"]


def test_in_company_all_of_it_is_sold_by_the_usual_route() -> None:
    odd = structs.replace(members(ETH)[0], wallet=replace(drawn(ETH)[0], way="second route", share_bps=100))
    plan = company_plan(ETH, SETTING, ENVIRONMENT, "probe", 10**17, was_bought(HELD), (odd,), (odd,))
    usual = company_plan(
        ETH, SETTING, ENVIRONMENT, "probe", 10**17, was_bought(HELD), (odd,),
        (structs.replace(odd, wallet=replace(odd.wallet, way="usual", share_bps=BPS)),),
    )  # fmt: skip
    assert by_label(plan)["m0-sell-2"] == by_label(usual)["m0-sell-2"]


def test_a_plain_wallet_is_the_main_one() -> None:
    assert plain_wallet(address(1), 4, 10**17, 13) == wallet(wallet=address(1), nonce=4)
    approve = by_label(crowd(member()))["m0-approve-0"].call
    assert decode(["address", "uint256"], bytes.fromhex(approve.data[10:])) == (CONTRACTS.swap_router02, HELD)
