"""Hints from the events of a wallet's calls: which balances and allowances to read. Pure; balances decide."""

from dataclasses import dataclass

import msgspec

from roundtrip.chain.rpc.node_logs import UnverifiedLog
from roundtrip.chain.simulate.request import Results
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.venues import abi, erc20

from .calls import Pair, Via, WalletCalls

APPROVAL = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"
"""Approval(address,address,uint256)."""
APPROVAL_FOR_ALL = "0x17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31"
"""ApprovalForAll(address,address,bool)."""
OPERATOR_SET = "0xceb576d9f15e4e200fdb5096d64d5dfd667e16def20c1eefd14256d8e3faa267"
"""OperatorSet(address,address,bool): everything of an ERC-6909 vault."""
TRANSFER_SINGLE = "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62"
"""TransferSingle(address,address,address,uint256,uint256) of ERC-1155."""
TRANSFER_BATCH = "0x4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb"
"""TransferBatch(address,address,address,uint256[],uint256[]) of ERC-1155."""
CLAIM_TRANSFER = "0x1b3d7edb2e9c0b0e7c525b20aaaef0f5940d2ed71663c7d39266ecafac728859"
"""Transfer(address,address,address,uint256,uint256) of ERC-6909."""
CLAIM_APPROVAL = "0xb3fd5071835887567a0671151121894ddccc2842f1d10bedad13e0d17cace9a7"
"""Approval(address,address,uint256,uint256) of ERC-6909."""
PERMIT2_APPROVAL = "0xda9fa7c1b00402c17d0161b249b1ab8bbec047c5a52207b9c112deffd817036b"
"""Approval(address,address,address,uint160,uint48)."""
PERMIT2_PERMIT = "0xc6a377bfc4eb120024a8ac08eef205be16b817020812c73223e81d1bdb9708ec"
"""Permit(address,address,address,uint160,uint48,uint48)."""


@dataclass(frozen=True, slots=True)
class Hints:
    """``emitters``: contracts that emitted an event in the calls. ``incoming``, ``outgoing``, ``items``:
    those that reported a transfer to the wallet, from it, and from it of ERC-1155 or ERC-6909 items.
    ``collections``: those that reported the transfer of an item with a number (ERC-721). ``pairs``: the
    wallet's allowances in events. ``unread``: whether some events could not be read."""

    emitters: tuple[Address, ...] = ()
    incoming: tuple[Address, ...] = ()
    outgoing: tuple[Address, ...] = ()
    items: tuple[Address, ...] = ()
    pairs: tuple[Pair, ...] = ()
    unread: bool = False
    collections: tuple[Address, ...] = ()


def read_hints(results: Results, wallet_calls: WalletCalls, permit2_at: Address) -> Hints:
    """Collects the hints from the events of the calls."""
    contracts: dict[str, dict[Address, None]] = {"to": {}, "from": {}, "items": {}, "all": {}, "numbered": {}}
    pairs: dict[Pair, None] = {}
    unread = False
    for n in range(len(wallet_calls.calls)):
        try:
            logs = msgspec.json.decode(results[f"call-{n}"].logs, type=list[UnverifiedLog])
            for log in logs:
                address, topics = parse_address(log.address), log.topics
                contracts["all"][address] = None
                for direction in _directions(topics, wallet_calls.wallet):
                    contracts[direction][address] = None
                pair = _pair(address, topics, wallet_calls.wallet, permit2_at)
                if pair is not None:
                    pairs[pair] = None
        except (msgspec.DecodeError, ValueError, RecursionError):
            unread = True
    emitters, incoming, outgoing, items = (tuple(contracts[key]) for key in ("all", "to", "from", "items"))
    return Hints(emitters, incoming, outgoing, items, tuple(pairs), unread, tuple(contracts["numbered"]))


def _directions(topics: tuple[str, ...], wallet: Address) -> list[str]:
    """The directions of a transfer event: to the wallet, from it, or items from it; and whether it is of an
    item with a number."""
    if not topics:
        return []
    if topics[0] in (TRANSFER_SINGLE, TRANSFER_BATCH):
        return ["items"] if abi.topic_address(topics, 2) == wallet else []
    if topics[0] == CLAIM_TRANSFER:
        return ["items"] if abi.topic_address(topics, 1) == wallet else []
    if topics[0] != erc20.TRANSFER_TOPIC:
        return []
    sides = ((1, "from"), (2, "to"))
    directions = [direction for index, direction in sides if abi.topic_address(topics, index) == wallet]
    return [*directions, "numbered"] if directions and abi.topic_uint(topics, 3) is not None else directions


def _pair(address: Address, topics: tuple[str, ...], owner: Address, permit2_at: Address) -> Pair | None:
    if not topics or abi.topic_address(topics, 1) != owner:
        return None
    first, second = abi.topic_address(topics, 2), abi.topic_address(topics, 3)
    if first is None:
        return None
    if address == permit2_at and topics[0] in (PERMIT2_APPROVAL, PERMIT2_PERMIT):
        return Pair(first, second, "permit2") if second is not None else None
    if topics[0] == APPROVAL:
        item = abi.topic_uint(topics, 3)
        return Pair(address, first) if item is None else Pair(address, first, "item", item)
    if topics[0] == CLAIM_APPROVAL:
        return Pair(address, first, "claim", abi.topic_uint(topics, 3) or 0)
    kinds: dict[str, Via] = {APPROVAL_FOR_ALL: "all", OPERATOR_SET: "operator"}
    via = kinds.get(topics[0])
    return None if via is None else Pair(address, first, via)
