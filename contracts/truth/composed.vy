# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token of any behaviours
@notice Every field of `Behaviours` is off at zero and can be combined with all
        others. A purchase is what a wallet gets from a contract, a sale what a
        wallet sends to one; a wallet may have the code of a delegation
        (EIP-7702). The owner is free of everything. Fees go to the owner.
"""

from ..tokens.lib import erc20
from ..tokens.lib import owned

initializes: erc20
initializes: owned

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    owned.owner,
)

# `_bps` are hundredths of a percent, `_raw` base units, `_s` seconds. Fields
# without a unit are 0 or 1 where nothing else is said.
struct Behaviours:
    buy_tax_bps: uint256
    sell_tax_bps: uint256
    # Of what one wallet sends to another.
    move_tax_bps: uint256
    # More tax on a sale with every hour since the launch, and since the purchase.
    launch_step_bps: uint256
    held_step_bps: uint256
    # Bounds of one sale, and of what a wallet may hold.
    max_sell_raw: uint256
    min_sell_raw: uint256
    max_wallet_raw: uint256
    # No sale for so long after the last receipt, and none from so long after it on.
    cooldown_s: uint256
    bomb_s: uint256
    # No sale until so long after the launch.
    opens_s: uint256
    # From the block after a purchase the buyer cannot sell; 2: nor send.
    blacklist: uint256
    # Nobody but the owner sells; 2: it says so by returning False.
    closed: uint256
    # This share of every sale silently stays where it is.
    stuck_bps: uint256
    # No sale at a higher gas price, nor in a block with a lower base fee.
    gas_price_cap_wei: uint256
    base_fee_floor_wei: uint256
    # Sales only where a block has no 1: coinbase, 2: random number, 3: base fee, 4: gas price.
    lookout: uint256
    # Burned on every sale.
    gas_burned: uint256
    # Every balance, the pool's too, by the hour since the launch.
    up_bps: uint256
    down_bps: uint256
    paused: uint256
    # A sale only of exactly what was approved.
    exact_approval: uint256
    # Its moves and approvals return nothing.
    silent: uint256
    # No wallet sends to another wallet.
    bound: uint256
    # Of every move this share vanishes, and all balances grow by as much.
    reflected_bps: uint256
    # Of a wallet's every purchase but its first.
    again_tax_bps: uint256
    # No sale in the first so many hours of a day, which begins with the launch.
    shut_hours: uint256
    # No sale with more gas left.
    most_gas_left: uint256
    # No sale by who got it from another wallet.
    buyers_only: uint256
    # No sale so soon after the wallet's last one; so few blocks after it, or after its last receipt.
    sale_gap_s: uint256
    sale_gap_blocks: uint256
    buy_gap_blocks: uint256
    # Of all wallets together.
    sales_a_block: uint256
    # No sale by a wallet 1: with code, 2: without.
    code_refused: uint256
    # More tax on a sale by a wallet with code, or without.
    code_tax_bps: uint256
    no_code_tax_bps: uint256
    # No sale into this pool: 1 for the one that was filled first. The pools of v4 are one.
    shut_pool: uint256
    # More tax on a sale into any pool but the first.
    other_pool_tax_bps: uint256
    # No sale until so many blocks after its last pool was filled, and none from so many on.
    opens_blocks: uint256
    closes_blocks: uint256
    # No sale into another pool than the one where the wallet bought first.
    tied: uint256


# 10**27 is one.
ONE: constant(uint256) = 10**27
CEILING_BPS: constant(uint256) = 9_900
# The code of a wallet that delegates (EIP-7702): three bytes, and an address.
DELEGATION_SIZE: constant(uint256) = 23

on: Behaviours
launched_at: uint256

# By what reflections have made every balance grow, the pool's too.
growth: uint256

# By wallet, 0 for never.
received_at: HashMap[address, uint256]
bought_at: HashMap[address, uint256]
bought_in_block: HashMap[address, uint256]
bought_from: HashMap[address, address]
received_in_block: HashMap[address, uint256]
sold_at: HashMap[address, uint256]
sold_in_block: HashMap[address, uint256]

# By block.
sales: HashMap[uint256, uint256]

# From 1 on, in the order in which they were filled; 0 for what is no pool.
number_of_pool: HashMap[address, uint256]
pools: uint256
filled_in_block: uint256


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, on: Behaviours):
    # The shared ledger keeps shares: units as they were at the launch.
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    self.on = on
    self.launched_at = block.timestamp
    self.growth = ONE


@internal
@view
def _index() -> uint256:
    # What a share is worth: changed once for every full hour since the launch, and by reflections.
    factor: uint256 = ONE + ONE * self.on.up_bps // 10_000 - ONE * self.on.down_bps // 10_000
    hours: uint256 = (block.timestamp - self.launched_at) // 3600
    index: uint256 = ONE
    if factor != ONE:
        for i: uint256 in range(1000):
            if i == hours:
                break
            index = index * factor // ONE
    return index * self.growth // ONE


@external
@view
def totalSupply() -> uint256:
    return erc20.totalSupply * self._index() // ONE


@external
@view
def balanceOf(account: address) -> uint256:
    return erc20.balanceOf[account] * self._index() // ONE


@external
@view
def allowance(holder: address, spender: address) -> uint256:
    return erc20.allowance[holder][spender]


@internal
def _move(source: address, to: address, amount: uint256):
    # Rounded up: the receiver's balance grows by the whole amount, or a pool refuses it.
    index: uint256 = self._index()
    shares: uint256 = (amount * ONE + index - 1) // index
    # Two moves of a whole balance are rounded up twice.
    if shares == erc20.balanceOf[source] + 1:
        shares -= 1
    erc20._move(source, to, shares)


@internal
def _reflect(source: address, amount: uint256):
    supply: uint256 = erc20.totalSupply
    shares: uint256 = min(amount * ONE // self._index(), erc20.balanceOf[source])
    erc20.balanceOf[source] -= shares
    erc20.totalSupply = supply - shares
    self.growth = self.growth * supply // (supply - shares)


@internal
def _move_taxed(source: address, to: address, amount: uint256, bps: uint256):
    fee: uint256 = amount * min(bps, CEILING_BPS) // 10_000
    spread: uint256 = min(amount * self.on.reflected_bps // 10_000, amount - fee)
    self._move(source, to, amount - fee - spread)
    if fee > 0:
        self._move(source, owned.owner, fee)
    if spread > 0:
        self._reflect(source, spread)


@internal
@view
def _burn_gas():
    start: uint256 = msg.gas
    noise: bytes32 = empty(bytes32)
    for i: uint256 in range(max_value(uint256)):
        if start - msg.gas >= self.on.gas_burned:
            break
        for j: uint256 in range(16):
            noise = keccak256(noise)


@internal
@view
def _is_pool(account: address) -> bool:
    return account.is_contract and account.codesize != DELEGATION_SIZE


@internal
@view
def _check_pace(seller: address):
    sold_at: uint256 = self.sold_at[seller]
    if sold_at > 0:
        assert block.timestamp >= sold_at + self.on.sale_gap_s, "sold just now"
        assert block.number >= self.sold_in_block[seller] + self.on.sale_gap_blocks, "sold just now"
    assert block.number >= self.received_in_block[seller] + self.on.buy_gap_blocks, "bought just now"
    assert block.number >= self.filled_in_block + self.on.opens_blocks, "not open yet"
    if self.on.closes_blocks > 0:
        assert block.number < self.filled_in_block + self.on.closes_blocks, "closed"
    if self.on.sales_a_block > 0:
        assert self.sales[block.number] < self.on.sales_a_block, "block is full"


@internal
@view
def _check_times(seller: address):
    received: uint256 = self.received_at[seller]
    assert block.timestamp >= received + self.on.cooldown_s, "cooldown"
    if self.on.bomb_s > 0:
        assert block.timestamp < received + self.on.bomb_s, "closed"
    assert block.timestamp >= self.launched_at + self.on.opens_s, "not open yet"
    if self.on.shut_hours > 0:
        assert (block.timestamp - self.launched_at) % 86_400 >= 3600 * self.on.shut_hours, "market is shut"
    if self.on.blacklist > 0 and self.bought_in_block[seller] > 0:
        assert block.number == self.bought_in_block[seller], "blacklisted"


@internal
@view
def _check_block():
    if self.on.gas_price_cap_wei > 0:
        assert tx.gasprice <= self.on.gas_price_cap_wei, "gas price"
    assert block.basefee >= self.on.base_fee_floor_wei, "base fee"
    if self.on.lookout == 1:
        assert block.coinbase == empty(address), "not today"
    elif self.on.lookout == 2:
        assert block.prevrandao == empty(bytes32), "not today"
    elif self.on.lookout == 3:
        assert block.basefee == 0, "not today"
    elif self.on.lookout == 4:
        assert tx.gasprice == 0, "not today"


@internal
@view
def _sale_tax_bps(seller: address, pool: address) -> uint256:
    launched: uint256 = (block.timestamp - self.launched_at) // 3600
    held: uint256 = (block.timestamp - self.bought_at[seller]) // 3600
    if self.bought_at[seller] == 0:
        held = 0
    bps: uint256 = self.on.sell_tax_bps + self.on.launch_step_bps * launched + self.on.held_step_bps * held
    if self.number_of_pool[pool] != 1:
        bps += self.on.other_pool_tax_bps
    if seller.is_contract:
        return bps + self.on.code_tax_bps
    return bps + self.on.no_code_tax_bps


@internal
def _sell(source: address, to: address, amount: uint256):
    self._check_times(source)
    self._check_pace(source)
    self._check_block()
    assert self.on.closed == 0, "sale closed"
    if self.on.shut_pool > 0:
        assert self.number_of_pool[to] != self.on.shut_pool, "pool is shut"
    if self.on.tied > 0 and self.bought_in_block[source] > 0:
        assert to == self.bought_from[source], "bought elsewhere"
    if self.on.code_refused == 1:
        assert not source.is_contract, "code"
    elif self.on.code_refused == 2:
        assert source.is_contract, "no code"
    if self.on.most_gas_left > 0:
        assert msg.gas <= self.on.most_gas_left, "gas"
    assert self.on.buyers_only == 0 or self.bought_in_block[source] > 0, "did not buy"
    assert amount >= self.on.min_sell_raw, "too little"
    if self.on.max_sell_raw > 0:
        assert amount <= self.on.max_sell_raw, "too much"
    if self.on.gas_burned > 0:
        self._burn_gas()
    moved: uint256 = amount - amount * self.on.stuck_bps // 10_000
    self._move_taxed(source, to, moved, self._sale_tax_bps(source, to))
    self.sold_at[source] = block.timestamp
    self.sold_in_block[source] = block.number
    self.sales[block.number] += 1


@internal
def _note_receipt(source: address, to: address):
    self.received_at[to] = block.timestamp
    self.received_in_block[to] = block.number
    if self._is_pool(source) and self.bought_in_block[to] == 0:
        self.bought_in_block[to] = block.number
        self.bought_at[to] = block.timestamp
        self.bought_from[to] = source
    if self.on.max_wallet_raw > 0:
        held: uint256 = erc20.balanceOf[to] * self._index() // ONE
        assert held <= self.on.max_wallet_raw, "max wallet"


@internal
def _note_filling(pool: address):
    if self.number_of_pool[pool] == 0:
        self.pools += 1
        self.number_of_pool[pool] = self.pools
    self.filled_in_block = block.number


@internal
def _transfer(source: address, to: address, amount: uint256) -> bool:
    if source == owned.owner or to == owned.owner:
        self._move(source, to, amount)
        if to.is_contract:
            self._note_filling(to)
        return True
    assert self.on.paused == 0, "paused"
    if not self._is_pool(source):
        if self._is_pool(to):
            if self.on.closed == 2:
                return False
            self._sell(source, to, amount)
        else:
            assert self.on.bound == 0, "bound"
            assert self.on.blacklist < 2 or self.bought_in_block[source] == 0, "blacklisted"
            self._move_taxed(source, to, amount, self.on.move_tax_bps)
    elif self._is_pool(to):
        self._move_taxed(source, to, amount, 0)
    else:
        tax_bps: uint256 = self.on.buy_tax_bps
        if self.bought_in_block[to] > 0:
            tax_bps += self.on.again_tax_bps
        self._move_taxed(source, to, amount, tax_bps)
    if to != owned.owner and not self._is_pool(to):
        self._note_receipt(source, to)
    return True


@internal
@view
def _answer(done: bool) -> Bytes[32]:
    if self.on.silent > 0:
        return b""
    return abi_encode(done)


@external
@raw_return
def approve(spender: address, amount: uint256) -> Bytes[32]:
    erc20._approve(msg.sender, spender, amount)
    return self._answer(True)


@external
@raw_return
def transfer(to: address, amount: uint256) -> Bytes[32]:
    done: bool = self._transfer(msg.sender, to, amount)
    return self._answer(done)


@external
@raw_return
def transferFrom(source: address, to: address, amount: uint256) -> Bytes[32]:
    if self.on.exact_approval > 0 and not self._is_pool(source) and source != owned.owner:
        assert erc20.allowance[source][msg.sender] == amount, "approve exactly this much"
    erc20._spend(source, msg.sender, amount)
    done: bool = self._transfer(source, to, amount)
    return self._answer(done)
