"""A local chain on which a crowd trades: ten to twenty trades a block, ten blocks a second of its clock.

    PYTHONPATH=src python -m bench.busy_chain [--blocks 3000]

The crowd's wallets have eth from real transfers, allow each spender once and then buy and sell by the
exchange's and the launchpad's own contracts. Blocks are made as fast as the node can and kept in var/bench.
"""

import argparse
import gzip
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from roundtrip.venues.abi import keccak, word
from roundtrip_development.devnet import world
from roundtrip_development.devnet.actors import ActorMarket, TradedToken
from roundtrip_development.devnet.deploy import MAX, ZERO, ContractDeployer, calldata
from roundtrip_development.devnet.launchpad import (
    LAUNCH,
    LAUNCH_FEE_WEI,
    CurveToken,
    LaunchRequest,
    curve_buy,
    curve_sell,
    pool_key,
    v4_swap,
)
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.trading import POOL_FEE, POOL_SPACING

PROJECT = Path(__file__).resolve().parents[1]
SEED = 4663
BLOCKS = 3000
WALLETS = 200
CURVES = 8
TOKENS_EACH = 4
BLOCKS_A_SECOND = 10
LOOK_EVERY, LAUNCH_EVERY = 250, 50
"""Blocks between two readings of everybody's balances, and between two launches."""
_TRADE_GAS, _LAUNCH_GAS = 700_000, 6_000_000
_FEES = {"maxFeePerGas": hex(20 * 10**9), "maxPriorityFeePerGas": hex(10**9)}
_FUNDS_WEI = 1000 * 10**18
_SMALLEST_WEI, _LARGEST_WEI = 2 * 10**15, 2 * 10**16
_AT_ROUTER, _TO_CALLER = ("0x" + "0" * 39 + digit for digit in "21")
_SINGLE = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"
# Placeholders, overwritten in finished calldata: encoding each trade again would cost more than the trade.
_AMOUNT = 0x7E57AB1E << 64
_WALLET = "0x" + "be" * 20


class Call(NamedTuple):
    """A transaction without its sender: calldata with stand-ins; ``pays``: its amount is its value."""

    to: str
    data: str
    pays: bool

    def sent_by(self, wallet: str, amount_raw: int) -> dict[str, str]:
        """The transaction, for eth_sendTransaction."""
        data = self.data.replace(word(_AMOUNT), word(amount_raw)).replace(word(_WALLET), word(wallet))
        sent = {"from": wallet, "to": self.to, "data": data, "gas": hex(_TRADE_GAS)} | _FEES
        return sent | ({"value": hex(amount_raw)} if self.pays else {})


class Way(NamedTuple):
    """How a token is traded for eth. ``allow``: what a wallet does once, before it sells."""

    token: str
    buy: Call
    allow: tuple[Call, ...]
    sell: Call


class _Noting(ContractDeployer):
    """Notes what it should send."""

    def __init__(self, chain: SyncRpc) -> None:
        super().__init__(chain, _WALLET)
        self.calls: list[Call] = []

    def send(self, to: str | None, data: str, value_wei: int = 0) -> str:
        assert to is not None
        self.calls.append(Call(to, data, value_wei == _AMOUNT))
        return ""


def ways(chain: SyncRpc, built: world.Built) -> list[Way]:
    """Every token that the crowd trades: the exchange's own, all graduated ones, some on curves."""
    market, contracts = ActorMarket.unpack(built.market), built.contracts
    eth = [listed for listed in market.tokens if listed.quote in ("eth", "weth")]
    curves = [listed for listed in eth if listed.kind == "curve"][-CURVES:]
    others = [listed for listed in eth if listed.kind in ("pool_v3", "pool_v4", "graduated")]

    def noted(act: Callable[[ContractDeployer], object]) -> list[Call]:
        wallet = _Noting(chain)
        act(wallet)
        return wallet.calls

    def way(listed: TradedToken) -> Way:
        token = listed.token
        if listed.kind == "pool_v3":
            return _v3_way(contracts, token)
        if listed.kind == "curve":
            launched = CurveToken(token, listed.curve, ZERO)
            (buy,) = noted(lambda wallet: curve_buy(wallet, launched, _AMOUNT))
            *allow, sell = noted(lambda wallet: curve_sell(wallet, launched, _AMOUNT))
        else:
            key = (ZERO, token, POOL_FEE, POOL_SPACING, ZERO)
            if listed.kind == "graduated":
                key = pool_key(contracts, token, ZERO)
            (buy,) = noted(lambda wallet: v4_swap(wallet, contracts, key, ZERO, _AMOUNT))
            *allow, sell = noted(lambda wallet: v4_swap(wallet, contracts, key, token, _AMOUNT))
        return Way(token, buy, tuple(allow), sell)

    return [way(listed) for listed in (*others, *curves)]


def _v3_way(contracts: dict[str, str], token: str) -> Way:
    router, weth = contracts["swapRouter02"], contracts["weth"]
    buy = calldata(_SINGLE, (weth, token, POOL_FEE, _TO_CALLER, _AMOUNT, 0, 0))
    swap = calldata(_SINGLE, (token, weth, POOL_FEE, _AT_ROUTER, _AMOUNT, 0, 0))
    unwrap = calldata("unwrapWETH9(uint256,address)", 0, _WALLET)
    sell = calldata("multicall(bytes[])", [bytes.fromhex(part[2:]) for part in (swap, unwrap)])
    allow = Call(token, calldata("approve(address,uint256)", router, MAX), False)
    return Way(token, Call(router, buy, True), (allow,), Call(router, sell, False))


@dataclass
class Crowd:
    """The wallets, what each trades, and what each surely holds, by its place and the token's."""

    chain: SyncRpc
    built: world.Built
    ways: list[Way]
    rng: Random
    held: dict[tuple[int, int], int] = field(default_factory=dict)
    nonces: dict[str, int] = field(default_factory=dict)
    turn: int = 0
    launches: int = 0

    def __post_init__(self) -> None:
        self.wallets = ["0x" + keccak(f"roundtrip crowd: {n}".encode())[12:].hex() for n in range(WALLETS)]
        self.interests = [self.rng.sample(range(len(self.ways)), TOKENS_EACH) for _ in self.wallets]

    def move_in(self, mine: Callable[[], object]) -> None:
        """Eth for everybody, allowances, and first buys; ``mine`` is called after each block's worth."""
        giver = self.built.accounts[0]
        self.chain.call("anvil_setBalance", giver, hex(10**24))
        self.chain.call("anvil_autoImpersonateAccount", True)
        self.nonces[giver] = int(self.chain.call("eth_getTransactionCount", giver, "latest"), 16)
        gift = {"from": giver, "value": hex(_FUNDS_WEI), "gas": hex(21_000)} | _FEES
        todo = [gift | {"to": wallet} for wallet in self.wallets]
        for turn in range(TOKENS_EACH):
            for wallet, interests in zip(self.wallets, self.interests, strict=True):
                way = self.ways[interests[turn]]
                todo += [call.sent_by(wallet, 2**160 - 1) for call in way.allow]
                todo.append(way.buy.sent_by(wallet, self._sum_wei()))
        for start in range(0, len(todo), 20):
            self.send(todo[start : start + 20])
            mine()

    def look(self, count: int = WALLETS) -> None:
        """Reads what the next ``count`` traders hold."""
        turns = {(self.turn + ahead) % WALLETS for ahead in range(count)}
        pairs = [(number, token) for number in sorted(turns) for token in self.interests[number]]
        calls: list[tuple[str, tuple[object, ...]]] = []
        for number, token in pairs:
            data = calldata("balanceOf(address)", self.wallets[number])
            calls.append(("eth_call", ({"to": self.ways[token].token, "data": data}, "latest")))
        for pair, held in zip(pairs, self.chain.batch(calls), strict=True):
            self.held[pair] = int(held, 16)

    def orders(self, count: int) -> list[dict[str, str]]:
        """The next trades, each of another wallet; no wallet comes again before all others had their turn."""
        found = []
        for _ in range(count):
            number = self.turn % WALLETS
            self.turn += 1
            token = self.rng.choice(self.interests[number])
            held, way = self.held.get((number, token), 0), self.ways[token]
            if held and self.rng.randrange(2):
                sold = held * self.rng.choice((3, 5, 10, 10)) // 10
                self.held[number, token] = held - sold
                found.append(way.sell.sent_by(self.wallets[number], sold))
            else:
                found.append(way.buy.sent_by(self.wallets[number], self._sum_wei()))
        return found

    def launch(self) -> dict[str, str]:
        """A launch by one of the wallets, which no wallet trades."""
        self.launches += 1
        wish = LaunchRequest(f"Crowd {self.launches}", f"CR{self.launches}", salt=self.launches).as_tuple()
        data = calldata(LAUNCH, wish, 0, ZERO, [])
        launched = {"to": self.built.contracts["launchpadFactory"], "data": data, "gas": hex(_LAUNCH_GAS)}
        sender = self.wallets[(self.turn + WALLETS // 2) % WALLETS]
        return launched | {"from": sender, "value": hex(LAUNCH_FEE_WEI)} | _FEES

    def send(self, transactions: list[dict[str, str]]) -> None:
        """Sends them in one request. Numbered here: a node that mines at the same time gives a number
        twice. Raises RpcFailure."""
        calls: list[tuple[str, tuple[object, ...]]] = []
        for transaction in transactions:
            sender = transaction["from"]
            nonce = self.nonces.get(sender, 0)
            self.nonces[sender] = nonce + 1
            calls.append(("eth_sendTransaction", (transaction | {"nonce": hex(nonce)},)))
        self.chain.batch(calls)

    def _sum_wei(self) -> int:
        return self.rng.randrange(_SMALLEST_WEI, _LARGEST_WEI)


def play(chain: SyncRpc, built: world.Built, blocks: int, say: Callable[[str], None]) -> int:
    """The crowd moves in and trades for so many blocks; the last one's timestamp."""
    crowd, mined = Crowd(chain, built, ways(chain, built), Random(SEED)), 0
    first_s = built.head_s + 10

    def mine() -> None:
        nonlocal mined
        if mined % BLOCKS_A_SECOND == 0:
            chain.call("evm_setNextBlockTimestamp", first_s + mined // BLOCKS_A_SECOND)
        chain.call("evm_mine")
        mined += 1

    chain.call("evm_setAutomine", False)
    chain.call("anvil_setBlockTimestampInterval", 0)
    crowd.move_in(mine)
    started = time.monotonic()
    for number in range(blocks):
        if number % LOOK_EVERY == 0:
            say(f"trading, block {number}/{blocks}, {time.monotonic() - started:.0f} s")
            crowd.look()
        orders = crowd.orders(crowd.rng.randrange(10, 21))
        crowd.send([*orders, crowd.launch()] if number % LAUNCH_EVERY == 0 else orders)
        mine()
    return first_s + mined // BLOCKS_A_SECOND


class _Recorded(msgspec.Struct):
    """A transaction of a dumped state."""

    info: dict[str, msgspec.Raw]
    receipt: msgspec.Raw
    block_hash: msgspec.Raw
    block_number: msgspec.Raw


class _Header(msgspec.Struct):
    number: str
    timestamp: str


class _Block(msgspec.Struct):
    header: _Header


def _trimmed(dumped: str) -> bytes:
    """The state without call traces, which are most of it and unused, and with one first block: a
    node that was started from a state has that state's beside its own."""
    state = msgspec.json.decode(gzip.decompress(bytes.fromhex(dumped[2:])), type=dict[str, msgspec.Raw])
    transactions = msgspec.json.decode(state["transactions"], type=list[_Recorded])
    for transaction in transactions:
        transaction.info["traces"] = msgspec.Raw(b"[]")
    state["transactions"] = msgspec.Raw(msgspec.json.encode(transactions))
    blocks = msgspec.json.decode(state["blocks"], type=list[msgspec.Raw])
    state["blocks"] = msgspec.Raw(msgspec.json.encode([block for block in blocks if _belongs(block)]))
    return msgspec.json.encode(state)


def _belongs(block: msgspec.Raw) -> bool:
    header = msgspec.json.decode(block, type=_Block).header
    return int(header.number, 16) > 0 or int(header.timestamp, 16) == world.GENESIS_S


def build(blocks: int, say: Callable[[str], None]) -> world.Built:
    """The busy chain on top of the devnet, for ``world.started``; kept in var/bench for the next run."""
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, say)
    ours = Path(__file__).read_bytes() + built.state.parent.name.encode() + b"%d" % blocks
    folder = places.var / "bench" / hashlib.sha256(ours).hexdigest()[:16]
    state, ends = folder / "state.json", folder / "head_s"
    if not ends.exists():
        folder.mkdir(parents=True, exist_ok=True)
        options = NodeOptions(state=built.state)
        with world.start_world(places, built, options) as node, SyncRpc(node.url, timeout_s=600) as chain:
            head_s = play(chain, built, blocks, say)
            say("keeping the busy chain's state")
            state.write_bytes(_trimmed(chain.call("anvil_dumpState")))
        ends.write_text(str(head_s))
    return replace(built, state=state, head_s=int(ends.read_text()))


def main() -> None:
    """Builds the chain and tells what is on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    built = build(parser.parse_args().blocks, print)
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    started = time.monotonic()
    with world.start_world(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as chain:
        seconds = time.monotonic() - started
        head = int(chain.call("eth_blockNumber"), 16)
        logs = len(chain.call("eth_getLogs", {"fromBlock": "0x0", "toBlock": hex(head)}))
        size, held = built.state.stat().st_size >> 20, node.memory_bytes() >> 20
        print(f"{head} blocks, {logs} logs; {size} MB of state; started in {seconds:.1f} s, {held} MB held")


if __name__ == "__main__":
    main()
