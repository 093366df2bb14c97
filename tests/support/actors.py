"""Wallets of our own on the real local chain: the node sends in their names, one transaction or several in
one block; and contracts that do for others what they ask."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from roundtrip.venues.entry_point import ENTRY_POINTS
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, calldata
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.wallet import UnsignedStep, Wallet

ETH = 10**18
GAS, MANY_GAS = 1_500_000, 12_000_000
_TIP, _FEE = 10**9, 10**11
_DEED = "(address,uint256,bytes)"

What = Literal["bought", "sold", "moved", "got", "pooled", "burned", "minted"]


@cache
def code_of(source: str) -> str:
    """Creation code of one of our contracts, by its path below ``contracts``."""
    return compile_contract(Path(__file__).resolve().parents[2] / "contracts" / source)


@dataclass(frozen=True, slots=True)
class Act:
    """One transaction, and what it does to whom: every wallet in ``does`` does one thing in it, at most."""

    sender: str
    step: UnsignedStep
    does: tuple[tuple[str, What], ...] = ()
    gas: int = GAS


class Actors:
    """The local chain, and wallets that do what a test tells them to: nobody has their keys, the node sends
    in their names."""

    def __init__(self, rpc: SyncRpc, built: Built) -> None:
        self.rpc, self.built, self.contracts = rpc, built, built.contracts

    # --- wallets -------------------------------------------------------------------------------------

    def wallet(self, name: str, eth: int = 100) -> str:
        """A wallet that has its eth from nowhere: no transfer brought it."""
        address: str = Wallet(self.rpc, self.contracts, f"holding {name}", eth).address
        self.rpc.call("anvil_impersonateAccount", address)
        return address

    def wallets(self, name: str, count: int, eth: int = 100) -> list[str]:
        """So many of a name."""
        return [self.wallet(f"{name} {n}", eth) for n in range(count)]

    def funded(self, name: str, funder: str, eth: int = 10) -> str:
        """A wallet whose first eth comes from ``funder`` in a plain transfer."""
        address = self.wallet(name, 0)
        self.send(funder, address, "0x", eth * ETH)
        return address

    def crowd(self, funder: str, count: int) -> None:
        """So many wallets that nobody knows, each with its first eth from ``funder``, in few blocks."""
        paid = [
            UnsignedStep("0x" + keccak(text=f"crowd {funder} {n}")[12:].hex(), "0x", 1) for n in range(count)
        ]
        for first in range(0, count, 500):
            self.block([Act(funder, step, gas=21_000) for step in paid[first : first + 500]])

    def deployer(self, who: str) -> ContractDeployer:
        """The wallet, for the devnet's own functions."""
        return ContractDeployer(self.rpc, who)

    # --- transactions --------------------------------------------------------------------------------

    def send(self, who: str, to: str, data: str, wei: int = 0, gas: int = GAS) -> dict[str, Any]:
        """One transaction in a block of its own, which goes through; its receipt."""
        return self.block([Act(who, UnsignedStep(to, data, wei), gas=gas)])[0]

    def create(self, who: str, source: str, types: Sequence[str] = (), values: Sequence[Any] = ()) -> str:
        """A contract that ``who`` makes; its address."""
        code = code_of(source) + encode(list(types), list(values)).hex()
        return self.deployer(who).create(code).lower()

    def block(self, acts: Sequence[Act]) -> list[dict[str, Any]]:
        """All of these in one block and in this order; they go through. Their receipts."""
        with self._by_hand():
            nonces: dict[str, int] = {}
            for sender in {act.sender for act in acts}:
                nonces[sender] = int(self.rpc.call("eth_getTransactionCount", sender, "latest"), 16)
            calls: list[tuple[str, tuple[object, ...]]] = []
            for place, act in enumerate(acts):
                calls.append(("eth_sendTransaction", (self._signed(act, nonces, len(acts) - place),)))
            sent = self.rpc.batch(calls)
            self.rpc.call("evm_mine")
            receipts = self.rpc.batch([("eth_getTransactionReceipt", (one,)) for one in sent])
        assert all(receipt is not None and receipt["status"] == "0x1" for receipt in receipts), receipts
        places = [int(receipt["transactionIndex"], 16) for receipt in receipts]
        assert places == sorted(places)
        assert len({receipt["blockNumber"] for receipt in receipts}) == 1
        return receipts

    def _signed(self, act: Act, nonces: dict[str, int], rank: int) -> dict[str, str]:
        nonce = nonces[act.sender]
        nonces[act.sender] += 1
        return {
            "from": act.sender, "to": act.step.to, "data": act.step.data, "value": hex(act.step.value_wei),
            "gas": hex(act.gas), "nonce": hex(nonce), "maxFeePerGas": hex(_FEE),
            "maxPriorityFeePerGas": hex(_TIP + rank),
        }  # fmt: skip

    @contextlib.contextmanager
    def _by_hand(self) -> Iterator[None]:
        self.rpc.call("evm_setAutomine", False)
        try:
            yield
        finally:
            self.rpc.call("evm_setAutomine", True)

    def number(self) -> int:
        """The head's."""
        return int(self.rpc.call("eth_blockNumber"), 16)

    def pass_blocks(self, count: int) -> None:
        """So many blocks with nothing in them, and as many seconds."""
        self.rpc.call("evm_increaseTime", count)
        self.rpc.batch([("evm_mine", ())] * count)

    def pass_s(self, seconds: int) -> None:
        """So much time."""
        self.rpc.call("evm_increaseTime", seconds)
        self.rpc.call("evm_mine")

    def eth(self, whose: str) -> int:
        """Wei that it has."""
        return int(self.rpc.call("eth_getBalance", whose, "latest"), 16)

    def view(self, to: str, signature: str, *values: object) -> int:
        """The first word that a view answers."""
        return int(self.rpc.call("eth_call", {"to": to, "data": calldata(signature, *values)}, "latest"), 16)

    # --- hands ---------------------------------------------------------------------------------------

    def hands(self, who: str) -> str:
        """A contract that does what it is asked."""
        return self.create(who, "truth/hands.vy")

    def entry_point(self, who: str) -> str:
        """The same where an entry point of account abstraction is."""
        at = min(ENTRY_POINTS)
        self.rpc.call("anvil_setCode", at, self.rpc.call("eth_getCode", self.hands(who), "latest"))
        return at


def deeds_data(steps: Sequence[UnsignedStep], accounts: Sequence[str] | None = None) -> str:
    """Calldata for hands; ``accounts``: as an entry point's operations of these."""
    deeds = [(step.to, step.value_wei, bytes.fromhex(step.data[2:])) for step in steps]
    if accounts is None:
        return calldata(f"act({_DEED}[])", deeds)
    return calldata(f"handle({_DEED}[],address[])", deeds, list(accounts))
