"""The built chain's whole past, read log by log, and held against the node's own counts, against each
transaction's transfers and against what positions really cost."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from roundtrip.config.networks import contracts_from
from roundtrip.domain.base.events import (
    CurveTraded,
    Event,
    LaunchedToken,
    LiquidityMoved,
    PoolOpened,
    PositionMoved,
    Swapped,
    Transferred,
)
from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.domain.check.ticks import amounts
from roundtrip.venues.base import Log
from roundtrip.venues.decode import Decoder
from roundtrip_development.devnet.deploy import ContractDeployer
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.wallet import calldata
from unit.venues import logs
from unit.venues.logs import Shape

SENT_BY: dict[Shape, str | None] = {
    logs.V3_CREATED: "v3Factory",
    logs.V3_INITIALIZE: None,
    logs.V3_SWAP: None,
    logs.V3_MINT: None,
    logs.V3_BURN: None,
    logs.V3_INCREASED: "v3PositionManager",
    logs.V3_DECREASED: "v3PositionManager",
    logs.V4_INITIALIZE: "v4PoolManager",
    logs.V4_SWAP: "v4PoolManager",
    logs.V4_MODIFY: "v4PoolManager",
    logs.LAUNCHED: "launchpadFactory",
    logs.CURVE_BUY: None,
    logs.CURVE_SELL: None,
    logs.BUYBACK: None,
    logs.SWEPT: "launchpadFactory",
    logs.GRADUATED: "launchpadFactory",
    logs.FORCE_SWEPT: "launchpadFactory",
    logs.HOOK_FEE: "launchpadHook",
    logs.V1_LAUNCHED: "launchpadV1Factories",
    logs.TRANSFER: None,
    logs.EXECUTING: None,
    logs.AGGREGATOR: None,
    logs.OPERATION: None,
}
"""Every event that is decoded, and the key in ``built.contracts`` of the contract that logs it; None: any
contract."""

NEVER = {logs.V3_BURN, logs.V3_DECREASED, logs.BUYBACK, logs.EXECUTING, logs.AGGREGATOR, logs.OPERATION}
"""None of these happened on the built chain before the tests."""


@dataclass
class DecodedTransaction:
    """One transaction: its logs, each with its event; None: not decoded."""

    decoded: list[tuple[Log, Event | None]] = field(default_factory=list)

    def flow(self, holder: str, token: str) -> int:
        """The net amount that the transfers brought to an address."""
        moves = [
            event for _, event in self.decoded if isinstance(event, Transferred) and event.token == token
        ]
        return sum(move.amount_raw * ((move.recipient == holder) - (move.sender == holder)) for move in moves)


@dataclass
class BuiltTransactions:
    """The built chain's transactions in their order, its pools, and each pool's sqrtPriceX96 before
    every one of its liquidity's moves."""

    transactions: list[DecodedTransaction]
    pools: dict[str, PoolOpened]
    moves: list[tuple[DecodedTransaction, LiquidityMoved, int]]

    def list_events(self) -> list[tuple[Log, Event]]:
        return [(log, event) for one in self.transactions for log, event in one.decoded if event is not None]


def log_of(raw: dict[str, str]) -> Log:
    return Log(raw["address"].lower(), tuple(raw["topics"]), bytes.fromhex(raw["data"][2:]))  # type: ignore[arg-type]


def read(chain: SyncRpc, built: Built) -> BuiltTransactions:
    """Everything since the chain's first block. Prices are read off the words of the logs themselves."""
    decoder = Decoder(contracts_from(built.contracts))
    by_tx: defaultdict[str, DecodedTransaction] = defaultdict(DecodedTransaction)
    past, prices = BuiltTransactions([], {}, []), {}
    for raw in chain.call("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"}):
        log = log_of(raw)
        event, transaction = decoder(log), by_tx[raw["transactionHash"]]
        transaction.decoded.append((log, event))
        topic, words = log.topics[0], [log.data[at : at + 32] for at in range(0, len(log.data), 32)]
        if topic == logs.V3_INITIALIZE.topic:
            prices[str(log.address)] = int.from_bytes(words[0], "big")
        elif topic == logs.V4_INITIALIZE.topic:
            prices[log.topics[1]] = int.from_bytes(words[3], "big")
        elif topic in (logs.V3_SWAP.topic, logs.V4_SWAP.topic):
            at = log.topics[1] if topic == logs.V4_SWAP.topic else str(log.address)
            prices[at] = int.from_bytes(words[2], "big")
        if isinstance(event, PoolOpened):
            past.pools[event.at] = event
        if isinstance(event, LiquidityMoved):
            past.moves.append((transaction, event, prices[event.at]))
    past.transactions = list(by_tx.values())
    return past


@pytest.fixture(scope="module")
def past(chain_url: str, built: Built) -> Iterator[BuiltTransactions]:
    with SyncRpc(chain_url) as chain:
        yield read(chain, built)


@pytest.mark.parametrize("shape", SENT_BY, ids=lambda shape: f"{shape.name} {len(shape.types)}")
def test_every_log_of_an_event_is_read(
    past: BuiltTransactions, chain_url: str, built: Built, shape: Shape
) -> None:
    """As many as the node counts by topic and sender, but for those with another number of topics."""
    wanted: dict[str, object] = {"fromBlock": "0x0", "toBlock": "latest", "topics": [shape.topic]}
    sender = SENT_BY[shape]
    if sender is not None:
        wanted["address"] = built.contracts[sender]
    with SyncRpc(chain_url) as chain:
        counted = [
            log for log in chain.call("eth_getLogs", wanted) if len(log["topics"]) == 1 + len(shape.indexed)
        ]
    found = [
        event
        for log, event in past.list_events()
        if log.topics[0] == shape.topic and len(log.topics) == 1 + len(shape.indexed)
    ]
    assert len(found) == len(counted)
    assert bool(found) is (shape not in NEVER)


def test_all_known_topics_are_read_and_nft_transfers_are_a_position_managers(
    past: BuiltTransactions, built: Built
) -> None:
    decoder = Decoder(contracts_from(built.contracts))
    topics = {shape.topic for shape in SENT_BY}
    assert topics == decoder.topics
    assert {log.topics[0] for log, _ in past.list_events()} <= topics
    unread = [
        log
        for transaction in past.transactions
        for log, event in transaction.decoded
        if event is None and log.topics[0] in topics
    ]
    assert unread == []
    moved = [log for log, event in past.list_events() if isinstance(event, PositionMoved)]
    assert {(log.topics[0], len(log.topics)) for log in moved} == {(logs.TRANSFER.topic, 4)}
    managers = {built.contracts["v3PositionManager"], built.contracts["v4PositionManager"]}
    assert {str(log.address) for log in moved} == managers


def test_every_pool_that_swaps_or_is_filled_was_opened_before(past: BuiltTransactions) -> None:
    known: set[str] = set()
    for _, event in past.list_events():
        if isinstance(event, PoolOpened):
            assert event.at not in known
            known.add(event.at)
        elif isinstance(event, Swapped | LiquidityMoved):
            assert event.at in known
    assert {pool.kind for pool in past.pools.values()} == {"amm_v3", "amm_v4", "launchpad_pool"}


def test_what_a_v3_swap_tells_is_what_the_transfers_moved(past: BuiltTransactions) -> None:
    compared = 0
    for transaction in past.transactions:
        told: Counter[tuple[str, int]] = Counter()
        for _, event in transaction.decoded:
            # Only v3's logs have a recipient.
            if isinstance(event, Swapped) and event.recipient is not None:
                told[event.at, 0] += event.amount0
                told[event.at, 1] += event.amount1
        for (at, side), amount in told.items():
            pool = past.pools[at]
            assert transaction.flow(at, (pool.currency0, pool.currency1)[side]) == amount
            compared += 1
    assert compared > 50


def test_a_v4_swap_is_the_pools_view(past: BuiltTransactions) -> None:
    """What was paid in got cheaper, what was paid out dearer: the price after the swap tells which."""
    prices: dict[str, int] = {}
    compared = 0
    for log, event in past.list_events():
        if isinstance(event, PoolOpened) and event.kind != "amm_v3":
            prices[event.at] = int.from_bytes(log.data[96:128], "big")
        if isinstance(event, Swapped) and event.recipient is None:
            assert (event.amount0 > 0) is (event.sqrt_price_x96 < prices[event.at])
            assert (event.amount0 > 0) is not (event.amount1 > 0)
            prices[event.at] = event.sqrt_price_x96
            compared += 1
    assert compared > 20


def test_what_a_curve_tells_is_what_the_transfers_moved(past: BuiltTransactions) -> None:
    curves = {
        event.at: event
        for _, event in past.list_events()
        if isinstance(event, LaunchedToken) and event.generation == 2
    }
    compared = 0
    for transaction in past.transactions:
        told: Counter[str] = Counter()
        for _, event in transaction.decoded:
            if isinstance(event, CurveTraded):
                told[event.at] += -event.token_raw if event.buys else event.token_raw
        if any(isinstance(event, LaunchedToken) for _, event in transaction.decoded):
            continue  # The curve's first tokens come in the same transaction.
        for at, amount in told.items():
            assert transaction.flow(at, curves[at].token) == amount
            compared += 1
    assert compared > 300


def test_v3_liquidity_costs_what_the_formulas_say(past: BuiltTransactions) -> None:
    # Only v3's logs have amounts.
    mints = [(move, price) for _, move, price in past.moves if move.amount0 is not None]
    assert len(mints) > 30
    for move, price in mints:
        found = amounts(price, move.tick_lower, move.tick_upper, move.liquidity_delta)
        assert found == (move.amount0, move.amount1)


def test_v4_liquidity_costs_what_the_formulas_say(past: BuiltTransactions, built: Built) -> None:
    """As the transfers to the pool manager tell; eth moves without one."""
    manager = built.contracts["v4PoolManager"]
    moves = [one for one in past.moves if one[1].amount0 is None]
    compared = 0
    for transaction, move, price in moves:
        pool = past.pools[move.at]
        found = amounts(price, move.tick_lower, move.tick_upper, move.liquidity_delta)
        for currency, amount in zip((pool.currency0, pool.currency1), found, strict=True):
            if currency != ZERO_ADDRESS:
                assert transaction.flow(manager, currency) == amount
                compared += 1
    assert compared > len(moves) > 20


def test_v3_liquidity_that_is_taken_away_gives_what_the_formulas_say(
    rpc: SyncRpc, built: Built, past: BuiltTransactions
) -> None:
    """A third of a real position, by its owner."""
    positions = built.contracts["v3PositionManager"]
    transaction, move, _ = next(one for one in past.moves if one[1].owner == positions)
    minted = next(log for log, _ in transaction.decoded if log.address == positions and len(log.topics) == 4)
    owner, number = "0x" + minted.topics[2][26:], int(minted.topics[3], 16)
    taken = move.liquidity_delta // 3
    data = calldata(
        "decreaseLiquidity((uint256,uint128,uint256,uint256,uint256))", (number, taken, 0, 0, 2**40)
    )
    rpc.call("anvil_impersonateAccount", owner)
    rpc.call("anvil_setBalance", owner, hex(10**18))
    wallet = ContractDeployer(rpc, owner)
    wallet.receipt(wallet.send(positions, data))
    rpc.call("anvil_stopImpersonatingAccount", owner)
    _, burnt, price = read(rpc, built).moves[-1]
    assert burnt.at == move.at
    assert burnt.liquidity_delta == -taken
    assert burnt.amount0 is not None
    assert burnt.amount0 < 0
    found = amounts(price, move.tick_lower, move.tick_upper, -taken)
    assert (burnt.amount0, burnt.amount1) == found
