"""The launchpad's bonding curves: one contract per token, which sells the token and buys it back.

A curve has no router and no deadline. A buy near its end is cut to what is left, and the rest is refunded.
"""

from collections.abc import Mapping
from math import isqrt
from types import MappingProxyType

from roundtrip.domain.base.events import CurveBoughtBack, CurveTraded, LaunchedToken
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import PoolFacts, Venue, VenueKind
from roundtrip.domain.check.evidence import Curve, LaunchRecord

from . import abi, erc20
from .base import UNBOUND, Call, Contracts, Log, LogDecoder, SwapReader, TradeTerms, VenueListing, quote_name

KIND: VenueKind = "launchpad_curve"

BUY = "0x59a87bc1"
SELL = "0xd04c6983"
GET_RESERVES = "0x0902f1ac"
REAL_QUOTE_RESERVE = "0x4f1f58fd"
RESERVED_TOKENS = "0x15a55347"
FEE_BPS = "0x24a9d853"
CREATOR_TAX_BPS = "0xc1bb8901"
READY_TO_GRADUATE = "0xc68360a5"
GRADUATED = "0xe7c2b772"
LAUNCHED_AT = "0xbf56b371"
SNIPE_TAX_SECONDS = "0x6783774b"
CURRENT_SNIPE_TAX_BPS = "0xd7e1ef39"

TOKEN_LAUNCHED = "0x8d4aad4953d0ca700d468f3753aa14432d1b35b43ec6409f051fb6aa43a89607"  # noqa: S105
"""TokenLaunched(address,address,address,address,uint256,uint256)."""
CURVE_BUY = "0xec36bf571f136799e8dc0b0b8bea4b04d8bd3d43de838aab0d5fc21d4cbfc455"
"""CurveBuy(address,address,uint256,uint256,uint256,uint256)."""
CURVE_SELL = "0x8113d738abdcb6b38357e9d53a54a7157861a09031b453651f0fe7fe151f59df"
"""CurveSell(address,address,uint256,uint256,uint256,uint256)."""
BUYBACK_LOCKED = "0x5feba9b0d52c92ada4b9c571c2bee52390c54f2947208ab250221e6ee32f12ff"
"""BuybackLocked(uint256,uint256)."""

_VIEWS = (
    GET_RESERVES, REAL_QUOTE_RESERVE, RESERVED_TOKENS, FEE_BPS, CREATOR_TAX_BPS, READY_TO_GRADUATE, GRADUATED,
    LAUNCHED_AT, SNIPE_TAX_SECONDS,
)  # fmt: skip


def curve(quote_address: Address, address: Address, contracts: Contracts) -> Venue:
    """The venue of one curve. Its fees are read from the curve."""
    return Venue(KIND, quote_name(quote_address, contracts), quote_address, address, 0)


def candidates(token: Address, contracts: Contracts) -> tuple[Venue, ...]:
    """None: a curve is found only through the factory."""
    return ()


def listings(contracts: Contracts) -> tuple[tuple[Address, str], ...]:
    """The factory's TokenLaunched, where there is a launchpad."""
    factory = contracts.launchpad_factory
    return () if factory is None else ((factory, TOKEN_LAUNCHED),)


def decode_listings(log: Log, contracts: Contracts) -> tuple[VenueListing, ...]:
    """TokenLaunched(token, curve, deployer indexed; pairToken, launchConfigId, graduationThreshold)."""
    token, address = abi.topic_address(log.topics, 1), abi.topic_address(log.topics, 2)
    quote = abi.address_at(log.data, 0)
    if token is None or address is None or quote is None:
        return ()
    return (VenueListing(token, curve(quote, address, contracts)),)


def decoders(contracts: Contracts) -> tuple[LogDecoder, ...]:
    """The factory's TokenLaunched, and the logs of curves from any emitter: only the emitters that
    TokenLaunched named are curves."""
    factory = contracts.launchpad_factory
    if factory is None:
        return ()
    return (
        LogDecoder(factory, TOKEN_LAUNCHED, decode_launch),
        LogDecoder(None, CURVE_BUY, decode_buy),
        LogDecoder(None, CURVE_SELL, decode_sell),
        LogDecoder(None, BUYBACK_LOCKED, decode_buyback),
    )


def decode_launch(log: Log) -> LaunchedToken | None:
    """TokenLaunched, as in ``decode_listings``."""
    token, address, deployer = (abi.topic_address(log.topics, index) for index in (1, 2, 3))
    quote, threshold = abi.address_at(log.data, 0), abi.uint_at(log.data, 2)
    if len(log.topics) != 4 or token is None or address is None or deployer is None:
        return None
    if quote is None or threshold is None:
        return None
    return LaunchedToken(token, deployer, quote, address, 2, threshold)


def decode_buy(log: Log) -> CurveTraded | None:
    """CurveBuy(buyer, recipient indexed; quoteIn, tokensOut, fee, tax). The fee includes the tax on buying
    early."""
    return _decode_trade(log, True)


def decode_sell(log: Log) -> CurveTraded | None:
    """CurveSell(seller, recipient indexed; tokensIn, quoteOut, fee, tax)."""
    return _decode_trade(log, False)


def _decode_trade(log: Log, buys: bool) -> CurveTraded | None:
    address, topics, data = log
    if len(topics) != 3 or len(data) < 128:
        return None
    wallet, recipient = abi.address_in(topics[1]), abi.address_in(topics[2])
    if wallet is None or recipient is None:
        return None
    paid, received = int.from_bytes(data[:32], "big"), int.from_bytes(data[32:64], "big")
    fee, tax = int.from_bytes(data[64:96], "big"), int.from_bytes(data[96:128], "big")
    quote, token = (paid, received) if buys else (received, paid)
    return CurveTraded(address, buys, wallet, recipient, quote, token, fee, tax)


def decode_buyback(log: Log) -> CurveBoughtBack | None:
    """BuybackLocked(quoteSpent, tokensLocked): paid from fees that the curve set aside before."""
    quote, tokens = abi.uint_at(log.data, 0), abi.uint_at(log.data, 1)
    if len(log.topics) != 1 or quote is None or tokens is None:
        return None
    return CurveBoughtBack(log.address, quote)


def fact_calls(venue: Venue, contracts: Contracts) -> tuple[Call, ...]:
    """The curve's own views."""
    assert venue.pool is not None
    return tuple(Call(venue.pool, view) for view in _VIEWS)


def snipe_call(venue: Venue, wallet: Address) -> Call:
    """Asks for the share of a buy that the curve would take from ``wallet`` now, in addition to its fees."""
    assert venue.pool is not None
    return Call(venue.pool, abi.call(CURRENT_SNIPE_TAX_BPS, wallet))


def read_facts(venue: Venue, token: Address, answers: tuple[bytes | None, ...]) -> PoolFacts:
    """The curve's state as a pool's. A sold-out curve no longer trades: it counts as not existing."""
    state = read_curve(answers, 0)
    if state is None or state.closed:
        return PoolFacts(False, 0, 0, 0)
    low, high = (state.token_raw, state.quote_raw)
    if venue.quote_address < token:
        low, high = high, low
    price = isqrt((high << 192) // low)
    return PoolFacts(True, price, isqrt(state.quote_raw * state.token_raw), state.real_quote_raw)


def read_curve(answers: tuple[bytes | None, ...], snipe_bps: int) -> Curve | None:
    """The curve's state from the answers to ``fact_calls``; None when they are not a curve's."""
    reserves, *rest = answers
    quote, token = (abi.uint_at(reserves or b"", index) for index in (0, 1))
    real, reserved, fee, tax, ready, graduated, launched, seconds = (
        abi.uint_at(answer or b"", 0) for answer in rest
    )
    if quote is None or token is None or fee is None or tax is None or graduated is None:
        return None
    return Curve(
        quote_raw=quote,
        token_raw=token,
        real_quote_raw=real or 0,
        reserved_raw=reserved or 0,
        fee_bps=fee,
        creator_tax_bps=tax,
        closed=bool(ready) or bool(graduated) or quote == 0 or token == 0,
        snipe_bps=snipe_bps,
        launched_at_s=launched or 0,
        snipe_seconds=seconds,
    )


def plan_sweep(contracts: Contracts, to: Address) -> Call | None:
    """None: a curve accounts for its balance, and pays out no stranger's dust."""
    return None


SWAPS: Mapping[str, SwapReader] = MappingProxyType({CURVE_BUY: decode_buy, CURVE_SELL: decode_sell})


def spender(venue: Venue, contracts: Contracts) -> tuple[Address, str]:
    """The curve itself."""
    return venue.pool or ZERO_ADDRESS, "the curve"


def rebuild(venue: Venue, token: Address, launch: LaunchRecord | None, contracts: Contracts) -> Venue | None:
    """The curve that the launchpad names; the proof holds the launchpad's answers."""
    if launch is None or launch.curve != venue.pool:
        return None
    return curve(venue.quote_address, launch.curve, contracts)


def plan_buy(
    venue: Venue,
    token: Address,
    contracts: Contracts,
    amount_raw: int,
    buyer: Address,
    terms: TradeTerms = UNBOUND,
) -> tuple[Call, ...]:
    """Eth is sent along; for any other quote the curve is approved for exactly that amount. A curve has no
    deadline."""
    assert venue.pool is not None
    buy = abi.call(BUY, amount_raw, terms.min_raw, buyer)
    if venue.quote_address == ZERO_ADDRESS:
        return (Call(venue.pool, buy, amount_raw),)
    return erc20.plan_approve(venue.quote_address, venue.pool, amount_raw), Call(venue.pool, buy)


def plan_output(venue: Venue, token: Address, contracts: Contracts, amount_raw: int) -> None:
    """None: the curve's tokens take no tax of a transfer, so the buyer receives the output."""


def plan_sell(
    venue: Venue,
    token: Address,
    contracts: Contracts,
    amount_raw: int,
    seller: Address,
    approve_raw: int | None = None,
    terms: TradeTerms = UNBOUND,
) -> tuple[Call, ...]:
    """Approves the curve, and sells to it."""
    assert venue.pool is not None
    approve = erc20.plan_approve(token, venue.pool, amount_raw if approve_raw is None else approve_raw)
    return approve, Call(venue.pool, abi.call(SELL, amount_raw, terms.min_raw, seller))


def plan_second_sell(
    venue: Venue,
    token: Address,
    contracts: Contracts,
    amount_raw: int,
    seller: Address,
    approve_raw: int | None = None,
    terms: TradeTerms = UNBOUND,
) -> tuple[Call, ...]:
    """None: a wallet sells to the curve itself."""
    return ()


def plan_pay_out(venue: Venue, token: Address, contracts: Contracts, buyer: Address) -> tuple[Address, Call]:
    """The curve's transfer of one unit to the buyer."""
    assert venue.pool is not None
    return venue.pool, erc20.plan_transfer(token, buyer, 1)


def plan_pull(
    venue: Venue, token: Address, contracts: Contracts, amount_raw: int, seller: Address
) -> tuple[Address, Call]:
    """The curve's transferFrom."""
    assert venue.pool is not None
    return venue.pool, erc20.plan_transfer_from(token, seller, venue.pool, amount_raw)
