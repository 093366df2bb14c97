"""What wallets hold, and whether they are wallets at all: plain reads in one trip."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError, hex_bytes, quantity
from roundtrip.chain.simulate.block_dependence import DELEGATED
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi, erc20
from roundtrip.venues.base import Contracts

Answer = msgspec.Raw | RpcError


@dataclass(frozen=True, slots=True)
class WalletToken:
    """One token: what the wallet holds of it, in base units, and what the token says of itself where that was
    asked; None where it could not be read."""

    amount_raw: int | None = None
    decimals: int | None = None
    supply_raw: int | None = None


@dataclass(frozen=True, slots=True)
class WalletViews:
    """A wallet at one block; None where it could not be read. ``is_contract``: it has code of its own; an
    account that runs another's (EIP-7702) is a wallet."""

    is_contract: bool | None
    eth_wei: int | None
    weth_wei: int | None
    usdg_raw: int | None
    tokens: Mapping[Address, WalletToken]


UNREAD = WalletViews(None, None, None, None, {})
"""The node did not answer."""


def view_calls(
    wallet: Address,
    tokens: Sequence[Address],
    unread: Collection[Address],
    contracts: Contracts,
    pinned: BlockRef,
    gas_limit: int,
) -> list[RpcCall]:
    """The reads, at the pinned block; no call may use more than ``gas_limit``. ``unread``: those of the
    tokens that are asked for decimals and supply, too."""
    block = {"blockHash": pinned.hash}
    held = abi.call(erc20.BALANCE_OF, wallet)
    asked = [(token, held) for token in (contracts.weth, contracts.usdg, *tokens)]
    asked += [
        (token, head) for token in tokens if token in unread for head in (erc20.DECIMALS, erc20.TOTAL_SUPPLY)
    ]
    return [
        RpcCall("eth_chainId", []),
        RpcCall("eth_getCode", [wallet, block]),
        RpcCall("eth_getBalance", [wallet, block]),
        *(
            RpcCall("eth_call", [{"to": to, "data": data, "gas": hex(gas_limit)}, block])
            for to, data in asked
        ),
    ]


def read_views(
    answers: Sequence[Answer], tokens: Sequence[Address], unread: Collection[Address], chain_id: int
) -> WalletViews:
    """What ``view_calls`` was answered. Raises NodeFault when the node is of another chain."""
    chain, code, eth, weth, usdg, *rest = answers
    _is_on(chain, chain_id)
    said = iter(rest[len(tokens) :])
    held = {}
    for token, amount in zip(tokens, rest, strict=False):
        places, supply = (_word(next(said)), _word(next(said))) if token in unread else (None, None)
        decimals = places if places is not None and places < 256 else None
        held[token] = WalletToken(_word(amount), decimals, supply)
    return WalletViews(is_contract(code), _quantity(eth), _word(weth), _word(usdg), held)


def code_calls(addresses: Sequence[Address], pinned: BlockRef) -> list[RpcCall]:
    """Asks for their code, at the pinned block."""
    block = {"blockHash": pinned.hash}
    return [RpcCall("eth_chainId", []), *(RpcCall("eth_getCode", [one, block]) for one in addresses)]


def read_codes(
    answers: Sequence[Answer], addresses: Sequence[Address], chain_id: int
) -> dict[Address, bool | None]:
    """Which of them are contracts; None: could not be read. Raises NodeFault when the node is of another
    chain."""
    chain, *codes = answers
    _is_on(chain, chain_id)
    return {address: is_contract(code) for address, code in zip(addresses, codes, strict=True)}


def is_contract(answer: Answer) -> bool | None:
    """Whether code is a contract's; None: it could not be read."""
    try:
        code = hex_bytes(answer)
    except NodeFault:
        return None
    return bool(code) and not code.startswith(DELEGATED)


def _is_on(answer: Answer, chain_id: int) -> None:
    if quantity(answer) != chain_id:
        raise NodeFault(f"it does not answer for chain {chain_id}")


def _quantity(answer: Answer) -> int | None:
    try:
        return quantity(answer)
    except NodeFault:
        return None


def _word(answer: Answer) -> int | None:
    """The first word of what a call gave; None where it gave none."""
    try:
        return abi.uint_at(hex_bytes(answer), 0)
    except NodeFault:
        return None
