"""Which of the crowd trade: as many as the venue's depth and one simulation's gas allow."""

from dataclasses import replace

import pytest

from roundtrip.chain.rpc.data_fee import DataFee
from roundtrip.chain.rpc.dialect import NITRO
from roundtrip.chain.simulate.crowd_outcomes import CrowdBuys, MemberBuys
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.buy_math import outputs_of_buys
from roundtrip.domain.check.evidence import CompletedBuy, CrowdTrade, EnvironmentBuy, NotTried, RefusedCall
from roundtrip.services.engine.crowd import crowd_blocks, data_gas, fit_wallets, quote_crowd_buys, room_raw
from roundtrip.services.engine.crowd_sells import CrowdSells, choose_sellers
from roundtrip.services.engine.session import VenueTrial
from unit.chain.samples import ENVIRONMENT
from unit.chain.trades import EVERY_PLACE, SETTING, TOKEN, USDG, WETH
from unit.domain.builders import NODE
from unit.domain.launches import THRESHOLD_RAW, launch, state
from unit.services.engine.crowds import (
    BUY_GAS,
    CURVE,
    DEEP,
    HEAD,
    bought,
    bought_on,
    drawn,
    measured,
    session,
    spent,
)

NO_BUY = RefusedCall("buy", "not you", 40_000)


def chosen(trial: VenueTrial, known: object = None, main: CompletedBuy | None = None) -> CrowdSells:
    main = main or trial.completed_buy("probe")
    assert main is not None
    actual = choose_sellers(session(), trial, known, main)  # type: ignore[arg-type]
    assert isinstance(actual, CrowdSells)
    return actual


def numbers(actual: CrowdSells) -> list[int]:
    return [member.number for member in actual.members]


@EVERY_PLACE
@pytest.mark.parametrize("part", [1, 10, 1000])
def test_in_a_thin_pool_all_trade_for_less_each(place: VenuePlace, part: int) -> None:
    """Each size shrinks by the same factor, so that a crowd of few does not hide what others would meet."""
    total_raw = sum(spent(wallet, place) for wallet in drawn(place))
    fitted = fit_wallets(session(), place, drawn(place), total_raw // part)
    assert sum(spent(wallet, place) for wallet in fitted) <= total_raw // part
    trial = replace(bought_on(place), crowd_wallets=fitted)
    assert numbers(chosen(trial)) == list(range(26))
    for wallet, full in zip(fitted, drawn(place), strict=True):
        assert wallet == replace(full, size_wei=wallet.size_wei, again_wei=wallet.again_wei)
        assert abs(wallet.size_wei * part - full.size_wei) <= full.size_wei // 100
    assert (fitted == drawn(place)) is (part == 1)


def test_in_a_pool_with_nothing_for_them_none_trades() -> None:
    trial = replace(bought_on(), crowd_wallets=fit_wallets(session(), WETH, drawn(), 0))
    actual = chosen(trial)
    assert numbers(actual) == []
    assert [trade.outcome for trade in actual.others] == [NotTried("pool")] * 26


@pytest.mark.parametrize(
    ("reserve_raw", "paid_raw", "room"), [(10**19, 10**17, 10**18), (10**17, 10**17, 10**17), (0, 0, 0)]
)
def test_a_crowd_has_a_tenth_of_the_depth_or_as_much_as_the_main_buy(
    reserve_raw: int, paid_raw: int, room: int
) -> None:
    main = CompletedBuy(paid_raw, 10**18 if paid_raw else 0, 10**17, BUY_GAS)
    facts = replace(DEEP, quote_reserve_raw=reserve_raw)
    assert room_raw(session(), WETH, facts, None, main) == room
    assert room_raw(session(), WETH, NODE, None, main) == 0


def test_where_the_pool_or_the_buys_are_not_known_the_crowd_is_missing() -> None:
    main = bought_on().completed_buy("probe")
    assert main is not None
    no_facts = replace(measured(bought_on()), facts=NODE)
    assert choose_sellers(session(), no_facts, None, main) is NODE
    lost = replace(measured(bought_on()), crowd=NODE)
    assert choose_sellers(session(), lost, None, main) is NODE


def test_a_wallet_that_trades_holds_what_its_buys_bring() -> None:
    actual = chosen(bought_on())
    quoted = quote_crowd_buys(session(), bought_on(), None, drawn())
    assert quoted is not None
    assert numbers(actual) == list(range(26))
    assert [member.wallet for member in actual.members] == list(drawn())
    assert [member.held_raw for member in actual.members] == [buys.received_raw for buys in quoted.buys]  # type: ignore[union-attr]
    assert actual.buys == quoted.buys
    assert actual.others == ()


# --- curves -------------------------------------------------------------------------------------------


def test_on_a_deep_curve_a_tenth_of_its_quote_is_the_bound() -> None:
    at = state(quote_raw=10**19, token_raw=10**27, reserved_raw=1)
    assert room_raw(session(), CURVE, DEEP, launch(at), NODE) == 10**18


def test_near_its_close_a_third_of_what_the_main_buy_leaves_is_the_bound() -> None:
    # An eth closes it, and the main wallet buys for a tenth of that first.
    at = state(quote_raw=10**20, token_raw=101 * 10**25, reserved_raw=10**27)
    assert room_raw(session(), CURVE, DEEP, launch(at), NODE) == 3 * 10**17


def test_a_curve_that_is_all_but_sold_out_has_no_room() -> None:
    at = state(token_raw=10**27, reserved_raw=10**27 - 10**18)
    assert room_raw(session(), CURVE, DEEP, launch(at), NODE) == 0
    assert THRESHOLD_RAW > 0


# --- gas ----------------------------------------------------------------------------------------------


def gas_of(actual: CrowdSells) -> int:
    """What the trades of those chosen may use at most."""
    return sum(
        member.buy_gas * (1 + (member.wallet.again_wei > 0))
        + member.sell_gas * (10 if member.wallet.way == "pieces" else 1)
        for member in actual.members
    )


@pytest.mark.parametrize(
    ("gas", "buy_gas"), [(10_000, 300_000), (200_000, 300_000), (250_000, 375_000), (900_000, 1_350_000)]
)
def test_the_limit_of_a_buy_follows_the_main_buys_gas(gas: int, buy_gas: int) -> None:
    actual = chosen(bought_on(gas=gas))
    assert {member.buy_gas for member in actual.members} == {buy_gas}
    usual = min(POLICY.crowd_gas_limit, max(400_000, 3 * gas))
    # Every third wallet or so sells with much gas.
    assert {member.sell_gas for member in actual.members} == {usual, max(usual, 10**6)}
    assert [trade.outcome for trade in actual.others] == [NotTried("gas")] * (26 - len(actual.members))
    assert (len(actual.members) == 26) is (gas <= 250_000)


def test_those_that_gas_leaves_out_are_the_largest() -> None:
    actual = chosen(bought_on(gas=5_000_000))
    assert numbers(actual) == list(range(len(actual.members)))
    after = drawn()[len(actual.members)]
    more = 3_000_000 * (2 + (after.again_wei > 0) + (after.way == "pieces") * 9)
    assert gas_of(actual) + more > POLICY.crowd_gas


# --- what was measured --------------------------------------------------------------------------------


def test_wallets_whose_measured_buy_was_refused_do_not_sell_and_are_kept() -> None:
    trial = measured(bought_on(), m0=NO_BUY, m4=NO_BUY)
    actual = chosen(trial)
    assert numbers(actual) == [n for n in range(26) if n not in (0, 4)]
    assert actual.others == tuple(CrowdTrade(drawn()[n], NO_BUY) for n in (0, 4))
    assert [buys.gas for buys in actual.buys] == [BUY_GAS] * 24


@pytest.mark.parametrize("fee", [DataFee(), DataFee(10**6 * ENVIRONMENT.base_fee_wei)], ids=["none", "dear"])
@pytest.mark.parametrize(("used", "is_starved"), [(2_249_999, False), (2_250_000, True)])
def test_a_refused_buy_that_used_its_gas_was_not_tried(fee: DataFee, used: int, is_starved: bool) -> None:
    """What the call's data costs on some nodes is no use of the token's."""
    run = replace(session(), head=replace(HEAD, dialect=replace(NITRO, data_fee=fee)))
    gas = used + data_gas(run)
    trial = measured(bought_on(), m0=RefusedCall("buy", "TF", gas))
    main = trial.completed_buy("probe")
    assert main is not None
    actual = choose_sellers(run, trial, None, main)
    assert isinstance(actual, CrowdSells)
    (trade,) = (trade for trade in actual.others if trade.wallet == drawn()[0])
    assert (trade.outcome == NotTried("gas")) is is_starved


def test_where_none_could_buy_no_crowd_trades() -> None:
    actual = chosen(measured(bought_on(), **{f"m{n}": NO_BUY for n in range(26)}))
    assert (numbers(actual), {trade.outcome for trade in actual.others}) == ([], {NO_BUY})


def test_measured_buys_come_before_the_formulas() -> None:
    trial = bought_on()
    known = CrowdBuys(drawn(), tuple(MemberBuys(7, 5, BUY_GAS) for _ in drawn()))
    actual = chosen(replace(trial, crowd=known))
    assert {member.held_raw for member in actual.members} == {5}


@pytest.mark.parametrize(
    ("later", "kept_bps"),
    [((), BPS), ((1000, 1000, 1000), BPS), ((1000, 900, 801), 8010), ((2000, 3000, 4000), BPS)],
)
def test_a_token_that_shrinks_while_it_is_held_leaves_less_to_sell(
    later: tuple[int, ...], kept_bps: int
) -> None:
    actual = chosen(measured(bought_on()), main=bought(1000, BUY_GAS, *later))
    for member, wallet in zip(actual.members, drawn(), strict=True):
        assert member.held_raw <= wallet.size_wei
        if wallet.after_s >= POLICY.day_s or wallet.way == "pieces":
            assert member.held_raw == wallet.size_wei * kept_bps // BPS


# --- what the formula says ----------------------------------------------------------------------------


def test_where_all_arrives_the_formula_is_exact_and_where_a_part_does_it_is_not_above() -> None:
    whole = quote_crowd_buys(session(), bought_on(), None, drawn())
    taxed = quote_crowd_buys(session(), bought_on(arrived_bps=9000), None, drawn())
    assert whole is not None
    assert taxed is not None
    main_raw = bought_on().main_given_raw
    for full, part in zip(whole.buys, taxed.buys, strict=True):
        assert isinstance(full, MemberBuys)
        assert isinstance(part, MemberBuys)
        assert full.received_raw == full.given_raw == part.given_raw
        short_raw = full.given_raw * 9000 // BPS - part.received_raw
        # A unit for each buy, and one for each main buy that it is worth: rounding may cost those.
        assert 1 <= short_raw <= 2 * (full.given_raw // main_raw) + 4


def test_the_formula_buys_in_the_order_of_the_blocks() -> None:
    """A second buy comes in the block after the first, before those of that block."""
    quoted = quote_crowd_buys(session(), bought_on(), None, drawn())
    assert quoted is not None
    blocks = crowd_blocks(session(), WETH, drawn())
    order = [
        (int(step.label[1:].partition("-")[0]), step.call.value_wei)
        for block in blocks
        for step in block.steps
        if step.label.endswith(("-buy", "-again"))
    ]
    wallets = drawn()
    assert len(order) == 26 + sum(wallet.again_wei > 0 for wallet in wallets)
    by_wallet = dict.fromkeys(range(26), 0)
    given = outputs_of_buys(WETH.venue, DEEP, None, TOKEN, [10**17, *(raw for _, raw in order)])
    assert given is not None
    for (number, _), raw in zip(order, given[1:], strict=True):
        by_wallet[number] += raw
    assert [buys.given_raw for buys in quoted.buys] == list(by_wallet.values())  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "changes",
    [
        {"main_given_raw": 0},
        {"main_given_raw": 1},
        {"facts": NODE},
        {"buys": (EnvironmentBuy("probe", 0, NO_BUY),)},
        {"buys": ()},
    ],
    ids=["no logs", "another amount", "no facts", "refused", "no buy"],
)
def test_where_the_formula_does_not_explain_the_main_buy_it_is_not_used(changes: dict[str, object]) -> None:
    trial = replace(bought_on(), **changes)  # type: ignore[arg-type]
    assert quote_crowd_buys(session(), trial, None, drawn()) is None


def test_usdg_buys_are_quoted_in_dollars() -> None:
    trial = bought_on(USDG)
    assert quote_crowd_buys(session(), trial, None, drawn(USDG)) is not None
    assert SETTING.market.usdg_per_eth_raw == 3_500_000_000
