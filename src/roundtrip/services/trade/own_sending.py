"""The nonces and fees that the caller's own wallet sets: whether the chain takes the transactions now."""

from collections.abc import Sequence
from dataclasses import dataclass

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, quantity
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.figures import format_gas_price
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context

from .simulate_params import OwnFees


@dataclass(frozen=True, slots=True)
class SendingFault:
    """Why the chain does not take call ``number`` now. ``is_refused``: it never does; else it waits, or that
    could not be read."""

    number: int
    text: str
    is_refused: bool = False


_UNREAD = SendingFault(0, "We could not read the wallet's next nonce.")


async def find_sending_fault(
    ctx: Context,
    head: ChainHead,
    wallet: Address,
    nonces: Sequence[int | None],
    fees: Sequence[OwnFees | None],
    meter: Meter,
) -> SendingFault | None:
    """The first nonce or fee with which the chain would not take its call; None: it takes all."""
    of_fees = compare_fees(fees, head.base_fee_wei)
    if all(nonce is None for nonce in nonces) or (of_fees is not None and of_fees.is_refused):
        return of_fees
    call = RpcCall("eth_getTransactionCount", [wallet, {"blockHash": head.block.hash}])
    try:
        (answer,) = await ctx.node.batch([call], meter)
        of_nonces = _UNREAD if isinstance(answer, RpcError) else compare_nonces(nonces, quantity(answer))
    except NodeFault:
        of_nonces = _UNREAD
    if of_nonces is not None and of_fees is not None and not of_nonces.is_refused:
        return SendingFault(of_fees.number, f"{of_nonces.text} {of_fees.text}")
    return of_nonces or of_fees


def compare_nonces(nonces: Sequence[int | None], following: int) -> SendingFault | None:
    """The first nonce that the chain refuses; else the first that does not come next. ``following``: the
    wallet's next nonce; each call takes one, in their order."""
    faults, used = [], set[int]()
    for number, nonce in enumerate(nonces):
        turn = following + number
        if nonce is None:
            used.add(turn)
            continue
        whose = f"{_whose('nonce', number, nonces)} is {nonce:,}"
        differs = f"{whose}, but {turn:,} comes next"
        if nonce in used:
            text = f"{whose}, as that of a call before it: one is refused."
            faults.append(SendingFault(number, text, True))
        elif nonce < following:
            faults.append(SendingFault(number, f"{differs}: the chain refuses a nonce that is used.", True))
        elif nonce > turn:
            waits = f"{differs}: it waits until the wallet has used the nonces before it."
            faults.append(SendingFault(number, waits))
        # A nonce before its turn follows a call that waits, and that call is reported.
        used.add(nonce)
    return _gravest(faults)


def compare_fees(fees: Sequence[OwnFees | None], base_fee_wei: int) -> SendingFault | None:
    """The first fee below its own tip, which the chain refuses; else the first below the base fee."""
    faults = []
    for number, own in enumerate(fees):
        if own is None or own.most_wei is None:
            continue
        most = f"{_whose('highest fee', number, fees)} is {format_gas_price(own.most_wei)} for a unit of gas"
        if own.tip_wei is not None and own.tip_wei > own.most_wei:
            tip = format_gas_price(own.tip_wei)
            text = f"{most}, below its tip of {tip}: the chain refuses that."
            faults.append(SendingFault(number, text, True))
        elif own.most_wei < base_fee_wei:
            base = format_gas_price(base_fee_wei)
            text = f"{most}, below the base fee of {base}: it waits until that falls."
            faults.append(SendingFault(number, text))
    return _gravest(faults)


def _gravest(faults: Sequence[SendingFault]) -> SendingFault | None:
    return min(faults, key=lambda fault: not fault.is_refused, default=None)


def _whose(what: str, number: int, every: Sequence[object]) -> str:
    return f"Its {what}" if len(every) == 1 else f"The {what} of call {number + 1}"
