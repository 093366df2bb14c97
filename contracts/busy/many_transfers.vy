# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token that a crowd passes around
@notice An ordinary ERC-20 whose crowd acts when it is told to: every action is
        one transfer with one log, drawn by its number. Most are moves from
        wallet to wallet, some are trades on the token's own v3 pool, whose
        money the token itself brings. Wallets need no keys this way, and one
        transaction can hold many actions. For measuring.
"""

from ..tokens.lib import erc20

initializes: erc20

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    erc20.transfer,
    erc20.transferFrom,
)


interface Pool:
    def swap(
        recipient: address, zero_for_one: bool, amount: int256, limit: uint160, data: Bytes[32]
    ) -> (int256, int256): nonpayable


interface Money:
    def transfer(to: address, amount: uint256) -> bool: nonpayable


MOST_ACTIONS: constant(uint256) = 1000
# One action of so many is a trade.
TRADE_EACH: constant(uint256) = 10
# The ends of what a v3 pool's price can be.
LOWEST_PRICE: constant(uint160) = 4295128740
HIGHEST_PRICE: constant(uint160) = 1461446703485210103287273052203988822378723970341

wallets: immutable(uint256)
giver: immutable(address)
pool: address
money: address
seller: transient(address)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, crowd: uint256):
    erc20.__init__(name, symbol, 18, supply)
    wallets = crowd
    giver = msg.sender


@external
def open_market(pool: address, money: address):
    """
    @notice From now on trades go there. This contract must have enough `money`.
    """
    assert msg.sender == giver, "not the giver"
    self.pool = pool
    self.money = money


@internal
@pure
def _draw(number: uint256) -> uint256:
    return convert(keccak256(convert(number, bytes32)), uint256)


@internal
@pure
def _wallet(number: uint256) -> address:
    return convert(convert(self._draw(number + 2**128) >> 96, uint160), address)


@external
def act(first: uint256, count: uint256):
    """
    @notice The actions of these numbers: each the same whenever it is done, but
            for what its wallets hold then.
    """
    for number: uint256 in range(first, first + count, bound=MOST_ACTIONS):
        draw: uint256 = self._draw(number)
        source: address = self._wallet((draw >> 64) % wallets)
        to: address = self._wallet(draw % wallets)
        held: uint256 = erc20.balanceOf[source]
        if number % TRADE_EACH == 0:
            self._trade(source, to, held, draw >> 128)
        elif held == 0:
            erc20._move(giver, to, (1 + (draw >> 128) % 10_000) * 10**16)
        else:
            # A quarter, a half, three quarters, or all of it.
            erc20._move(source, to, held * (1 + (draw >> 128) % 4) // 4)


@internal
def _trade(seller: address, buyer: address, held: uint256, draw: uint256):
    # Who has some sells half of the times.
    if held > 0 and draw % 2 == 0:
        self.seller = seller
        self._swap(self, convert(held, int256), seller)
    else:
        self._swap(self.money, convert((1 + draw % 1000) * 10**12, int256), buyer)


@internal
def _swap(put: address, amount: int256, recipient: address):
    other: address = self.money if put == self else self
    up: bool = convert(put, uint160) < convert(other, uint160)
    limit: uint160 = LOWEST_PRICE if up else HIGHEST_PRICE
    extcall Pool(self.pool).swap(recipient, up, amount, limit, b"")


@external
def uniswapV3SwapCallback(zero: int256, one: int256, data: Bytes[32]):
    assert msg.sender == self.pool, "not the pool"
    first: bool = convert(self, uint160) < convert(self.money, uint160)
    tokens: int256 = zero if first else one
    if tokens > 0:
        erc20._move(self.seller, msg.sender, convert(tokens, uint256))
    else:
        assert extcall Money(self.money).transfer(msg.sender, convert(max(zero, one), uint256))
