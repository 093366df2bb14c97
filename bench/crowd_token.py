"""A local chain with one token that a crowd has passed around: so many transfers, most of them one a
transaction, one in ten a trade on the token's v3 pool, a third as many wallets as transfers.

    PYTHONPATH=src python -m bench.crowd_token [--transfers 10000]

Blocks are two thousand whatever the number, a minute apart, so that fuller blocks are what a busier token
has; those right after the launch hold few. What was made is kept in var/bench-holders: a million transfers
take half an hour, two gigabytes on disk, and six of memory in the node that has them.
"""

import argparse
import hashlib
import json
import mmap
import re
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from roundtrip_development.devnet import world
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, await_receipt, calldata, put_token
from roundtrip_development.devnet.node import NodeOptions, RunningNode
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "var/bench-holders"
SOURCE = PROJECT / "contracts/busy/many_transfers.vy"
BLOCKS, BLOCK_S = 2000, 60
EARLY_BLOCKS, EARLY_ACTIONS = 60, 4
"""Blocks after the launch, and what each holds: twice the launch window, with some twenty trades in it."""
TRANSFERS_A_WALLET = 3
START_S, ANSWER_S = 300.0, 900.0
"""A node with a million transactions reads them for half a minute, and dumps them for one."""
_ACTION_GAS, _BLOCK_GAS = 500_000, 10**9
_FEES = {"maxFeePerGas": hex(20 * 10**9), "maxPriorityFeePerGas": hex(10**9)}
_MONEY_WEI = 4000 * 10**18
"""For all buys: a node's own account has 10,000 eth."""
_SAY_EVERY = 200
_CHUNK = 1 << 24


@dataclass(frozen=True, slots=True)
class CrowdToken:
    """The token and its pool. ``made``: all Transfers it made, the mint and the pool's filling too.
    ``first_number``: the block it was made in, ``last_number``: of the last action; ``acted``: the last
    action's number."""

    token: str
    pool: str
    made: int
    first_number: int
    last_number: int
    acted: int
    head_s: int


# --- making it -------------------------------------------------------------------------------------


@dataclass
class Crowd:
    """Makes the token act."""

    chain: SyncRpc
    built: world.Built
    token: str

    def act(self, first: int, sizes: list[int]) -> None:
        """Actions from number ``first`` on, in blocks that hold so many. Raises RpcFailure."""
        sender, last = self.built.accounts[0], "0x"
        nonce = int(self.chain.call("eth_getTransactionCount", sender, "latest"), 16)
        self.chain.call("evm_setAutomine", False)
        self.chain.call("evm_setBlockGasLimit", hex(_BLOCK_GAS))
        gas = {"from": sender, "to": self.token, "gas": hex(_ACTION_GAS)} | _FEES
        for size in sizes:
            calls: list[tuple[str, tuple[object, ...]]] = []
            for _ in range(size):
                data = calldata("act(uint256,uint256)", first, 1)
                calls.append(("eth_sendTransaction", (gas | {"data": data, "nonce": hex(nonce)},)))
                first, nonce = first + 1, nonce + 1
            last = self.chain.batch(calls)[-1]
            self.chain.call("evm_mine")
        self.chain.call("evm_setAutomine", True)
        receipt = await_receipt(self.chain, last)
        assert receipt["status"] == "0x1", "the last action failed"


def _launched(chain: SyncRpc, built: world.Built, wallets: int) -> tuple[str, str]:
    """The token and its pool, open for trading."""
    deployer, weth = ContractDeployer(chain, built.accounts[0]), built.contracts["weth"]
    chain.call("anvil_setBalance", deployer.account, hex(2 * _MONEY_WEI))
    plan = PoolPlan()
    story = Story("crowd", "", "", extra_types=("uint256",), extra_values=(wallets,), pools=(plan,))
    token = put_token(deployer, built.contracts, story, compile_contract(SOURCE))
    asked = calldata("getPool(address,address,uint24)", token, weth, plan.fee_pips)
    word = chain.call("eth_call", {"to": built.contracts["v3Factory"], "data": asked}, "latest")
    pool = "0x" + word[-40:]
    deployer.send(weth, calldata("deposit()"), _MONEY_WEI)
    deployer.send(weth, calldata("transfer(address,uint256)", token, _MONEY_WEI))
    deployer.send(token, calldata("open_market(address,address)", pool, weth))
    deployer.check_receipts()
    return token, pool


def _sizes(transfers: int) -> list[int]:
    """How many actions each block holds."""
    early = [EARLY_ACTIONS] * EARLY_BLOCKS
    left, blocks = transfers - sum(early), BLOCKS - EARLY_BLOCKS
    return early + [left * (n + 1) // blocks - left * n // blocks for n in range(blocks)]


def _play(chain: SyncRpc, built: world.Built, transfers: int, say: Callable[[str], None]) -> CrowdToken:
    token, pool = _launched(chain, built, transfers // TRANSFERS_A_WALLET)
    chain.call("anvil_setBlockTimestampInterval", BLOCK_S)
    crowd, began, acted = Crowd(chain, built, token), time.monotonic(), 0
    sizes = _sizes(transfers)
    for start in range(0, len(sizes), _SAY_EVERY):
        say(f"{acted:,} of {transfers:,} transfers, {time.monotonic() - began:.0f} s")
        crowd.act(acted + 1, sizes[start : start + _SAY_EVERY])
        acted += sum(sizes[start : start + _SAY_EVERY])
    head = chain.call("eth_getBlockByNumber", "latest", False)
    last = int(head["number"], 16)
    made = _transfers(chain, token, last)
    return CrowdToken(token, pool, len(made), made[0], last, acted, int(head["timestamp"], 16))


def _transfers(chain: SyncRpc, token: str, last: int) -> list[int]:
    """The blocks of all its transfers."""
    found, width = [], 100
    topic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
    for first in range(0, last + 1, width):
        span = {"fromBlock": hex(first), "toBlock": hex(min(first + width - 1, last))}
        logs = chain.call("eth_getLogs", span | {"address": token, "topics": [topic]})
        found += [int(log["blockNumber"], 16) for log in logs]
    return found


# --- keeping it ------------------------------------------------------------------------------------

_GENESIS = rb'\{"header":\{"parentHash":"0x0{64}",.{0,5000}?"withdrawals":null\}'
_DROPPED = re.compile(rb'"traces":\[.*?\],"exit":|,' + _GENESIS + rb"|" + _GENESIS + rb",", re.DOTALL)


def _keep(dumped: str, path: Path) -> None:
    """The state without call traces, which are half of it and unused, and with one first block: a
    node that was started from a state has that state's beside its own. Through files: as a whole it would
    take the machine's memory."""
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    partial = path.with_suffix(".partial")
    with tempfile.TemporaryFile(dir=path.parent) as whole, partial.open("wb") as out:
        for start in range(2, len(dumped), _CHUNK):
            whole.write(unpacking.decompress(bytes.fromhex(dumped[start : start + _CHUNK])))
        whole.write(unpacking.flush())
        with mmap.mmap(whole.fileno(), 0, access=mmap.ACCESS_READ) as text:
            at = 0
            for match in _DROPPED.finditer(text):
                out.write(text[at : match.start()])
                at = match.end()
                if match.group().startswith(b'"traces"'):
                    out.write(b'"traces":[],"exit":')
                elif b'"timestamp":"%s"' % hex(world.GENESIS_S).encode() in match.group():
                    out.write(match.group())
            out.write(text[at:])
    partial.replace(path)


def kept(transfers: int) -> Path:
    """The folder of a chain with so many. Another contract or shape has another, and so has another local
    chain: by its contents, because a changed line of its builder builds it again."""
    built = world.build(world.DevnetFolders(PROJECT, PROJECT / "var"), print)
    blocks = json.loads(built.state.read_bytes())["blocks"]
    devnet = max(blocks, key=lambda block: int(block["header"]["number"], 16))["header"]["stateRoot"]
    shape = (BLOCKS, BLOCK_S, EARLY_BLOCKS, EARLY_ACTIONS, TRANSFERS_A_WALLET, _MONEY_WEI)
    ours = SOURCE.read_bytes() + repr(shape).encode() + devnet.encode()
    return FOLDER / f"{transfers}-{hashlib.sha256(ours).hexdigest()[:12]}"


def build(transfers: int, reuse: bool, say: Callable[[str], None]) -> tuple[world.Built, CrowdToken]:
    """The chain, for ``started``; ``reuse``: an earlier run's, where there is one."""
    built = world.build(world.DevnetFolders(PROJECT, PROJECT / "var"), say)
    folder = kept(transfers)
    state, described = folder / "state.json", folder / "crowd.json"
    if not (reuse and described.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        described.unlink(missing_ok=True)
        with _running(built) as node, SyncRpc(node.url, ANSWER_S) as chain:
            made = _play(chain, built, transfers, say)
            say(f"keeping it; the node holds {node.memory_bytes() >> 20} MB")
            dumped = chain.call("anvil_dumpState")
        _keep(dumped, state)
        described.write_text(json.dumps(asdict(made)))
    found = CrowdToken(**json.loads(described.read_text()))
    return replace(built, state=state, head_s=found.head_s), found


@contextmanager
def _running(built: world.Built) -> Iterator[RunningNode]:
    options = NodeOptions(state=built.state, prune_history=20, start_s=START_S)
    with world.start_world(world.DevnetFolders(PROJECT, PROJECT / "var"), built, options) as node:
        yield node


@contextmanager
def started(built: world.Built) -> Iterator[RunningNode]:
    """The chain, running, as fast as its node can."""
    with _running(built) as node:
        with SyncRpc(node.url) as chain:
            chain.call("anvil_setBlockTimestampInterval", BLOCK_S)
        yield node


def main() -> None:
    """Builds it and tells what is on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transfers", type=int, default=10_000)
    transfers = parser.parse_args().transfers
    began = time.monotonic()
    built, found = build(transfers, False, print)
    print(f"made in {time.monotonic() - began:.0f} s, {built.state.stat().st_size >> 20} MB: {found}")
    began = time.monotonic()
    with started(built) as node:
        print(f"started in {time.monotonic() - began:.1f} s, {node.memory_bytes() >> 20} MB held")


if __name__ == "__main__":
    main()
