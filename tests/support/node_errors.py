"""The errors of geth and nitro: their codes and texts, and how they report a failed call."""

from typing import Any

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from eth_utils.address import to_checksum_address

from support.data_fee import intrinsic_gas

Json = dict[str, Any]

NONCE_TOO_LOW, NONCE_TOO_HIGH, FEE_TOO_LOW = -38010, -38011, -38012
"""The last by the specification; geth's newer versions call it invalid parameters, -32602."""
INTRINSIC_GAS, NO_FUNDS, BLOCK_GAS = -38013, -38014, -38015
NUMBERS, TIMES, TOO_MANY_BLOCKS = -38020, -38021, -38026
POOL_EMPTY = -32603
"""nitro's."""
MACHINE = -32015
SERVER, PARAMS = -32000, -32602
REVERT_CODES = {"geth": 3, "nitro": -32000}
"""Of a call that reverts in a simulation; in eth_call it is 3 on both."""

_PANICS = {
    0x01: "assert(false)",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
}
_HALTS = {"OutOfGas": "out of gas", "InvalidFEOpcode": "invalid opcode: INVALID"}
"""anvil's names of what ends an eth_call, and geth's."""


class Refused(Exception):
    """A request's own error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.error: Json = {"code": code, "message": message} | ({} if data is None else {"data": data})


def translate_error(error: Json, method: str, params: list[Any]) -> Json:
    """anvil's error as geth words it."""
    message: str = error["message"]
    if "BlockOutOfRange" in message:
        return {"code": SERVER, "message": "header not found"}
    if error["code"] == -32601:
        return {"code": -32601, "message": f"the method {method} does not exist/is not available"}
    if error["code"] == 3:
        return revert_error(error["data"], 3)
    if message.startswith("EVM error "):
        name = message.removeprefix("EVM error ")
        return {"code": SERVER, "message": _HALTS.get(name, name)}
    if message.lower().startswith("insufficient funds"):
        code = NO_FUNDS if method == "eth_simulateV1" else SERVER
        return {"code": code, "message": "err: insufficient funds for gas * price + value"}
    if message.startswith("intrinsic gas") and method != "eth_simulateV1":
        have = int(params[0]["gas"], 16)
        return {"code": SERVER, "message": intrinsic_text(have, intrinsic_gas(params[0]))}
    return error


def intrinsic_text(have: int, want: int) -> str:
    return f"err: intrinsic gas too low: have {have}, want {want} (supplied gas {have})"


def no_funds(sender: str, have_wei: int, want_wei: int, gas: int) -> Refused:
    """The error of a sender who cannot pay gas and value."""
    short = f"address {to_checksum_address(sender)} have {have_wei} want {want_wei} (supplied gas {gas})"
    return Refused(NO_FUNDS, f"err: insufficient funds for gas * price + value: {short}")


def validate_fees(call: Json, base_fee_wei: int) -> None:
    """Raises Refused."""
    max_wei = int(call.get("maxFeePerGas") or call.get("gasPrice") or "0x0", 16)
    if int(call.get("maxPriorityFeePerGas", "0x0"), 16) > max_wei:
        raise Refused(PARAMS, "err: max priority fee per gas higher than max fee per gas")
    if max_wei < base_fee_wei:
        short = f"maxFeePerGas: {max_wei}, baseFee: {base_fee_wei}"
        raise Refused(FEE_TOO_LOW, f"err: max fee per gas less than block base fee: {short}")


def validate_nonce(call: Json, sender: str, state: int) -> None:
    """Raises Refused."""
    given, gas = int(call.get("nonce", hex(state)), 16), int(call.get("gas", "0x0"), 16)
    if given != state:
        code, word = (NONCE_TOO_HIGH, "high") if given > state else (NONCE_TOO_LOW, "low")
        short = f"address {to_checksum_address(sender)}, tx: {given} state: {state} (supplied gas {gas})"
        raise Refused(code, f"err: nonce too {word}: {short}")


def revert_error(data: str, code: int) -> Json:
    """A revert's error, with its bytes."""
    reason = _reason(bytes.fromhex(data[2:]))
    message = "execution reverted" + (f": {reason}" if reason is not None else "")
    return {"code": code, "message": message, "data": data}


def _reason(data: bytes) -> str | None:
    try:
        if data[:4].hex() == "08c379a0":
            return str(decode(["string"], data[4:])[0])
        if data[:4].hex() == "4e487b71":
            (code,) = decode(["uint256"], data[4:])
            return _PANICS.get(code, f"unknown panic code: {code:#x}")
    except (DecodingError, UnicodeDecodeError, OverflowError):
        pass
    return None
