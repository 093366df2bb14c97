"""The parameters of a simulation: a wallet and its calls."""

import re
from typing import Annotated

import msgspec

from roundtrip.domain.base.errors import ParamFault
from roundtrip.domain.base.types import Address
from roundtrip.services.support.answer_fields import EXAMPLE_ADDRESS, AddressText, read_address, says
from roundtrip.venues.base import Call

MAX_CALLS = 6
_HEX = re.compile(r"0x([0-9a-fA-F]{2})*")
_VALUE = re.compile("[0-9]{1,78}|0x[0-9a-fA-F]{1,64}")
_MAX_WEI = 2**256 - 1
_EXAMPLE_WEI = 'such as "1000000000000000000" or "0xde0b6b3a7640000"'

DataField = Annotated[
    str,
    msgspec.Meta(
        pattern="^0x([0-9a-fA-F]{2})*$", description="Calldata, 0x and an even number of hex digits."
    ),
]
ValueField = Annotated[
    str,
    msgspec.Meta(
        pattern="^([0-9]{1,78}|0x[0-9a-fA-F]{1,64})$",
        description="Eth to send along, in wei: a whole number or hex, in quotes.",
    ),
]


class OwnFees(msgspec.Struct, frozen=True):
    """The most that a wallet pays for a unit of gas, and its tip within that, in wei; None: it names none."""

    most_wei: int | None
    tip_wei: int | None


class CallParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call of several."""

    to: Annotated[AddressText, says("Address to call.")]
    data: DataField = "0x"
    value: ValueField = "0"


class SimulateParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The wallet that sends, and its calls."""

    sender: Annotated[AddressText, says("The wallet that would send the calls.")] = msgspec.field(name="from")
    to: Annotated[AddressText | None, says("Address to call. Left out: give calls.")] = None
    data: DataField = "0x"
    value: ValueField = "0"
    calls: Annotated[
        Annotated[list[CallParams], msgspec.Meta(min_length=1, max_length=MAX_CALLS)] | None,
        says("One to six calls in order; they replace to, data and value. Left out: the one call of to."),
    ] = None
    fund: Annotated[bool, says("true: run as if the wallet held plenty of eth.")] = False

    def wallet(self) -> Address:
        """The wallet that sends."""
        return read_address(self.sender, "from", "bad_input")

    def own_calls(self) -> tuple[Call, ...]:
        """The calls in order. Raises CallerFault (bad_input)."""
        if self.calls:
            return tuple(_call(call.to, call.data, call.value) for call in self.calls)
        if self.to is None:
            raise ParamFault("bad_input", f'Give to, such as "{EXAMPLE_ADDRESS}", or calls.')
        return (_call(self.to, self.data, self.value),)

    def own_gas(self) -> tuple[int | None, ...]:
        """The gas limit that the wallet sets for each call, in order; empty: for none."""
        return ()

    def own_nonces(self) -> tuple[int | None, ...]:
        """The nonce that the wallet sets for each call, in order; empty: for none."""
        return ()

    def own_fees(self) -> tuple[OwnFees | None, ...]:
        """The fees that the wallet sets for each call, in order; empty: for none."""
        return ()


class SentParams(SimulateParams, frozen=True, forbid_unknown_fields=True):
    """The same as a wallet's own transaction objects give it. ``gas``: the gas limit of each call, in order;
    None: the object names none. ``nonce`` and ``fees``: likewise. They are no parameters that are listed:
    wallets write them."""

    gas: tuple[int | None, ...] = ()
    nonce: tuple[int | None, ...] = ()
    fees: tuple[OwnFees | None, ...] = msgspec.field(default=(), name="maxFeePerGas")

    def own_gas(self) -> tuple[int | None, ...]:
        """The gas limit that the wallet sets for each call."""
        return self.gas

    def own_nonces(self) -> tuple[int | None, ...]:
        """The nonce that the wallet sets for each call."""
        return self.nonce

    def own_fees(self) -> tuple[OwnFees | None, ...]:
        """The fees that the wallet sets for each call."""
        return self.fees


def _call(to: str, data: str, value: str) -> Call:
    if not _HEX.fullmatch(data):
        raise ParamFault("bad_input", 'data must be 0x and whole bytes in hex, such as "0xa9059cbb".')
    if not _VALUE.fullmatch(value):
        raise ParamFault("bad_input", f"value must be a whole number of wei in quotes, {_EXAMPLE_WEI}.")
    wei = int(value, 16 if value.startswith("0x") else 10)
    if wei > _MAX_WEI:
        raise ParamFault("bad_input", f"value must be less than 2^256 wei, {_EXAMPLE_WEI}.")
    return Call(read_address(to, "to", "bad_input"), data.lower(), wei)
