"""A transaction as wallets and libraries write it to send it, as parameters of a simulation."""

import re
from collections.abc import Mapping

from roundtrip.domain.base.errors import ParamFault
from roundtrip.services.support.answer_fields import EXAMPLE_ADDRESS

_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}|[0-9]{1,78}", re.ASCII)
_FEES = ("gasPrice", "maxFeePerGas", "maxPriorityFeePerGas")
_LIMITS = ("gas", "nonce")
WALLET_FIELDS = ("input", *_LIMITS, "chainId", "type", *_FEES, "accessList")
"""What wallets write beside the parameters that are listed."""
_MAX_LIMIT = 2**63 - 1
"""No block has so much gas, no wallet so many transactions, and nobody pays so much for a unit of gas."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_KEY = re.compile(r"0x[0-9a-fA-F]{64}")
_TYPES = (0, 1, 2)
"""The transaction types that are read: not those that do more than the call, blobs (3), authorizations
(4)."""


def read_wallet_transaction(raw: Mapping[str, object], chain_id: int | None) -> Mapping[str, object]:
    """The parameters with ``input`` as ``data``, without what only the sending needs: type, access list,
    chain. ``gas`` and ``nonce`` become lists of one number for each call, ``maxFeePerGas`` a list of
    each call's fees. Checks their form, and that the chain is ``chain_id`` (None: any); also in each of
    ``calls``. Raises ParamFault (bad_input)."""
    read, own = _read_one(raw, chain_id, "")
    calls = raw.get("calls")
    numbers = [own]
    if isinstance(calls, list):
        if (stray := next((name for name, value in own.items() if value is not None), None)) is not None:
            raise ParamFault("bad_input", f"{stray} must be inside a call, such as calls[0].{stray}.")
        pairs = [_read_call(call, chain_id, f"calls[{number}].") for number, call in enumerate(calls)]
        read["calls"], numbers = [call for call, _ in pairs], [each for _, each in pairs]
    for name in _LIMITS:
        of_calls = [each.get(name) for each in numbers]
        if not set(of_calls) <= {None}:
            read[name] = of_calls
    fees = [_read_fees(each) for each in numbers]
    return {**read, "maxFeePerGas": fees} if any(fees) else read


_Numbers = dict[str, int | None]
"""The gas limit, the nonce and the fees of a call; None, or absent: it names none."""


def _read_fees(own: _Numbers) -> dict[str, int | None] | None:
    """The highest fee and the tip for a unit of gas; None: the call names neither. ``maxFeePerGas`` goes
    before ``gasPrice``: of a transaction in a block, wallets show there what it paid."""
    most_wei, tip_wei = own.get("maxFeePerGas"), own.get("maxPriorityFeePerGas")
    most_wei = own.get("gasPrice") if most_wei is None else most_wei
    return None if most_wei is None and tip_wei is None else {"most_wei": most_wei, "tip_wei": tip_wei}


def _read_call(call: object, chain_id: int | None, place: str) -> tuple[object, _Numbers]:
    return _read_one(call, chain_id, place) if isinstance(call, dict) else (call, {})


def _read_one(
    raw: Mapping[str, object], chain_id: int | None, place: str
) -> tuple[dict[str, object], _Numbers]:
    """The call, and its numbers."""
    rest = dict(raw)
    own = {name: _read_quantity(rest.pop(name, None), place + name) for name in (*_LIMITS, *_FEES)}
    kind = _read_quantity(rest.pop("type", None), f"{place}type")
    if kind is not None and kind not in _TYPES:
        raise ParamFault("bad_input", f'{place}type must be 0, 1 or 2, such as "0x2".')
    chain = _read_quantity(rest.pop("chainId", None), f"{place}chainId")
    if None not in (chain, chain_id) and chain != chain_id:
        raise ParamFault(
            "bad_input", f'{place}chainId must be {chain_id}, such as "{chain_id:#x}": no other is simulated.'
        )
    _check_access_list(rest.pop("accessList", None), f"{place}accessList")
    capped = {name: None if number is None else min(number, _MAX_LIMIT) for name, number in own.items()}
    return _with_data(rest, place), capped


def _with_data(raw: dict[str, object], place: str) -> dict[str, object]:
    """The parameters with ``input`` as ``data``."""
    calldata = raw.pop("input", None)
    if calldata is None:
        return raw
    data = raw.get("data")
    if data is not None and _fold(data) != _fold(calldata):
        raise ParamFault(
            "bad_input", f'{place}data and {place}input differ. Give one of them, such as data "0xd0e30db0".'
        )
    return {**raw, "data": calldata}


def _fold(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _read_quantity(value: object, name: str) -> int | None:
    """The number; None where it is left out or null."""
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and _QUANTITY.fullmatch(value):
        return int(value, 16 if value.startswith("0x") else 10)
    raise ParamFault("bad_input", f'{name} must be a whole number, in decimal or hex, such as "0x5208".')


def _check_access_list(value: object, name: str) -> None:
    if value is not None and not (isinstance(value, list) and all(map(_is_access, value))):
        raise ParamFault(
            "bad_input",
            f'{name} must be a list of addresses with their storage keys, such as [{{"address": '
            f'"{EXAMPLE_ADDRESS}", "storageKeys": []}}].',
        )


def _is_access(entry: object) -> bool:
    if not isinstance(entry, dict) or entry.keys() != {"address", "storageKeys"}:
        return False
    address, keys = entry["address"], entry["storageKeys"]
    return _matches(_ADDRESS, address) and isinstance(keys, list) and all(_matches(_KEY, key) for key in keys)


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
