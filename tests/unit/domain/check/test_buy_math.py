"""What several buys bring, against a second way to count: one pause after another, with exact fractions."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import DYNAMIC_FEE_FLAG, PoolFacts, Venue
from roundtrip.domain.check import curve as curve_math
from roundtrip.domain.check.buy_math import V3_SPACINGS, outputs_of_buys, price_after_buy
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.check.ticks import MAX_TICK, MIN_TICK, sqrt_price_x96_at
from unit.domain.builders import POOL, WETH
from unit.domain.launches import CURVE, LAUNCHPAD_POOL, POOL_LAUNCH, STATE, launch, state, v4

LOW, HIGH = Address("0x" + "01" * 20), Address("0x" + "fe" * 20)
TOKENS = pytest.mark.parametrize("token", [LOW, HIGH], ids=["token is zero", "token is one"])
Q96 = 2**96
QUICK = settings(max_examples=60, deadline=None)


def pool(price: int, liquidity: int) -> PoolFacts:
    return PoolFacts(True, price, liquidity, 1)


def v3(fee_pips: int = 3000) -> Venue:
    return Venue("amm_v3", "weth", WETH, POOL, fee_pips)


def spaced(spacing: int, fee_pips: int) -> Venue:
    """A v4 pool without a hook."""
    return Venue("amm_v4", "weth", WETH, None, fee_pips, spacing, None, "0x" + "77" * 32)


# --- a second way to count --------------------------------------------------------------------------


def second_buys(
    price: int, liquidity: int, fee_pips: int, spacing: int, rises: bool, amounts: list[int]
) -> list[int]:
    """The swap loop of the pool's contract over a bitmap without a tick: only its words end a step."""
    tick = _tick_below(price)
    given = []
    for amount in amounts:
        left, out = Fraction(amount), 0
        while left > 0:
            place = tick // spacing + (1 if rises else 0)
            pause = (place // 256 * 256 + (255 if rises else 0)) * spacing
            target = sqrt_price_x96_at(pause)
            net = floor(left * (1_000_000 - fee_pips) / 1_000_000)
            needed = _paid(price, target, liquidity)
            if net >= needed:
                after, tick = target, (pause if rises else pause - 1)
                left -= needed + ceil(Fraction(needed * fee_pips, 1_000_000 - fee_pips))
            else:
                after, left = _moved(price, net, liquidity, rises), Fraction(0)
                tick = _tick_below(after) if after != price else tick
            out += _received(price, after, liquidity)
            price = after
        given.append(out)
    return given


def _paid(price: int, target: int, liquidity: int) -> int:
    if target >= price:
        return ceil(Fraction(liquidity * (target - price), Q96))
    return ceil(Fraction(liquidity * Q96 * (price - target), price * target))


def _received(price: int, after: int, liquidity: int) -> int:
    if after >= price:
        return floor(Fraction(liquidity * Q96, price) - Fraction(liquidity * Q96, after))
    return floor(Fraction(liquidity * (price - after), Q96))


def _moved(price: int, net: int, liquidity: int, rises: bool) -> int:
    if rises:
        return price + floor(Fraction(net * Q96, liquidity))
    return ceil(1 / (Fraction(1, price) + Fraction(net, liquidity * Q96)))


def _tick_below(price: int) -> int:
    """By halving, not by a logarithm."""
    low, high = MIN_TICK, MAX_TICK
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sqrt_price_x96_at(middle) <= price else (low, middle)
    return low


@st.composite
def trades(draw: st.DrawFn) -> tuple[int, int, int, int, list[int]]:
    """Spacing, fee, price, liquidity, and buys of which the largest crosses a dozen words."""
    spacing = draw(st.sampled_from([1, 10, 60]))
    fee_pips = draw(st.sampled_from([0, 100, 500, 3000, 10_000, 250_000]))
    tick = draw(st.integers(-100_000, 100_000))
    at_pause = draw(st.booleans())
    if at_pause:
        tick = tick // (256 * spacing) * 256 * spacing
    price = sqrt_price_x96_at(tick) + (0 if at_pause else draw(st.integers(0, 10**6)))
    liquidity = draw(st.integers(10**15, 10**24))
    unit = max(1000, liquidity * price // Q96 // 20)
    return spacing, fee_pips, price, liquidity, draw(st.lists(st.integers(1, unit), min_size=1, max_size=6))


@TOKENS
@QUICK
@given(trade=trades())
def test_buys_come_out_as_counted_the_second_way(
    token: Address, trade: tuple[int, int, int, int, list[int]]
) -> None:
    spacing, fee_pips, price, liquidity, amounts = trade
    actual = outputs_of_buys(spaced(spacing, fee_pips), pool(price, liquidity), None, token, amounts)
    # A buy that moves the price over very many words of the bitmap is not computed.
    assume(actual is not None)
    assert actual == second_buys(price, liquidity, fee_pips, spacing, token < WETH, amounts)


@TOKENS
@QUICK
@given(trade=trades())
def test_each_further_buy_of_one_amount_brings_no_more(
    token: Address, trade: tuple[int, int, int, int, list[int]]
) -> None:
    spacing, fee_pips, price, liquidity, amounts = trade
    equal = [amounts[0]] * 8
    actual = outputs_of_buys(spaced(spacing, fee_pips), pool(price, liquidity), None, token, equal)
    assume(actual is not None)
    assert actual is not None
    # Each pause rounds once, in the pool's favour: a later buy may pause less often.
    assert all(after <= before + 4 for before, after in pairwise(actual))


@TOKENS
def test_a_buy_over_several_words_loses_a_unit_at_each_to_rounding(token: Address) -> None:
    """One step over all of it would give another amount: the pause is not free."""
    price, liquidity, amount = sqrt_price_x96_at(-300), 10**15, 10**14
    (actual,) = outputs_of_buys(spaced(1, 3000), pool(price, liquidity), None, token, [amount]) or [0]
    rises, net = token < WETH, amount * 997_000 // 1_000_000
    at_once = _received(price, _moved(price, net, liquidity, rises), liquidity)
    assert actual == second_buys(price, liquidity, 3000, 1, rises, [amount])[0]
    assert 0 < at_once - actual < 20


@TOKENS
@pytest.mark.parametrize("fee_pips", [0, 3000])
@pytest.mark.parametrize("tick", [-1000, -1, 0, 1, 255, 256, 5000])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_buy_that_just_reaches_a_pause(token: Address, fee_pips: int, tick: int, more: int) -> None:
    price, liquidity, rises = sqrt_price_x96_at(tick), 10**9 + 7, token < WETH
    place = tick + 1 if rises else tick - (tick % 256 == 0)
    target = sqrt_price_x96_at(place // 256 * 256 + (255 if rises else 0))
    needed = _paid(price, target, liquidity)
    amounts = [needed + ceil(Fraction(needed * fee_pips, 1_000_000 - fee_pips)) + more, 10**6, 10**6]
    actual = outputs_of_buys(spaced(1, fee_pips), pool(price, liquidity), None, token, amounts)
    assert actual == second_buys(price, liquidity, fee_pips, 1, rises, amounts)


@TOKENS
@pytest.mark.parametrize(("fee_pips", "spacing"), V3_SPACINGS.items())
def test_a_v3_pool_has_the_spacing_of_its_fee(token: Address, fee_pips: int, spacing: int) -> None:
    facts, amounts = pool(sqrt_price_x96_at(77), 10**18), [10**17, 3 * 10**17]
    known = outputs_of_buys(v3(fee_pips), facts, None, token, amounts)
    assert known == outputs_of_buys(spaced(spacing, fee_pips), facts, None, token, amounts)
    assert known == second_buys(facts.sqrt_price_x96, 10**18, fee_pips, spacing, token < WETH, amounts)


# --- golden figures of the local chain ----------------------------------------------------------------


IN_ETH = [10**17, 7, 10**18 // 33, 3 * 10**18, 10**16, 20 * 10**18, 20 * 10**18, 10**17]
IN_USDG = [350 * 10**6, 7, 9 * 10**6, 1500 * 10**6]
GOLDEN = {
    "plain": (
        3000, 12_527_072_418_752_396_559_320_690, 126_491_106_406_735_173_279_956, True, IN_ETH,
        [3_968_218_431_120_862_500_435_297, 237_624_928, 1_194_729_938_642_753_255_985_596,
         102_822_830_213_733_076_996_139_380, 298_275_774_843_687_265_973_756,
         320_235_279_075_044_141_226_157_877, 117_556_273_487_634_522_707_233_571,
         401_141_316_385_756_218_005_571],
    ),
    "usdg_pool": (
        3000, 686_136_014_325_148_988_012, 6_928_203_230_275_509_174, True, IN_USDG,
        [4_625_763_994_236_850_847_689_949, 79_077_521_904_263_475, 118_242_853_026_282_779_878_095,
         19_227_801_467_451_376_794_742_554],
    ),
    "two_pools": (
        10000, 12_527_072_418_752_396_559_320_690, 1_264_911_064_067_351_732_799, True, IN_ETH,
        [2_648_829_431_438_127_090_300_616, 107_381_349, 487_948_684_063_392_633_065_544,
         4_378_226_431_330_853_616_224_335, 1_451_072_859_971_441_527_469,
         414_306_986_922_422_582_042_680, 31_949_091_890_670_795_176_711, 85_834_040_907_870_686_394],
    ),
    "thin": (
        3000, 10_021_657_935_001_917_247_456_552_062_784_252, 6_324_555_320_336_758_663_997, False, IN_ETH,
        [532_798_931_195_724_777_038_850_408, 10_709_461_675, 44_870_301_257_829_981_253_931_389,
         209_716_100_702_663_545_002_544_024, 39_538_789_442_652_343_260_207,
         10_845_090_256_027_600_346_875_156, 801_120_460_124_910_348_653_566,
         2_145_778_719_042_805_043_031],
    ),
    "v4_eth": (
        3000, 501_082_896_750_095_862_372_827_603_139_212, 126_490_979_915_628_766_544_781, False, IN_ETH,
        [3_968_218_411_437_396_018_245_066, 237_624_971, 1_194_729_925_006_141_797_079_277,
         102_822_815_670_880_075_933_438_854, 298_275_694_208_557_984_815_475,
         320_235_064_195_721_856_477_536_936, 117_556_130_275_436_110_676_272_795,
         401_140_768_550_907_052_095_346],
    ),
    "both_versions": (
        500, 306_849_353_968_360_525_628_702_781_967_764, 77_459_589_464_481_413_555_247, False, IN_ETH,
        [1_491_794_748_290_168_174_715_036, 89_107_147, 449_134_296_803_338_831_054_933,
         38_641_537_736_424_036_748_886_309, 112_057_885_829_756_658_843_435,
         120_186_996_293_347_502_040_051_356, 44_059_396_526_926_076_727_157_399,
         150_289_880_858_904_725_226_929],
    ),
}  # fmt: skip
"""What a wallet really got of buys one after the other: ``tests/chain/check/test_buys_by_formula``."""


@pytest.mark.parametrize(
    ("fee_pips", "price", "liquidity", "token_is_zero", "amounts", "expected"), GOLDEN.values(), ids=GOLDEN
)
def test_pools_of_the_local_chain_come_out_to_the_unit(
    fee_pips: int, price: int, liquidity: int, token_is_zero: bool, amounts: list[int], expected: list[int]
) -> None:
    token = LOW if token_is_zero else HIGH
    assert outputs_of_buys(v3(fee_pips), pool(price, liquidity), None, token, amounts) == expected


# --- where the formula does not apply -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("venue", "facts"),
    [
        (v3(), pool(0, 10**18)),
        (v3(), pool(Q96, 0)),
        (v4(fee_pips=DYNAMIC_FEE_FLAG), pool(Q96, 10**18)),
        # The next pause is beyond the end of all prices.
        (v3(), pool(sqrt_price_x96_at(MAX_TICK - 1), 10**18)),
        (v3(), pool(sqrt_price_x96_at(MIN_TICK), 10**18)),
        (v3(), pool(1, 10**18)),
        (v3(), pool(2**160 - 1, 10**18)),
    ],
)
@TOKENS
def test_where_the_formula_does_not_apply_it_says_nothing(
    venue: Venue, facts: PoolFacts, token: Address
) -> None:
    if facts.sqrt_price_x96 == sqrt_price_x96_at(MAX_TICK - 1):
        token = LOW
    elif facts.sqrt_price_x96 == sqrt_price_x96_at(MIN_TICK):
        token = HIGH
    # At the end of all prices it gives nothing.
    assert outputs_of_buys(venue, facts, None, token, [10**17]) in (None, [0])


@TOKENS
def test_no_buy_brings_nothing_and_no_amount_nothing(token: Address) -> None:
    assert outputs_of_buys(v3(), pool(Q96, 10**18), None, token, []) == []
    assert outputs_of_buys(v3(), pool(Q96, 10**18), None, token, [0, 0]) == [0, 0]


def test_a_launchpad_pool_keeps_no_fee_itself() -> None:
    """Its hook takes that after the swap."""
    actual = outputs_of_buys(LAUNCHPAD_POOL, pool(Q96, 10**18), None, HIGH, [10**15])
    free = outputs_of_buys(
        replace(v4(None), fee_pips=0, tick_spacing=200), pool(Q96, 10**18), None, HIGH, [10**15]
    )
    assert actual == free is not None


# --- curves -------------------------------------------------------------------------------------------


@QUICK
@given(st.lists(st.integers(1, 2 * 10**18), min_size=1, max_size=6), st.sampled_from([0, 100, 500]))
def test_buys_on_a_curve_follow_one_another(amounts: list[int], tax_bps: int) -> None:
    at = state(creator_tax_bps=tax_bps)
    actual = outputs_of_buys(CURVE, pool(0, 0), launch(at), LOW, amounts)
    expected = []
    for amount in amounts:
        bought = curve_math.buy(at, amount, 0)
        quote_raw, token_raw = curve_math.after_buy(at, bought, 0)
        at = replace(at, quote_raw=quote_raw, token_raw=token_raw)
        expected.append(bought.tokens_raw)
    assert actual == expected


def test_the_first_buy_of_a_public_log_comes_out_to_the_wei() -> None:
    """``test_curve``: one of the launchpad's own logs."""
    first = state(creator_tax_bps=100)
    actual = outputs_of_buys(CURVE, pool(0, 0), launch(first), LOW, [580_000_000_000_000_000])
    assert actual == [252_801_992_528_019_925_280_199_252]


@pytest.mark.parametrize(
    "known",
    [
        launch(state(snipe_bps=1)),
        launch(state(closed=True)),
        launch(Missing("node", "timed out")),
        launch(None),
        Missing("node", "timed out"),
        POOL_LAUNCH,
        None,
    ],
)
def test_a_curve_of_unknown_or_passing_state_says_nothing(known: object) -> None:
    assert outputs_of_buys(CURVE, pool(Q96, 10**18), known, LOW, [10**17]) is None  # type: ignore[arg-type]


def test_a_pool_is_not_read_off_the_curve_that_it_had() -> None:
    there = outputs_of_buys(v3(), pool(Q96, 10**18), launch(STATE), LOW, [10**17])
    assert there == outputs_of_buys(v3(), pool(Q96, 10**18), None, LOW, [10**17])
    assert CURVE.quote_address == ZERO_ADDRESS


def test_a_buy_over_very_many_words_is_not_computed() -> None:
    """A stranger's pool of next to no liquidity would take long."""
    facts = PoolFacts(True, sqrt_price_x96_at(0), 10**6, 10**18)
    assert outputs_of_buys(spaced(1, 3000), facts, None, LOW, [10**30]) is None


# --- the price after a buy --------------------------------------------------------------------------

RANGES = st.lists(
    st.tuples(st.integers(-9, 9), st.integers(1, 9), st.integers(10**12, 10**24)), min_size=1, max_size=5
)


@pytest.mark.parametrize("rises", [True, False])
@QUICK
@given(ranges=RANGES, tick=st.integers(-9, 9), worth=st.integers(0, 10**22))
def test_the_price_after_a_buy_is_where_its_money_ends(
    rises: bool, ranges: list[tuple[int, int, int]], tick: int, worth: int
) -> None:
    """What every stretch between two ticks takes adds up to the buy, or to all that there is."""
    nets: Counter[int] = Counter()
    for lower, width, liquidity in ranges:
        nets[100 * lower] += liquidity
        nets[100 * (lower + width)] -= liquidity

    def liquidity_at(at: int) -> int:
        return sum(net for bound, net in nets.items() if bound <= at)

    price = sqrt_price_x96_at(100 * tick + 50)
    state = pool(price, liquidity_at(100 * tick + 50))
    after = price_after_buy(state, 0, rises, worth, nets)
    assert after >= price if rises else after <= price
    low, high = sorted((price, after))
    bounds = [low, *(at for bound in sorted(nets) if low < (at := sqrt_price_x96_at(bound)) < high), high]
    taken = sum(
        _paid(*(ends if rises else ends[::-1]), liquidity_at(_tick_below(ends[0])))
        for ends in pairwise(bounds)
        if ends[0] != ends[1]
    )
    is_end = after in (sqrt_price_x96_at(MAX_TICK), sqrt_price_x96_at(MIN_TICK))
    # A step of the price is the least that a buy moves it by.
    step = _paid(after, after + (1 if rises else -1), max(1, max(map(liquidity_at, nets)))) + len(bounds)
    assert taken <= worth + step
    assert is_end or taken >= worth - step


def test_a_fee_is_no_part_of_what_moves_the_price() -> None:
    facts = pool(sqrt_price_x96_at(0), 10**20)
    assert price_after_buy(facts, 500_000, True, 2000, {}) == price_after_buy(facts, 0, True, 1000, {})
