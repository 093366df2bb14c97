"""A wallet's own transaction object, as parameters of a simulation."""

from typing import Any

import pytest
from msgspec.structs import replace

from roundtrip.api.dispatch import read_params
from roundtrip.api.documents.tool_schemas import params_schema
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.domain.base.errors import ParamFault
from roundtrip.services.trade.own_sending import SendingFault, compare_fees, compare_nonces
from roundtrip.services.trade.simulate_params import OwnFees, SimulateParams
from roundtrip.services.trade.wallet_transaction import WALLET_FIELDS

A, B = "0x" + "1" * 40, "0x" + "2" * 40
OF_WALLETS = (
    "what wallets write: input, gas, nonce, chainId, type, gasPrice, maxFeePerGas, maxPriorityFeePerGas, "
    "accessList"
)
SIMULATE = next(operation for operation in OPERATIONS if operation.name == "simulate_transaction")
SENT = {
    "from": A,
    "to": B,
    "gas": "0x186a0",
    "maxFeePerGas": "0x3b9aca00",
    "maxPriorityFeePerGas": "0x0",
    "nonce": "0x1",
    "chainId": "0x1237",
    "type": "0x2",
    "value": "0x0",
    "accessList": [{"address": B, "storageKeys": ["0x" + "0" * 64]}],
}


def read(**given: Any) -> SimulateParams:
    params = read_params(SIMULATE, given, chain_id=4663)
    assert isinstance(params, SimulateParams)
    return params


def test_a_wallets_transaction_is_read() -> None:
    plain = read(**{"from": A, "to": B, "data": "0xd0e30db0", "value": "0x0"})
    assert plain.own_gas() == ()
    limited = replace(plain, gas=(100_000,), nonce=(1,), fees=(OwnFees(10**9, 0),))
    assert read(**SENT, data="0xd0e30db0") == limited
    assert read(**SENT, input="0xd0e30db0") == limited
    assert read(**SENT, data="0xD0E30DB0", input="0xd0e30db0").own_calls() == plain.own_calls()
    assert read(
        **{**SENT, "type": 0, "gasPrice": 7, "chainId": "4663", "nonce": None}, data="0xd0e30db0"
    ) == replace(limited, nonce=())
    assert read(**{**SENT, "chainId": 4663}, data="0xd0e30db0") == limited
    assert read(**{**SENT, "gas": None}, data="0xd0e30db0") == replace(limited, gas=())
    priced = read(**{"from": A, "to": B, "gasPrice": 7, "maxPriorityFeePerGas": None})
    assert priced.own_fees() == (OwnFees(7, None),)
    assert read(**{**SENT, "gas": 2**256}).own_gas() == (2**63 - 1,)
    assert read(**{**SENT, "nonce": 2**256}).own_nonces() == (2**63 - 1,)


def test_so_are_calls() -> None:
    calls = [{"to": B, "input": "0x01", "gas": "0x1"}, {"to": B, "chainId": "0x1237", "nonce": 5}]
    plain = read(**{"from": A, "calls": [{"to": B, "data": "0x01"}, {"to": B}]})
    assert (plain.own_gas(), plain.own_nonces(), plain.own_fees()) == ((), (), ())
    limited = read(**{"from": A, "calls": calls, "chainId": "0x1237"})
    assert limited == replace(plain, gas=(1, None), nonce=(None, 5))


@pytest.mark.parametrize(
    ("nonces", "fault"),
    [
        ((4,), None),
        ((4, 5), None),
        ((None, 5), None),
        (
            (9,),
            SendingFault(
                0,
                "Its nonce is 9, but 4 comes next: it waits until the wallet has used the nonces before it.",
            ),
        ),
        (
            (3,),
            SendingFault(
                0, "Its nonce is 3, but 4 comes next: the chain refuses a nonce that is used.", True
            ),
        ),
        (
            (4, 4),
            SendingFault(1, "The nonce of call 2 is 4, as that of a call before it: one is refused.", True),
        ),
    ],
)
def test_a_nonce_out_of_turn_is_said(nonces: tuple[int | None, ...], fault: SendingFault | None) -> None:
    assert compare_nonces(nonces, 4) == fault


@pytest.mark.parametrize(("nonces", "refused"), [((9, 0), 1), ((9, 9), 1), ((None, 4), 1), ((None, 3), 1)])
def test_a_refused_nonce_comes_before_one_that_waits(nonces: tuple[int | None, ...], refused: int) -> None:
    fault = compare_nonces(nonces, 4)
    assert fault is not None
    assert (fault.number, fault.is_refused) == (refused, True)


def test_calls_in_another_order_than_their_nonces_are_not_refused() -> None:
    first = compare_nonces((5, 4), 4)
    assert first is not None
    assert (first.number, first.is_refused) == (0, False)
    assert compare_nonces((None, 6, 5), 3) == SendingFault(
        1,
        "The nonce of call 2 is 6, but 4 comes next: it waits until the wallet has used the nonces before "
        "it.",
    )
    assert compare_nonces((4, None, 5), 4) == SendingFault(
        2, "The nonce of call 3 is 5, as that of a call before it: one is refused.", True
    )


def test_a_refused_fee_comes_before_one_that_waits() -> None:
    fault = compare_fees((OwnFees(1, None), OwnFees(10**9, 2 * 10**9)), 10**9)
    assert fault is not None
    assert (fault.number, fault.is_refused) == (1, True)


@pytest.mark.parametrize(
    ("fees", "fault"),
    [
        ((), None),
        ((None, OwnFees(None, 5)), None),
        ((OwnFees(10**9, 10**9),), None),
        (
            (OwnFees(10**9 - 1, None),),
            SendingFault(
                0,
                "Its highest fee is 0.9999 gwei for a unit of gas, below the base fee of 1 gwei: it waits "
                "until that falls.",
            ),
        ),
        (
            (None, OwnFees(10**9, 2 * 10**9)),
            SendingFault(
                1,
                "The highest fee of call 2 is 1 gwei for a unit of gas, below its tip of 2 gwei: the chain "
                "refuses that.",
                True,
            ),
        ),
    ],
)
def test_a_fee_that_the_chain_does_not_take_is_said(
    fees: tuple[OwnFees | None, ...], fault: SendingFault | None
) -> None:
    assert compare_fees(fees, 10**9) == fault


def test_the_published_parameters_have_no_gas() -> None:
    assert not {"gas", "nonce"} & params_schema(SIMULATE)["properties"].keys()
    with pytest.raises(ParamFault) as refused:
        read(**SENT, gass=1)
    assert refused.value.message.endswith(
        f"Did you mean gas? It takes from, to, data, value, calls, fund, and {OF_WALLETS}."
    )


def test_a_call_names_what_wallets_write_too() -> None:
    with pytest.raises(ParamFault) as refused:
        read(**{"from": A, "calls": [{"to": B, "gasLimit": 1}]})
    assert refused.value.message.endswith(f"calls[0]. It takes to, data, value, and {OF_WALLETS}.")


@pytest.mark.parametrize("name", WALLET_FIELDS)
def test_what_a_message_names_is_taken(name: str) -> None:
    values = {"input": "0x01", "type": 2, "chainId": 4663, "accessList": []}
    assert read(**{"from": A, "to": B, name: values.get(name, 1)}).wallet() == A


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"chainId": "0x1"}, "chainId must be 4663"),
        ({"chainId": 1}, "chainId must be 4663"),
        ({"chainId": "x"}, "chainId must be"),
        ({"chainId": True}, "chainId must be"),
        ({"data": "0x", "input": "0x01"}, "data and input differ"),
        ({"input": 7}, "data must be"),
        ({"input": "0x1"}, "data must be"),
        ({"gas": "-1"}, "gas must be"),
        ({"gas": -1}, "gas must be"),
        ({"gas": 1.5}, "gas must be"),
        ({"gas": [7]}, "gas must be"),
        ({"nonce": ""}, "nonce must be"),
        ({"gasPrice": "1e9"}, "gasPrice must be"),
        ({"maxFeePerGas": "1 gwei"}, "maxFeePerGas must"),
        ({"maxPriorityFeePerGas": []}, "maxPriorityFeePerGas"),
        ({"type": "0x4"}, "type must be 0, 1 or 2"),
        ({"type": 3}, "type must be 0, 1 or 2"),
        ({"accessList": {}}, "accessList must be"),
        ({"accessList": [B]}, "accessList must be"),
        ({"accessList": [{"address": B, "storageKeys": ["0x1"]}]}, "accessList must be"),
        ({"authorizationList": []}, '"authorizationList" is not an argument'),
        ({"blobs": []}, '"blobs" is not an argument'),
        ({"calls": [{"to": B, "chainId": "0x1"}]}, "calls[0].chainId must be 4663"),
        (
            {"calls": [{"to": B}, {"to": B, "data": "0x", "input": "0x00"}]},
            "calls[1].data and calls[1].input",
        ),
        ({"calls": [7]}, "calls[0] must be an object"),
        ({"nonce": 0, "calls": [{"to": B}]}, "nonce must be inside a call, such as calls[0].nonce."),
        ({"maxFeePerGas": "0x1", "calls": [{"to": B}]}, "maxFeePerGas must be inside a call"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], name: str) -> None:
    with pytest.raises(ParamFault) as refused:
        read(**{"from": A, "to": B, **given})
    assert refused.value.code == "bad_input"
    assert refused.value.message.startswith(name)
