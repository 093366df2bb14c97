"""Uniswap v3 pools, traded through SwapRouter02."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from roundtrip.domain.base.events import LiquidityMoved, PoolOpened, PositionNumbered, Priced, Swapped
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import PoolFacts, Venue, VenueKind
from roundtrip.domain.check.evidence import LaunchRecord, QuoteHop

from . import abi, amm_v4, erc20
from .base import UNBOUND, Call, Contracts, Log, LogDecoder, SwapReader, TradeTerms, VenueListing, quote_name

KIND: VenueKind = "amm_v3"

FEE_TIERS_PIPS = (100, 500, 3000, 10_000)
"""The fee tiers that the factory allows: 100 by governance, the others by its constructor."""

POOL_INIT_CODE_HASH = "e34f199b19b2b4f47f68442619d555527d244f78a3297ea89325f843f87b8b54"
"""keccak256 of UniswapV3Pool's creation code, which determines every pool's address (v3-core 1.0.1)."""

EXACT_INPUT_SINGLE = "0x04e45aaf"
EXACT_OUTPUT = "0x09b81346"
MULTICALL = "0xac9650d8"
MULTICALL_BY = "0x5ae401dc"
"""multicall(uint256,bytes[]): with a deadline."""
REFUND_ETH = "0x12210e8a"
UNWRAP_WETH9 = "0x49404b7c"
SLOT0 = "0x3850c7bd"
LIQUIDITY = "0x1a686502"
TOKEN0, TOKEN1, FEE = "0x0dfe1681", "0xd21220a7", "0xddca3f43"
QUOTE_EXACT_INPUT_SINGLE = "0xc6a5026a"
"""QuoterV2.quoteExactInputSingle((address,address,uint256,uint24,uint160)): returns the output first."""
POOL_CREATED = "0x783cca1c0412dd0d695e784568c96da2e9c22ff989357a2e8b1d9b2b4e6b7118"
"""PoolCreated(address,address,uint24,int24,address)."""
INITIALIZE = "0x98636036cb66a9c19a37435efc1e90142190214e8abeb821bdba3f2990dd4c95"
"""Initialize(uint160,int24), emitted by the pool."""
SWAP = "0xc42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67"
"""Swap(address,address,int256,int256,uint160,uint128,int24)."""
MINT = "0x7a53080ba414158be7ec69b987b5fb7d07dee101fe85488f0853ae16239d0bde"
"""Mint(address,address,int24,int24,uint128,uint256,uint256)."""
BURN = "0x0c396cd989a39f4459b5fa1aed6a9a8dcdbc45908acfd67e028cd568da98982c"
"""Burn(address,int24,int24,uint128,uint256,uint256)."""
INCREASE_LIQUIDITY = "0x3067048beee31b25b2f1681f88dac838c8bba36af25bfb2b7cf7473a5847e35f"
"""IncreaseLiquidity(uint256,uint128,uint256,uint256), of the position manager."""
DECREASE_LIQUIDITY = "0x26f6a048ee9138f2c0ce266f322cb99228e8d619ae2bff30c67f8dcf9d2377b4"
"""DecreaseLiquidity(uint256,uint128,uint256,uint256), of the position manager."""

V3_SWAP_EXACT_IN = "00"
"""A command of the Universal Router (Commands.sol)."""

_ROUTER_ITSELF = Address("0x" + "2".rjust(40, "0"))
"""SwapRouter02's Constants.ADDRESS_THIS: the output stays in the router, to be unwrapped there."""


def pool_address(factory: Address, token: Address, quote: Address, fee_pips: int) -> Address:
    """The CREATE2 address of the pool of two tokens and a fee."""
    low, high = sorted((token, quote))
    salt = abi.keccak(bytes.fromhex(abi.word(low) + abi.word(high) + abi.word(fee_pips)))
    packed = b"\xff" + bytes.fromhex(factory[2:]) + salt + bytes.fromhex(POOL_INIT_CODE_HASH)
    return Address("0x" + abi.keccak(packed)[12:].hex())


def pool(token: Address, quote: Address, fee_pips: int, contracts: Contracts) -> Venue:
    """The pool of ``token`` against ``quote``, whether it exists or not."""
    address = pool_address(contracts.v3_factory, token, quote, fee_pips)
    return Venue(KIND, quote_name(quote, contracts), quote, address, fee_pips)


def candidates(token: Address, contracts: Contracts) -> tuple[Venue, ...]:
    """Every fee tier against weth and usdg."""
    return tuple(
        pool(token, quote, fee, contracts)
        for quote in (contracts.weth, contracts.usdg)
        for fee in FEE_TIERS_PIPS
        if quote != token
    )


def listings(contracts: Contracts) -> tuple[tuple[Address, str], ...]:
    """The factory's PoolCreated. Other factories create pools, too; only this one's pool code is known."""
    return ((contracts.v3_factory, POOL_CREATED),)


def decode_listings(log: Log, contracts: Contracts) -> tuple[VenueListing, ...]:
    """PoolCreated(token0, token1, fee indexed; tickSpacing, pool). The pool's address is computed from its
    key, not taken from the log."""
    low, high, fee = (
        abi.topic_address(log.topics, 1),
        abi.topic_address(log.topics, 2),
        abi.topic_uint(log.topics, 3),
    )
    if low is None or high is None or fee is None or fee >= 2**24:
        return ()
    sides = ((low, high), (high, low))
    return tuple(VenueListing(token, pool(token, quote, fee, contracts)) for token, quote in sides)


def decoders(contracts: Contracts) -> tuple[LogDecoder, ...]:
    """The factory's PoolCreated, the position manager's logs of its NFTs, and the logs of pools, from any
    emitter: the reader of the events has to know which emitters are pools."""
    manager = contracts.v3_position_manager
    return (
        LogDecoder(
            contracts.v3_factory, POOL_CREATED, partial(decode_pool_opened, factory=contracts.v3_factory)
        ),
        LogDecoder(None, INITIALIZE, decode_price_set),
        LogDecoder(None, SWAP, decode_swap),
        LogDecoder(None, MINT, decode_mint),
        LogDecoder(None, BURN, decode_burn),
        LogDecoder(manager, INCREASE_LIQUIDITY, decode_numbered),
        LogDecoder(manager, DECREASE_LIQUIDITY, partial(decode_numbered, sign=-1)),
        LogDecoder(manager, erc20.TRANSFER_TOPIC, erc20.decode_position_transfer),
    )


def decode_pool_opened(log: Log, factory: Address) -> PoolOpened | None:
    """PoolCreated, as in ``decode_listings``; None where the log's pool address is not the one of its key."""
    low, high = abi.topic_address(log.topics, 1), abi.topic_address(log.topics, 2)
    fee, spacing = abi.topic_uint(log.topics, 3, 24), abi.int_at(log.data, 0, 24)
    if len(log.topics) != 4 or low is None or high is None or fee is None or spacing is None:
        return None
    address = abi.address_at(log.data, 1)
    if low >= high or address != pool_address(factory, low, high, fee):
        return None
    return PoolOpened(address, KIND, low, high, fee, spacing, None)


def decode_price_set(log: Log) -> Priced | None:
    """Initialize(sqrtPriceX96, tick)."""
    price, tick = abi.uint_at(log.data, 0, 160), abi.int_at(log.data, 1, 24)
    return None if len(log.topics) != 1 or not price or tick is None else Priced(log.address, price, tick)


def decode_swap(log: Log) -> Swapped | None:
    """Swap(sender, recipient indexed; amount0, amount1, sqrtPriceX96, liquidity, tick)."""
    address, topics, data = log
    if len(topics) != 3 or len(data) < 160:
        return None
    sender, recipient = abi.address_in(topics[1]), abi.address_in(topics[2])
    price, liquidity = int.from_bytes(data[64:96], "big"), int.from_bytes(data[96:128], "big")
    tick = int.from_bytes(data[128:160], "big", signed=True)
    # The width checks of abi.fits are inlined: swaps are frequent.
    if sender is None or recipient is None or price >> 160 or liquidity >> 128 or not -1 <= tick >> 23 <= 0:
        return None
    amount0 = int.from_bytes(data[:32], "big", signed=True)
    amount1 = int.from_bytes(data[32:64], "big", signed=True)
    return tuple.__new__(
        Swapped, (address, amount0, amount1, price, liquidity, tick, sender, recipient, None)
    )


def decode_mint(log: Log) -> LiquidityMoved | None:
    """Mint(owner, tickLower, tickUpper indexed; sender, amount, amount0, amount1)."""
    sender = abi.address_at(log.data, 0)
    return None if sender is None else _decode_move(log, 1)


def decode_burn(log: Log) -> LiquidityMoved | None:
    """Burn(owner, tickLower, tickUpper indexed; amount, amount0, amount1). An owner burns an amount of zero
    to have its fees updated."""
    return _decode_move(log, 0, -1)


def _decode_move(log: Log, first: int, sign: int = 1) -> LiquidityMoved | None:
    """The fields that Mint and Burn share; the amounts begin at word ``first``."""
    owner = abi.topic_address(log.topics, 1)
    lower, upper = abi.topic_int(log.topics, 2, 24), abi.topic_int(log.topics, 3, 24)
    if len(log.topics) != 4 or owner is None or lower is None or upper is None:
        return None
    liquidity = abi.uint_at(log.data, first, 128)
    amount0, amount1 = abi.uint_at(log.data, first + 1), abi.uint_at(log.data, first + 2)
    if liquidity is None or amount0 is None or amount1 is None:
        return None
    return LiquidityMoved(log.address, owner, lower, upper, sign * liquidity, sign * amount0, sign * amount1)


def decode_numbered(log: Log, sign: int = 1) -> PositionNumbered | None:
    """IncreaseLiquidity and DecreaseLiquidity(tokenId indexed; liquidity, amount0, amount1). In the position
    manager the pool's Mint or Burn comes just before; a mint has the NFT's Transfer in between."""
    number, liquidity = abi.topic_uint(log.topics, 1), abi.uint_at(log.data, 0, 128)
    amount0, amount1 = abi.uint_at(log.data, 1), abi.uint_at(log.data, 2)
    if len(log.topics) != 2 or number is None or liquidity is None or amount0 is None or amount1 is None:
        return None
    return PositionNumbered(log.address, number, sign * liquidity, sign * amount0, sign * amount1)


def fact_calls(venue: Venue, contracts: Contracts) -> tuple[Call, ...]:
    """The pool's price, its liquidity in range, and its balance of the quote."""
    assert venue.pool is not None
    return (
        Call(venue.pool, SLOT0),
        Call(venue.pool, LIQUIDITY),
        Call(venue.quote_address, abi.call(erc20.BALANCE_OF, venue.pool)),
    )


def read_facts(venue: Venue, token: Address, answers: tuple[bytes | None, ...]) -> PoolFacts:
    """The pool's state. A pool that does not answer slot0 does not exist: its address can hold no other
    code."""
    slot0, liquidity, reserve = answers
    price = abi.uint_at(slot0 or b"", 0)
    if price is None:
        return PoolFacts(False, 0, 0, 0)
    return PoolFacts(True, price, abi.uint_at(liquidity or b"", 0) or 0, abi.uint_at(reserve or b"", 0) or 0)


SWAPS: Mapping[str, SwapReader] = MappingProxyType({SWAP: decode_swap})


def spender(venue: Venue, contracts: Contracts) -> tuple[Address, str]:
    """The swap router."""
    return contracts.swap_router02, "the swap router"


def rebuild(venue: Venue, token: Address, launch: LaunchRecord | None, contracts: Contracts) -> Venue:
    """The pool at the address computed from its tokens and its fee."""
    return pool(token, venue.quote_address, venue.fee_pips, contracts)


def plan_buy(
    venue: Venue,
    token: Address,
    contracts: Contracts,
    amount_raw: int,
    buyer: Address,
    terms: TradeTerms = UNBOUND,
) -> tuple[Call, ...]:
    """Weth pools are paid in eth, which the router wraps; it refunds what the pool does not take."""
    router, quote = contracts.swap_router02, venue.quote_address
    swap = encode_exact_input_single(quote, token, venue.fee_pips, _CALLER, amount_raw, terms.min_raw)
    if venue.quote == "weth":
        return (Call(router, encode_multicall([swap, REFUND_ETH], terms.deadline_s), amount_raw),)
    return erc20.plan_approve(quote, router, amount_raw), Call(router, _bind_deadline(swap, terms))


def plan_output(venue: Venue, token: Address, contracts: Contracts, amount_raw: int) -> Call:
    """See ``plan_quote``."""
    return plan_quote(contracts, venue.quote_address, token, venue.fee_pips, amount_raw)


def plan_sweep(contracts: Contracts, to: Address) -> Call:
    """SwapRouter02 sends its eth and its unwrapped weth to any caller."""
    return Call(contracts.swap_router02, encode_multicall([REFUND_ETH, abi.call(UNWRAP_WETH9, 0, to)]))


def plan_sell(
    venue: Venue,
    token: Address,
    contracts: Contracts,
    amount_raw: int,
    seller: Address,
    approve_raw: int | None = None,
    terms: TradeTerms = UNBOUND,
) -> tuple[Call, ...]:
    """Approves the router, sells, and unwraps the weth that a weth pool pays."""
    router, quote, fee, min_raw = contracts.swap_router02, venue.quote_address, venue.fee_pips, terms.min_raw
    approve = erc20.plan_approve(token, router, amount_raw if approve_raw is None else approve_raw)
    if venue.quote != "weth":
        swap = encode_exact_input_single(token, quote, fee, seller, amount_raw, min_raw)
        return approve, Call(router, _bind_deadline(swap, terms))
    swap = encode_exact_input_single(token, quote, fee, _ROUTER_ITSELF, amount_raw, min_raw)
    unwrap = abi.call(UNWRAP_WETH9, min_raw, seller)
    return approve, Call(router, encode_multicall([swap, unwrap], terms.deadline_s))


def plan_second_sell(
    venue: Venue,
    token: Address,
    contracts: Contracts,
    amount_raw: int,
    seller: Address,
    approve_raw: int | None = None,
    terms: TradeTerms = UNBOUND,
) -> tuple[Call, ...]:
    """Through Permit2 and the Universal Router. The minimum is the swap's own, as with the usual router: what
    else lies in the Universal Router does not count towards it."""
    quote, deadline_s = venue.quote_address, terms.deadline_s
    path = f"0x{token[2:]}{venue.fee_pips:06x}{quote[2:]}"
    by_weth = venue.quote == "weth"
    tail = abi.bytes_tail(path)
    head = amm_v4.encode(amm_v4.ROUTER_ITSELF if by_weth else amm_v4.CALLER, amount_raw, terms.min_raw)
    # Routers of 2.1 read an array of minimum prices after the flag; an empty one sets none.
    head += amm_v4.encode(6 * abi.WORD, True, 6 * abi.WORD + len(tail) // 2)
    commands = [(V3_SWAP_EXACT_IN, head + tail + abi.word(0))]
    commands += [(amm_v4.UNWRAP_WETH, amm_v4.encode(amm_v4.CALLER, terms.min_raw))] if by_weth else []
    approved_raw = amount_raw if approve_raw is None else approve_raw
    approvals = amm_v4.approve_router(token, contracts, approved_raw, deadline_s)
    return (*approvals, amm_v4.plan_execute(contracts, tuple(commands), 0, deadline_s))


def _bind_deadline(swap: str, terms: TradeTerms) -> str:
    """The swap's calldata, within a multicall where there is a deadline."""
    return swap if terms.deadline_s is None else encode_multicall([swap], terms.deadline_s)


def plan_pay_out(venue: Venue, token: Address, contracts: Contracts, buyer: Address) -> tuple[Address, Call]:
    """The pool's transfer of one unit to the buyer."""
    assert venue.pool is not None
    return venue.pool, erc20.plan_transfer(token, buyer, 1)


def plan_pull(
    venue: Venue, token: Address, contracts: Contracts, amount_raw: int, seller: Address
) -> tuple[Address, Call]:
    """The router's transferFrom into the pool."""
    assert venue.pool is not None
    return contracts.swap_router02, erc20.plan_transfer_from(token, seller, venue.pool, amount_raw)


_CALLER = Address("0x" + "1".rjust(40, "0"))
"""SwapRouter02's Constants.MSG_SENDER: the output goes to the caller."""


def encode_exact_input_single(
    token_in: Address,
    token_out: Address,
    fee_pips: int,
    recipient: Address,
    amount_raw: int,
    min_raw: int = 0,
) -> str:
    """SwapRouter02.exactInputSingle (seven fields, no deadline), without a price limit."""
    return abi.call(EXACT_INPUT_SINGLE, token_in, token_out, fee_pips, recipient, amount_raw, min_raw, 0)


def plan_quote(
    contracts: Contracts, token_in: Address, token_out: Address, fee_pips: int, amount_raw: int
) -> Call:
    """Asks the quoter for a swap's output, computed on the pool's own liquidity."""
    data = abi.call(QUOTE_EXACT_INPUT_SINGLE, token_in, token_out, amount_raw, fee_pips, 0)
    return Call(contracts.quoter_v2, data)


def encode_exact_output(
    token_in: Address, route: tuple[QuoteHop, ...], recipient: Address, amount_raw: int, most_raw: int
) -> str:
    """SwapRouter02.exactOutput((bytes,address,uint256,uint256)): exactly ``amount_raw`` of the route's last
    token, for at most ``most_raw`` in. The path is encoded from its end to its beginning."""
    path, starts = "", (token_in, *(hop.to for hop in route))
    for start, hop in zip(starts, route, strict=False):
        path = f"{hop.fee_pips:06x}{start[2:]}" + path
    path = "0x" + starts[-1][2:] + path
    head = abi.word(abi.WORD) + abi.word(4 * abi.WORD) + abi.word(recipient)
    return EXACT_OUTPUT + head + abi.word(amount_raw) + abi.word(most_raw) + abi.bytes_tail(path)


def encode_multicall(calls: list[str], deadline_s: int | None = None) -> str:
    """SwapRouter02.multicall: the calls in order, each with the whole value, in no block later than the
    deadline where there is one."""
    if deadline_s is None:
        return MULTICALL + abi.word(abi.WORD) + abi.bytes_array(calls)
    return MULTICALL_BY + abi.word(deadline_s) + abi.word(2 * abi.WORD) + abi.bytes_array(calls)


def read_output(answer: bytes) -> int | None:
    """What the first swap of a multicall put out: the first of the bytes[] that the router answers."""
    at = (abi.uint_at(answer, 0) or 0) + abi.WORD
    first = abi.uint_at(answer[at:], 0)
    return None if first is None else abi.uint_at(answer[at + first + abi.WORD :], 0)


def plan_eth_to(contracts: Contracts, route: tuple[QuoteHop, ...], amount_raw: int, most_wei: int) -> Call:
    """Buys exactly ``amount_raw`` of the last token of a route from weth, for eth; the rest is refunded."""
    swap = encode_exact_output(contracts.weth, route, _CALLER, amount_raw, most_wei)
    return Call(contracts.swap_router02, encode_multicall([swap, REFUND_ETH]), most_wei)


def key_calls(address: Address) -> tuple[Call, ...]:
    """Asks a contract that claims to be a pool for its key."""
    return tuple(Call(address, view) for view in (TOKEN0, TOKEN1, FEE))


def read_key(
    address: Address, answers: tuple[bytes | None, ...], contracts: Contracts
) -> tuple[Address, Address] | None:
    """The two currencies of the pool at ``address``, from the answers to ``key_calls``; None where the pool
    of that key is at another address."""
    low, high = (abi.address_at(answer or b"", 0) for answer in answers[:2])
    fee = abi.uint_at(answers[2] or b"", 0, 24)
    if low is None or high is None or fee is None or low >= high:
        return None
    return (low, high) if pool_address(contracts.v3_factory, low, high, fee) == address else None
