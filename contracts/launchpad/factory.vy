# pragma version 0.4.3
# pragma evm-version cancun
# pragma optimize none
"""
@title Launches tokens and graduates them
@notice A launch makes a token and its curve. Once the curve is sold out, two
        transactions that anyone may send take it to a v4 pool: `graduate`
        empties the curve, `createGraduatedPool` opens the pool and locks its
        liquidity. Shares are hundredths of a percent, amounts are raw, the zero
        address as a quote is native eth.
"""

from ethereum.ercs import IERC20

from .lib import errors
from .lib import money
from .lib import price
from .lib import shapes

interface Curve:
    def release(unfinished: bool) -> (uint256, uint256): nonpayable
    def phantomQuote() -> uint256: view

interface Hook:
    def register(key: shapes.PoolKey, launch: shapes.HookLaunch): nonpayable

interface Locker:
    def lock(key: shapes.PoolKey, amount0: uint256, amount1: uint256) -> uint256: payable

interface PoolManager:
    def initialize(key: shapes.PoolKey, sqrtPriceX96: uint160) -> int24: nonpayable

event TokenLaunched:
    token: indexed(address)
    curve: indexed(address)
    deployer: indexed(address)
    pairToken: address
    launchConfigId: uint256
    graduationThreshold: uint256

event LaunchSwept:
    token: indexed(address)
    quoteOut: uint256
    tokenOut: uint256

event PoolGraduated:
    token: indexed(address)
    positionId: uint256
    tokenAmount: uint256
    pairAmount: uint256

event GraduationTokensPermanentlyLocked:
    token: indexed(address)
    amount: uint256

event LaunchForceSwept:
    token: indexed(address)

ON_CURVE: constant(uint8) = 0
SWEPT: constant(uint8) = 1
POOLED: constant(uint8) = 2
RESCUED: constant(uint8) = 3
# Of a blueprint: the bytes before its creation code.
PREAMBLE: constant(uint256) = 3

TOKEN_BLUEPRINT: immutable(address)
CURVE_BLUEPRINT: immutable(address)
MANAGER: immutable(PoolManager)
ESCROW: immutable(address)

owner: public(address)
hook: public(address)
locker: public(address)
launchForwarder: public(address)
launchFee: public(uint256)
maxCreatorTaxBps: public(uint256)
protocolFeeShareBps: public(uint256)
buybackBurnBps: public(uint256)
maxInternalPriceImpactBps: public(uint256)
snipeTaxStartBps: public(uint256)
snipeTaxSeconds: public(uint256)
launchConfigs: public(HashMap[uint256, shapes.LaunchConfig])
quoteTerms: public(HashMap[address, shapes.QuoteTerms])
launched: HashMap[address, shapes.LaunchedToken]


@deploy
def __init__(token_blueprint: address, curve_blueprint: address, manager: address, escrow: address):
    TOKEN_BLUEPRINT = token_blueprint
    CURVE_BLUEPRINT = curve_blueprint
    MANAGER = PoolManager(manager)
    ESCROW = escrow
    self.owner = msg.sender
    self.launchFee = 5 * 10**14
    self.maxCreatorTaxBps = 1_000
    self.protocolFeeShareBps = 3_000
    self.buybackBurnBps = 5_000
    self.maxInternalPriceImpactBps = 300
    self.snipeTaxStartBps = 9_900
    self.snipeTaxSeconds = 3
    self.launchConfigs[0] = shapes.LaunchConfig(
        supply=10**27, curveFeeBps=100, poolFee=0, tickSpacing=200, open=True
    )


@internal
@view
def _only_owner():
    assert msg.sender == self.owner, "not the owner"


@external
def wire(hook: address, locker: address, forwarder: address):
    """
    @notice The parts that need the factory's address first.
    """
    self._only_owner()
    self.hook = hook
    self.locker = locker
    self.launchForwarder = forwarder


@external
def setLaunchConfig(number: uint256, config: shapes.LaunchConfig):
    self._only_owner()
    self.launchConfigs[number] = config


@external
def setQuoteTerms(quote: address, phantom: uint256, threshold: uint256, approved: bool):
    self._only_owner()
    self.quoteTerms[quote] = shapes.QuoteTerms(
        approved=approved, phantomQuote=phantom, graduationThreshold=threshold
    )


@external
def setSnipeTax(start_bps: uint256, seconds: uint256):
    self._only_owner()
    self.snipeTaxStartBps = start_bps
    self.snipeTaxSeconds = seconds


@external
@view
def getLaunchedToken(token: address) -> shapes.LaunchedToken:
    return self.launched[token]


@external
@view
def economics(config: uint256, pair: address) -> bytes32:
    """
    @notice What a launch may name as `expectedEconomics`: it fails if the terms have changed since.
    """
    return self._economics(config, pair)


@internal
@view
def _economics(config: uint256, pair: address) -> bytes32:
    snipe: uint256[2] = [self.snipeTaxStartBps, self.snipeTaxSeconds]
    return keccak256(abi_encode(self.launchConfigs[config], self.quoteTerms[pair], snipe))


@external
@payable
@nonreentrant
def launchToken(
    wish: shapes.Wish,
    config: uint256,
    pair: address,
    exempt: DynArray[address, shapes.MAX_EXEMPT] = [],
) -> (address, address):
    return self._launch(wish, config, pair, msg.sender, exempt, msg.value)


@external
@payable
@nonreentrant
def launchTokenFor(
    wish: shapes.Wish,
    config: uint256,
    pair: address,
    launcher: address,
    exempt: DynArray[address, shapes.MAX_EXEMPT],
) -> (address, address):
    """
    @notice The router's way in: `launcher` is the one who asked it.
    """
    assert msg.sender == self.launchForwarder, "not the forwarder"
    return self._launch(wish, config, pair, launcher, exempt, msg.value)


@internal
def _launch(
    wish: shapes.Wish,
    config: uint256,
    pair: address,
    launcher: address,
    exempt: DynArray[address, shapes.MAX_EXEMPT],
    sent: uint256,
) -> (address, address):
    if sent != self.launchFee:
        errors._native_value_mismatch()
    granted: shapes.LaunchConfig = self.launchConfigs[config]
    quote: shapes.QuoteTerms = self.quoteTerms[pair]
    assert granted.open, "no such config"
    assert quote.approved, "quote not approved"
    assert convert(wish.creatorTaxBps, uint256) <= self.maxCreatorTaxBps, "tax too high"
    if wish.expectedEconomics != empty(bytes32):
        assert wish.expectedEconomics == self._economics(config, pair), "terms changed"
    creator: address = wish.creatorFeeRecipient
    if creator == empty(address):
        creator = launcher
    salt: bytes32 = keccak256(abi_encode(launcher, wish.salt))
    token: address = create_from_blueprint(
        TOKEN_BLUEPRINT, wish.name, wish.symbol, granted.supply, code_offset=PREAMBLE, salt=salt
    )
    terms: shapes.Terms = self._terms(token, launcher, creator, pair, granted, quote)
    terms.creatorTaxBps = convert(wish.creatorTaxBps, uint256)
    terms.buybackEnabled = wish.buybackEnabled
    curve: address = self._curve(terms, exempt, salt)
    self._record(terms, curve, granted)
    money._credit(ESCROW, self.owner, empty(address), sent)
    log TokenLaunched(
        token=token,
        curve=curve,
        deployer=launcher,
        pairToken=pair,
        launchConfigId=config,
        graduationThreshold=quote.graduationThreshold,
    )
    return token, curve


@internal
def _record(terms: shapes.Terms, curve: address, granted: shapes.LaunchConfig):
    self.launched[terms.token] = shapes.LaunchedToken(
        token=terms.token,
        curve=curve,
        deployer=terms.deployer,
        creatorFeeRecipient=terms.creatorFeeRecipient,
        pairToken=terms.pairToken,
        graduationThreshold=terms.graduationThreshold,
        poolFee=granted.poolFee,
        tickSpacing=granted.tickSpacing,
        creatorTaxBps=convert(terms.creatorTaxBps, uint16),
        buybackEnabled=terms.buybackEnabled,
        phase=ON_CURVE,
        sweptQuote=0,
        sweptTokens=0,
        sweptAt=0,
        exists=True,
    )


@internal
@view
def _terms(
    token: address,
    launcher: address,
    creator: address,
    pair: address,
    granted: shapes.LaunchConfig,
    quote: shapes.QuoteTerms,
) -> shapes.Terms:
    return shapes.Terms(
        token=token,
        deployer=launcher,
        creatorFeeRecipient=creator,
        pairToken=pair,
        escrow=ESCROW,
        locker=self.locker,
        supply=granted.supply,
        feeBps=granted.curveFeeBps,
        creatorTaxBps=0,
        snipeStartBps=self.snipeTaxStartBps,
        snipeSeconds=self.snipeTaxSeconds,
        phantomQuote=quote.phantomQuote,
        graduationThreshold=quote.graduationThreshold,
        protocolShareBps=self.protocolFeeShareBps,
        buybackShareBps=self.buybackBurnBps,
        buybackEnabled=False,
    )


@internal
def _curve(
    terms: shapes.Terms, exempt: DynArray[address, shapes.MAX_EXEMPT], salt: bytes32
) -> address:
    untaxed: DynArray[address, shapes.MAX_UNTAXED] = [terms.deployer, terms.creatorFeeRecipient]
    for account: address in exempt:
        untaxed.append(account)
    curve: address = create_from_blueprint(
        CURVE_BLUEPRINT, terms, untaxed, code_offset=PREAMBLE, salt=salt
    )
    money._pay(terms.token, curve, terms.supply)
    return curve


@external
@nonreentrant
def graduate(token: address):
    """
    @notice Empties a sold-out curve. From here until the pool is open the token cannot be sold.
    """
    assert self.launched[token].exists and self.launched[token].phase == ON_CURVE, "wrong phase"
    self._sweep(token, False)


@internal
def _sweep(token: address, unfinished: bool):
    quote: uint256 = 0
    tokens: uint256 = 0
    quote, tokens = extcall Curve(self.launched[token].curve).release(unfinished)
    self.launched[token].phase = SWEPT
    self.launched[token].sweptQuote = quote
    self.launched[token].sweptTokens = tokens
    self.launched[token].sweptAt = block.timestamp
    log LaunchSwept(token=token, quoteOut=quote, tokenOut=tokens)


@external
@nonreentrant
def createGraduatedPool(token: address) -> uint256:
    """
    @notice Opens the pool at the price where the curve ended: all the swept
            quote, as many tokens as that price asks for, the other tokens locked.
    @return The locked position's number.
    """
    known: shapes.LaunchedToken = self.launched[token]
    assert known.exists and known.phase == SWEPT, "wrong phase"
    self.launched[token].phase = POOLED
    phantom: uint256 = staticcall Curve(known.curve).phantomQuote()
    tokens: uint256 = known.sweptQuote * known.sweptTokens // (phantom + known.sweptQuote)
    position: uint256 = self._open_pool(known, tokens)
    log PoolGraduated(token=token, positionId=position, tokenAmount=tokens, pairAmount=known.sweptQuote)
    log GraduationTokensPermanentlyLocked(token=token, amount=known.sweptTokens - tokens)
    return position


@internal
def _open_pool(known: shapes.LaunchedToken, tokens: uint256) -> uint256:
    first: bool = convert(known.token, uint160) < convert(known.pairToken, uint160)
    key: shapes.PoolKey = shapes.PoolKey(
        currency0=known.token if first else known.pairToken,
        currency1=known.pairToken if first else known.token,
        fee=known.poolFee,
        tickSpacing=known.tickSpacing,
        hooks=self.hook,
    )
    amount0: uint256 = tokens if first else known.sweptQuote
    amount1: uint256 = known.sweptQuote if first else tokens
    launch: shapes.HookLaunch = shapes.HookLaunch(
        memecoin=known.token,
        quote=known.pairToken,
        creator=known.creatorFeeRecipient,
        creatorTaxBps=convert(known.creatorTaxBps, uint256),
        buybackEnabled=known.buybackEnabled,
    )
    extcall Hook(self.hook).register(key, launch)
    extcall MANAGER.initialize(key, price._sqrt_price_x96(amount0, amount1))
    money._pay(known.token, self.locker, known.sweptTokens)
    native: uint256 = 0
    if known.pairToken == empty(address):
        native = known.sweptQuote
    else:
        money._pay(known.pairToken, self.locker, known.sweptQuote)
    return extcall Locker(self.locker).lock(key, amount0, amount1, value=native)


@external
@nonreentrant
def forceSweep(token: address):
    """
    @notice The owner's rescue of a launch that cannot graduate: its assets go to the owner's escrow.
    """
    self._only_owner()
    assert self.launched[token].exists and self.launched[token].phase <= SWEPT, "wrong phase"
    if self.launched[token].phase == ON_CURVE:
        self._sweep(token, True)
    known: shapes.LaunchedToken = self.launched[token]
    self.launched[token].phase = RESCUED
    money._credit(ESCROW, self.owner, known.pairToken, known.sweptQuote)
    money._credit(ESCROW, self.owner, token, known.sweptTokens)
    log LaunchForceSwept(token=token)


@external
@payable
def __default__():
    # A curve's native reserve arrives here.
    pass
