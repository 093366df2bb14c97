"""What really happens to liquidity: accounts take it out for real, and a wallet sells after that."""

import contextlib
from collections.abc import Iterable, Iterator

from eth_abi.abi import encode

from roundtrip.venues.abi import keccak
from roundtrip_development.devnet.deploy import ZERO, DeployError, calldata
from roundtrip_development.devnet.launchpad import pool_id
from support.wallet import Wallet
from truth.liquidity_world import Exit, LiquidityGround, PutPool, PutPosition, account_of, now_s

PROBE_WEI = 10**17
BPS = 10_000
_LATE, _MOST = 2**40, 2**128 - 1
_DECREASE, _BURN_POSITION, _TAKE_PAIR = 0x01, 0x03, 0x11
_COLLECT = "collect((uint256,address,uint128,uint128))"
_SINGLE = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"
_APPROVE = "approve(address,uint256)"


@contextlib.contextmanager
def undone(ground: LiquidityGround) -> Iterator[None]:
    """What happens inside is undone after it."""
    snapshot = ground.rpc.call("evm_snapshot")
    try:
        yield
    finally:
        # anvil has lost a transaction sent right after a revert that made its nonce free again.
        ground.rpc.call("evm_mine")
        assert ground.rpc.call("evm_revert", snapshot)


def active_liquidity(ground: LiquidityGround, pool: PutPool) -> int:
    """The pool's liquidity in range, as the pool says."""
    if pool.key is None:
        return ground.view(pool.address, "liquidity()")
    return ground.view(ground.contracts["v4StateView"], "getLiquidity(bytes32)", pool_id(pool.key))


def in_range(ground: LiquidityGround, position: PutPosition) -> bool:
    """Whether the position trades at the pool's price."""
    return position.tick_lower <= _tick(ground, position.pool) < position.tick_upper


def who_hold_money(ground: LiquidityGround, positions: Iterable[PutPosition]) -> list[PutPosition]:
    """Those of one pool that hold some of its money once a wallet has bought for 0.1 eth: they lie at the
    price, or where sales lead."""
    held = list(positions)
    if not held:
        return []
    pool = held[0].pool
    with undone(ground):
        _buy(ground, Wallet(ground.rpc, ground.contracts, f"liquidity buyer of {pool.token}"), pool)
        tick, is_second = _tick(ground, pool), pool.sides()[1] == pool.quote
    return [one for one in held if (one.tick_lower <= tick if is_second else tick < one.tick_upper)]


def _tick(ground: LiquidityGround, pool: PutPool) -> int:
    if pool.key is None:
        to, data = pool.address, calldata("slot0()")
    else:
        to = ground.contracts["v4StateView"]
        data = calldata("getSlot0(bytes32)", pool_id(pool.key))
    rows = ground.rpc.call("eth_call", {"to": to, "data": data}, "latest")
    return int.from_bytes(bytes.fromhex(rows[2 + 64 : 2 + 128]), "big", signed=True)


def liquidity_left(ground: LiquidityGround, position: PutPosition) -> int:
    """What the position still has, as whoever keeps it says; 0 where its NFT is burned."""
    if position.number == 0:
        packed = bytes.fromhex(position.owner[2:])
        packed += b"".join(
            tick.to_bytes(3, "big", signed=True) for tick in (position.tick_lower, position.tick_upper)
        )
        return ground.view(position.pool.address, "positions(bytes32)", keccak(packed))
    if position.pool.key is None:
        data = calldata("positions(uint256)", position.number)
        rows = ground.rpc.call("eth_call", {"to": position.owner, "data": data}, "latest")
        return int(rows[2 + 7 * 64 : 2 + 8 * 64], 16)
    return ground.view(position.owner, "getPositionLiquidity(uint256)", position.number)


def withdraw(
    ground: LiquidityGround, position: PutPosition, way: Exit | None = None, at_s: int | None = None
) -> bool:
    """Takes all of a position out, by the way, or by the first one: in a block of ``at_s``, or of the way's
    time where that has not come. Whether it left."""
    if not position.exits:
        return False
    way = way or position.exits[0]
    first_s = way.at_s if at_s is None else at_s
    if first_s > now_s(ground.rpc):
        ground.rpc.call("evm_setNextBlockTimestamp", first_s)
    had = liquidity_left(ground, position)
    try:
        for act in way.acts:
            account = account_of(ground.rpc, act.sender)
            account.receipt(account.send(act.to, act.data))
        if way.takes:
            _remove(ground, position, way.takes)
    except DeployError:
        return False
    return had > 0 and liquidity_left(ground, position) == 0


def who_can_now(ground: LiquidityGround, position: PutPosition) -> set[str]:
    """Of all who could some day, the wallets that really take the position out now."""
    found, next_s = set(), now_s(ground.rpc) + 1
    for way in position.exits:
        with undone(ground):
            if withdraw(ground, position, way, next_s):
                found.add(way.wallet)
    return found


def opens_at(ground: LiquidityGround, position: PutPosition, way: Exit) -> bool:
    """Whether the way is closed a second before its time and open at it."""
    with undone(ground):
        early = withdraw(ground, position, way, way.at_s - 1)
    with undone(ground):
        return not early and withdraw(ground, position, way, way.at_s)


def loss_if_it_left(ground: LiquidityGround, pool: PutPool, positions: Iterable[PutPosition] = ()) -> int:
    """What a wallet loses that buys for 0.1 eth, and sells all after these positions were taken out by their
    first ways, in bps of what it paid. Where the sale is refused, all."""
    with undone(ground):
        wallet = Wallet(ground.rpc, ground.contracts, f"liquidity buyer of {pool.token}")
        paid_raw = _buy(ground, wallet, pool)
        for position in positions:
            assert withdraw(ground, position), "it did not leave"
        return BPS * (paid_raw - _sell_all(ground, wallet, pool)) // paid_raw


def _buy(ground: LiquidityGround, wallet: Wallet, pool: PutPool) -> int:
    """Buys for 0.1 eth, or for what a wallet gets for it; what it paid, of the pool's money."""
    plan = pool.plan
    if plan.quote in ("eth", "weth"):
        assert wallet.buy(pool.token, plan.quote, plan.fee_pips, PROBE_WEI, plan.version)
        return PROBE_WEI
    weth, usdg = ground.contracts["weth"], ground.contracts["usdg"]
    _swap(ground, wallet, (weth, usdg, 500), PROBE_WEI, PROBE_WEI)
    _swap(ground, wallet, (usdg, pool.quote, 500), wallet.tokens(usdg))
    paid_raw = wallet.tokens(pool.quote)
    assert _swap(ground, wallet, (pool.quote, pool.token, plan.fee_pips), paid_raw)
    return paid_raw


def _sell_all(ground: LiquidityGround, wallet: Wallet, pool: PutPool) -> int:
    """What the sale brings of the pool's money, where it brings most; 0 where it is refused."""
    plan, held_raw = pool.plan, wallet.tokens(pool.token)
    assert held_raw
    if plan.quote in ("eth", "weth"):
        return wallet.sell(pool.token, plan.quote, plan.fee_pips, held_raw, plan.version).back_raw
    before_raw = wallet.tokens(pool.quote)
    with undone(ground):
        _swap(ground, wallet, (pool.token, pool.quote, plan.fee_pips), held_raw)
        brought = [wallet.tokens(pool.quote) - before_raw]
    if pool.curve:
        assert wallet.send(pool.token, calldata(_APPROVE, pool.curve, held_raw)).ok
        wallet.send(pool.curve, calldata("sell(uint256,uint256,address)", held_raw, 0, wallet.address))
        brought.append(wallet.tokens(pool.quote) - before_raw)
    return max(brought)


def _swap(
    ground: LiquidityGround, wallet: Wallet, way: tuple[str, str, int], amount_raw: int, value_wei: int = 0
) -> bool:
    """Sells so much of the first of two currencies in their v3 pool of a fee. Whether it was sold."""
    source, target, fee_pips = way
    router = ground.contracts["swapRouter02"]
    if not value_wei:
        assert wallet.send(source, calldata(_APPROVE, router, amount_raw)).ok
    swap = calldata(_SINGLE, (source, target, fee_pips, wallet.address, amount_raw, 0, 0))
    return wallet.send(router, swap, value_wei).ok


def _remove(ground: LiquidityGround, position: PutPosition, holder: str) -> None:
    """The NFT's holder takes all of its liquidity out. Raises DeployError: it is refused."""
    account, manager, number = account_of(ground.rpc, holder), position.owner, position.number
    if position.pool.key is None:
        less = "decreaseLiquidity((uint256,uint128,uint256,uint256,uint256))"
        calls = [
            calldata(less, (number, position.liquidity, 0, 0, _LATE)),
            calldata(_COLLECT, (number, holder, _MOST, _MOST)),
        ]
    else:
        burn = encode(["uint256", "uint128", "uint128", "bytes"], [number, 0, 0, b""])
        calls = [_modify_v4(position, _BURN_POSITION, burn, holder)]
    for data in calls:
        account.receipt(account.send(manager, data))


def _modify_v4(position: PutPosition, action: int, argument: bytes, to: str) -> str:
    """What a v4 NFT's holder sends to have one thing done with it, and what that gives sent to ``to``."""
    low, high = position.pool.sides()
    steps = [argument, encode(["address", "address", "address"], [low, high, to])]
    plan = encode(["bytes", "bytes[]"], [bytes([action, _TAKE_PAIR]), steps])
    return calldata("modifyLiquidities(bytes,uint256)", plan, _LATE)


def trade_both_ways(ground: LiquidityGround, pool: PutPool) -> None:
    """A wallet buys, and sells all: both currencies have paid fees."""
    wallet = Wallet(ground.rpc, ground.contracts, f"liquidity trader of {pool.token}")
    _buy(ground, wallet, pool)
    assert _sell_all(ground, wallet, pool)


def claim_fees(ground: LiquidityGround, position: PutPosition, to: str, most_raw: int = _MOST) -> None:
    """The NFT's holder has its fees sent to ``to``; of a v3 pool at most so much of each currency."""
    if position.pool.key is None:
        data = calldata(_COLLECT, (position.number, to, most_raw, most_raw))
    else:
        types = ["uint256", "uint256", "uint128", "uint128", "bytes"]
        data = _modify_v4(position, _DECREASE, encode(types, [position.number, 0, 0, 0, b""]), to)
    account = account_of(ground.rpc, position.holder)
    account.receipt(account.send(position.owner, data))


def unclaimed_fees(ground: LiquidityGround, position: PutPosition) -> dict[str, int]:
    """What its holder really gets of each currency who claims its fees now."""
    wallet = Wallet(ground.rpc, ground.contracts, "liquidity fees", wei=0)
    with undone(ground):
        claim_fees(ground, position, wallet.address)
        return {one: wallet.eth() if one == ZERO else wallet.tokens(one) for one in position.pool.sides()}
