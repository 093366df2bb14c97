"""Uniswap v4 pools, traded through the Universal Router 2.1 and Permit2.

Sells settle first: the tokens go to the pool manager before the swap, which then sells what arrived. So
tokens that tax their transfers can be sold, and the tax is measured.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from roundtrip.domain.base.events import LiquidityMoved, PoolOpened, Swapped
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import PoolFacts, Quote, Venue, VenueKind
from roundtrip.domain.check.evidence import LaunchRecord

from . import abi, erc20, permit2
from .base import UNBOUND, Call, Contracts, Log, LogDecoder, SwapReader, TradeTerms, VenueListing, quote_name

KIND: VenueKind = "amm_v4"

FEES_AND_SPACINGS = ((100, 1), (500, 10), (3000, 60), (10_000, 200))
"""The pairs that user interfaces offer; a pool may have any other."""

EXECUTE = "0x3593564c"
POOL_KEYS = "0x86b6be7d"
"""poolKeys(bytes25) of the position manager: the key of any pool that it ever added liquidity to."""
GET_SLOT0 = "0xc815641c"
GET_LIQUIDITY = "0xfa6793d5"
QUOTE_EXACT_INPUT_SINGLE = "0xaa9d21cb"
_MAX_SWAPPED = 2**128 - 1
"""Swap amounts are uint128."""
_MAX_TICK_SPACING = 2**15 - 1
"""TickMath.MAX_TICK_SPACING."""

INITIALIZE = "0xdd466e674ea557f56295e2d0218a125ea4b4f0f6f3307b95f85e6110838d6438"
"""Initialize(bytes32,address,address,uint24,int24,address,uint160,int24)."""
SWAP = "0x40e9cecb9f5f1f1c5b9c97dec2917b7ee92e57ba5563708daca94dd84ad7112f"
"""Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)."""
MODIFY_LIQUIDITY = "0xf208f4912782fd25c7f114ca3723a2d5dd6f3bcc3ac8db5af63baa85f711d5ec"
"""ModifyLiquidity(bytes32,address,int24,int24,int256,bytes32)."""

# Commands and actions of the Universal Router 2.1 (Commands.sol, Actions.sol).
SWEEP, WRAP_ETH, UNWRAP_WETH, V4_SWAP = "04", "0b", "0c", "10"
SWAP_EXACT_IN_SINGLE, SETTLE, SETTLE_ALL, TAKE, TAKE_ALL = "06", "0b", "0c", "0e", "0f"

_HOOK_DATA_AT = 10 * abi.WORD
"""The offset of the empty hook data in a swap's parameters. The same value fills minHopPriceX36, where it is
next to nothing: routers of 2.1 without that field read this word as the offset, so one encoding serves
both."""

OPEN_DELTA = 0
"""As an amount: the whole debt or credit (ActionConstants.sol)."""
MAX_PERMIT2 = 2**160 - 1
CALLER = Address("0x" + "1".rjust(40, "0"))
ROUTER_ITSELF = Address("0x" + "2".rjust(40, "0"))
"""As recipients (ActionConstants.sol)."""

FAR_DEADLINE_S = 2**40
"""The deadline of plans that are only simulated; what a wallet signs carries a real one."""


def encode_key(token: Address, venue: Venue) -> str:
    """The pool key as five words: currencies in order, fee, tick spacing, hook."""
    low, high = sorted((token, venue.quote_address))
    return encode(low, high, venue.fee_pips, venue.tick_spacing, venue.hook or ZERO_ADDRESS)


def pool_id(token: Address, venue: Venue) -> str:
    """keccak256 of the encoded pool key."""
    return "0x" + abi.keccak(bytes.fromhex(encode_key(token, venue))).hex()


def key_call(pool_id: str, contracts: Contracts) -> Call:
    """Asks for the key of a pool. The position manager stores pools by the first 25 bytes of their ids."""
    return Call(contracts.v4_position_manager, POOL_KEYS + pool_id[2:52].ljust(64, "0"))


def read_key(
    pool_id: str, answer: bytes | None, contracts: Contracts
) -> tuple[Address, Address, VenueKind] | None:
    """A pool's two currencies and its kind, from the answer to ``key_call``; None where ``pool_id`` is not
    the id of that key."""
    data = (answer or b"")[: 5 * abi.WORD]
    low, high, hook = (abi.address_at(data, index) for index in (0, 1, 4))
    if low is None or high is None or "0x" + abi.keccak(data).hex() != pool_id:
        return None
    return low, high, "launchpad_pool" if hook == contracts.launchpad_hook else KIND


def pool(
    kind: VenueKind,
    token: Address,
    quote: Quote,
    quote_address: Address,
    fee_pips: int,
    tick_spacing: int,
    hook: Address | None = None,
) -> Venue:
    """The venue of one pool key."""
    keyless = Venue(kind, quote, quote_address, None, fee_pips, tick_spacing, hook)
    return Venue(kind, quote, quote_address, None, fee_pips, tick_spacing, hook, pool_id(token, keyless))


def candidates(token: Address, contracts: Contracts) -> tuple[Venue, ...]:
    """Every common fee against eth, weth and usdg, without a hook."""
    quotes: tuple[tuple[Quote, Address], ...] = (
        ("eth", ZERO_ADDRESS),
        ("weth", contracts.weth),
        ("usdg", contracts.usdg),
    )
    return tuple(
        pool(KIND, token, quote, address, fee, spacing)
        for quote, address in quotes
        for fee, spacing in FEES_AND_SPACINGS
        if address != token
    )


def listings(contracts: Contracts) -> tuple[tuple[Address, str], ...]:
    """The pool manager's Initialize."""
    return ((contracts.v4_pool_manager, INITIALIZE),)


def decode_listings(log: Log, contracts: Contracts) -> tuple[VenueListing, ...]:
    """The pools of a new key, except those with the launchpad's hook."""
    listed, launchpad_hook = decode_initialize(KIND, log, contracts), contracts.launchpad_hook
    return tuple(
        listing for listing in listed if launchpad_hook is None or listing.venue.hook != launchpad_hook
    )


def decode_initialize(kind: VenueKind, log: Log, contracts: Contracts) -> tuple[VenueListing, ...]:
    """Initialize(id, currency0, currency1 indexed; fee, tickSpacing, hooks, sqrtPriceX96, tick) as a pool of
    either currency. The id is computed from the key, not taken from the log."""
    low, high = abi.topic_address(log.topics, 2), abi.topic_address(log.topics, 3)
    fee, spacing, hook = abi.uint_at(log.data, 0), abi.uint_at(log.data, 1), abi.address_at(log.data, 2)
    if low is None or high is None or fee is None or spacing is None or hook is None:
        return ()
    if fee >= 2**24 or not 0 < spacing <= _MAX_TICK_SPACING:
        return ()
    hooked = None if hook == ZERO_ADDRESS else hook
    return tuple(
        VenueListing(token, pool(kind, token, quote_name(quote, contracts), quote, fee, spacing, hooked))
        for token, quote in ((low, high), (high, low))
        if token != ZERO_ADDRESS
    )


def decoders(contracts: Contracts) -> tuple[LogDecoder, ...]:
    """The pool manager's logs of every pool, including the launchpad's, and the position manager's of its
    NFTs."""
    manager, positions = contracts.v4_pool_manager, contracts.v4_position_manager
    return (
        LogDecoder(manager, INITIALIZE, partial(decode_pool_opened, launchpad_hook=contracts.launchpad_hook)),
        LogDecoder(manager, SWAP, decode_swap),
        LogDecoder(manager, MODIFY_LIQUIDITY, decode_liquidity_move),
        LogDecoder(positions, erc20.TRANSFER_TOPIC, erc20.decode_position_transfer),
    )


def decode_pool_opened(log: Log, launchpad_hook: Address | None) -> PoolOpened | None:
    """Initialize, as in ``decode_initialize``; None where the log's id is not the one of its key."""
    topics, data = log.topics, log.data
    low, high = abi.topic_address(topics, 2), abi.topic_address(topics, 3)
    fee, spacing, hook = abi.uint_at(data, 0, 24), abi.int_at(data, 1, 24), abi.address_at(data, 2)
    if len(topics) != 4 or low is None or high is None or fee is None or spacing is None or hook is None:
        return None
    tick = abi.int_at(data, 4, 24)
    if abi.uint_at(data, 3, 160) is None or tick is None or low >= high:
        return None
    if topics[1] != "0x" + abi.keccak(bytes.fromhex(encode(low, high, fee, spacing, hook))).hex():
        return None
    kind: VenueKind = "launchpad_pool" if hook == launchpad_hook else KIND
    hooked = None if hook == ZERO_ADDRESS else hook
    return PoolOpened(topics[1], kind, low, high, fee, spacing, hooked, tick)


def decode_swap(log: Log) -> Swapped | None:
    """Swap(id, sender indexed; amount0, amount1, sqrtPriceX96, liquidity, tick, fee). The amounts are the
    swapper's: negative ones are paid in. The fee is the pool's, without a hook's own."""
    _, topics, data = log
    if len(topics) != 3 or len(data) < 192:
        return None
    sender = abi.address_in(topics[2])
    amount0 = int.from_bytes(data[:32], "big", signed=True)
    amount1 = int.from_bytes(data[32:64], "big", signed=True)
    price, liquidity = int.from_bytes(data[64:96], "big"), int.from_bytes(data[96:128], "big")
    tick, fee = int.from_bytes(data[128:160], "big", signed=True), int.from_bytes(data[160:192], "big")
    # The width checks of abi.fits are inlined: swaps are frequent.
    if sender is None or price >> 160 or liquidity >> 128 or fee >> 24 or not -1 <= tick >> 23 <= 0:
        return None
    if not (-1 <= amount0 >> 127 <= 0 and -1 <= amount1 >> 127 <= 0):
        return None
    return tuple.__new__(Swapped, (topics[1], -amount0, -amount1, price, liquidity, tick, sender, None, fee))


def decode_liquidity_move(log: Log) -> LiquidityMoved | None:
    """ModifyLiquidity(id, sender indexed; tickLower, tickUpper, liquidityDelta, salt). The log does not name
    the owner behind the sender, such as the owner of a position manager's NFT, whose number is the salt."""
    topics, data = log.topics, log.data
    owner, salt = abi.topic_address(topics, 2), abi.uint_at(data, 3)
    lower, upper, delta = abi.int_at(data, 0, 24), abi.int_at(data, 1, 24), abi.int_at(data, 2)
    if len(topics) != 3 or owner is None or salt is None:
        return None
    if lower is None or upper is None or delta is None:
        return None
    return LiquidityMoved(topics[1], owner, lower, upper, delta, None, None, salt)


def fact_calls(venue: Venue, contracts: Contracts) -> tuple[Call, ...]:
    """The pool's price and its liquidity in range."""
    assert venue.pool_id is not None
    return (
        Call(contracts.v4_state_view, GET_SLOT0 + venue.pool_id[2:]),
        Call(contracts.v4_state_view, GET_LIQUIDITY + venue.pool_id[2:]),
    )


def read_facts(venue: Venue, token: Address, answers: tuple[bytes | None, ...]) -> PoolFacts:
    """The pool's state. A pool without a price was never created. All pools share one vault, so the reserve
    is computed from the liquidity: the quote that a pool of this liquidity over every price would hold."""
    slot0, liquid = answers
    price, liquidity = abi.uint_at(slot0 or b"", 0), abi.uint_at(liquid or b"", 0) or 0
    if not price:
        return PoolFacts(False, 0, 0, 0)
    quote_is_high = token < venue.quote_address
    reserve = liquidity * price >> 96 if quote_is_high else (liquidity << 96) // price
    return PoolFacts(True, price, liquidity, reserve)


SWAPS: Mapping[str, SwapReader] = MappingProxyType({SWAP: decode_swap})


def spender(venue: Venue, contracts: Contracts) -> tuple[Address, str]:
    """Permit2, through which the Universal Router takes tokens."""
    return contracts.permit2, "Permit2"


def rebuild(venue: Venue, token: Address, launch: LaunchRecord | None, contracts: Contracts) -> Venue:
    """The pool with the id computed from its key."""
    quote, fee, spacing = venue.quote_address, venue.fee_pips, venue.tick_spacing
    return pool(KIND, token, quote_name(quote, contracts), quote, fee, spacing, venue.hook)


def plan_buy(
    venue: Venue,
    token: Address,
    contracts: Contracts,
    amount_raw: int,
    buyer: Address,
    terms: TradeTerms = UNBOUND,
) -> tuple[Call, ...]:
    """Eth is sent along and the rest swept back; weth is wrapped by the router from eth; Permit2 pulls any
    other quote, with an allowance of exactly that amount."""
    deadline_s = terms.deadline_s
    if venue.quote == "weth":
        settle = (SETTLE, encode(contracts.weth, OPEN_DELTA, False))
    else:
        settle = (SETTLE_ALL, encode(venue.quote_address, amount_raw))
    swap = (SWAP_EXACT_IN_SINGLE, encode_swap(venue, token, True, amount_raw, terms.min_raw))
    trade = (V4_SWAP, encode_actions(swap, settle, (TAKE_ALL, encode(token, terms.min_raw))))
    if venue.quote == "eth":
        sweep = (SWEEP, encode(ZERO_ADDRESS, CALLER, 0))
        return (plan_execute(contracts, (trade, sweep), amount_raw, deadline_s),)
    if venue.quote == "weth":
        wrap, unwrap = (WRAP_ETH, encode(ROUTER_ITSELF, amount_raw)), (UNWRAP_WETH, encode(CALLER, 0))
        return (plan_execute(contracts, (wrap, trade, unwrap), amount_raw, deadline_s),)
    approvals = approve_router(venue.quote_address, contracts, amount_raw, deadline_s)
    return (*approvals, plan_execute(contracts, (trade,), 0, deadline_s))


def plan_output(venue: Venue, token: Address, contracts: Contracts, amount_raw: int) -> Call | None:
    """V4Quoter.quoteExactInputSingle((key, zeroForOne, exactAmount, hookData)): the output net of a hook's
    fee. None for more than a swap can take."""
    if amount_raw > _MAX_SWAPPED:
        return None
    zero_for_one = venue.quote_address < token
    head = abi.word(abi.WORD) + encode_key(token, venue)
    head += encode(zero_for_one, amount_raw, 8 * abi.WORD, 0)
    return Call(contracts.v4_quoter, QUOTE_EXACT_INPUT_SINGLE + head)


def plan_sweep(contracts: Contracts, to: Address) -> Call:
    """The Universal Router sends its eth and its unwrapped weth to any recipient that a caller names."""
    return plan_execute(contracts, ((SWEEP, encode(ZERO_ADDRESS, to, 0)), (UNWRAP_WETH, encode(to, 0))))


def plan_sell(
    venue: Venue,
    token: Address,
    contracts: Contracts,
    amount_raw: int,
    seller: Address,
    approve_raw: int | None = None,
    terms: TradeTerms = UNBOUND,
) -> tuple[Call, ...]:
    """Approves, settles the tokens, swaps what arrived, and takes the quote out."""
    settle = (SETTLE, encode(token, amount_raw, True))
    swap = (SWAP_EXACT_IN_SINGLE, encode_swap(venue, token, False, OPEN_DELTA, terms.min_raw))
    approved_raw = amount_raw if approve_raw is None else approve_raw
    return _plan_sell_by(venue, token, contracts, approved_raw, terms, settle, swap)


def plan_second_sell(
    venue: Venue,
    token: Address,
    contracts: Contracts,
    amount_raw: int,
    seller: Address,
    approve_raw: int | None = None,
    terms: TradeTerms = UNBOUND,
) -> tuple[Call, ...]:
    """Swaps first and settles then, as interfaces do. It fails where less than the amount arrives."""
    swap = (SWAP_EXACT_IN_SINGLE, encode_swap(venue, token, False, amount_raw, terms.min_raw))
    settle = (SETTLE_ALL, encode(token, amount_raw))
    approved_raw = amount_raw if approve_raw is None else approve_raw
    return _plan_sell_by(venue, token, contracts, approved_raw, terms, swap, settle)


def _plan_sell_by(
    venue: Venue,
    token: Address,
    contracts: Contracts,
    approved_raw: int,
    terms: TradeTerms,
    *actions: tuple[str, str],
) -> tuple[Call, ...]:
    """The approvals, then ``actions``, and what takes the quote out."""
    if venue.quote == "weth":
        take = (TAKE, encode(contracts.weth, ROUTER_ITSELF, OPEN_DELTA))
        after: tuple[tuple[str, str], ...] = ((UNWRAP_WETH, encode(CALLER, terms.min_raw)),)
    else:
        take, after = (TAKE_ALL, encode(venue.quote_address, terms.min_raw)), ()
    commands = ((V4_SWAP, encode_actions(*actions, take)), *after)
    sell = plan_execute(contracts, commands, 0, terms.deadline_s)
    return (*approve_router(token, contracts, approved_raw, terms.deadline_s), sell)


def plan_pay_out(venue: Venue, token: Address, contracts: Contracts, buyer: Address) -> tuple[Address, Call]:
    """The pool manager's transfer of one unit to the buyer."""
    return contracts.v4_pool_manager, erc20.plan_transfer(token, buyer, 1)


def plan_pull(
    venue: Venue, token: Address, contracts: Contracts, amount_raw: int, seller: Address
) -> tuple[Address, Call]:
    """Permit2's transferFrom to the pool manager."""
    pull = erc20.plan_transfer_from(token, seller, contracts.v4_pool_manager, amount_raw)
    return contracts.permit2, pull


# --- calldata --------------------------------------------------------------------------------------


def encode(*values: int | str | bool) -> str:
    """Static arguments as hex without a selector."""
    return "".join(map(abi.word, values))


def approve_router(
    token: Address, contracts: Contracts, amount_raw: int, until_s: int | None = None
) -> tuple[Call, Call]:
    """Approves Permit2 at the token, and the router at Permit2, for exactly this amount."""
    router = contracts.universal_router
    return (
        erc20.plan_approve(token, contracts.permit2, amount_raw),
        Call(
            contracts.permit2,
            abi.call(permit2.APPROVE, token, router, min(amount_raw, MAX_PERMIT2), until_s or FAR_DEADLINE_S),
        ),
    )


def encode_swap(venue: Venue, token: Address, buys: bool, amount_raw: int, min_raw: int = 0) -> str:
    """ExactInputSingleParams of the router 2.1: key, direction, amount, minimum, minHopPriceX36, hookData."""
    token_is_low = token < venue.quote_address
    zero_for_one = token_is_low is not buys
    head = encode_key(token, venue) + encode(zero_for_one, amount_raw, min_raw, _HOOK_DATA_AT)
    return abi.word(abi.WORD) + head + encode(_HOOK_DATA_AT, 0)


def encode_actions(*steps: tuple[str, str]) -> str:
    """Actions as bytes, and their parameters: the input of V4_SWAP, and what the position manager takes."""
    actions = "0x" + "".join(action for action, _ in steps)
    parameters = abi.bytes_array(["0x" + parameter for _, parameter in steps])
    tail = abi.bytes_tail(actions)
    return encode(2 * abi.WORD, 2 * abi.WORD + len(tail) // 2) + tail + parameters


def plan_execute(
    contracts: Contracts,
    commands: tuple[tuple[str, str], ...],
    value_wei: int = 0,
    deadline_s: int | None = None,
) -> Call:
    """UniversalRouter.execute(bytes,bytes[],uint256)."""
    codes = abi.bytes_tail("0x" + "".join(command for command, _ in commands))
    inputs = abi.bytes_array(["0x" + data for _, data in commands])
    head = encode(3 * abi.WORD, 3 * abi.WORD + len(codes) // 2, deadline_s or FAR_DEADLINE_S)
    return Call(contracts.universal_router, EXECUTE + head + codes + inputs, value_wei)
