"""The pool of a trade: read from the calldata, and proven by the venue's address or id."""

from collections.abc import Callable
from dataclasses import replace

from . import abi, routers
from .network import TrustedNetwork
from .prepared_trade import ETH, LAUNCHED, V3, PreparedStep, TradeToVerify
from .report import plain
from .routers import ZERO_ADDRESS, ExpectedCall, PoolKey

DYNAMIC_FEE = 0x800000
"""As a pool's fee: its hook sets the fee, swap by swap."""
MAX_FEE = 1_000_000
"""All of it, in millionths."""

CallBuilder = Callable[[TradeToVerify, TrustedNetwork, int, PoolKey], ExpectedCall]


def find_pool(
    trade: TradeToVerify, network: TrustedNetwork, minimum: int, step: PreparedStep
) -> tuple[PoolKey, ExpectedCall]:
    """The pool that the calldata names, and the expected call for it. Of the calldata only the pool's key is
    used; ``doubts`` checks whether that is the claimed pool."""
    build_call: CallBuilder = routers.v3 if trade.kind == V3 else routers.v4
    if routers.by_second_route(trade, network):
        build_call = routers.v3_second
    blanks = [PoolKey(money, 0) for money in _moneys(trade, network)]
    candidates = [(pool, build_call(trade, network, minimum, pool).fields) for pool in blanks]
    fitting = [pair for pair in candidates if abi.size(pair[1]) == len(step.data)]
    blank, fields = (fitting or candidates)[0]
    pool = replace(blank, fee=abi.read(fields, routers.FEE, step.data) or 0)
    if trade.in_vault:
        spacing, hook = (abi.read(fields, name, step.data) or 0 for name in (routers.SPACING, routers.HOOK))
        pool = replace(pool, spacing=spacing, hook=hook)
    return pool, build_call(trade, network, minimum, pool)


def _moneys(trade: TradeToVerify, network: TrustedNetwork) -> list[str]:
    """The possible moneys of the pool. A trade in eth may use a pool of weth; the length of the calldata
    shows which."""
    if trade.money != ETH:
        return [network.usdg]
    return [network.weth] if trade.kind == V3 else [ZERO_ADDRESS, network.weth]


def doubts(trade: TradeToVerify, network: TrustedNetwork, pool: PoolKey) -> list[str]:
    """Why this is not the pool that the answer claims; empty: it is."""
    reasons = []
    if not pool.fits() or (pool.fee > MAX_FEE and (trade.kind == V3 or pool.fee != DYNAMIC_FEE)):
        reasons.append("the pool has a fee, tick spacing or hook that no pool can have")
    elif trade.at != place(trade, network, pool):
        reasons.append(
            f"the swap goes through the pool {place(trade, network, pool)}, but venue.at is {trade.at}"
        )
    if trade.kind == LAUNCHED:
        if network.launchpad_hook is None:
            reasons.append(
                "the network file names no launchpadHook, so a launchpad's pool cannot be recognized"
            )
        elif pool.hook != int(network.launchpad_hook, 16):
            reasons.append("the pool's hook is not the launchpad's")
    return reasons


def place(trade: TradeToVerify, network: TrustedNetwork, pool: PoolKey) -> str:
    """The address or id of a pool with this key."""
    if trade.kind == V3:
        return routers.v3_pool_address(network.v3_factory, trade.head.token, pool)
    return routers.v4_pool_id(trade.head.token, pool)


def describe_pool(trade: TradeToVerify, network: TrustedNetwork, pool: PoolKey) -> str:
    """The pool in words."""
    fee = "a fee set by its hook" if pool.fee == DYNAMIC_FEE else f"a fee of {plain(pool.fee, 4)} %"
    money = {ZERO_ADDRESS: "eth", network.weth: "weth", network.usdg: "usdg"}[pool.money]
    kind = {V3: "v3 pool", LAUNCHED: "launchpad's v4 pool"}.get(trade.kind, "v4 pool")
    hook = f" and the hook 0x{pool.hook:040x}" if pool.hook else ""
    return f"the {kind} {trade.at} of the token {trade.head.token} and {money} with {fee}{hook}"
