"""What the simulation's form reads from pasted calls."""

import json

import pytest

from roundtrip.api.dispatch import read_params
from roundtrip.api.operations.catalog import find_operation
from roundtrip.console.pages.trade import read_calls
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address
from roundtrip.services.trade.simulate_params import SimulateParams
from roundtrip.services.trade.simulation_answer import Simulation
from roundtrip.venues.base import Call

WALLET, STRANGER, TOKEN = ("0x" + digit * 40 for digit in "a12")
DATA = "0x095ea7b3" + STRANGER[2:].rjust(64, "0") + "f" * 64
APPROVE = {"to": TOKEN, "input": DATA}
TYPED = {"type": "0x2", "maxFeePerGas": "0x1", **APPROVE}
SIMULATE = find_operation("simulate_transaction", SimulateParams, Simulation)


def read(pasted: object, **form: str) -> SimulateParams:
    """The parameters as the operation gets them."""
    params = read_calls({"from": WALLET, "calls": json.dumps(pasted), **form})
    read = read_params(SIMULATE, params, chain_id=4663)
    assert isinstance(read, SimulateParams)
    return read


@pytest.mark.parametrize(
    "pasted",
    [
        APPROVE,
        [APPROVE],
        {"calls": [APPROVE]},
        {"from": WALLET.upper().replace("X", "x"), "chainId": "0x1237", "value": "0x0", **TYPED},
        [{"from": WALLET, **APPROVE}],
        {"version": "2.0.0", "id": "0x1", "atomicRequired": True, "from": WALLET, "calls": [APPROVE]},
        {"capabilities": {"paymasterService": {}}, "calls": [{"capabilities": {}, **APPROVE}]},
        {
            "blockHash": None, "blockNumber": None, "transactionIndex": None, "hash": "0x" + "1" * 64,
            "r": "0x1", "s": "0x1", "v": "0x0", "yParity": "0x0", "blockTimestamp": "0x1", **APPROVE,
            "accessList": [],
        },
    ],
)  # fmt: skip
def test_a_wallets_own_transaction_runs_with_its_data(pasted: object) -> None:
    assert read(pasted).own_calls() == (Call(Address(TOKEN), DATA),)
    assert read(pasted).wallet() == WALLET


def test_a_wallets_own_limits_reach_the_run() -> None:
    sent = read({"gas": "0x5208", "nonce": 7, **APPROVE}, fund="1")
    assert (sent.own_gas(), sent.own_nonces(), sent.fund) == ((21_000,), (7,), True)


@pytest.mark.parametrize(
    ("pasted", "said"),
    [
        ({"from": STRANGER, **APPROVE}, "not from the wallet above"),
        ([{"from": STRANGER, **APPROVE}], "not from the wallet above"),
        ({"from": STRANGER, "calls": [APPROVE]}, "not from the wallet above"),
        ({"chainId": "0x1", **APPROVE}, "chainId must be 4663"),
        ([{"chainId": 1, **APPROVE}], r"calls\[0\]\.chainId must be 4663"),
        ({"data": "0x", **APPROVE}, "data and input differ"),
        ({"authorizationList": [], **APPROVE}, '"authorizationList" is not an argument'),
        ([{"gasLimit": "0x5208", **APPROVE}], '"gasLimit" is not an argument of calls'),
        ({"method": "eth_sendTransaction", "params": [APPROVE]}, '"(method|params)" is not an argument'),
        ({"calls": 1}, "calls must be a list"),
        ([1], "The calls must be a JSON list"),
        (1, "The calls must be a JSON list"),
    ],
)
def test_what_cannot_run_as_it_was_pasted_is_refused(pasted: object, said: str) -> None:
    with pytest.raises(CallerFault, match=said):
        read(pasted)


@pytest.mark.parametrize(
    ("eth", "wei"),
    [
        ("0.1", 10**17),
        (" 2 ", 2 * 10**18),
        ("0,5", 5 * 10**17),
        ("", 0),
        ("0", 0),
        ("0.000000000000000001", 1),
    ],
)
def test_the_fields_value_is_in_eth(eth: str, wei: int) -> None:
    params = read_calls({"from": WALLET, "to": TOKEN, "eth": eth})
    read = read_params(SIMULATE, params, chain_id=4663)
    assert isinstance(read, SimulateParams)
    assert read.own_calls() == (Call(Address(TOKEN), "0x", wei),)


@pytest.mark.parametrize("eth", ["1e18", "-1", "0x10", "one", "0.0000000000000000001", "9" * 78])
def test_a_value_that_is_no_number_of_eth_is_told(eth: str) -> None:
    with pytest.raises(CallerFault, match="number of ETH"):
        read_calls({"from": WALLET, "to": TOKEN, "eth": eth})
