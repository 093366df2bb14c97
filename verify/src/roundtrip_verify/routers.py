"""The expected calls of a trade: Uniswap's routers, Permit2 and the launchpad's curves.

Selectors, commands and actions are those of SwapRouter02, Universal Router 2.1 and Permit2 as Uniswap
publishes them.
"""

from dataclasses import dataclass

from .abi import WORD, Field, Fields, address, array, code, encode_fields, keccak, number, size, tail
from .network import TrustedNetwork
from .prepared_trade import CURVE, ETH, V3, TradeToVerify

ZERO_ADDRESS = "0x" + "0" * 40
"""The zero address: eth itself, or no hook."""
CALLER = "0x" + "1".rjust(40, "0")
"""What both routers read as their caller."""
ROUTER = "0x" + "2".rjust(40, "0")
"""What both routers read as the router itself."""
OWED = 0
"""As an amount, to the Universal Router: all that is owed."""

POOL_INIT_CODE_HASH = bytes.fromhex("e34f199b19b2b4f47f68442619d555527d244f78a3297ea89325f843f87b8b54")
"""Of UniswapV3Pool. With the factory it determines the address of every pool."""

APPROVE, PERMIT2_APPROVE = "095ea7b3", "87517c45"
MULTICALL, EXACT_INPUT_SINGLE, REFUND_ETH, UNWRAP_WETH9 = "5ae401dc", "04e45aaf", "12210e8a", "49404b7c"
EXECUTE = "3593564c"
CURVE_BUY, CURVE_SELL = "59a87bc1", "d04c6983"

V3_SWAP_EXACT_IN, SWEEP, WRAP_ETH, UNWRAP_WETH, V4_SWAP = "00", "04", "0b", "0c", "10"
SWAP_EXACT_IN_SINGLE, SETTLE, SETTLE_ALL, TAKE, TAKE_ALL = "06", "0b", "0c", "0e", "0f"

_HOOK_DATA_AT = 10 * WORD
"""The offset of a swap's (empty) hook data. As the lowest price of a hop the same word is next to nothing."""

SPENDER, ALLOWED, FEE, SPACING, HOOK = (
    "the spender",
    "the allowed amount",
    "the fee",
    "the spacing",
    "the hook",
)


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """The only correct call."""

    to: str
    value: int
    fields: Fields


@dataclass(frozen=True, slots=True)
class PoolKey:
    """The parts of a pool's address or id. ``spacing`` and ``hook`` are v4's; ``money`` is an address."""

    money: str
    fee: int
    spacing: int = 0
    hook: int = 0

    def fits(self) -> bool:
        """False for numbers that no pool can have: a router would read them as others."""
        return self.fee < 2**24 and self.spacing < 2**15 and self.hook < 2**160


def v3_pool_address(factory: str, token: str, pool: PoolKey) -> str:
    """The CREATE2 address."""
    low, high = sorted((token, pool.money))
    salt = keccak(encode_fields((address("low", low), address("high", high), number("fee", pool.fee))))
    packed = b"\xff" + bytes.fromhex(factory[2:]) + salt + POOL_INIT_CODE_HASH
    return "0x" + keccak(packed)[12:].hex()


def v4_pool_id(token: str, pool: PoolKey) -> str:
    """The hash of the pool's key."""
    return "0x" + keccak(encode_fields(_key(token, pool))).hex()


def approve(asset: str, spender: str, amount: int) -> ExpectedCall:
    """ERC-20: the spender may take this much."""
    head = code("the function", APPROVE)
    return ExpectedCall(asset, 0, (head, address(SPENDER, spender), number(ALLOWED, amount)))


def permit2_approve(asset: str, network: TrustedNetwork, amount: int, deadline_s: int) -> ExpectedCall:
    """Permit2: the Universal Router may take this much, until the deadline."""
    fields = (
        code("the function", PERMIT2_APPROVE),
        address("the approved token", asset),
        address(SPENDER, network.universal_router),
        number(ALLOWED, amount),
        number("the end of the approval", deadline_s),
    )
    return ExpectedCall(network.permit2, 0, fields)


def curve(trade: TradeToVerify, minimum: int) -> ExpectedCall:
    """The curve's own buy or sell."""
    fields = (
        code("the function", CURVE_BUY if trade.buys else CURVE_SELL),
        number("the amount paid", trade.spend.raw),
        number("the minimum", minimum),
        address("the recipient", trade.head.wallet),
    )
    return ExpectedCall(trade.at, _value(trade), fields)


def v3(trade: TradeToVerify, network: TrustedNetwork, minimum: int, pool: PoolKey) -> ExpectedCall:
    """SwapRouter02. The router wraps and unwraps eth, and hands on all it has."""
    eth = trade.money == ETH
    wallet = trade.head.wallet
    token, amount = trade.head.token, trade.spend.raw
    if trade.buys:
        refund = [(code("the refund's function", REFUND_ETH),)] if eth else []
        calls = [_v3_swap(pool.money, token, pool.fee, CALLER, amount, minimum), *refund]
    elif eth:
        swap = _v3_swap(token, pool.money, pool.fee, ROUTER, amount, minimum)
        unwrap = (
            code("the unwrapping's function", UNWRAP_WETH9),
            number("the minimum of eth", minimum),
            address("the recipient of eth", wallet),
        )
        calls = [swap, unwrap]
    else:
        calls = [_v3_swap(token, pool.money, pool.fee, wallet, amount, minimum)]
    fields = (
        code("the function", MULTICALL),
        number("the deadline", trade.deadline_s),
        number("the place of the calls", 2 * WORD),
        *array("the calls", calls),
    )
    return ExpectedCall(network.swap_router02, _value(trade), fields)


def _v3_swap(paid: str, bought: str, fee: int, recipient: str, amount: int, minimum: int) -> Fields:
    return (
        code("the swap's function", EXACT_INPUT_SINGLE),
        address("the token paid", paid),
        address("the token bought", bought),
        number(FEE, fee),
        address("the recipient", recipient),
        number("the amount paid", amount),
        number("the minimum", minimum),
        number("the price limit", 0),
    )


def v3_second(trade: TradeToVerify, network: TrustedNetwork, minimum: int, pool: PoolKey) -> ExpectedCall:
    """A sell through the Universal Router, which takes the tokens by Permit2 and pays its caller."""
    eth, paid, bought = trade.money == ETH, trade.head.token, pool.money
    path = (
        Field("the token paid", bytes.fromhex(paid[2:]), "address"),
        Field(FEE, pool.fee.to_bytes(3, "big"), "number"),
        Field("the token bought", bytes.fromhex(bought[2:]), "address"),
    )
    path_tail = tail("the path", path)
    swap = (
        address("the recipient", ROUTER if eth else CALLER),
        number("the amount paid", trade.spend.raw),
        number("the minimum", minimum),
        number("the place of the path", 6 * WORD),
        number("whether the wallet pays", True),
        number("the place of the least prices", 6 * WORD + size(path_tail)),
        *path_tail,
        number("the count of the least prices", 0),
    )
    unwrap = [(UNWRAP_WETH, _unwrap("eth", minimum))] if eth else []
    return _execute(trade, network, [(V3_SWAP_EXACT_IN, swap), *unwrap])


def v4(trade: TradeToVerify, network: TrustedNetwork, minimum: int, pool: PoolKey) -> ExpectedCall:
    """The Universal Router."""
    build_commands = _v4_buy if trade.buys else _v4_sell
    return _execute(trade, network, build_commands(trade, network, minimum, pool))


Commands = list[tuple[str, Fields]]


def _execute(trade: TradeToVerify, network: TrustedNetwork, commands: Commands) -> ExpectedCall:
    """The Universal Router, with a deadline over all of its commands."""
    codes = tail("the commands", (code("the commands", "".join(command for command, _ in commands)),))
    fields = (
        code("the function", EXECUTE),
        number("the place of the commands", 3 * WORD),
        number("the place of the inputs", 3 * WORD + size(codes)),
        number("the deadline", trade.deadline_s),
        *codes,
        *array("the inputs", [fields for _, fields in commands]),
    )
    return ExpectedCall(network.universal_router, _value(trade), fields)


def _v4_buy(trade: TradeToVerify, network: TrustedNetwork, minimum: int, pool: PoolKey) -> Commands:
    amount = trade.spend.raw
    swap = (SWAP_EXACT_IN_SINGLE, _v4_swap(trade, pool, amount, minimum))
    take = (TAKE_ALL, _take_all(trade.head.token, minimum))
    paid = address("the money paid", pool.money)
    if pool.money == network.weth:
        wrap = (address("the recipient of weth", ROUTER), number("the wrapped amount", amount))
        settle = (paid, number("the settled amount", OWED), number("whether the wallet pays", False))
        unwrap = _unwrap("the rest", 0)
        body = _v4_actions([swap, (SETTLE, settle), take])
        return [(WRAP_ETH, wrap), (V4_SWAP, body), (UNWRAP_WETH, unwrap)]
    body = _v4_actions([swap, (SETTLE_ALL, (paid, number("the most settled", amount))), take])
    if trade.money != ETH:
        return [(V4_SWAP, body)]
    rest = (
        address("the swept money", ZERO_ADDRESS),
        address("the recipient of the rest", CALLER),
        number("the minimum of the rest", 0),
    )
    return [(V4_SWAP, body), (SWEEP, rest)]


def _v4_sell(trade: TradeToVerify, network: TrustedNetwork, minimum: int, pool: PoolKey) -> Commands:
    """The tokens are paid in first, and what arrived is swapped."""
    settle = (
        address("the token paid", trade.head.token),
        number("the amount paid", trade.spend.raw),
        number("whether the wallet pays", True),
    )
    first = [(SETTLE, settle), (SWAP_EXACT_IN_SINGLE, _v4_swap(trade, pool, OWED, minimum))]
    if pool.money != network.weth:
        return [(V4_SWAP, _v4_actions([*first, (TAKE_ALL, _take_all(pool.money, minimum))]))]
    take = (
        address("what is taken out", pool.money),
        address("the recipient of weth", ROUTER),
        number("the amount taken out", OWED),
    )
    return [(V4_SWAP, _v4_actions([*first, (TAKE, take)])), (UNWRAP_WETH, _unwrap("eth", minimum))]


def _take_all(asset: str, minimum: int) -> Fields:
    return (address("what is taken out", asset), number("the minimum taken out", minimum))


def _unwrap(label: str, minimum: int) -> Fields:
    return (address(f"the recipient of {label}", CALLER), number(f"the minimum of {label}", minimum))


def _v4_actions(actions: Commands) -> Fields:
    """The input of V4_SWAP: actions, and the parameters of each."""
    codes = tail("the actions", (code("the actions", "".join(action for action, _ in actions)),))
    return (
        number("the place of the actions", 2 * WORD),
        number("the place of the parameters", 2 * WORD + size(codes)),
        *codes,
        *array("the parameters", [fields for _, fields in actions]),
    )


def _v4_swap(trade: TradeToVerify, pool: PoolKey, amount: int, minimum: int) -> Fields:
    token_is_low = trade.head.token < pool.money
    return (
        number("the place of the swap", WORD),
        *_key(trade.head.token, pool),
        number("the direction", token_is_low is not trade.buys),
        number("the swapped amount", amount),
        number("the minimum", minimum),
        number("the least price", _HOOK_DATA_AT),
        number("the place of the hook's data", _HOOK_DATA_AT),
        number("the length of the hook's data", 0),
    )


def _key(token: str, pool: PoolKey) -> Fields:
    low, high = sorted((token, pool.money))
    return (
        address("the pool's lower currency", low),
        address("the pool's higher currency", high),
        number(FEE, pool.fee),
        number(SPACING, pool.spacing),
        _hook(pool.hook),
    )


def _hook(value: int) -> Field:
    return Field(HOOK, value.to_bytes(WORD, "big"), "address")


def _value(trade: TradeToVerify) -> int:
    """The eth to send along: all that is paid, where eth is paid."""
    return trade.spend.raw if trade.buys and trade.money == ETH else 0


def spender(trade: TradeToVerify, network: TrustedNetwork) -> str:
    """The contract that has to be approved for the token that is paid."""
    if trade.kind == CURVE:
        return trade.at
    return network.permit2 if by_permit2(trade, network) else network.swap_router02


def by_permit2(trade: TradeToVerify, network: TrustedNetwork) -> bool:
    """True where the Universal Router takes the tokens by Permit2: for v4 pools, and for v3 pools by the
    second route."""
    return trade.in_vault or by_second_route(trade, network)


def by_second_route(trade: TradeToVerify, network: TrustedNetwork) -> bool:
    """True for a sell in a v3 pool whose last step goes to the Universal Router. Buys have no such form."""
    return trade.kind == V3 and not trade.buys and trade.steps[-1].to == network.universal_router
