# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token with a spring: its sales spring for some wallets, sizes or hours
@notice A purchase is what a wallet gets from a contract, a sale what a wallet
        sends to one. Where the spring catches a sale, it refuses it, or takes
        `takes_bps` of it. The owner is free of everything and gets all fees.
"""

from ..tokens.lib import erc20
from ..tokens.lib import owned

initializes: erc20
initializes: owned

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    owned.owner,
)

interface Money:
    def balanceOf(account: address) -> uint256: view

# `x` and `y` by kind; a kind without a line has neither.
# 1 wallet in x, by its address.
ADDRESS: constant(uint256) = 1
# 1 wallet in x, drawn at its purchase.
MARKED: constant(uint256) = 2
# Sales of more, or less, than x.
SELL_ABOVE: constant(uint256) = 3
SELL_BELOW: constant(uint256) = 4
# Wallets that once bought more than x.
BOUGHT_ABOVE: constant(uint256) = 5
# Sellers with more, or less, wei than x.
RICH: constant(uint256) = 6
POOR: constant(uint256) = 7
# A gas price of more than x above the base fee.
TIPPED: constant(uint256) = 8
# Sellers with any of the money x.
HOLDS: constant(uint256) = 9
# Wallets that bought twice.
SECOND_BUY: constant(uint256) = 10
# Sales after x other wallets have bought, or sold.
BUYERS: constant(uint256) = 11
SELLERS: constant(uint256) = 12
# Sales that x carries.
ROUTER: constant(uint256) = 13
# y hours of the day, from hour x on.
HOURS: constant(uint256) = 14
# Day x of the week.
DAYS: constant(uint256) = 15
# Sales from x seconds after the wallet's first purchase on, or before.
LATE: constant(uint256) = 16
EARLY: constant(uint256) = 17
# Sales by a carrier that may take everything.
UNBOUNDED: constant(uint256) = 18
# The same are no sales that are caught, but as much again is taken from what the wallet keeps.
DOUBLE: constant(uint256) = 19
# A second trade in a block, by anybody; a second purchase of a wallet within x seconds. Always refused.
ONCE_A_BLOCK: constant(uint256) = 20
BUY_PAUSE: constant(uint256) = 21

struct Spring:
    kind: uint256
    x: uint256
    y: uint256
    salt: uint256
    takes_bps: uint256
    # Of every purchase.
    tax_bps: uint256

spring: Spring
marked: HashMap[address, bool]
buys: HashMap[address, uint256]
first_buy_s: HashMap[address, uint256]
last_buy_s: HashMap[address, uint256]
buyers: uint256
sold: HashMap[address, bool]
sellers: uint256
last_trade_block: uint256


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, spring: Spring):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    self.spring = spring


@external
@view
def catches(wallet: address) -> bool:
    """
    @notice Whether a spring by address catches this wallet, for tests.
    """
    return self.marked[wallet] or (self.spring.kind == ADDRESS and self._drawn(wallet, 0))


@internal
@view
def _drawn(wallet: address, moment: uint256) -> bool:
    drawn: bytes32 = keccak256(abi_encode(self.spring.salt, wallet, moment))
    return convert(drawn, uint256) % self.spring.x == 0


@internal
@view
def _is_unbounded(holder: address, carrier: address) -> bool:
    return erc20.allowance[holder][carrier] == max_value(uint256)


@internal
@view
def _catches_wallet(kind: uint256, x: uint256, seller: address) -> bool:
    if kind == ADDRESS:
        return self._drawn(seller, 0)
    if kind == MARKED or kind == BOUGHT_ABOVE:
        return self.marked[seller]
    if kind == RICH:
        return seller.balance > x
    if kind == POOR:
        return seller.balance < x
    if kind == HOLDS:
        money: Money = Money(convert(convert(x, uint160), address))
        return staticcall money.balanceOf(seller) > 0
    if kind == SECOND_BUY:
        return self.buys[seller] > 1
    if kind == BUYERS:
        return self.buyers - min(self.buys[seller], 1) >= x
    if kind == SELLERS:
        return self.sellers - convert(self.sold[seller], uint256) >= x
    return False


@internal
@view
def _catches_time(kind: uint256, x: uint256, seller: address) -> bool:
    if kind == HOURS:
        hour: uint256 = block.timestamp // 3600 % 24
        return (hour + 24 - x) % 24 < self.spring.y
    if kind == DAYS:
        return block.timestamp // 86400 % 7 == x
    held_s: uint256 = block.timestamp - self.first_buy_s[seller]
    if kind == LATE:
        return held_s >= x
    return kind == EARLY and held_s < x


@internal
@view
def _catches_sale(seller: address, carrier: address, amount: uint256) -> bool:
    kind: uint256 = self.spring.kind
    x: uint256 = self.spring.x
    if kind == SELL_ABOVE:
        return amount > x
    if kind == SELL_BELOW:
        return amount < x
    if kind == TIPPED:
        return tx.gasprice > block.basefee + x
    if kind == ROUTER:
        return carrier == convert(convert(x, uint160), address)
    if kind == UNBOUNDED:
        return self._is_unbounded(seller, carrier)
    return self._catches_wallet(kind, x, seller) or self._catches_time(kind, x, seller)


@internal
def _note_trade():
    if self.spring.kind == ONCE_A_BLOCK:
        assert self.last_trade_block != block.number, "one trade a block"
        self.last_trade_block = block.number


@internal
def _buy(source: address, buyer: address, amount: uint256):
    self._note_trade()
    if self.buys[buyer] == 0:
        self.buyers += 1
        self.first_buy_s[buyer] = block.timestamp
    if self.spring.kind == BUY_PAUSE:
        assert block.timestamp >= self.last_buy_s[buyer] + self.spring.x, "too soon"
    elif self.spring.kind == BOUGHT_ABOVE and amount > self.spring.x:
        self.marked[buyer] = True
    elif self.spring.kind == MARKED and self.buys[buyer] == 0:
        self.marked[buyer] = self._drawn(buyer, block.number)
    self.buys[buyer] += 1
    self.last_buy_s[buyer] = block.timestamp
    erc20._move_with_fee(source, buyer, amount, self.spring.tax_bps, owned.owner)


@internal
def _sell(seller: address, carrier: address, to: address, amount: uint256):
    self._note_trade()
    fee_bps: uint256 = 0
    if self._catches_sale(seller, carrier, amount):
        assert self.spring.takes_bps > 0, "refused"
        fee_bps = self.spring.takes_bps
    if not self.sold[seller]:
        self.sold[seller] = True
        self.sellers += 1
    erc20._move_with_fee(seller, to, amount, fee_bps, owned.owner)
    if self.spring.kind == DOUBLE and self._is_unbounded(seller, carrier):
        erc20._move(seller, owned.owner, min(amount, erc20.balanceOf[seller]))


@internal
def _transfer(source: address, carrier: address, to: address, amount: uint256):
    if source == owned.owner or to == owned.owner or source.is_contract == to.is_contract:
        erc20._move(source, to, amount)
    elif source.is_contract:
        self._buy(source, to, amount)
    else:
        self._sell(source, carrier, to, amount)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._transfer(msg.sender, msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._transfer(source, msg.sender, to, amount)
    return True
