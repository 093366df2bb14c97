"""The built chain's nine days: what was traded, by whom, and that every build plays the same."""

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eth_utils.crypto import keccak

from roundtrip_development.devnet import artifacts, live_actors, setup
from roundtrip_development.devnet.actors import DUMPER, FUNDER, SERIAL, SNIPERS, ActorMarket
from roundtrip_development.devnet.history import HISTORY_S
from roundtrip_development.devnet.node import NodeOptions, find_anvil, free_port, running
from roundtrip_development.devnet.sync_rpc import RpcFailure, SyncRpc
from roundtrip_development.devnet.trading import DevnetTrader, actor_address
from roundtrip_development.devnet.world import GENESIS_S, LENGTH_S, Built, DevnetFolders, start_world
from support.commands import running_command
from support.wallet import calldata

EVENTS = {
    "launch": "TokenLaunched(address,address,address,address,uint256,uint256)",
    "curve buy": "CurveBuy(address,address,uint256,uint256,uint256,uint256)",
    "curve sell": "CurveSell(address,address,uint256,uint256,uint256,uint256)",
    "v3 swap": "Swap(address,address,int256,int256,uint160,uint128,int24)",
    "v4 swap": "Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)",
    "sniped": "SnipeTaxCharged(address,uint256)",
    "graduation": "PoolGraduated(address,uint256,uint256,uint256)",
}
TRADES = ("curve buy", "curve sell", "v3 swap", "v4 swap")


def topic(name: str) -> str:
    return "0x" + keccak(text=EVENTS[name]).hex()


def address_at(word: str) -> str:
    return "0x" + word[-40:]


class BuiltHistory:
    """The built chain's logs and transfers, up to where its history ended."""

    def __init__(self, chain: SyncRpc, built: Built) -> None:
        self.chain, self.built = chain, built
        samples = {address.lower() for address in built.tokens.values()}
        logs = {name: self._logs(name) for name in EVENTS}
        launched = {address_at(log["topics"][1]): log for log in logs["launch"]}
        self.first_sample = min(int(launched[a]["blockNumber"], 16) for a in samples & launched.keys())
        self.logs = {name: [log for log in found if self._is_past(log)] for name, found in logs.items()}
        self.launches = {token: log for token, log in launched.items() if token not in samples}

    def _logs(self, name: str) -> list[dict[str, Any]]:
        asked = {"fromBlock": "0x0", "toBlock": "latest", "topics": [topic(name)]}
        found: list[dict[str, Any]] = self.chain.call("eth_getLogs", asked)
        return found

    def _is_past(self, log: dict[str, Any]) -> bool:
        return int(log["blockNumber"], 16) < self.first_sample

    def block(self, number: str) -> dict[str, Any]:
        found: dict[str, Any] = self.chain.call("eth_getBlockByNumber", number, True)
        return found

    def time_s(self, log: dict[str, Any]) -> int:
        return int(self.block(log["blockNumber"])["timestamp"], 16)


@pytest.fixture(scope="module")
def past(chain_url: str, built: Built) -> Iterator[BuiltHistory]:
    with SyncRpc(chain_url) as chain:
        yield BuiltHistory(chain, built)


def test_there_are_about_thirty_launches_and_five_hundred_trades(past: BuiltHistory) -> None:
    assert len(past.launches) == 30
    assert 450 <= sum(len(past.logs[name]) for name in TRADES) <= 600
    assert all(len(past.logs[name]) >= 15 for name in TRADES)
    assert 2 <= len(past.logs["graduation"]) <= 8


def test_trading_is_spread_over_nine_days(past: BuiltHistory) -> None:
    trades = [log for name in TRADES for log in past.logs[name]]
    by_day = Counter((past.time_s(log) - GENESIS_S) // 86_400 for log in trades)
    assert sorted(by_day) == list(range(9))
    assert min(by_day.values()) >= 15
    assert past.built.head_s - GENESIS_S - HISTORY_S in range(3600)
    # Whose history is to end by a certain time begins so much earlier.
    assert past.built.head_s - GENESIS_S <= LENGTH_S


def test_a_launch_had_its_snipers_within_seconds_and_one_wallet_paid_for_them(past: BuiltHistory) -> None:
    snipers = {actor_address(name): name for name in SNIPERS}
    buys: dict[str, list[int]] = {}
    for log in past.logs["curve buy"]:
        if address_at(log["topics"][1]) in snipers:
            buys.setdefault(log["address"], []).append(past.time_s(log))
    assert len(buys) >= 3
    launched_s = {address_at(log["topics"][2]): past.time_s(log) for log in past.launches.values()}
    for curve, times in buys.items():
        assert len(times) == 3
        assert all(0 <= at_s - launched_s[curve] <= 4 for at_s in times)
    assert past.logs["sniped"]
    givers: dict[str, set[str]] = {name: set() for name in SNIPERS}
    for number in range(1, past.first_sample):
        for sent in past.block(hex(number))["transactions"]:
            if sent["to"] in snipers:
                givers[snipers[sent["to"]]].add(sent["from"])
    assert all(found == {actor_address(FUNDER)} for found in givers.values())


def test_the_serial_launcher_never_graduated(past: BuiltHistory) -> None:
    graduated = {address_at(log["topics"][1]) for log in past.logs["graduation"]}
    serial = {
        token for token, log in past.launches.items() if address_at(log["topics"][3]) == actor_address(SERIAL)
    }
    assert len(serial) == 6
    assert not serial & graduated


def test_the_dumping_launcher_holds_nothing_of_its_token(past: BuiltHistory) -> None:
    dumper = actor_address(DUMPER)
    ((token, log),) = (
        (token, log) for token, log in past.launches.items() if address_at(log["topics"][3]) == dumper
    )
    call = {"to": token, "data": calldata("balanceOf(address)", dumper)}
    assert int(past.chain.call("eth_call", call, "latest"), 16) == 0
    curve = address_at(log["topics"][2])
    sold = [s for s in past.logs["curve sell"] if s["address"] == curve and dumper[2:] in s["topics"][1]]
    assert len(sold) == 1


def test_samples_are_traded_by_nobody_else(past: BuiltHistory) -> None:
    """No actor ever sends anything to a sample token."""
    samples, traders = set(past.built.tokens.values()), {actor_address(f"trader {n}") for n in range(16)}
    head = int(past.chain.call("eth_blockNumber"), 16)
    for number in range(past.first_sample, head + 1):
        for sent in past.block(hex(number))["transactions"]:
            assert sent["from"] not in traders
            assert sent["from"] in past.built.accounts or sent["to"] not in samples


def test_another_build_plays_the_same_history(places: DevnetFolders, past: BuiltHistory) -> None:
    """Up to where the samples begin: the same block hash, so the same everything before it."""
    bytecode = artifacts.fetch(places.var / "artifacts", print)
    options = NodeOptions(timestamp_s=GENESIS_S)
    with running(find_anvil(places.project), options) as node, SyncRpc(node.url) as chain:
        setup.set_up(chain, bytecode, places.project / "contracts", print)
        head = chain.call("eth_getBlockByNumber", "latest", False)
    assert past.block(head["number"])["hash"] == head["hash"]


@pytest.mark.parametrize("block_time_s", [None, 0.1, 1.0])
def test_the_clock_goes_on_where_the_history_ended(
    places: DevnetFolders, built: Built, block_time_s: float | None
) -> None:
    options = NodeOptions(state=built.state, block_time_s=block_time_s)
    with start_world(places, built, options) as node, SyncRpc(node.url) as chain:
        assert 0 < head_s(chain) - built.head_s < 30
        snapshot = chain.call("evm_snapshot")
        later_s = head_s(chain) + 86_400
        chain.call("evm_setNextBlockTimestamp", later_s)
        chain.call("evm_mine")
        assert later_s <= head_s(chain) < later_s + 30
        chain.call("evm_revert", snapshot)
        chain.call("evm_mine")
        assert 0 < head_s(chain) - built.head_s < 60


@pytest.mark.parametrize("block_time_s", [None, 0.1])
def test_after_days_of_standing_still_the_clock_is_that_of_the_start(
    places: DevnetFolders, built: Built, block_time_s: float | None
) -> None:
    now_s = built.head_s + 5 * 86_400
    options = NodeOptions(state=built.state, block_time_s=block_time_s, timestamp_s=now_s)
    with start_world(places, built, options) as node, SyncRpc(node.url) as chain:
        assert 0 <= head_s(chain) - now_s < 30
        chain.call("evm_mine")
        assert 0 <= head_s(chain) - now_s < 60
    # It never goes back.
    options = NodeOptions(state=built.state, timestamp_s=built.head_s - 86_400)
    with start_world(places, built, options) as node, SyncRpc(node.url) as chain:
        assert 0 < head_s(chain) - built.head_s < 30


def head_s(chain: SyncRpc) -> int:
    return int(chain.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)


def test_actors_trade_on_the_running_chain_and_stop(places: DevnetFolders, built: Built) -> None:
    options = NodeOptions(state=built.state, block_time_s=0.1)
    with start_world(places, built, options) as node, SyncRpc(node.url) as chain:
        first = int(chain.call("eth_blockNumber"), 16)
        with live_actors.trading(node.url, built, pause_s=0.05):
            assert await_trades(chain, first, 5) >= 5
        # What was sent before the end is mined first.
        deadline = time.monotonic() + 20
        while int(chain.call("txpool_status")["pending"], 16) and time.monotonic() < deadline:
            time.sleep(0.01)
        stopped = trades_since(chain, first)
        time.sleep(1)
        assert trades_since(chain, first) == stopped


def test_a_failing_step_is_told_once_and_ends_nothing(
    places: DevnetFolders, built: Built, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def broken(self: object, market: ActorMarket, step: object) -> None:
        tried.append(step)
        raise RpcFailure("out of order")

    monkeypatch.setattr(DevnetTrader, "perform", broken)
    with (
        start_world(places, built, NodeOptions(state=built.state)) as node,
        live_actors.trading(node.url, built, pause_s=0.001),
    ):
        deadline = time.monotonic() + 10
        while len(tried) < 20 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert len(tried) >= 20
    assert capsys.readouterr().out.count("out of order") == 1


def test_the_command_lets_actors_trade_until_it_is_interrupted(built: Built, tmp_path: Path) -> None:
    shutil.copytree(built.state.parent, tmp_path / "devnet" / built.state.parent.name)
    port = free_port()
    environment = {**os.environ, "ROUNDTRIP_VAR": str(tmp_path), "ROUNDTRIP_RPC_PORT": str(port)}
    command = ["devnet", "--actors", "--block-time-s", "0.1", "--genesis", str(GENESIS_S)]
    with running_command(environment, *command) as process:
        assert process.stdout is not None
        assert "The local chain is at" in process.stdout.readline()
        with SyncRpc(f"http://127.0.0.1:{port}") as chain:
            assert await_trades(chain, int(chain.call("eth_blockNumber"), 16), 1) >= 1
        process.send_signal(signal.SIGINT)
        left, _ = process.communicate(timeout=20)
        assert (process.returncode, left) == (0, "")


def trades_since(chain: SyncRpc, first: int) -> int:
    topics = [[topic(name) for name in TRADES]]
    asked = {"fromBlock": hex(first), "toBlock": "latest", "topics": topics}
    return len(chain.call("eth_getLogs", asked))


def await_trades(chain: SyncRpc, first: int, wanted: int) -> int:
    deadline = time.monotonic() + 20
    while trades_since(chain, first) < wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    return trades_since(chain, first)
