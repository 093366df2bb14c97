# pragma version 0.4.3
# pragma evm-version cancun
# pragma optimize none
"""
@title A token's bonding curve
@notice Sells most of a token's supply along x * y = k over a phantom quote
        reserve, buys it back until the sale is complete, and then hands
        everything to the factory. Fees are kept aside, out of the reserves.
        Shares are hundredths of a percent, amounts are raw.
"""

from ethereum.ercs import IERC20

from .lib import errors
from .lib import money
from .lib import shapes

interface Owned:
    def owner() -> address: view

event CurveBuy:
    buyer: indexed(address)
    recipient: indexed(address)
    quoteIn: uint256
    tokensOut: uint256
    fee: uint256
    tax: uint256

event CurveSell:
    seller: indexed(address)
    recipient: indexed(address)
    tokensIn: uint256
    quoteOut: uint256
    fee: uint256
    tax: uint256

event SnipeTaxCharged:
    recipient: indexed(address)
    amount: uint256

event SnipeTaxExempted:
    account: indexed(address)

event CurveBuyRefunded:
    buyer: indexed(address)
    amount: uint256

event CurveCompleted:
    token: address
    quoteReserve: uint256
    tokenReserve: uint256

event FeesSwept:
    protocolAmount: uint256
    creatorAmount: uint256
    buybackAmount: uint256

event BuybackLocked:
    quoteSpent: uint256
    tokensLocked: uint256

# How a buy comes out.
struct Fill:
    spent: uint256
    tokens: uint256
    fee: uint256
    tax: uint256
    snipe: uint256

BPS: constant(uint256) = 10_000
# A buyer keeps at least one percent.
MAX_TAKEN_BPS: constant(uint256) = 9_900
SNIPE_HALVINGS: constant(uint256) = 14

FACTORY: immutable(address)
ESCROW: immutable(address)
LOCKER: immutable(address)
PROTOCOL_SHARE_BPS: immutable(uint256)
BUYBACK_SHARE_BPS: immutable(uint256)

token: public(immutable(address))
deployer: public(immutable(address))
creatorFeeRecipient: public(immutable(address))
pairToken: public(immutable(address))
isNativeQuote: public(immutable(bool))
launchSupply: public(immutable(uint256))
launchedAt: public(immutable(uint256))
feeBps: public(immutable(uint256))
creatorTaxBps: public(immutable(uint256))
snipeTaxStartBps: public(immutable(uint256))
snipeTaxSeconds: public(immutable(uint256))
phantomQuote: public(immutable(uint256))
graduationThreshold: public(immutable(uint256))
reservedTokens: public(immutable(uint256))
buybackEnabled: public(immutable(bool))

# All quote held for the curve, pending fees included.
trackedQuote: public(uint256)
trackedTokens: public(uint256)
# Base fees and snipe taxes.
pendingFees: public(uint256)
# Creator's taxes.
pendingTax: public(uint256)
snipeTaxExempt: public(HashMap[address, bool])
graduated: public(bool)


@deploy
def __init__(terms: shapes.Terms, untaxed: DynArray[address, shapes.MAX_UNTAXED]):
    FACTORY = msg.sender
    ESCROW = terms.escrow
    LOCKER = terms.locker
    PROTOCOL_SHARE_BPS = terms.protocolShareBps
    BUYBACK_SHARE_BPS = terms.buybackShareBps
    token = terms.token
    deployer = terms.deployer
    creatorFeeRecipient = terms.creatorFeeRecipient
    pairToken = terms.pairToken
    isNativeQuote = terms.pairToken == empty(address)
    launchSupply = terms.supply
    launchedAt = block.timestamp
    feeBps = terms.feeBps
    creatorTaxBps = terms.creatorTaxBps
    snipeTaxStartBps = terms.snipeStartBps
    snipeTaxSeconds = terms.snipeSeconds
    phantomQuote = terms.phantomQuote
    graduationThreshold = terms.graduationThreshold
    reservedTokens = terms.supply * terms.phantomQuote // (terms.phantomQuote + terms.graduationThreshold)
    buybackEnabled = terms.buybackEnabled
    assert terms.feeBps + terms.creatorTaxBps < MAX_TAKEN_BPS, "takes everything"
    self.trackedTokens = terms.supply
    for account: address in untaxed:
        if account != empty(address) and not self.snipeTaxExempt[account]:
            self.snipeTaxExempt[account] = True
            log SnipeTaxExempted(account=account)


@internal
@view
def _ready() -> bool:
    return self.trackedTokens <= reservedTokens


@internal
@view
def _real_quote() -> uint256:
    return self.trackedQuote - self.pendingFees - self.pendingTax


@internal
@view
def _check_open():
    if self.graduated or self._ready():
        errors._curve_graduated()


@internal
@view
def _snipe_bps(recipient: address) -> uint256:
    elapsed: uint256 = block.timestamp - launchedAt
    if self.snipeTaxExempt[recipient] or elapsed >= snipeTaxSeconds:
        return 0
    return snipeTaxStartBps >> (elapsed * SNIPE_HALVINGS // snipeTaxSeconds)


@internal
@view
def _fill(quote_in: uint256, snipe_bps: uint256) -> Fill:
    # A buy stops at the reserved tokens: it then spends what the rest costs, rounded up.
    quote: uint256 = phantomQuote + self._real_quote()
    sellable: uint256 = self.trackedTokens - reservedTokens
    fill: Fill = self._split(quote_in, snipe_bps)
    net: uint256 = fill.spent - fill.fee - fill.tax - fill.snipe
    fill.tokens = net * self.trackedTokens // (quote + net)
    if fill.tokens > sellable:
        net = self._ceil(quote * sellable, reservedTokens)
        kept_bps: uint256 = BPS - feeBps - creatorTaxBps - snipe_bps
        fill = self._split(min(quote_in, self._ceil(net * BPS, kept_bps)), snipe_bps)
        fill.tokens = sellable
    return fill


@internal
@view
def _split(spent: uint256, snipe_bps: uint256) -> Fill:
    # Each share is rounded down on its own.
    return Fill(
        spent=spent,
        tokens=0,
        fee=spent * feeBps // BPS,
        tax=spent * creatorTaxBps // BPS,
        snipe=spent * snipe_bps // BPS,
    )


@internal
@pure
def _ceil(numerator: uint256, denominator: uint256) -> uint256:
    return (numerator + denominator - 1) // denominator


@external
@payable
@nonreentrant
def buy(quoteIn: uint256, minTokensOut: uint256, recipient: address) -> uint256:
    """
    @notice Buys with `quoteIn`; what the end of the sale leaves over comes back.
    @param minTokensOut A bound on the price: so many tokens for all of `quoteIn`.
    """
    if quoteIn == 0:
        errors._zero_amount()
    self._check_open()
    money._collect(pairToken, msg.sender, quoteIn, msg.value)
    snipe_bps: uint256 = min(self._snipe_bps(recipient), MAX_TAKEN_BPS - feeBps - creatorTaxBps)
    fill: Fill = self._fill(quoteIn, snipe_bps)
    if fill.tokens == 0:
        errors._zero_amount()
    if fill.spent * minTokensOut > quoteIn * fill.tokens:
        errors._slippage_exceeded(fill.tokens, minTokensOut)
    self.trackedQuote += fill.spent
    self.trackedTokens -= fill.tokens
    self.pendingFees += fill.fee + fill.snipe
    self.pendingTax += fill.tax
    money._pay(token, recipient, fill.tokens)
    if fill.snipe > 0:
        log SnipeTaxCharged(recipient=recipient, amount=fill.snipe)
    log CurveBuy(
        buyer=msg.sender,
        recipient=recipient,
        quoteIn=fill.spent,
        tokensOut=fill.tokens,
        fee=fill.fee + fill.snipe,
        tax=fill.tax,
    )
    if fill.spent < quoteIn:
        money._pay(pairToken, msg.sender, quoteIn - fill.spent)
        log CurveBuyRefunded(buyer=msg.sender, amount=quoteIn - fill.spent)
    if self._ready():
        log CurveCompleted(token=token, quoteReserve=self._real_quote(), tokenReserve=self.trackedTokens)
    return fill.tokens


@external
@nonreentrant
def sell(tokensIn: uint256, minQuoteOut: uint256, recipient: address) -> uint256:
    if tokensIn == 0:
        errors._zero_amount()
    self._check_open()
    gross: uint256 = tokensIn * (phantomQuote + self._real_quote()) // (self.trackedTokens + tokensIn)
    fee: uint256 = gross * feeBps // BPS
    tax: uint256 = gross * creatorTaxBps // BPS
    paid: uint256 = gross - fee - tax
    if paid == 0:
        errors._zero_amount()
    if paid < minQuoteOut:
        errors._slippage_exceeded(paid, minQuoteOut)
    self.trackedTokens += tokensIn
    self.trackedQuote -= paid
    self.pendingFees += fee
    self.pendingTax += tax
    money._collect(token, msg.sender, tokensIn, 0)
    money._pay(pairToken, recipient, paid)
    log CurveSell(
        seller=msg.sender, recipient=recipient, tokensIn=tokensIn, quoteOut=paid, fee=fee, tax=tax
    )
    return paid


@external
@nonreentrant
def sweepFees():
    """
    @notice Sends the pending fees on. Anyone may.
    """
    self._sweep_fees()


@internal
def _sweep_fees():
    fees: uint256 = self.pendingFees
    tax: uint256 = self.pendingTax
    if fees + tax == 0:
        return
    protocol: uint256 = fees * PROTOCOL_SHARE_BPS // BPS
    creator: uint256 = fees + tax - protocol
    self.pendingFees = 0
    self.pendingTax = 0
    self.trackedQuote -= fees + tax
    buyback: uint256 = self._buy_back(creator * BUYBACK_SHARE_BPS // BPS)
    creator -= buyback
    money._credit(ESCROW, staticcall Owned(FACTORY).owner(), pairToken, protocol)
    money._credit(ESCROW, creatorFeeRecipient, pairToken, creator)
    log FeesSwept(protocolAmount=protocol, creatorAmount=creator, buybackAmount=buyback)


@internal
def _buy_back(amount: uint256) -> uint256:
    # Buys tokens with fees and locks them, where the launch asked for it and the sale is open.
    if not buybackEnabled or self._ready():
        return 0
    quote: uint256 = phantomQuote + self.trackedQuote
    tokens: uint256 = amount * self.trackedTokens // (quote + amount)
    if tokens == 0 or tokens >= self.trackedTokens - reservedTokens:
        return 0
    self.trackedQuote += amount
    self.trackedTokens -= tokens
    money._pay(token, LOCKER, tokens)
    log BuybackLocked(quoteSpent=amount, tokensLocked=tokens)
    return amount


@external
@nonreentrant
def release(unfinished: bool) -> (uint256, uint256):
    """
    @notice Hands the reserves to the factory and closes the curve.
    @param unfinished True to close it before the sale is complete.
    """
    assert msg.sender == FACTORY, "not the factory"
    assert not self.graduated and (unfinished or self._ready()), "not ready"
    self.graduated = True
    self._sweep_fees()
    quote: uint256 = self.trackedQuote
    tokens: uint256 = self.trackedTokens
    self.trackedQuote = 0
    self.trackedTokens = 0
    money._pay(pairToken, FACTORY, quote)
    money._pay(token, FACTORY, tokens)
    return quote, tokens


@external
@view
def getReserves() -> (uint256, uint256):
    """
    @notice Quote with the phantom part, and tokens: what prices are made from.
    """
    return phantomQuote + self._real_quote(), self.trackedTokens


@external
@view
def realQuoteReserve() -> uint256:
    return self._real_quote()


@external
@view
def sellableTokens() -> uint256:
    if self.graduated or self._ready():
        return 0
    return self.trackedTokens - reservedTokens


@external
@view
def readyToGraduate() -> bool:
    return not self.graduated and self._ready()


@external
@view
def currentSnipeTaxBps(recipient: address) -> uint256:
    return self._snipe_bps(recipient)
