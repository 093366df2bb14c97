"""A real geth with the accounts of the local chain, and a proxy that adds the chain's history to it.

geth starts from a genesis made of the local node's dump. Blocks go in over the Engine API, up to the local
chain's height, with its timestamps: geth's own genesis has to be block 0. Logs, receipts, transactions and
older blocks stay with the local node, since geth's blocks are empty. The newest block has the local one's
number, time, producer, PREVRANDAO, base fee and gas limit, but another hash.
"""

import base64
import contextlib
import gzip
import hashlib
import hmac
import http.client
import json
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web

from roundtrip.venues.abi import keccak
from roundtrip_development.devnet.node import CHAIN_ID, die_with_parent, free_port
from roundtrip_development.devnet.sync_rpc import RpcFailure, SyncRpc
from support.faulty_node import Batch, FaultyNode
from support.fixtures import PROJECT

BINARY = PROJECT / "var" / "geth"
"""``make var/geth`` builds it where Go is installed."""
MISSING = "There is no real geth to compare with: var/geth is missing, and only Go can build it."
Json = dict[str, Any]

# Of RLP's empty list and empty string.
_EMPTY_UNCLES = keccak(b"\xc0")
_EMPTY_TRIE = keccak(b"\x80")
_NO_REQUESTS = hashlib.sha256().digest()
_SYSTEM_CONTRACTS = (
    "0x00000961ef480eb55e80d19ad83579a64c007002",
    "0x0000bbddc7ce488642fb579f8b00f3a590007251",
)
"""Of EIP-7002 and EIP-7251: every block calls them, and without code it is invalid."""
_STOP = "0x00"
_BASE_FEE_WEI = 7
"""The lowest that empty blocks come to; each keeps it."""
_BLOCKS_A_REQUEST = 200
_FORKS = (
    "homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg", "istanbul",
    "berlin", "london", "mergeNetsplit",
)  # fmt: skip
_TIMED_FORKS = ("shanghai", "cancun", "prague", "osaka")
_BLOBS = {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716}


@dataclass(frozen=True, slots=True)
class RealGeth:
    """A running geth. ``head`` and ``local_head``: the hash of the newest block there and on the local
    chain. ``start_s``: how long it took to start it and to make its blocks."""

    url: str
    number: int
    head: str
    local_head: str
    start_s: float


@contextlib.contextmanager
def running_geth(rpc: SyncRpc, binary: Path = BINARY) -> Iterator[RealGeth]:
    """Starts geth at the local chain's state and height. Later blocks of the local chain do not reach it.

    Mines a block on the local chain, so that the base fee is the lowest. Raises RpcFailure."""
    started = time.monotonic()
    rpc.call("anvil_setNextBlockBaseFeePerGas", hex(_BASE_FEE_WEI))
    rpc.call("evm_mine")
    local = rpc.call("eth_getBlockByNumber", "latest", False)
    headers = _read_headers(rpc, int(local["number"], 16))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "genesis.json").write_text(json.dumps(make_genesis(rpc, headers[0], local)))
        secret = secrets.token_bytes(32)
        (folder / "secret").write_text(secret.hex())
        _run_init(binary, folder)
        port, engine_port = free_port(), free_port()
        with _running_process(binary, folder, port, engine_port) as log:
            url = f"http://127.0.0.1:{port}"
            _wait_for(url, log)
            engine = _Engine(f"http://127.0.0.1:{engine_port}", secret)
            with SyncRpc(url) as geth, contextlib.closing(engine):
                head = _push_blocks(geth, engine, headers)
                newest = geth.call("eth_getBlockByNumber", "latest", False)
            assert newest["hash"] == head
            same = ("number", "timestamp", "miner", "mixHash", "baseFeePerGas", "gasLimit")
            assert [newest[name] for name in same] == [local[name] for name in same]
            start_s = time.monotonic() - started
            yield RealGeth(url, int(local["number"], 16), head, local["hash"], start_s)


# --- genesis and blocks -----------------------------------------------------------------------------


def make_genesis(rpc: SyncRpc, first: Json, head: Json) -> Json:
    """geth's genesis with the local node's accounts, and the rules of Osaka from the first block on.

    ``first``: the header that block 0 takes its time from. ``head``: where the gas limit comes from."""
    dump = json.loads(gzip.decompress(bytes.fromhex(rpc.call("anvil_dumpState")[2:])))
    accounts = {address: _genesis_account(account) for address, account in dump["accounts"].items()}
    for address in _SYSTEM_CONTRACTS:
        accounts.setdefault(address, {"balance": "0x0", "code": _STOP})
    config: Json = {f"{fork}Block": 0 for fork in _FORKS} | {f"{fork}Time": 0 for fork in _TIMED_FORKS}
    config |= {
        "chainId": CHAIN_ID,
        "terminalTotalDifficulty": 0,
        "blobSchedule": dict.fromkeys(_TIMED_FORKS[1:], _BLOBS),
    }
    return {
        "config": config,
        "alloc": accounts,
        "difficulty": "0x0",
        "timestamp": first["timestamp"],
        "gasLimit": head["gasLimit"],
        "baseFeePerGas": hex(_BASE_FEE_WEI),
        "blobGasUsed": "0x0",
        "excessBlobGas": "0x0",
    }


def _genesis_account(account: Json) -> Json:
    storage = {_word(slot): _word(value) for slot, value in account["storage"].items()}
    nonce = account["nonce"]
    return {
        "balance": account["balance"],
        "nonce": nonce if isinstance(nonce, str) else hex(nonce),
        "code": account["code"],
        "storage": storage,
    }


def _word(value: str) -> str:
    return f"0x{int(value, 16):064x}"


def _read_headers(rpc: SyncRpc, newest: int) -> list[Json]:
    """Headers of the local chain from block 0 on, with timestamps that rise: earlier ones are moved back
    where several blocks have the same."""
    calls: list[tuple[str, tuple[object, ...]]] = [
        ("eth_getBlockByNumber", (hex(number), False)) for number in range(newest + 1)
    ]
    headers = rpc.batch(calls)
    later_s = int(headers[-1]["timestamp"], 16) + 1
    for header in reversed(headers):
        later_s = min(int(header["timestamp"], 16), later_s - 1)
        header["timestamp"] = hex(later_s)
    return headers


def _push_blocks(geth: SyncRpc, engine: "_Engine", headers: list[Json]) -> str:
    """Makes an empty block for every header after the first. Returns the newest block's hash."""
    genesis = geth.call("eth_getBlockByNumber", "0x0", False)
    parent, state = genesis["hash"], genesis["stateRoot"]
    payloads: list[Json] = []
    for header in headers[1:]:
        payloads.append(make_payload(header, parent, state, genesis["gasLimit"]))
        parent = payloads[-1]["blockHash"]
    beacon = "0x" + "0" * 64
    for first in range(0, len(payloads), _BLOCKS_A_REQUEST):
        part = payloads[first : first + _BLOCKS_A_REQUEST]
        results = engine.batch([("engine_newPayloadV4", [payload, [], beacon, []]) for payload in part])
        refused = [result for result in results if result["status"] != "VALID"]
        if refused:
            raise RpcFailure(f"geth refused a block: {refused[0]}")
    state_of_chain = {"headBlockHash": parent, "safeBlockHash": parent, "finalizedBlockHash": parent}
    (result,) = engine.batch([("engine_forkchoiceUpdatedV3", [state_of_chain, None])])
    if result["payloadStatus"]["status"] != "VALID":
        raise RpcFailure(f"geth refused the newest block: {result}")
    return str(parent)


def make_payload(header: Json, parent: str, state: str, gas_limit: str) -> Json:
    """An empty block with the number, time, producer and PREVRANDAO of a header, as
    ``engine_newPayloadV4`` takes it. The state is the parent's."""
    number, time_s = int(header["number"], 16), int(header["timestamp"], 16)
    fields: list[bytes | int] = [
        _bytes(parent), _EMPTY_UNCLES, _bytes(header["miner"]), _bytes(state), _EMPTY_TRIE, _EMPTY_TRIE,
        bytes(256), 0, number, int(gas_limit, 16), 0, time_s, b"", _bytes(header["mixHash"]), bytes(8),
        _BASE_FEE_WEI, _EMPTY_TRIE, 0, 0, bytes(32), _NO_REQUESTS,
    ]  # fmt: skip
    return {
        "parentHash": parent,
        "feeRecipient": header["miner"],
        "stateRoot": state,
        "receiptsRoot": "0x" + _EMPTY_TRIE.hex(),
        "logsBloom": "0x" + bytes(256).hex(),
        "prevRandao": header["mixHash"],
        "blockNumber": hex(number),
        "gasLimit": gas_limit,
        "gasUsed": "0x0",
        "timestamp": hex(time_s),
        "extraData": "0x",
        "baseFeePerGas": hex(_BASE_FEE_WEI),
        "blockHash": "0x" + keccak(_rlp(fields)).hex(),
        "transactions": [],
        "withdrawals": [],
        "blobGasUsed": "0x0",
        "excessBlobGas": "0x0",
    }


def _rlp(fields: list[bytes | int]) -> bytes:
    """The list in recursive-length prefix encoding; numbers without leading zeros."""
    payload = b""
    for value in fields:
        data = value.to_bytes((value.bit_length() + 7) // 8, "big") if isinstance(value, int) else value
        payload += data if len(data) == 1 and data[0] < 0x80 else _rlp_head(0x80, len(data)) + data
    return _rlp_head(0xC0, len(payload)) + payload


def _rlp_head(base: int, size: int) -> bytes:
    if size < 56:
        return bytes([base + size])
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([base + 55 + len(length)]) + length


def _bytes(hexes: str) -> bytes:
    return bytes.fromhex(hexes[2:])


class _Engine:
    """A blocking client of the Engine API. ``secret``: of the tokens that it signs (HS256)."""

    def __init__(self, url: str, secret: bytes) -> None:
        parts = urlsplit(url)
        self._secret = secret
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def batch(self, calls: list[tuple[str, list[object]]]) -> list[Json]:
        """Raises RpcFailure: a call was refused."""
        body = json.dumps(
            [{"jsonrpc": "2.0", "id": n, "method": m, "params": p} for n, (m, p) in enumerate(calls)]
        )
        headers = {"content-type": "application/json", "authorization": f"Bearer {self._token()}"}
        self._connection.request("POST", "/", body, headers)
        raw = self._connection.getresponse().read()
        try:
            answers = json.loads(raw)
        except ValueError:
            raise RpcFailure(raw.decode(errors="replace")[:300]) from None
        for answer in answers:
            if "error" in answer:
                raise RpcFailure(f"{calls[answer['id']][0]}: {answer['error']}")
        return [answer["result"] for answer in sorted(answers, key=lambda a: int(a["id"]))]

    def _token(self) -> str:
        """A JSON web token that was issued now."""
        parts = ({"alg": "HS256", "typ": "JWT"}, {"iat": int(time.time())})
        signed = b".".join(_base64(json.dumps(part).encode()) for part in parts)
        mac = hmac.new(self._secret, signed, hashlib.sha256).digest()
        return (signed + b"." + _base64(mac)).decode()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


# --- the process ------------------------------------------------------------------------------------


def _run_init(binary: Path, folder: Path) -> None:
    command = [str(binary), "--datadir", str(folder / "data"), "--state.scheme", "hash", "init"]
    done = subprocess.run([*command, str(folder / "genesis.json")], capture_output=True, check=False)
    if done.returncode != 0:
        raise RpcFailure(f"geth took no genesis: {_tail(done.stderr)}")


@contextlib.contextmanager
def _running_process(binary: Path, folder: Path, port: int, engine_port: int) -> Iterator[Path]:
    """Yields the file of its log."""
    command = [
        str(binary), "--datadir", str(folder / "data"), "--networkid", str(CHAIN_ID), "--syncmode", "full",
        "--gcmode", "archive", "--state.scheme", "hash", "--cache", "256", "--ipcdisable", "--nodiscover",
        "--maxpeers", "0", "--nat", "none", "--port", "0",
        "--http", "--http.addr", "127.0.0.1", "--http.port", str(port), "--http.api", "eth,net,debug,web3",
        "--authrpc.addr", "127.0.0.1", "--authrpc.port", str(engine_port),
        "--authrpc.jwtsecret", str(folder / "secret"),
    ]  # fmt: skip
    log = folder / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=written,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    try:
        yield log
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(url: str, log: Path, start_s: float = 30.0) -> None:
    deadline = time.monotonic() + start_s
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), SyncRpc(url) as geth:
            if int(geth.call("eth_chainId"), 16) == CHAIN_ID:
                return
        time.sleep(0.02)
    raise RpcFailure(f"geth did not answer within {start_s:.0f} seconds: {_tail(log.read_bytes())}")


def _tail(text: bytes) -> str:
    return text.decode(errors="replace").strip()[-500:]


# --- the proxy --------------------------------------------------------------------------------------

_HISTORY = frozenset(
    {
        "eth_getLogs",
        "eth_getTransactionByHash",
        "eth_getTransactionReceipt",
        "eth_getBlockReceipts",
        "eth_getBlockByNumber",
        "eth_getBlockByHash",
        "eth_getRawTransactionByHash",
    }
)
_HEAD_BLOCKS = ("latest", "pending", "safe", "finalized")


class GethNode(FaultyNode):
    """geth at the head, the local node for everything before. The head has geth's hash on both sides."""

    def __init__(self, geth: RealGeth, local_url: str) -> None:
        super().__init__(geth.url)
        self._geth, self._local_url = geth, local_url

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = json.loads(body)
        calls: Batch = [asked] if isinstance(asked, dict) else asked
        past = [call for call in calls if self._is_history(call)]
        if not past:
            return _respond(await self._post(self._geth.url, body))
        answers: Batch = json.loads(await self._ask_local(past))
        at_head = [call for call in calls if call not in past]
        if at_head:
            answers += json.loads(await self._post(self._geth.url, json.dumps(at_head).encode()))
        by_id = {answer["id"]: answer for answer in answers}
        ordered = [by_id[call["id"]] for call in calls]
        return _respond(json.dumps(ordered[0] if isinstance(asked, dict) else ordered).encode())

    def _is_history(self, call: Json) -> bool:
        if call["method"] not in _HISTORY:
            return False
        if not call["method"].startswith("eth_getBlockBy"):
            return True
        head = (*_HEAD_BLOCKS, self._geth.head, hex(self._geth.number))
        return call["params"][0] not in head

    async def _ask_local(self, calls: Batch) -> bytes:
        ours, theirs = self._geth.head.encode(), self._geth.local_head.encode()
        body = json.dumps(calls).encode().replace(ours, theirs)
        return (await self._post(self._local_url, body)).replace(theirs, ours)

    async def _post(self, url: str, body: bytes) -> bytes:
        headers, timeout = {"content-type": "application/json"}, aiohttp.ClientTimeout(60)
        async with self._session.post(url, data=body, headers=headers, timeout=timeout) as response:
            return await response.read()


def _respond(raw: bytes) -> web.Response:
    return web.Response(body=raw, content_type="application/json")
