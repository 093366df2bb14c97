"""Reads a token's metadata for the index, in one trip."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError, hex_bytes
from roundtrip.chain.rpc.errors import concern, describe_error
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.names import text_in
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi, erc20

MAX_CHARACTERS = 256
_VIEWS = (erc20.SYMBOL, erc20.NAME, erc20.DECIMALS, erc20.TOTAL_SUPPLY)


@dataclass(frozen=True, slots=True)
class TokenViews:
    """The metadata that the token reports; None where it cannot be read. Texts are written by strangers and
    not cleaned: cut at ``MAX_CHARACTERS`` and without NUL, which the database cannot store."""

    symbol: str | None
    name: str | None
    decimals: int | None
    supply_raw: int | None


def view_calls(token: Address, pinned: BlockRef, gas_limit: int) -> list[RpcCall]:
    """The reads, at the pinned block; no call may use more than ``gas_limit``."""
    return [
        RpcCall(
            "eth_call", [{"to": token, "data": selector, "gas": hex(gas_limit)}, {"blockHash": pinned.hash}]
        )
        for selector in _VIEWS
    ]


def read_views(answers: Sequence[msgspec.Raw | RpcError]) -> TokenViews:
    """Reads the answers to ``view_calls``. Raises NodeFault if the node, not the token, failed to answer."""
    symbol, name, decimals, supply = map(bytes_or_empty, answers)
    decimals_word = abi.uint_at(decimals, 0)
    return TokenViews(
        symbol=_text(symbol),
        name=_text(name),
        decimals=decimals_word if decimals_word is not None and decimals_word < 256 else None,
        supply_raw=abi.uint_at(supply, 0),
    )


def bytes_or_empty(answer: msgspec.Raw | RpcError) -> bytes:
    """The result; empty if the call itself failed. Raises NodeFault if the node failed to answer."""
    if not isinstance(answer, RpcError):
        return hex_bytes(answer)
    if concern(answer) != "call":
        raise NodeFault(describe_error(answer))
    return b""


def _text(data: bytes) -> str | None:
    text = text_in(data)
    return None if text is None else text.replace("\0", "")[:MAX_CHARACTERS]
