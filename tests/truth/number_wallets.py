"""Real wallets that wait in blocks: all of them buy in one block, and real blocks are mined until they sell.

The local chain's state is large, and each block copies it. So these trades have a chain of their own, with
nothing on it but the exchange.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from roundtrip_development.devnet import artifacts, world
from roundtrip_development.devnet.deploy import COINBASE, ContractDeployer, create_eth_pool, deploy_exchange
from roundtrip_development.devnet.node import NodeOptions, find_anvil, running
from roundtrip_development.devnet.stories import PoolPlan
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.mining import by_hand
from support.wallet import Fill, PoolSpec, Wallet
from truth.check.test_truth import DELAYS_S, Reality, other_sizes

SECONDS_A_NUMBER = 12
"""How fast NUMBER counts on the real chain."""
_AT_ONCE = 1000
_BUY_GAS, _MAX_FEE_WEI = 900_000, 10**11
_SALES = [*((delay_s, 10_000) for delay_s in DELAYS_S), (13, 5000), (13, 100)]
"""Delay and share of each."""


@contextlib.contextmanager
def small_chain(places: world.DevnetFolders) -> Iterator[tuple[SyncRpc, Built]]:
    """A new chain with the exchange on it."""
    bytecode = artifacts.fetch(places.var / "artifacts", print)
    options = NodeOptions(timestamp_s=world.GENESIS_S)
    with running(find_anvil(PROJECT), options) as node, SyncRpc(node.url, 60.0) as rpc:
        accounts = rpc.call("eth_accounts")
        rpc.call("anvil_setCoinbase", COINBASE)
        deployer = ContractDeployer(rpc, accounts[0])
        contracts = deploy_exchange(deployer, bytecode, PROJECT / "contracts")
        create_eth_pool(deployer, contracts)
        deployer.check_receipts()
        yield rpc, Built(places.var, contracts, {}, accounts, {}, world.GENESIS_S, {})


@dataclass
class PoolTrade:
    """One wallet's trades in one pool of a token, for ``paid_raw`` of the pool's money. ``sells``: by delay
    and share."""

    token: str
    pool: PoolPlan
    paid_raw: int
    wallet: Wallet
    bought_raw: int | None = None
    sells: dict[tuple[int, int], Fill] = field(default_factory=dict)
    ten: Fill | None = None

    def sell(self, part_raw: int) -> Fill:
        """Really sells so much."""
        pool = self.pool
        return self.wallet.sell(self.token, pool.quote, pool.fee_pips, part_raw, pool.version)

    def sold_half(self) -> bool:
        """Whether one of its sales sold half of what was held."""
        return any(fill.sold_raw >= 0.4999 * fill.held_raw for fill in self.sells.values())


def trade_all(rpc: SyncRpc, built: Built, wanted: list[tuple[str, PoolPlan, int]]) -> list[Reality]:
    """What a wallet meets in each pool: token, pool and how much of its money is paid. Nothing stays.

    A wallet that sold no half within an hour sells a day later beside another one, which sells in ten.
    """
    with _undone(rpc):
        return _trade_all(rpc, built, wanted)


def _trade_all(rpc: SyncRpc, built: Built, wanted: list[tuple[str, PoolPlan, int]]) -> list[Reality]:
    trades = [_prepare(rpc, built, *one) for one in wanted]
    others = [_trade_other_sizes(rpc, built, trade) for trade in trades]
    with _undone(rpc):
        _buy_in_one_block(rpc, trades)
        for delay_s in DELAYS_S[:-1]:
            with _undone(rpc):
                _pass(rpc, delay_s)
                _sell_each(rpc, trades, delay_s)
    stuck = [trade for trade in trades if trade.bought_raw and not trade.sold_half()]
    in_ten = [_prepare(rpc, built, one.token, one.pool, one.paid_raw, "in ten") for one in stuck]
    with _undone(rpc):
        _buy_in_one_block(rpc, [*trades, *in_ten])
        _sell_in_ten(rpc, in_ten)
        _sell_each(rpc, trades, DELAYS_S[-1])
    for trade, tenths in zip(stuck, in_ten, strict=True):
        trade.ten = None if trade.sold_half() else tenths.ten
    return [
        Reality(one.paid_raw, one.bought_raw, one.sells, small_loss_bps, impact_bps, refused, one.ten)
        for one, (refused, small_loss_bps, impact_bps) in zip(trades, others, strict=True)
    ]


def _prepare(
    rpc: SyncRpc, built: Built, token: str, pool: PoolPlan, paid_raw: int, manner: str = "at once"
) -> PoolTrade:
    """With a wallet that has all it pays with, and has approved it."""
    wallet = Wallet(rpc, built.contracts, f"numbers {token} {pool.fee_pips} {manner}")
    if pool.quote == "usdg":
        wallet.get_usdg(2 * paid_raw)
    *approvals, _ = wallet.buy_steps(token, _place(pool), paid_raw)
    assert all(wallet.send(step.to, step.data, step.value_wei).ok for step in approvals)
    return PoolTrade(token, pool, paid_raw, wallet)


def _place(pool: PoolPlan) -> PoolSpec:
    return PoolSpec(pool.quote, pool.fee_pips, pool.version)


def _trade_other_sizes(rpc: SyncRpc, built: Built, trade: PoolTrade) -> tuple[bool, int | None, int]:
    """What ``other_sizes`` tells, of a wallet that has not bought yet."""
    pool = trade.pool
    with _undone(rpc):
        bought = trade.wallet.buy(trade.token, pool.quote, pool.fee_pips, trade.paid_raw, pool.version)
    with _undone(rpc):
        return other_sizes(rpc, built, trade.wallet, trade.token, pool, trade.paid_raw, bought)


def _buy_in_one_block(rpc: SyncRpc, trades: list[PoolTrade]) -> None:
    rpc.call("evm_setBlockGasLimit", hex(_BUY_GAS * len(trades)))
    sent = []
    with by_hand(rpc):
        for trade in trades:
            swap = trade.wallet.buy_steps(trade.token, _place(trade.pool), trade.paid_raw)[-1]
            sent += trade.wallet.queue([swap], _BUY_GAS, _MAX_FEE_WEI, 0)
        rpc.call("evm_mine")
    blocks = {rpc.call("eth_getTransactionReceipt", one)["blockNumber"] for one in sent}
    assert len(blocks) == 1, "the buys came into several blocks"
    for trade, one in zip(trades, sent, strict=True):
        trade.bought_raw = trade.wallet.tokens(trade.token) if trade.wallet.receipt(one).ok else None


def _sell_each(rpc: SyncRpc, trades: list[PoolTrade], delay_s: int) -> None:
    """Each of the sales that are compared, as the first one after the wait."""
    for trade in trades:
        for share_bps in (share for after_s, share in _SALES if after_s == delay_s and trade.bought_raw):
            with _undone(rpc):
                held_raw = trade.wallet.tokens(trade.token)
                fill = trade.sell(held_raw * share_bps // 10_000)
            trade.sells[delay_s, share_bps] = replace(fill, held_raw=held_raw)


def _sell_in_ten(rpc: SyncRpc, trades: list[PoolTrade]) -> None:
    """A day passes. A tenth of what each holds is sold at a time, evenly over it. What a sale takes beyond
    its tenth was not sold."""
    held = [trade.wallet.tokens(trade.token) for trade in trades]
    fills: list[list[Fill]] = [[] for _ in trades]
    bought_s, passed_s = _now_s(rpc), 0
    for n in range(10):
        at_s = 13 + n * (DELAYS_S[-1] - 13) // 9
        _pass(rpc, at_s - passed_s, bought_s + at_s)
        passed_s = at_s
        for trade, held_raw, sold in zip(trades, held, fills, strict=True):
            sold.append(trade.sell(held_raw // 10))
    for trade, held_raw, sold in zip(trades, held, fills, strict=True):
        sold_raw = sum(min(fill.sold_raw, held_raw // 10) for fill in sold)
        trade.ten = Fill(sold_raw > 0, sold_raw, sum(fill.back_raw for fill in sold), held_raw)


def _pass(rpc: SyncRpc, seconds: int, until_s: int | None = None) -> None:
    """Mines a block for every number that the real chain counts in so many seconds, the last one at that
    second."""
    numbers, last_s = max(1, seconds // SECONDS_A_NUMBER), until_s or _now_s(rpc) + seconds
    for mined in range(0, numbers - 1, _AT_ONCE):
        # Nearer together than they would be: the node adds the time that it takes itself.
        rpc.call("anvil_mine", hex(min(_AT_ONCE, numbers - 1 - mined)), hex(SECONDS_A_NUMBER - 2))
    rpc.call("evm_setNextBlockTimestamp", last_s)
    rpc.call("evm_mine")


def _now_s(rpc: SyncRpc) -> int:
    return int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)


@contextlib.contextmanager
def _undone(rpc: SyncRpc) -> Iterator[None]:
    snapshot = rpc.call("evm_snapshot")
    yield
    # anvil has lost a transaction sent right after a revert that made its nonce free again.
    rpc.call("evm_mine")
    assert rpc.call("evm_revert", snapshot)
