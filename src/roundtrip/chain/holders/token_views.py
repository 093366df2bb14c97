"""What a token says of itself, for the index: plain reads in one trip."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError, hex_bytes
from roundtrip.chain.rpc.errors import concern, describe_error
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.names import text_in
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi, erc20

MOST_CHARACTERS = 256
_VIEWS = (erc20.SYMBOL, erc20.NAME, erc20.DECIMALS, erc20.TOTAL_SUPPLY)


@dataclass(frozen=True, slots=True)
class TokenViews:
    """As the token told it; None where it told nothing that can be read. Texts are a stranger's and not
    cleaned: cut at ``MOST_CHARACTERS`` and without NUL, which the database cannot hold."""

    symbol: str | None
    name: str | None
    decimals: int | None
    supply_raw: int | None


def view_calls(token: Address, pinned: BlockRef, gas_limit: int) -> list[RpcCall]:
    """The reads, at the pinned block; none may use more than ``gas_limit``."""
    return [
        RpcCall("eth_call", [{"to": token, "data": head, "gas": hex(gas_limit)}, {"blockHash": pinned.hash}])
        for head in _VIEWS
    ]


def read_views(answers: Sequence[msgspec.Raw | RpcError]) -> TokenViews:
    """What ``view_calls`` was answered. Raises NodeFault when the node, not the token, left one open."""
    symbol, name, decimals, supply = map(bytes_or_empty, answers)
    places = abi.uint_at(decimals, 0)
    return TokenViews(
        symbol=_text(symbol),
        name=_text(name),
        decimals=places if places is not None and places < 256 else None,
        supply_raw=abi.uint_at(supply, 0),
    )


def bytes_or_empty(answer: msgspec.Raw | RpcError) -> bytes:
    """Empty where the call failed on any node."""
    if not isinstance(answer, RpcError):
        return hex_bytes(answer)
    if concern(answer) != "call":
        raise NodeFault(describe_error(answer))
    return b""


def _text(data: bytes) -> str | None:
    found = text_in(data)
    return None if found is None else found.replace("\0", "")[:MOST_CHARACTERS]
