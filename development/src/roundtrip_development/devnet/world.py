"""The built local chain: built once, cached, and started from the cache."""

import contextlib
import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eth_account import Account

from . import artifacts, setup
from .deploy import COINBASE
from .history import HISTORY_S
from .node import NodeOptions, RunningNode, find_anvil, running
from .sync_rpc import SyncRpc

GENESIS_S = 1_760_000_000
"""The built chain's first timestamp; fixed, so that the same build gives the same chain."""
LENGTH_S = HISTORY_S + 600
"""The greatest length of the built chain: the history, and a second for each block of the set-up."""
_MNEMONIC = "test test test test test test test test test test test junk"
"""The public mnemonic of the local node's own accounts: worth nothing anywhere else."""


@dataclass(frozen=True, slots=True)
class DevnetFolders:
    """``project``: the checkout (contracts, node_modules). ``var``: where generated files go."""

    project: Path
    var: Path


@dataclass(frozen=True, slots=True)
class Built:
    """A built chain: its state on disk and its contents. ``head_s``: its last block's timestamp. ``market``:
    the actors' market, packed."""

    state: Path
    contracts: dict[str, str]
    tokens: dict[str, str]
    accounts: list[str]
    hooks: dict[str, str]
    head_s: int
    market: dict[str, Any]


def build(folders: DevnetFolders, say: Callable[[str], None], genesis_s: int = GENESIS_S) -> Built:
    """The cached chain that begins at ``genesis_s``, built on first use and whenever a contract, a pin or the
    set-up changed."""
    name = _digest(folders.project)
    return _load_or_build(folders, name if genesis_s == GENESIS_S else f"{name}-{genesis_s}", genesis_s, say)


def build_until(folders: DevnetFolders, say: Callable[[str], None], now_s: int) -> Built:
    """The same chain, but its history ends at ``now_s``, or earlier where it is in the cache already."""
    return _load_or_build(folders, dated_name(folders.project), now_s - LENGTH_S, say)


def dated_name(project: Path) -> str:
    """The name of the folder that ``build_until`` fills."""
    return f"{_digest(project)}-dated"


def _load_or_build(folders: DevnetFolders, name: str, genesis_s: int, say: Callable[[str], None]) -> Built:
    folder = folders.var / "devnet" / name
    description = folder / "built.json"
    if not description.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _build(folders, folder, genesis_s, say)
    fields: dict[str, Any] = json.loads(description.read_text())
    return Built(folder / "state.json", **fields)


def _build(folders: DevnetFolders, folder: Path, genesis_s: int, say: Callable[[str], None]) -> None:
    bytecode = artifacts.fetch(folders.var / "artifacts", say)
    with (
        running(find_anvil(folders.project), NodeOptions(timestamp_s=genesis_s)) as node,
        SyncRpc(node.url) as chain,
    ):
        deployed = setup.deploy(chain, bytecode, folders.project / "contracts", say)
        chain.call("evm_mine")
        head = chain.call("eth_getBlockByNumber", "latest", False)
        say("keeping the chain's state")
        state = _unpack(chain.call("anvil_dumpState"))
    _write(folder / "state.json", json.dumps(state))
    fields = {
        "contracts": deployed.contracts,
        "tokens": deployed.tokens,
        "accounts": deployed.accounts,
        "hooks": deployed.hooks,
        "head_s": int(head["timestamp"], 16),
        "market": deployed.market.pack(),
    }
    _write(folder / "built.json", json.dumps(fields, indent=1))


def _unpack(dumped: str) -> dict[str, Any]:
    """The dump without call traces, which are half of it and unused."""
    state: dict[str, Any] = json.loads(gzip.decompress(bytes.fromhex(dumped[2:])))
    for transaction in state.get("transactions", []):
        transaction["info"]["traces"] = []
    return state


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)


def _digest(project: Path) -> str:
    """A hash of everything that the built chain depends on."""
    digest = hashlib.sha256(artifacts.pins_digest().encode())
    contracts = project / "contracts"
    sources = {path for folder in setup.FOLDERS for path in (contracts / folder).rglob("*.vy")}
    sources |= {contracts / source for source in setup.SOURCES}
    for path in sorted([*sources, *Path(__file__).parent.glob("*.py")]):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def start_world(folders: DevnetFolders, built: Built, options: NodeOptions) -> Iterator[RunningNode]:
    """Runs the built chain. Its clock continues where it ended, so that the history keeps its age, or at a
    later ``timestamp_s`` of the options.

    The coinbase is set again, because it is not part of the state.
    """
    continued = replace(options, timestamp_s=max(options.timestamp_s or 0, built.head_s + 1))
    with running(find_anvil(folders.project), continued) as node:
        with SyncRpc(node.url) as chain:
            chain.call("anvil_setCoinbase", COINBASE)
            chain.call("evm_mine")
        yield node


def describe(built: Built, url: str) -> dict[str, Any]:
    """The content of ``devnet.json``: everything a program needs to use the local chain."""
    keys = _private_keys(len(built.accounts))
    return {
        "rpcUrl": url,
        "chainId": 4663,
        "contracts": built.contracts,
        "accounts": [{"address": address, "privateKey": key} for address, key in keys.items()],
        "tokens": built.tokens,
        "hooks": built.hooks,
    }


def _private_keys(count: int) -> dict[str, str]:
    """Private keys by address, along the path that local nodes use."""
    Account.enable_unaudited_hdwallet_features()
    accounts = (Account.from_mnemonic(_MNEMONIC, account_path=f"m/44'/60'/0'/0/{n}") for n in range(count))
    return {account.address.lower(): "0x" + account.key.hex().removeprefix("0x") for account in accounts}


def write_description(folders: DevnetFolders, built: Built, url: str) -> Path:
    """Writes ``devnet.json`` into ``var`` and returns its path."""
    path = folders.var / "devnet.json"
    _write(path, json.dumps(describe(built, url), indent=1) + "\n")
    return path
