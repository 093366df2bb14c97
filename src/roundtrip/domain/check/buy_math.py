"""What a venue gives for buys, one after the other, by its own integer formula. Pure.

A pool's formula holds within one range of liquidity. Source: SwapMath and SqrtPriceMath (v3-core 1.0.1, the
same in v4-core 1.0.2); the launchpad's curve: ``curve``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import PoolFacts, Venue

from . import curve as curve_math
from .evidence import AnyLaunch, Curve, LaunchRecord, Missing
from .ticks import MAX_TICK, MIN_TICK, sqrt_price_x96_at, tick_at

PIPS = 1_000_000
_Q96 = 2**96


def outputs_of_buys(
    venue: Venue,
    facts: PoolFacts,
    launch: AnyLaunch | Missing | None,
    token: Address,
    amounts_raw: Sequence[int],
) -> list[int] | None:
    """Base units of the token for each amount of the quote, bought in this order. None where the formula does
    not apply: a curve in a launch's first seconds, a sold-out curve, a dynamic fee, an empty pool, a fee tier
    of unknown tick spacing."""
    if venue.is_curve:
        state = launch.curve_state if isinstance(launch, LaunchRecord) else None
        return _curve_outputs(state, amounts_raw) if isinstance(state, Curve) else None
    spacing = venue.tick_spacing or V3_SPACINGS.get(venue.fee_pips)
    if spacing is None or venue.dynamic_fee() or facts.sqrt_price_x96 <= 0 or facts.liquidity <= 0:
        return None
    pool = _PoolRange(
        facts.sqrt_price_x96, facts.liquidity, venue.fee_pips, spacing, token < venue.quote_address
    )
    try:
        return [pool.buy(amount_raw) for amount_raw in amounts_raw]
    except ValueError:
        return None


def price_after_buy(
    pool: PoolFacts, fee_pips: int, token_is_zero: bool, amount_raw: int, nets: Mapping[int, int]
) -> int:
    """The square root of a pool's price (X96) after a buy for ``amount_raw`` of the quote, or where its
    liquidity ends. ``nets``: the liquidity that comes into range where the price rises past a tick, and
    leaves it where the price falls."""
    state = _PoolRange(pool.sqrt_price_x96, pool.liquidity, fee_pips, 1, token_is_zero)
    left_raw, tick = amount_raw * (PIPS - fee_pips) // PIPS, tick_at(pool.sqrt_price_x96)
    end = MAX_TICK if token_is_zero else MIN_TICK
    beyond = {end, *(at for at in nets if (tick < at < end if token_is_zero else end < at <= tick))}
    for bound in sorted(beyond, reverse=not token_is_zero):
        target = sqrt_price_x96_at(bound)
        needed_raw = state.quote_to(target)
        if state.liquidity and left_raw < needed_raw:
            return state.after(left_raw)
        left_raw, state.price = left_raw - needed_raw, target
        net = nets.get(bound, 0)
        state.liquidity = max(0, state.liquidity + (net if token_is_zero else -net))
    return state.price


V3_SPACINGS = MappingProxyType({100: 1, 500: 10, 3000: 60, 10_000: 200})
"""The tick spacing of each fee tier (UniswapV3Factory.sol)."""
_MAX_PAUSES = 64
"""The most pauses of a swap that are computed."""
_WORD = 256
"""A swap pauses at the end of each word of the pool's bitmap of ticks, and rounds there."""


@dataclass(slots=True)
class _PoolRange:
    """A pool with the same liquidity at every price. ``token_is_zero``: a buy raises the price."""

    price: int
    liquidity: int
    fee_pips: int
    spacing: int
    token_is_zero: bool

    def buy(self, amount_raw: int) -> int:
        """What the pool gives for an amount. Raises ValueError at the end of all prices, and for a buy that
        moves the price so far that computing it would take long."""
        given = 0
        for _ in range(_MAX_PAUSES):
            target = sqrt_price_x96_at(min(max(self._next_pause(), MIN_TICK), MAX_TICK))
            if target == self.price:
                break
            most_raw = self.quote_to(target)
            net_raw = amount_raw * (PIPS - self.fee_pips) // PIPS
            after = target if net_raw >= most_raw else self.after(net_raw)
            given += self._output(after)
            self.price = after
            if net_raw < most_raw:
                return given
            amount_raw -= most_raw + _ceil_div(most_raw * self.fee_pips, PIPS - self.fee_pips)
        raise ValueError("the buy moves the price too far")

    def _next_pause(self) -> int:
        """The last tick of the price's word in the direction of a buy."""
        tick = tick_at(self.price)
        if self.token_is_zero:
            at = tick // self.spacing + 1
            return (at + _WORD - 1 - at % _WORD) * self.spacing
        if sqrt_price_x96_at(tick) == self.price and tick % (self.spacing * _WORD) == 0:
            tick -= 1
        at = tick // self.spacing
        return (at - at % _WORD) * self.spacing

    def quote_to(self, target: int) -> int:
        """The quote, without the fee, that moves the price to ``target``; rounded up."""
        if self.token_is_zero:
            return _ceil_div(self.liquidity * (target - self.price), _Q96)
        shifted = _ceil_div(self.liquidity * _Q96 * (self.price - target), self.price)
        return _ceil_div(shifted, target)

    def after(self, net_raw: int) -> int:
        """The price after a buy within the range, without the fee."""
        if self.token_is_zero:
            return self.price + net_raw * _Q96 // self.liquidity
        shifted = self.liquidity * _Q96
        return _ceil_div(shifted * self.price, shifted + net_raw * self.price)

    def _output(self, after: int) -> int:
        """What leaves the pool while the price moves; rounded down."""
        if self.token_is_zero:
            return self.liquidity * _Q96 * (after - self.price) // after // self.price
        return self.liquidity * (self.price - after) // _Q96


def _curve_outputs(state: Curve, amounts_raw: Sequence[int]) -> list[int] | None:
    given = []
    for amount_raw in amounts_raw:
        if state.snipe_bps or state.closed:
            return None
        bought = curve_math.buy(state, amount_raw, 0)
        quote_raw, token_raw = curve_math.after_buy(state, bought, 0)
        state = replace(state, quote_raw=quote_raw, token_raw=token_raw)
        given.append(bought.tokens_raw)
    return given


def _ceil_div(value: int, by: int) -> int:
    """The quotient, rounded up."""
    return -(-value // by)
