"""Finds the storage slot of a wallet's token balance by trial: the fallback for money that no swap brings,
and for tokens that a wallet is said to hold.

A check sets balances of the money side only, never of the token under test. Where a token's balance is set
(``holders/holding_plans``), a wallet that really bought the token sells, too.
"""

from dataclasses import dataclass
from typing import Literal

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi, erc20

MARK_RAW = 0x1C0FFEE
"""An amount that no wallet holds by accident."""

_FIRST_SLOTS = 24
_NAMESPACED = 0x52C63247E1F47DB19D5CE0460030C497F067CA4CEBF71BA98EEADABE20BACE00
"""ERC-7201 slot of the namespace openzeppelin.storage.ERC20: its first member is the balances."""
_SOLADY_SEED = "87a211a2"
"""Solady's ERC20: the balance lies at keccak256 of the owner, eight zero bytes and this seed."""

Layout = Literal["solidity", "vyper", "solady"]


@dataclass(frozen=True, slots=True)
class BalanceSlot:
    """The balance mapping of ``asset``: how its keys are hashed, and its slot."""

    asset: Address
    layout: Layout
    base: int

    def of(self, wallet: Address) -> str:
        """The storage key of the wallet's balance, as a ``0x`` word."""
        key, base = abi.word(wallet), abi.word(self.base)
        packed = {
            "solidity": key + base,
            "vyper": base + key,
            "solady": wallet[2:] + "00" * 8 + _SOLADY_SEED,
        }[self.layout]
        return "0x" + abi.keccak(bytes.fromhex(packed)).hex()


def guesses(asset: Address) -> list[BalanceSlot]:
    """The usual slots of balances."""
    numbered = [*range(_FIRST_SLOTS), _NAMESPACED]
    mapped: list[BalanceSlot] = [BalanceSlot(asset, "solidity", n) for n in numbered]
    mapped += [BalanceSlot(asset, "vyper", n) for n in range(_FIRST_SLOTS)]
    return [*mapped, BalanceSlot(asset, "solady", 0)]


def guess_calls(asset: Address, wallet: Address, block: BlockRef) -> list[RpcCall]:
    """Reads the balance of ``wallet`` once per guess, with the mark set at that guess."""
    request = {"to": asset, "data": abi.call(erc20.BALANCE_OF, wallet)}
    value = "0x" + abi.word(MARK_RAW)
    return [
        RpcCall(
            "eth_call",
            [request, {"blockHash": block.hash}, {asset: {"stateDiff": {guess.of(wallet): value}}}],
        )
        for guess in guesses(asset)
    ]


def read_guesses(asset: Address, answers: list[msgspec.Raw | RpcError]) -> BalanceSlot | None:
    """The guess with the mark that came back as the balance; None if none or several did."""
    marked = f'"0x{abi.word(MARK_RAW)}"'.encode()
    slots = [
        guess
        for guess, answer in zip(guesses(asset), answers, strict=True)
        if not isinstance(answer, RpcError) and bytes(answer) == marked
    ]
    return slots[0] if len(slots) == 1 else None
