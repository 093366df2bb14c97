"""A chain made up from a seed, asked like a node: linked blocks, logs, true blooms; forks, limits and lies.

Whatever is asked for by number is of the chain as it is then; blocks that a fork put away are still known by
their hash. Everything is the same for the same seed and the same steps.
"""

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from eth_utils.crypto import keccak

from roundtrip.chain.rpc.client import NO_ANSWER, Meter, RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault
from roundtrip.venues.base import Log

Answers = list[Any]
"""A batch's answers as JSON has them, or RpcError; None: null."""
Twist = Callable[[Sequence[RpcCall], Answers], None]
FIRST_TIME_S = 1_760_000_000
RANGE_TOO_WIDE = RpcError(code=-32000, message="block range is too wide")
PAST_THE_HEAD = RpcError(code=-32000, message="invalid block range params")
CHAIN_SENDER = "0x00000000000000000000000000000000000a4b05"
CHAINS_OWN_TYPES = (0x64, 0x68, 0x69)
"""A deposit, an automatic retry, a retryable ticket: they carry no signature."""
BLOCKS_PER_SECOND = 4
"""Of a Nitro chain."""
TOO_MANY_LOGS = RpcError(code=-32005, message="query returned more than 10000 results")


class ScriptedChain:
    """``blocks``: so many are made at once, with logs of up to ``most_logs`` a block. Number 0 has none.
    ``words``: topics are drawn from so many; 0: nearly each is new.

    ``twist``: changes a batch's answers in place before they are given. ``before``: awaited with the calls
    before each answer; it may wait or raise. ``most_blocks`` and ``most_found``: the node gives no logs of
    more blocks, or no more logs, at once. ``asked``: every batch so far.

    ``nitro``: as a Nitro node without its parent chain. Several blocks have the same second, each block
    begins with a transaction of the chain's own and ends with one from the parent chain, logs past the newest
    block are refused, and no block is safe or finalized.
    """

    def __init__(
        self, seed: int, blocks: int = 20, most_logs: int = 6, words: int = 0, nitro: bool = False
    ) -> None:
        self._random = random.Random(seed)
        self._nitro = nitro
        self._salt = seed
        self._most_logs = most_logs
        self._addresses = [self._hex(20) for _ in range(4)]
        self._words = [self._hex(32) for _ in range(words)]
        self._signatures = [self._hex(32) for _ in range(3)]
        self.blocks: list[dict[str, Any]] = []
        self.logs: list[list[dict[str, Any]]] = []
        self._by_hash: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {}
        self.twist: Twist | None = None
        self.before: Callable[[Sequence[RpcCall]], Awaitable[None]] | None = None
        self.most_blocks: int | None = None
        self.most_found: int | None = None
        self.asked: list[list[RpcCall]] = []
        self.mine()
        self.grow(blocks - 1)

    @property
    def last(self) -> int:
        """The newest block's number."""
        return len(self.blocks) - 1

    def hash_of(self, number: int) -> str:
        found: str = self.blocks[number]["hash"]
        return found

    def grow(self, count: int) -> None:
        """``count`` blocks more, with what the seed says."""
        for _ in range(count):
            transactions: list[list[Log]] = []
            left = self._random.randrange(self._most_logs + 1)
            while left > 0:
                emitted = self._random.randrange(min(left, 3) + 1)
                transactions.append([self._log() for _ in range(emitted)])
                left -= max(1, emitted)
            self.mine(*transactions)

    def mine(self, *transactions: Sequence[Log], sender: str | None = None, to: str | None = None) -> int:
        """One block: for each transaction its logs. Its number."""
        number = len(self.blocks)
        parent = self.blocks[-1]["hash"] if self.blocks else "0x" + "00" * 32
        if self._nitro:
            transactions = ((), *transactions, ())
        made = [self._transaction(number, place, sender, to) for place in range(len(transactions))]
        if self._nitro:
            made[0] |= {
                "from": CHAIN_SENDER,
                "to": CHAIN_SENDER,
                "value": "0x0",
                "nonce": "0x0",
                "type": "0x6a",
            }
            made[0] |= {"gas": "0x0", "gasPrice": "0x0", "v": "0x0", "r": "0x0", "s": "0x0"}
            own_type = CHAINS_OWN_TYPES[number % len(CHAINS_OWN_TYPES)]
            made[-1] |= {"type": hex(own_type), "nonce": "0x0", "to": self._hex(20), "value": hex(10**18)}
        bloom = bytearray(256)
        for log in (log for logs in transactions for log in logs):
            for item in (log.address, *log.topics):
                set_bits(bloom, bytes.fromhex(item[2:]))
        block = {
            "number": hex(number),
            "parentHash": parent,
            "timestamp": hex(FIRST_TIME_S + (number // BLOCKS_PER_SECOND if self._nitro else number)),
            "logsBloom": "0x" + bloom.hex(),
            "gasUsed": "0x0",
            "extraData": self._hex(8),
        }
        block["hash"] = "0x" + keccak(msgspec.json.encode([self._salt, block, made])).hex()
        block["transactions"] = [{**one, "blockHash": block["hash"]} for one in made]
        pairs = [(made[place], log) for place, logs in enumerate(transactions) for log in logs]
        logs = [_as_json(log, index, one, block) for index, (one, log) in enumerate(pairs)]
        self.blocks.append(block)
        self.logs.append(logs)
        self._by_hash[block["hash"]] = (block, logs)
        return number

    def fork(self, at: int, blocks: int | None = None) -> None:
        """Block ``at`` and those after it give way to so many others; by default to as many."""
        gone = len(self.blocks) - at
        del self.blocks[at:], self.logs[at:]
        self._salt += 1
        self.grow(gone if blocks is None else blocks)

    # --- asked ----------------------------------------------------------------------------------------

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        """As ``rpc.Node.batch``."""
        self.asked.append(list(calls))
        if self.before is not None:
            await self.before(calls)
        answers = [copy.deepcopy(self._answer(call)) for call in calls]
        if self.twist is not None:
            self.twist(calls, answers)
        found = [NO_ANSWER if answer is None else _raw(answer) for answer in answers]
        if all(answer is NO_ANSWER for answer in found):
            raise NodeFault("the node answered none of the calls")
        return found

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        """As ``rpc.Node.batches``."""
        found = await asyncio.gather(*(self.batch(group) for group in groups), return_exceptions=True)
        answers: list[list[msgspec.Raw | RpcError] | NodeFault] = []
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, NodeFault):
                raise one
            answers.append(one)
        return answers

    def _answer(self, call: RpcCall) -> Any:
        if call.method == "eth_chainId":
            return hex(4663)
        first: Any = call.params[0]
        if call.method == "eth_getLogs":
            return self._found(first)
        if call.method == "eth_getTransactionReceipt":
            return self._receipt(first)
        if call.method == "eth_getBlockByHash":
            block = self._by_hash[first][0] if first in self._by_hash else None
        elif call.method == "eth_getBlockByNumber":
            if self._nitro and first in ("safe", "finalized"):
                return RpcError(code=-32000, message=f"{first} block not found")
            number = self.last if first == "latest" else int(first, 16)
            block = self.blocks[number] if 0 <= number <= self.last else None
        else:
            return RpcError(code=-32601, message="method not found")
        if block is None or call.params[1]:
            return block
        return {**block, "transactions": [one["hash"] for one in block["transactions"]]}

    def _receipt(self, tx_hash: str) -> dict[str, Any] | None:
        for block, logs in zip(self.blocks, self.logs, strict=True):
            for tx in block["transactions"]:
                if tx["hash"] == tx_hash:
                    own = [log for log in logs if log["transactionHash"] == tx_hash]
                    return {"transactionHash": tx_hash, "blockHash": block["hash"], "logs": own}
        return None

    def _found(self, wanted: dict[str, Any]) -> Any:
        if "blockHash" in wanted:
            known = self._by_hash.get(wanted["blockHash"])
            return RpcError(code=-32000, message="unknown block") if known is None else known[1]
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        if self._nitro and last > self.last:
            return PAST_THE_HEAD
        if self.most_blocks is not None and last - first + 1 > self.most_blocks:
            return RANGE_TOO_WIDE
        found = [log for logs in self.logs[first : last + 1] for log in logs if _fits(log, wanted)]
        if self.most_found is not None and len(found) > self.most_found:
            return TOO_MANY_LOGS
        return found

    # --- made up --------------------------------------------------------------------------------------

    def _hex(self, size: int) -> str:
        return "0x" + self._random.randbytes(size).hex()

    def _log(self) -> Log:
        topics = [self._random.choice(self._signatures)]
        topics += [
            self._random.choice(self._words) if self._words else self._hex(32)
            for _ in range(self._random.randrange(4))
        ]
        return Log(
            self._random.choice(self._addresses),  # type: ignore[arg-type]
            tuple(topics),
            self._random.randbytes(32 * self._random.randrange(4)),
        )

    def _transaction(self, number: int, place: int, sender: str | None, to: str | None) -> dict[str, Any]:
        return {
            "hash": self._hex(32),
            "from": sender or self._random.choice(self._addresses),
            "to": to or self._random.choice([*self._addresses, None]),
            "value": hex(self._random.randrange(10**18)),
            "nonce": hex(self._random.randrange(1000)),
            "blockNumber": hex(number),
            "transactionIndex": hex(place),
            "input": "0x",
        }


def _fits(log: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether a filter of contracts and topics lets it through."""
    if log["address"] not in wanted.get("address", [log["address"]]):
        return False
    topics = wanted.get("topics", [])
    return len(log["topics"]) >= len(topics) and all(
        topic in some for topic, some in zip(log["topics"], topics, strict=False)
    )


def set_bits(bloom: bytearray, item: bytes) -> None:
    """The yellow paper's M3:2048, written another way than the code under test does it."""
    hashed = keccak(item)
    for pair in range(3):
        bit = (hashed[2 * pair] & 7) << 8 | hashed[2 * pair + 1]
        bloom[255 - bit // 8] |= 1 << bit % 8


def _as_json(log: Log, index: int, transaction: dict[str, Any], block: dict[str, Any]) -> dict[str, Any]:
    return {
        "address": log.address,
        "topics": list(log.topics),
        "data": "0x" + log.data.hex(),
        "blockNumber": block["number"],
        "blockHash": block["hash"],
        "blockTimestamp": block["timestamp"],
        "transactionHash": transaction["hash"],
        "transactionIndex": transaction["transactionIndex"],
        "logIndex": hex(index),
        "removed": False,
    }


def _raw(answer: Any) -> msgspec.Raw | RpcError:
    return answer if isinstance(answer, RpcError) else msgspec.Raw(msgspec.json.encode(answer))
