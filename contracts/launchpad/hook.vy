# pragma version 0.4.3
# pragma evm-version cancun
# pragma optimize none
"""
@title The fee of graduated pools
@notice A v4 hook: only the factory opens pools with it, and every swap in them
        leaves a fee and the creator's tax in the currency that the swapper did
        not fix. Its address ends in the permissions 0x2044: beforeInitialize,
        afterSwap, afterSwapReturnsDelta. Shares are hundredths of a percent.
"""

from .lib import money
from .lib import shapes

interface PoolManager:
    def unlock(data: Bytes[64]) -> Bytes[64]: nonpayable
    def swap(key: shapes.PoolKey, params: shapes.SwapParams, data: Bytes[1]) -> int256: nonpayable
    def take(currency: address, to: address, amount: uint256): nonpayable
    def sync(currency: address): nonpayable
    def settle() -> uint256: payable
    def extsload(slot: bytes32) -> bytes32: view

interface Factory:
    def owner() -> address: view
    def locker() -> address: view
    def protocolFeeShareBps() -> uint256: view
    def buybackBurnBps() -> uint256: view
    def maxInternalPriceImpactBps() -> uint256: view

event PoolRegistered:
    poolId: indexed(bytes32)
    memecoin: address
    quote: address
    creator: address

event HookFeeCollected:
    poolId: indexed(bytes32)
    currency: address
    fee: uint256
    tax: uint256

event PoolFeesSwept:
    poolId: indexed(bytes32)
    protocolAmount: uint256
    creatorAmount: uint256
    tokensConverted: uint256
    tokensLocked: uint256

# Fees of one pool in one currency, not yet sent on.
struct Pending:
    fee: uint256
    tax: uint256

# 0x2044 of the last fourteen bits.
PERMISSIONS: constant(uint256) = 2**13 + 2**6 + 2**2
ALL_PERMISSIONS: constant(uint256) = 2**14 - 1
BPS: constant(uint256) = 10_000
HOOK_FEE_BPS: constant(uint256) = 100
# Where the manager keeps its pools.
POOLS_SLOT: constant(uint256) = 6
PRICE_BITS: constant(uint256) = 2**160 - 1
# One inside v4's own bounds.
LOWEST_PRICE: constant(uint256) = 4295128740
HIGHEST_PRICE: constant(uint256) = 1461446703485210103287273052203988822378723970341
BEFORE_INITIALIZE: constant(bytes4) = method_id(
    "beforeInitialize(address,(address,address,uint24,int24,address),uint160)", output_type=bytes4
)
AFTER_SWAP: constant(bytes4) = method_id(
    "afterSwap(address,(address,address,uint24,int24,address),(bool,int256,uint160),int256,bytes)",
    output_type=bytes4,
)

MANAGER: public(immutable(PoolManager))
FACTORY: public(immutable(Factory))
ESCROW: public(immutable(address))

launches: public(HashMap[bytes32, shapes.HookLaunch])
pending: public(HashMap[bytes32, HashMap[address, Pending]])
keys: HashMap[bytes32, shapes.PoolKey]


@deploy
def __init__(manager: address, factory: address, escrow: address):
    assert convert(self, uint256) & ALL_PERMISSIONS == PERMISSIONS, "wrong address"
    MANAGER = PoolManager(manager)
    FACTORY = Factory(factory)
    ESCROW = escrow


@external
@pure
def hookFeeBps() -> uint256:
    return HOOK_FEE_BPS


@external
def register(key: shapes.PoolKey, launch: shapes.HookLaunch):
    assert msg.sender == FACTORY.address, "not the factory"
    assert key.hooks == self, "another hook"
    pool: bytes32 = shapes._pool_id(key)
    self.launches[pool] = launch
    self.keys[pool] = key
    log PoolRegistered(
        poolId=pool, memecoin=launch.memecoin, quote=launch.quote, creator=launch.creator
    )


@external
@view
def beforeInitialize(sender: address, key: shapes.PoolKey, sqrtPriceX96: uint160) -> bytes4:
    assert msg.sender == MANAGER.address, "not the manager"
    assert sender == FACTORY.address, "not the factory"
    assert self.launches[shapes._pool_id(key)].memecoin != empty(address), "not registered"
    return BEFORE_INITIALIZE


@external
def afterSwap(
    sender: address,
    key: shapes.PoolKey,
    params: shapes.SwapParams,
    delta: int256,
    data: Bytes[4096],
) -> (bytes4, int128):
    assert msg.sender == MANAGER.address, "not the manager"
    pool: bytes32 = shapes._pool_id(key)
    # An exact input fixes the first currency of zero-for-one; an exact output the second.
    second: bool = (params.amountSpecified < 0) == params.zeroForOne
    currency: address = key.currency1 if second else key.currency0
    moved: uint256 = self._size(self._low(delta) if second else delta >> 128)
    fee: uint256 = moved * HOOK_FEE_BPS // BPS
    tax: uint256 = moved * self.launches[pool].creatorTaxBps // BPS
    if fee + tax == 0:
        return AFTER_SWAP, 0
    self.pending[pool][currency].fee += fee
    self.pending[pool][currency].tax += tax
    extcall MANAGER.take(currency, self, fee + tax)
    log HookFeeCollected(poolId=pool, currency=currency, fee=fee, tax=tax)
    return AFTER_SWAP, convert(fee + tax, int128)


@internal
@pure
def _low(delta: int256) -> int256:
    # A balance delta's second half, with its sign.
    return (delta << 128) >> 128


@internal
@pure
def _size(amount: int256) -> uint256:
    return convert(abs(amount), uint256)


@external
@nonreentrant
def sweepPoolFees(pool: bytes32):
    """
    @notice Turns a pool's pending tokens into quote, by a swap in that pool that
            moves its price by no more than the factory allows, and sends the
            quote on; with buyback a part is locked instead of sold. Anyone may;
            tokens that did not fit wait for the next time.
    """
    launch: shapes.HookLaunch = self.launches[pool]
    assert launch.memecoin != empty(address), "not registered"
    coins: Pending = self.pending[pool][launch.memecoin]
    quote: Pending = self.pending[pool][launch.quote]
    self.pending[pool][launch.quote] = empty(Pending)
    held: uint256 = coins.fee + coins.tax
    lockable: uint256 = 0
    if launch.buybackEnabled:
        lockable = held * (staticcall FACTORY.buybackBurnBps()) // BPS
    spent: uint256 = 0
    locked: uint256 = 0
    if held > lockable:
        answer: Bytes[64] = extcall MANAGER.unlock(abi_encode(pool, held - lockable))
        got: uint256 = 0
        spent, got = abi_decode(answer, (uint256, uint256))
        taxed: uint256 = got * coins.tax // held
        quote = Pending(fee=quote.fee + got - taxed, tax=quote.tax + taxed)
        # What is locked keeps step with what was sold.
        locked = lockable * spent // (held - lockable)
        money._pay(launch.memecoin, staticcall FACTORY.locker(), locked)
        gone: uint256 = (spent + locked) * coins.fee // held
        coins = Pending(fee=coins.fee - gone, tax=coins.tax - (spent + locked - gone))
    self.pending[pool][launch.memecoin] = coins
    protocol: uint256 = quote.fee * (staticcall FACTORY.protocolFeeShareBps()) // BPS
    creator: uint256 = quote.fee + quote.tax - protocol
    money._credit(ESCROW, staticcall FACTORY.owner(), launch.quote, protocol)
    money._credit(ESCROW, launch.creator, launch.quote, creator)
    log PoolFeesSwept(
        poolId=pool,
        protocolAmount=protocol,
        creatorAmount=creator,
        tokensConverted=spent,
        tokensLocked=locked,
    )


@external
def unlockCallback(data: Bytes[64]) -> Bytes[64]:
    """
    @notice The manager's turn: sells the held tokens. The hook is the swapper, so it is not called back.
    """
    assert msg.sender == MANAGER.address, "not the manager"
    pool: bytes32 = empty(bytes32)
    held: uint256 = 0
    pool, held = abi_decode(data, (bytes32, uint256))
    key: shapes.PoolKey = self.keys[pool]
    launch: shapes.HookLaunch = self.launches[pool]
    first: bool = launch.memecoin == key.currency0
    params: shapes.SwapParams = shapes.SwapParams(
        zeroForOne=first,
        amountSpecified=-convert(held, int256),
        sqrtPriceLimitX96=self._limit(pool, first),
    )
    delta: int256 = extcall MANAGER.swap(key, params, b"")
    spent: uint256 = self._size(delta >> 128 if first else self._low(delta))
    got: uint256 = self._size(self._low(delta) if first else delta >> 128)
    extcall MANAGER.sync(launch.memecoin)
    money._pay(launch.memecoin, MANAGER.address, spent)
    extcall MANAGER.settle()
    extcall MANAGER.take(launch.quote, self, got)
    return abi_encode(spent, got)


@internal
@view
def _limit(pool: bytes32, falling: bool) -> uint160:
    # The square root moves half as far as the price, to first order.
    slot: bytes32 = keccak256(abi_encode(pool, POOLS_SLOT))
    price: uint256 = convert(staticcall MANAGER.extsload(slot), uint256) & PRICE_BITS
    step: uint256 = price * (staticcall FACTORY.maxInternalPriceImpactBps()) // (2 * BPS)
    if falling:
        return convert(max(price - step, LOWEST_PRICE), uint160)
    return convert(min(price + step, HIGHEST_PRICE), uint160)


@external
@payable
def __default__():
    # Native eth arrives from the manager.
    assert msg.sender == MANAGER.address, "not the manager"
