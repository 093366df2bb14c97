"""A chain of payments that is reorganised, as a node tells of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import asyncpg
import msgspec

from roundtrip.chain.rpc.client import NULL, Meter, RpcCall, RpcError
from roundtrip.domain.accounts.account import USDG_UNITS, Payments
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.services.runtime.context import Context
from roundtrip.venues.erc20 import TRANSFER_TOPIC
from support.one_batch import OneBatchNode
from unit.chain.told_transactions import CHAIN, TOKEN, a_log, a_receipt, a_tx, bloom

Json = dict[str, Any]
PAY_TO = Address("0x" + "9a" * 20)


@dataclass(frozen=True)
class Payment:
    """``raw`` usdg of a wallet."""

    tx_hash: TxHash
    wallet: Address
    raw: int


@dataclass
class Block:
    number: int
    hash: str
    payments: list[Payment]

    def header(self) -> Json:
        return {"number": hex(self.number), "hash": self.hash, "timestamp": hex(1_000 + self.number)}


@dataclass
class PayingChain(OneBatchNode):
    """``final``: number of the newest final block. ``waiting``: payments in no block. ``between``: done once,
    when a payment that was read is about to be confirmed."""

    blocks: list[Block] = field(default_factory=list)
    final: int = 0
    waiting: list[Payment] = field(default_factory=list)
    known: dict[str, Payment] = field(default_factory=dict)
    between: Callable[[], None] | None = None
    _hashes: int = 0

    def __post_init__(self) -> None:
        self.mine(0)

    def pay(self, wallet: Address, raw: int) -> Payment:
        self._hashes += 1
        paid = Payment(TxHash(f"0x{self._hashes:064x}"), wallet, raw)
        self.known[paid.tx_hash] = paid
        self.waiting.append(paid)
        return paid

    def mine(self, count: int) -> None:
        """One more block, with so many of what waits."""
        self._hashes += 1
        inside, self.waiting = self.waiting[:count], self.waiting[count:]
        self.blocks.append(Block(len(self.blocks), f"0x{self._hashes:064x}", inside))

    def finalize(self, count: int) -> None:
        self.final = min(self.final + count, len(self.blocks) - 1)

    def reorganise(self, depth: int) -> None:
        """Takes back so many blocks, as far as they are not final. What was in them waits again."""
        for _ in range(min(depth, len(self.blocks) - 1 - self.final)):
            self.waiting = self.blocks.pop().payments + self.waiting

    def break_finality(self, depth: int) -> None:
        """As ``reorganise``, of blocks that were final."""
        self.final = max(0, self.final - depth)
        self.reorganise(len(self.blocks))

    def drop(self) -> None:
        """What waits never comes."""
        for paid in self.waiting:
            del self.known[paid.tx_hash]
        self.waiting = []

    def is_final(self, paid: Payment) -> bool:
        return any(paid in block.payments for block in self.blocks[: self.final + 1])

    async def batch(
        self, calls: Sequence[RpcCall], meter: Meter | None = None, *_: Any, **__: Any
    ) -> list[msgspec.Raw | RpcError]:
        if calls[-1].method == "eth_getLogs" and self.between is not None:
            between, self.between = self.between, None
            between()
        if meter is not None:
            meter.calls += len(calls)
        return [self._answer(call) for call in calls]

    def _answer(self, call: RpcCall) -> msgspec.Raw | RpcError:
        answer = self._told(call.method, call.params[0] if call.params else None)
        return NULL if answer is None else msgspec.Raw(msgspec.json.encode(answer))

    def _told(self, method: str, asked: Any) -> Any:
        if method == "eth_chainId":
            return hex(CHAIN)
        if method == "eth_getTransactionByHash":
            return self._tx(asked)
        if method == "eth_getTransactionReceipt":
            return self._receipt(asked)
        if method == "eth_getBlockByNumber":
            return self._block(self.final if asked == "finalized" else int(asked, 16))
        assert method == "eth_getLogs"
        logs = [log for block in self.blocks if block.hash == asked["blockHash"] for log in _logs(block)]
        return [log for log in logs if log["topics"][1] == asked["topics"][1]]

    def _block(self, number: int) -> Json | None:
        if number >= len(self.blocks):
            return None
        block = self.blocks[number]
        inside = {"transactions": [paid.tx_hash for paid in block.payments]}
        return block.header() | inside | {"logsBloom": bloom(*_logs(block))}

    def _place(self, tx_hash: str) -> tuple[Block, int] | None:
        for block in self.blocks:
            for place, paid in enumerate(block.payments):
                if paid.tx_hash == tx_hash:
                    return block, place
        return None

    def _tx(self, tx_hash: str) -> Json | None:
        paid, found = self.known.get(tx_hash), self._place(tx_hash)
        if paid is None:
            return None
        return a_tx(hash=tx_hash, to=TOKEN, **{"from": paid.wallet}, **_where(found))

    def _receipt(self, tx_hash: str) -> Json | None:
        found = self._place(tx_hash)
        if found is None:
            return None
        own = [log for log in _logs(found[0]) if log["transactionHash"] == tx_hash]
        paid = self.known[tx_hash]
        return a_receipt(*own, transactionHash=tx_hash, to=TOKEN, **{"from": paid.wallet}, **_where(found))


def _where(found: tuple[Block, int] | None) -> Json:
    if found is None:
        return {"blockHash": None, "blockNumber": None, "transactionIndex": None}
    block, place = found
    return {"blockHash": block.hash, "blockNumber": hex(block.number), "transactionIndex": hex(place)}


def _logs(block: Block) -> list[Json]:
    return [
        a_log(
            place,
            topics=[TRANSFER_TOPIC, *("0x" + "00" * 12 + one[2:] for one in (paid.wallet, PAY_TO))],
            data=f"0x{paid.raw:064x}",
            blockHash=block.hash,
            transactionHash=paid.tx_hash,
        )
        for place, paid in enumerate(block.payments)
    ]


def paying_context(chain: PayingChain, pool: asyncpg.Pool, now_s: Callable[[], float]) -> Context:
    """As much of a context as payments are read with. One base unit of usdg buys one call."""

    def current() -> Any:
        newest = chain.blocks[-1]
        return SimpleNamespace(block=BlockRef(newest.number, newest.hash, 1_000 + newest.number))

    return cast(
        Context,
        SimpleNamespace(
            chain_id=CHAIN,
            contracts=SimpleNamespace(usdg=Address(TOKEN)),
            node=chain,
            heads=SimpleNamespace(current=current),
            pool=pool,
            now_s=now_s,
            payments=Payments(PAY_TO, USDG_UNITS),
        ),
    )
