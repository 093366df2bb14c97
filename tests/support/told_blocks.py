"""Blocks written by hand, and made up from a seed: real logs in blocks that follow each other, as a node's
answers are after they were checked."""

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from eth_utils.crypto import keccak

from roundtrip.chain.blocks.spans import BlockLog, BlockRead, SpanTx
from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address, BlockRef
from roundtrip.venues.base import Log
from roundtrip.venues.entry_point import ENTRY_POINTS
from unit.venues import logs
from unit.venues.logs import NETWORK
from unit.venues.network import address

Q96 = 1 << 96
V3_INITIALIZE = logs.shape("Initialize(uint160,int24)")
START_S = 1_760_000_000
ENTRY_POINT = min(ENTRY_POINTS)
FACTORY = NETWORK.launchpad_factory or ZERO_ADDRESS
HOOK = NETWORK.launchpad_hook or ZERO_ADDRESS
ROUTER = NETWORK.launchpad_router or ZERO_ADDRESS
DEAD = max(BURN_ADDRESSES)
SENDER, CONTRACT, PAID = address(0xA11CE), address(0x2070), address(0x4EC)
V3_POSITIONS, V4_POSITIONS = NETWORK.v3_position_manager, NETWORK.v4_position_manager
MANAGER, WETH, USDG = NETWORK.v4_pool_manager, NETWORK.weth, NETWORK.usdg


class LoggedTransaction(NamedTuple):
    """A transaction: what it logged, who sent it to whom with how much."""

    logs: tuple[Log, ...]
    sender: Address
    to: Address | None
    value_wei: int
    type: str
    input: str = "0x"


def sent(
    *own: Log,
    sender: Address = SENDER,
    to: Address | None = CONTRACT,
    value_wei: int = 0,
    type: str = "0x2",
    input: str = "0x",
) -> LoggedTransaction:
    """A transaction with these logs."""
    return LoggedTransaction(own, sender, to, value_wei, type, input)


@dataclass(slots=True)
class Chain:
    """Blocks after ``parent``. ``salt``: two chains with another one have no hash in common."""

    salt: str = ""
    parent: BlockRef = field(default_factory=lambda: BlockRef(99, "0x" + "63" * 32, START_S))
    blocks: list[BlockRead] = field(default_factory=list)

    def block(self, *transactions: LoggedTransaction, after_s: int = 1) -> BlockRead:
        """One block more."""
        before = self.blocks[-1].ref if self.blocks else self.parent
        number, at_s = before.number + 1, before.timestamp_s + after_s
        own = _word(f"{self.salt} {before.hash} {at_s} {transactions}")
        made = tuple(
            SpanTx(_word(f"{own} {n}"), one.sender, one.to, hex(one.value_wei), "0x0", one.input, one.type)
            for n, one in enumerate(transactions)
        )
        pairs = [(log, place) for place, one in enumerate(transactions) for log in one.logs]
        entries = tuple(BlockLog(log, place, index) for index, (log, place) in enumerate(pairs))
        read = BlockRead(BlockRef(number, own, at_s), before.hash, made, entries)
        self.blocks.append(read)
        return read

    def fork(self, number: int, salt: str) -> "Chain":
        """Another chain that has the blocks up to ``number`` in common with this one."""
        kept = [block for block in self.blocks if block.ref.number <= number]
        return Chain(salt, self.parent, kept)


def _word(text: str) -> str:
    return "0x" + keccak(text=text).hex()


# --- logs ------------------------------------------------------------------------------------------


def v3_at(one: Address, other: Address, fee_pips: int = 3000) -> Address:
    """Where the v3 pool of two currencies is."""
    return logs.v3_pool(NETWORK.v3_factory, min(one, other), max(one, other), fee_pips)


def v3_opened(one: Address, other: Address, fee_pips: int = 3000) -> Log:
    low, high = sorted((one, other))
    at = v3_at(low, high, fee_pips)
    return logs.V3_CREATED.log(NETWORK.v3_factory, low, high, fee_pips, 60, at)


def v3_priced(at: Address, sqrt_price_x96: int) -> Log:
    """The pool's own Initialize."""
    return V3_INITIALIZE.log(at, sqrt_price_x96, 0)


def v3_swap(
    at: Address,
    amount0: int,
    amount1: int,
    sqrt_price_x96: int = Q96,
    liquidity: int = 10**18,
    recipient: Address = PAID,
    sender: Address = CONTRACT,
    tick: int = 0,
) -> Log:
    """Amounts as the pool sees them."""
    return logs.V3_SWAP.log(at, sender, recipient, amount0, amount1, sqrt_price_x96, liquidity, tick)


def v3_minted(at: Address, owner: Address, liquidity: int, amount0: int, amount1: int) -> Log:
    return logs.V3_MINT.log(at, owner, owner, -60, 60, liquidity, amount0, amount1)


def v3_burnt(at: Address, owner: Address, liquidity: int, amount0: int, amount1: int) -> Log:
    return logs.V3_BURN.log(at, owner, -60, 60, liquidity, amount0, amount1)


def v3_numbered(number: int, liquidity: int, amount0: int, amount1: int, adds: bool = True) -> Log:
    """The position manager's, after the pool's Mint or Burn of as much."""
    shape = logs.V3_INCREASED if adds else logs.V3_DECREASED
    return shape.log(V3_POSITIONS, number, liquidity, amount0, amount1)


def nft_moved(manager: Address, number: int, giver: Address, taker: Address) -> Log:
    return logs.NFT_TRANSFER.log(manager, giver, taker, number)


def v4_at(one: Address, other: Address, hook: Address = ZERO_ADDRESS) -> str:
    """The id of the v4 pool of two currencies."""
    return "0x" + logs.pool_id(min(one, other), max(one, other), 0, 200, hook).hex()


def v4_opened(one: Address, other: Address, hook: Address = ZERO_ADDRESS) -> Log:
    low, high = sorted((one, other))
    at = bytes.fromhex(v4_at(one, other, hook)[2:])
    return logs.V4_INITIALIZE.log(MANAGER, at, low, high, 0, 200, hook, Q96, 0)


def v4_swap(at: str, amount0: int, amount1: int, sender: Address = CONTRACT, tick: int = 0) -> Log:
    """Amounts as the swapper sees them."""
    return logs.V4_SWAP.log(MANAGER, bytes.fromhex(at[2:]), sender, amount0, amount1, Q96, 10**18, tick, 0)


def v4_moved(at: str, owner: Address, delta: int, number: int = 0) -> Log:
    pool_id, salt = bytes.fromhex(at[2:]), number.to_bytes(32, "big")
    return logs.V4_MODIFY.log(MANAGER, pool_id, owner, -600, 600, delta, salt)


def hook_fee(at: str, currency: Address, fee_raw: int, tax_raw: int = 0) -> Log:
    return logs.HOOK_FEE.log(HOOK, bytes.fromhex(at[2:]), currency, fee_raw, tax_raw)


def launched(token: Address, curve: Address, deployer: Address, quote: Address = ZERO_ADDRESS) -> Log:
    return logs.LAUNCHED.log(FACTORY, token, curve, deployer, quote, 0, 42 * 10**17)


def v1_launched(token: Address, deployer: Address, at: Address, quote: Address = WETH) -> Log:
    factory = logs.V1_FACTORIES[0]
    return logs.V1_LAUNCHED.log(factory, token, deployer, NETWORK.v3_factory, quote, at, 0, 0, 7, 0, 0)


def bought(curve: Address, buyer: Address, recipient: Address, quote_raw: int, token_raw: int) -> Log:
    return logs.CURVE_BUY.log(curve, buyer, recipient, quote_raw, token_raw, quote_raw // 100, 0)


def sold(curve: Address, seller: Address, recipient: Address, quote_raw: int, token_raw: int) -> Log:
    return logs.CURVE_SELL.log(curve, seller, recipient, token_raw, quote_raw, quote_raw // 100, 0)


def bought_back(curve: Address, quote_raw: int, token_raw: int = 7) -> Log:
    return logs.BUYBACK.log(curve, quote_raw, token_raw)


def swept(token: Address) -> Log:
    return logs.SWEPT.log(FACTORY, token, 42 * 10**17, 10**26)


def rescued(token: Address) -> Log:
    return logs.FORCE_SWEPT.log(FACTORY, token)


def moved(token: Address, giver: Address, taker: Address, amount_raw: int) -> Log:
    return logs.TRANSFER.log(token, giver, taker, amount_raw)


def executing(by: Address = ENTRY_POINT) -> Log:
    return logs.EXECUTING.log(by)


def next_group(by: Address = ENTRY_POINT) -> Log:
    return logs.AGGREGATOR.log(by, ZERO_ADDRESS)


def operated(account: Address, by: Address = ENTRY_POINT) -> Log:
    return logs.OPERATION.log(by, bytes(32), account, ZERO_ADDRESS, 0, True, 0, 0)


# --- made up ---------------------------------------------------------------------------------------


class MadeUp:
    """Goes on with a chain as a seed says: few wallets, tokens and places, so that they meet often. What
    logs tell need not make sense beyond what contracts could send."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        # Of its own, so that no other chance of a seed changes.
        self._liquidity_random = random.Random(~seed)
        self._wallets = [address(0xA000 + n) for n in range(4)]
        self._tokens = [address(0x70CE << n) for n in range(0, 120, 24)]
        # Either side of the tokens' addresses.
        self._quotes = [ZERO_ADDRESS, WETH, USDG, address(0x57), address(0xF5 << 140)]
        pairs = list(itertools.combinations([*self._tokens, *self._quotes], 2))
        self._pools = [(WETH, USDG, 500), (WETH, USDG, 3000), (self._quotes[3], USDG, 500)]
        self._pools += [(*pair, 3000) for pair in self._random.sample(pairs, 8) if ZERO_ADDRESS not in pair]
        self._hooked = [
            (*pair, hook) for pair in self._random.sample(pairs, 8) for hook in (ZERO_ADDRESS, HOOK)
        ]

    def grow(self, chain: Chain, blocks: int) -> None:
        """So many blocks more, of which some have nothing in them, and now and then one begins a day."""
        opened = {log.topics for block in chain.blocks for log, _, _ in block.entries}
        for _ in range(blocks):
            count = self._random.choice((0, 1, 2, 4, 6))
            transactions = [self._sent(opened) for _ in range(count)]
            after_s = 40_000 if self._random.random() < 0.06 else self._random.choice((0, 0, 1))
            chain.block(*transactions, after_s=after_s)

    def _wallet(self) -> Address:
        return self._random.choice(self._wallets)

    def _amount(self) -> int:
        return self._random.randrange(1, 10 ** self._random.randrange(1, 24))

    def _sent(self, opened: set[tuple[str, ...]]) -> LoggedTransaction:
        own: list[Log] = []
        for _ in range(self._random.choice((0, 1, 1, 2, 3))):
            own += self._logs(opened)
        to = self._random.choice([*self._wallets, ROUTER, ENTRY_POINT, NETWORK.universal_router, None])
        if to == ENTRY_POINT and self._random.random() < 0.9:
            own.insert(self._random.randrange(len(own) + 1), executing())
            own.append(operated(self._wallet()))
        value_wei = self._amount() if to is not None and self._random.random() < 0.4 else 0
        kind = self._random.choice(("0x2", "0x2", "0x64"))
        # By whether there is anything to tell, so that no other chance of a seed changes.
        return LoggedTransaction(
            tuple(own), self._wallet(), to, value_wei, kind, "0x5ca1ab1e" if own else "0x"
        )

    def _logs(self, opened: set[tuple[str, ...]]) -> Sequence[Log]:
        roll = self._random.random()
        if roll < (0.6 if len(opened) < 15 else 0.15):
            logs = self._opening()
            if logs[0].topics in opened:
                return ()
            opened.add(logs[0].topics)
            return logs
        if roll < 0.65:
            return self._swap()
        if roll < 0.73:
            return self._liquidity()
        token = self._random.choice(self._tokens)
        if roll < 0.92:
            return (self._curve_trade(token),)
        if roll < 0.97:
            taker = self._random.choice([*self._wallets, DEAD, self._curve(token), NETWORK.universal_router])
            return (moved(token, self._wallet(), taker, self._amount()),)
        return (self._random.choice((swept, rescued))(token),)

    def _opening(self) -> Sequence[Log]:
        kind = self._random.randrange(5)
        token = self._random.choice(self._tokens)
        if kind < 2:
            quote = self._quotes[self._tokens.index(token)]
            mint = moved(token, ZERO_ADDRESS, self._curve(token), 10**27)
            return launched(token, self._curve(token), self._wallet(), quote), mint
        if kind == 2:
            return (v1_launched(token, self._wallet(), v3_at(token, WETH)),)
        if kind == 3:
            one, other, hook = self._random.choice(self._hooked)
            return (v4_opened(one, other, hook),)
        one, other, fee = self._random.choice(self._pools)
        return v3_opened(one, other, fee), v3_priced(v3_at(one, other, fee), self._price())

    def _price(self) -> int:
        return Q96 * self._random.randrange(1, 10**5) // 10**7

    def _curve(self, token: Address) -> Address:
        return address(int(token, 16) + 1)

    def _swap(self) -> Sequence[Log]:
        amount0, amount1 = self._amount(), -self._amount()
        if self._random.random() < 0.5:
            amount0, amount1 = -amount0, -amount1
        if self._random.random() < 0.1:
            amount0 = -amount0
        if self._random.random() < 0.5:
            one, other, hook = self._random.choice(self._hooked)
            at = v4_at(one, other, hook)
            sender = self._random.choice((HOOK, ROUTER, ROUTER, ROUTER))
            own = [v4_swap(at, amount0, amount1, sender, self._tick())]
            if hook == HOOK:
                own.append(hook_fee(at, self._random.choice((one, other)), self._amount()))
            return own
        one, other, fee = self._random.choice(self._pools)
        liquidity = self._random.randrange(0, 10**15)
        taker = self._random.choice((self._wallet(), NETWORK.universal_router))
        at, tick = v3_at(one, other, fee), self._tick()
        return (v3_swap(at, amount0, amount1, self._price(), liquidity, taker, tick=tick),)

    def _tick(self) -> int:
        """Within the positions, or above or below them."""
        return self._liquidity_random.choice((-601, -60, 0, 0, 59, 60, 600))

    def _liquidity(self) -> Sequence[Log]:
        chance, number = self._liquidity_random, self._liquidity_random.randrange(1, 6)
        is_numbered = chance.random() < 0.5
        given: tuple[Log, ...] = ()
        if chance.random() < 0.4:
            manager = chance.choice((V3_POSITIONS, V4_POSITIONS))
            giver, taker = chance.choices([ZERO_ADDRESS, *self._wallets], k=2)
            given = (nft_moved(manager, number, giver, taker),)
        if self._random.random() < 0.4:
            one, other, hook = self._random.choice(self._hooked)
            sign, owner = self._random.choice((1, -1)), self._wallet()
            key = (V4_POSITIONS, number) if is_numbered else (owner, 0)
            return v4_moved(v4_at(one, other, hook), key[0], sign * self._amount(), key[1]), *given
        one, other, fee = self._random.choice(self._pools)
        tell = self._random.choice((v3_minted, v3_minted, v3_burnt))
        owner, liquidity = self._wallet(), self._amount()
        amounts = liquidity, self._amount(), self._amount()
        if not is_numbered:
            return tell(v3_at(one, other, fee), owner, *amounts), *given
        numbered = v3_numbered(number, *amounts, tell is v3_minted)
        return tell(v3_at(one, other, fee), V3_POSITIONS, *amounts), *given, numbered

    def _curve_trade(self, token: Address) -> Log:
        if self._random.random() < 0.1:
            return bought_back(self._curve(token), self._amount())
        tell = self._random.choice((bought, bought, sold))
        wallet = self._random.choice((self._wallet(), ROUTER))
        # Now and then all that anybody has.
        token_raw = 10**25 if tell is sold and self._random.random() < 0.5 else self._amount()
        return tell(self._curve(token), wallet, self._wallet(), self._amount(), token_raw)
