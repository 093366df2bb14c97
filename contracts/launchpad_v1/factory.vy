# pragma version 0.4.3
# pragma evm-version cancun
# pragma optimize none
"""
@title The launchpad's first generation
@notice A launch makes a token, puts its whole supply into a v3 pool against weth
        and locks the position for ever. Graduating moves nothing: a launch has
        graduated while buyers' weth in its pool is worth the threshold.
        Amounts are raw.
"""

from ethereum.ercs import IERC20

struct LaunchedToken:
    token: address
    deployer: address
    pairedToken: address
    positionManager: address
    positionId: uint256
    dexId: uint256
    launchConfigId: uint256
    restrictionsEndBlock: uint256
    supply: uint256
    isToken0: bool
    poolFee: uint24
    exists: bool
    initialBuyAmount: uint256

struct Mint:
    token0: address
    token1: address
    fee: uint24
    tickLower: int24
    tickUpper: int24
    amount0Desired: uint256
    amount1Desired: uint256
    amount0Min: uint256
    amount1Min: uint256
    recipient: address
    deadline: uint256

struct Swap:
    tokenIn: address
    tokenOut: address
    fee: uint24
    recipient: address
    amountIn: uint256
    amountOutMinimum: uint256
    sqrtPriceLimitX96: uint160

struct Position:
    nonce: uint96
    operator: address
    token0: address
    token1: address
    fee: uint24
    tickLower: int24
    tickUpper: int24
    liquidity: uint128
    feeGrowth0: uint256
    feeGrowth1: uint256
    owed0: uint128
    owed1: uint128

struct Price:
    sqrtPriceX96: uint160
    tick: int24
    observation: uint16
    cardinality: uint16
    nextCardinality: uint16
    protocolFee: uint8
    unlocked: bool

interface Token:
    def open(pool: address): nonpayable
    def restrictionEndBlock() -> uint256: view
    def liquidityPool() -> address: view

interface PositionManager:
    def createAndInitializePoolIfNecessary(
        token0: address, token1: address, fee: uint24, sqrtPriceX96: uint160
    ) -> address: payable
    def mint(what: Mint) -> (uint256, uint128, uint256, uint256): payable
    def positions(position: uint256) -> Position: view

interface Router:
    def exactInputSingle(what: Swap) -> uint256: payable

interface Pool:
    def slot0() -> Price: view

interface Locker:
    def lock(position: uint256, creator: address): nonpayable

event TokenLaunched:
    token: indexed(address)
    deployer: indexed(address)
    dexFactory: indexed(address)
    pairToken: address
    pool: address
    dexId: uint256
    launchConfigId: uint256
    positionId: uint256
    restrictionsEndBlock: uint256
    initialBuyAmount: uint256

SUPPLY: constant(uint256) = 10**27
POOL_FEE: constant(uint24) = 10_000
THRESHOLD: public(constant(uint256)) = 42 * 10**17
# Of a blueprint: the bytes before its creation code.
PREAMBLE: constant(uint256) = 3

# Where the supply begins to be sold, at 1.689 eth for all of it, and where it ends. Of a pair whose
# first token is weth, prices and ticks are the other way round.
START_TICK: constant(int24) = 202_000
EDGE_TICK: constant(int24) = 887_200
# The roots of these prices, a trillionth outside of the range: all of it is the token.
SQRT_BELOW: constant(uint160) = 3256301584986459390494503
SQRT_ABOVE: constant(uint160) = 1927678248331775050328663725482009

TOKEN_BLUEPRINT: immutable(address)
DEX_FACTORY: public(immutable(address))
POSITIONS: public(immutable(PositionManager))
ROUTER: public(immutable(Router))
WETH: public(immutable(address))

owner: address
locker: public(address)
launched: HashMap[address, LaunchedToken]


@deploy
def __init__(blueprint: address, dex_factory: address, positions: address, router: address, weth: address):
    TOKEN_BLUEPRINT = blueprint
    DEX_FACTORY = dex_factory
    POSITIONS = PositionManager(positions)
    ROUTER = Router(router)
    WETH = weth
    self.owner = msg.sender


@external
def wire(locker: address):
    """
    @notice The part that needs the factory's address first.
    """
    assert msg.sender == self.owner, "not the owner"
    self.locker = locker


@external
@payable
def launchToken(name: String[64], symbol: String[32]) -> address:
    """
    @notice Launches a token. Eth that comes along is its creator's first buy.
    """
    token: address = create_from_blueprint(
        TOKEN_BLUEPRINT, name, symbol, SUPPLY, msg.sender, code_offset=PREAMBLE
    )
    is_first: bool = convert(token, uint160) < convert(WETH, uint160)
    pool: address = self._pool(token, is_first)
    position: uint256 = self._position(token, is_first)
    extcall Locker(self.locker).lock(position, msg.sender)
    extcall Token(token).open(pool)
    bought: uint256 = self._buy(token, msg.value)
    ends: uint256 = staticcall Token(token).restrictionEndBlock()
    self.launched[token] = LaunchedToken(
        token=token,
        deployer=msg.sender,
        pairedToken=WETH,
        positionManager=POSITIONS.address,
        positionId=position,
        dexId=0,
        launchConfigId=0,
        restrictionsEndBlock=ends,
        supply=SUPPLY,
        isToken0=is_first,
        poolFee=POOL_FEE,
        exists=True,
        initialBuyAmount=bought,
    )
    log TokenLaunched(
        token=token,
        deployer=msg.sender,
        dexFactory=DEX_FACTORY,
        pairToken=WETH,
        pool=pool,
        dexId=0,
        launchConfigId=0,
        positionId=position,
        restrictionsEndBlock=ends,
        initialBuyAmount=bought,
    )
    return token


@internal
def _pool(token: address, is_first: bool) -> address:
    if is_first:
        return extcall POSITIONS.createAndInitializePoolIfNecessary(token, WETH, POOL_FEE, SQRT_BELOW)
    return extcall POSITIONS.createAndInitializePoolIfNecessary(WETH, token, POOL_FEE, SQRT_ABOVE)


@internal
def _position(token: address, is_first: bool) -> uint256:
    extcall IERC20(token).approve(POSITIONS.address, SUPPLY)
    what: Mint = Mint(
        token0=token,
        token1=WETH,
        fee=POOL_FEE,
        tickLower=-START_TICK,
        tickUpper=EDGE_TICK,
        amount0Desired=SUPPLY,
        amount1Desired=0,
        amount0Min=0,
        amount1Min=0,
        recipient=self.locker,
        deadline=block.timestamp,
    )
    if not is_first:
        what.token0 = WETH
        what.token1 = token
        what.tickLower = -EDGE_TICK
        what.tickUpper = START_TICK
        what.amount0Desired = 0
        what.amount1Desired = SUPPLY
    made: (uint256, uint128, uint256, uint256) = extcall POSITIONS.mint(what)
    return made[0]


@internal
def _buy(token: address, amount: uint256) -> uint256:
    if amount == 0:
        return 0
    swap: Swap = Swap(
        tokenIn=WETH,
        tokenOut=token,
        fee=POOL_FEE,
        recipient=msg.sender,
        amountIn=amount,
        amountOutMinimum=0,
        sqrtPriceLimitX96=0,
    )
    return extcall ROUTER.exactInputSingle(swap, value=amount)


@external
@view
def getLaunchedToken(token: address) -> LaunchedToken:
    """
    @notice The record of a launch; all zeros for a token that was not launched here.
    """
    return self.launched[token]


@external
@view
def graduationStatus(token: address) -> (uint256, uint256, bool):
    """
    @return Buyers' weth in the pool without fees, how much of it graduates, and whether it has.
    """
    if not self.launched[token].exists:
        raw_revert(method_id("TokenNotFound()"))
    principal: uint256 = self._principal(token)
    return principal, THRESHOLD, principal >= THRESHOLD


@internal
@view
def _principal(token: address) -> uint256:
    known: LaunchedToken = self.launched[token]
    position: Position = staticcall POSITIONS.positions(known.positionId)
    liquidity: uint256 = convert(position.liquidity, uint256)
    price: Price = staticcall Pool(staticcall Token(token).liquidityPool()).slot0()
    root: uint256 = convert(price.sqrtPriceX96, uint256)
    if known.isToken0:
        start: uint256 = convert(SQRT_BELOW, uint256)
        return liquidity * (max(root, start) - start) >> 96
    start: uint256 = convert(SQRT_ABOVE, uint256)
    return (liquidity << 96) // min(root, start) - (liquidity << 96) // start
