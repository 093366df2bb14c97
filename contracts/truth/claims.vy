# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Who buys in a v4 pool and leaves it there
@notice What it bought is a claim on the manager, until it has it paid out.
"""

struct PoolKey:
    currency0: address
    currency1: address
    fee: uint24
    tickSpacing: int24
    hooks: address
struct SwapParams:
    zeroForOne: bool
    amountSpecified: int256
    sqrtPriceLimitX96: uint160
interface IPoolManager:
    def unlock(data: Bytes[1024]) -> Bytes[32]: nonpayable
    def sync(currency: address): nonpayable
    def settle() -> uint256: payable
    def take(currency: address, to: address, amount: uint256): nonpayable
    def mint(to: address, id: uint256, amount: uint256): nonpayable
    def burn(source: address, id: uint256, amount: uint256): nonpayable
    def swap(key: PoolKey, params: SwapParams, data: Bytes[32]) -> int256: nonpayable
interface IERC20:
    def transferFrom(a: address, b: address, c: uint256) -> bool: nonpayable

MANAGER: immutable(address)
OWNER: immutable(address)
claims: public(uint256)

@deploy
def __init__(manager: address):
    MANAGER = manager
    OWNER = msg.sender

@external
@payable
def act(key: PoolKey, what: uint256, amount: uint256):
    extcall IPoolManager(MANAGER).unlock(abi_encode(key, what, amount))

@external
@payable
def __default__():
    pass

@external
def unlockCallback(data: Bytes[1024]) -> Bytes[32]:
    key: PoolKey = empty(PoolKey)
    what: uint256 = 0
    amount: uint256 = 0
    key, what, amount = abi_decode(data, (PoolKey, uint256, uint256))
    m: IPoolManager = IPoolManager(MANAGER)
    id: uint256 = convert(key.currency1, uint256)
    if what == 0:
        # buys, and keeps a claim
        delta: int256 = extcall m.swap(key, SwapParams(zeroForOne=True, amountSpecified=-convert(amount, int256), sqrtPriceLimitX96=4295128740), b"")
        high: int256 = delta >> 128
        low: int256 = delta - (high << 128)
        extcall m.settle(value=amount)
        extcall m.mint(self, id, convert(low, uint256))
        self.claims += convert(low, uint256)
    elif what == 1:
        # sells of the claim
        delta: int256 = extcall m.swap(key, SwapParams(zeroForOne=False, amountSpecified=-convert(amount, int256), sqrtPriceLimitX96=1461446703485210103287273052203988822378723970341), b"")
        high: int256 = delta >> 128
        extcall m.burn(self, id, amount)
        extcall m.take(empty(address), OWNER, convert(high, uint256))
        self.claims -= amount
    elif what == 2:
        # the owner's tokens become a claim
        extcall m.sync(key.currency1)
        extcall IERC20(key.currency1).transferFrom(OWNER, MANAGER, amount)
        extcall m.settle()
        extcall m.mint(self, id, amount)
        self.claims += amount
    else:
        extcall m.burn(self, id, amount)
        extcall m.take(key.currency1, OWNER, amount)
        self.claims -= amount
    return b""
