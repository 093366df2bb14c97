"""Reads what wallets hold, and whether they are wallets, in one trip."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from roundtrip.chain.rpc.client import Answer, RpcCall, hex_bytes, quantity
from roundtrip.chain.simulate.block_dependence import DELEGATED
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi, erc20
from roundtrip.venues.base import Contracts


@dataclass(frozen=True, slots=True)
class WalletToken:
    """The wallet's balance of one token, in base units, and the token's decimals and supply where these were
    requested; None where it could not be read, or is no possible value."""

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
    """The reads, at the pinned block; no call may use more than ``gas_limit``. ``unread``: the tokens whose
    decimals and supply are requested, too."""
    block = {"blockHash": pinned.hash}
    balance_call = abi.call(erc20.BALANCE_OF, wallet)
    calls = [(token, balance_call) for token in (contracts.weth, contracts.usdg, *tokens)]
    calls += [
        (token, selector)
        for token in tokens
        if token in unread
        for selector in (erc20.DECIMALS, erc20.TOTAL_SUPPLY)
    ]
    return [
        RpcCall("eth_chainId", []),
        RpcCall("eth_getCode", [wallet, block]),
        RpcCall("eth_getBalance", [wallet, block]),
        *(
            RpcCall("eth_call", [{"to": to, "data": data, "gas": hex(gas_limit)}, block])
            for to, data in calls
        ),
    ]


def read_views(
    answers: Sequence[Answer], tokens: Sequence[Address], unread: Collection[Address], chain_id: int
) -> WalletViews:
    """Reads the answers to ``view_calls``. Raises NodeFault if the node is of another chain."""
    chain, code, eth, weth, usdg, *rest = answers
    _check_chain(chain, chain_id)
    metadata = iter(rest[len(tokens) :])
    wallet_tokens = {}
    # ``rest``: a balance for each token, then decimals and supply of each in ``unread``.
    for token, amount in zip(tokens, rest, strict=False):
        decimals_word, supply = (
            (_word(next(metadata)), _word(next(metadata))) if token in unread else (None, None)
        )
        decimals = decimals_word if decimals_word is not None and decimals_word < 256 else None
        wallet_tokens[token] = WalletToken(_word(amount), decimals, supply)
    return WalletViews(is_contract(code), _quantity(eth), _word(weth), _word(usdg), wallet_tokens)


def code_calls(addresses: Sequence[Address], pinned: BlockRef) -> list[RpcCall]:
    """Requests the code of addresses, at the pinned block."""
    block = {"blockHash": pinned.hash}
    return [RpcCall("eth_chainId", []), *(RpcCall("eth_getCode", [address, block]) for address in addresses)]


def read_codes(
    answers: Sequence[Answer], addresses: Sequence[Address], chain_id: int
) -> dict[Address, bool | None]:
    """Which addresses are contracts; None: could not be read. Raises NodeFault if the node is of another
    chain."""
    chain, *codes = answers
    _check_chain(chain, chain_id)
    return {address: is_contract(code) for address, code in zip(addresses, codes, strict=True)}


def is_contract(answer: Answer) -> bool | None:
    """Whether the code is a contract's; None: it could not be read."""
    try:
        code = hex_bytes(answer)
    except NodeFault:
        return None
    return bool(code) and not code.startswith(DELEGATED)


def _check_chain(answer: Answer, chain_id: int) -> None:
    if quantity(answer) != chain_id:
        raise NodeFault(f"the node does not answer for chain {chain_id}")


def _quantity(answer: Answer) -> int | None:
    try:
        return quantity(answer)
    except NodeFault:
        return None


def _word(answer: Answer) -> int | None:
    """The first word of a call's result; None if there is none."""
    try:
        return abi.uint_at(hex_bytes(answer), 0)
    except NodeFault:
        return None
