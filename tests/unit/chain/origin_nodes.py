"""An archive that knows where wallets come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from roundtrip.chain.blocks.state_witness import AccountState
from roundtrip.chain.holders.origins import NothingReached, find_origin
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.wallets.linked import FirstSeen
from support.one_batch import OneBatchNode
from unit.chain.samples import raw
from unit.venues.network import address

WALLET, FUNDER, BUSY, OTHER = (address(0xA0 + number) for number in range(4))


SYSTEM = address(0xA4B05)


PRUNED = RpcError(-32000, "missing trie node 01ab (path )")


Answer = msgspec.Raw | RpcError


Way = Literal["plain", "internal", "bridge", "authorised"]


def tx(
    sender: str, to: str | None, value: int, nonce: int, type_: str | None = "0x2", **more: Any
) -> dict[str, Any]:
    found = {"from": sender, "to": to, "value": hex(value), "nonce": hex(nonce), "input": "0x", **more}
    return found if type_ is None else found | {"type": type_}


def word(number: int, salt: int = 0) -> str:
    return f"0x{salt:032x}{number:032x}"


@dataclass
class FundedChain:
    """Blocks, and the state of everybody when each is over. A busy sender is in most blocks."""

    blocks: list[list[dict[str, Any]]] = field(default_factory=lambda: [[]])
    states: list[dict[str, AccountState]] = field(
        default_factory=lambda: [{BUSY: AccountState(3, 10**18), FUNDER: AccountState(0, 10**20)}]
    )
    code: str = "0x"
    salt: int = 0

    def mine(self, *transactions: dict[str, Any], **changed: AccountState) -> None:
        """A block with these transactions, after which ``changed`` is so (names: wallet, funder). The chain's
        own transaction opens it, and raises no nonce."""
        now = dict(self.states[-1])
        for one in transactions:
            known = now.get(one["from"], AccountState(0, 0))
            if one.get("type", "0x0") < "0x64" or one.get("type") is None:
                now[one["from"]] = AccountState(int(one["nonce"], 16) + 1, known.balance_wei)
        for name, state in changed.items():
            now[{"wallet": WALLET, "funder": FUNDER}[name]] = state
        self.blocks.append([tx(SYSTEM, SYSTEM, 0, 0, "0x6a"), *transactions])
        self.states.append(now)

    def busy(self) -> dict[str, Any]:
        return tx(BUSY, OTHER, 5, self.states[-1][BUSY].nonce)

    def pass_by(self, count: int) -> None:
        for _ in range(count):
            self.mine(self.busy())

    def fund(self, way: Way = "plain", wei: int = 7) -> None:
        nonce = self.states[-1][FUNDER].nonce
        reached = AccountState(
            self.at(len(self.blocks) - 1).nonce, self.at(len(self.blocks) - 1).balance_wei + wei
        )
        if way == "plain":
            self.mine(self.busy(), tx(FUNDER, WALLET, wei, nonce), wallet=reached)
        elif way == "internal":
            self.mine(self.busy(), tx(FUNDER, OTHER, wei, nonce), wallet=reached)
        elif way == "bridge":
            self.mine(tx(FUNDER, WALLET, wei, 0, "0x64"), wallet=reached)
        else:
            self.mine(tx(FUNDER, OTHER, 0, nonce, "0x4"), wallet=AccountState(reached.nonce + 1, 0))

    def spend_all(self) -> None:
        state = self.at(len(self.blocks) - 1)
        self.mine(tx(WALLET, OTHER, state.balance_wei, state.nonce), wallet=AccountState(state.nonce + 1, 0))

    def at(self, number: int, who: str = WALLET) -> AccountState:
        return self.states[number].get(who, AccountState(0, 0))

    def ref(self, number: int | None = None) -> BlockRef:
        number = len(self.blocks) - 1 if number is None else number
        return BlockRef(number, word(number, self.salt), 9000 + number // 10)

    def truth(self) -> int | None:
        return next((n for n in range(len(self.blocks)) if self.at(n) != (0, 0)), None)

    def answer(self, call: RpcCall) -> Answer:
        if call.method == "eth_getCode":
            return raw(self.code)
        if call.method == "eth_getBlockByNumber":
            number = int(str(call.params[0]), 16)
            ref, parent = self.ref(number), self.ref(number - 1).hash if number else word(0, 99)
            found = {"number": hex(number), "hash": ref.hash, "timestamp": hex(ref.timestamp_s)}
            every = self.blocks[number] if call.params[1] else [word(1)]
            return raw(found | {"parentHash": parent, "miner": SYSTEM, "transactions": every})
        state = self.at(int(str(call.params[1]), 16), str(call.params[0]))
        return raw(hex(state.nonce if call.method == "eth_getTransactionCount" else state.balance_wei))


@dataclass
class OriginNode(OneBatchNode):
    """Asked, it answers as the chain does, but for what ``said`` says otherwise."""

    chain: FundedChain
    answer_of: Callable[[RpcCall, int], Answer | None] = lambda call, trip: None
    trips: list[list[RpcCall]] = field(default_factory=list)

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Answer]:
        self.trips.append(list(calls))
        found = []
        for call in calls:
            text = self.answer_of(call, len(self.trips))
            found.append(self.chain.answer(call) if text is None else text)
        return found


async def searched(chain: FundedChain, low: int = 0) -> FirstSeen | NothingReached | None:
    return await find_origin(OriginNode(chain), WALLET, low, chain.ref())


def state_at(call: RpcCall) -> int | None:
    """The block a state is asked for."""
    asks = call.method in ("eth_getTransactionCount", "eth_getBalance")
    return int(str(call.params[1]), 16) if asks else None
