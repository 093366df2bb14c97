# pragma version 0.4.3
# pragma evm-version cancun
# pragma optimize none
"""
@title Launches a token and buys it first, in one transaction
@notice The router is the curve's buyer; the tokens go to the recipient.
"""

from ethereum.ercs import IERC20

from .lib import errors
from .lib import money
from .lib import shapes

interface Factory:
    def launchFee() -> uint256: view
    def launchTokenFor(
        wish: shapes.Wish,
        config: uint256,
        pair: address,
        launcher: address,
        exempt: DynArray[address, shapes.MAX_EXEMPT],
    ) -> (address, address): payable

interface Curve:
    def buy(quoteIn: uint256, minTokensOut: uint256, recipient: address) -> uint256: payable

event Launched:
    token: indexed(address)
    curve: indexed(address)
    recipient: indexed(address)
    launcher: address
    quoteSpent: uint256
    tokensReceived: uint256

FACTORY: public(immutable(Factory))


@deploy
def __init__(factory: address):
    FACTORY = Factory(factory)


@external
@payable
@nonreentrant
def launchAndBuy(
    wish: shapes.Wish,
    config: uint256,
    pair: address,
    quoteIn: uint256,
    minTokensOut: uint256,
    recipient: address,
    exempt: DynArray[address, shapes.MAX_EXEMPT],
) -> (address, address, uint256):
    """
    @notice Send the launch fee, and with a native quote `quoteIn` on top; approve an ERC-20 quote before.
    """
    fee: uint256 = staticcall FACTORY.launchFee()
    if msg.value < fee:
        errors._native_value_mismatch()
    money._collect(pair, msg.sender, quoteIn, msg.value - fee)
    before: uint256 = self._held(pair)
    token: address = empty(address)
    curve: address = empty(address)
    token, curve = extcall FACTORY.launchTokenFor(wish, config, pair, msg.sender, exempt, value=fee)
    native: uint256 = 0
    if pair == empty(address):
        native = quoteIn
        before -= fee
    else:
        assert extcall IERC20(pair).approve(curve, quoteIn, default_return_value=True)
    tokens: uint256 = extcall Curve(curve).buy(quoteIn, minTokensOut, recipient, value=native)
    spent: uint256 = before - self._held(pair)
    money._pay(pair, msg.sender, quoteIn - spent)
    log Launched(
        token=token,
        curve=curve,
        recipient=recipient,
        launcher=msg.sender,
        quoteSpent=spent,
        tokensReceived=tokens,
    )
    return token, curve, tokens


@internal
@view
def _held(asset: address) -> uint256:
    if asset == empty(address):
        return self.balance
    return staticcall IERC20(asset).balanceOf(self)


@external
@payable
def __default__():
    # A curve gives back what the end of its sale left over.
    pass
