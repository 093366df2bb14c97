"""Functions read from real solidity contracts as they stand on a chain, against what is known of them."""

import pytest

from roundtrip.chain.owner.owner_setters import find
from roundtrip.venues.abi import selector
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built

CHANGING = {
    "weth": {"deposit()": "()", "withdraw(uint256)": "(uint256)"},
    "v3Factory": {
        "createPool(address,address,uint24)": "(address,address,uint24)",
        "enableFeeAmount(uint24,int24)": "(uint24,int24)",
        "setOwner(address)": "setOwner(address)",
    },
    "v4StateView": {},
}
"""What each has beside plain reads and what holders call for themselves, with what it is called here: a name
from our own table, or the types behind the selector."""


@pytest.mark.parametrize("name", CHANGING)
def test_what_changes_something_is_found_with_its_types_and_what_reads_is_not(
    rpc: SyncRpc, built: Built, name: str
) -> None:
    code = bytes.fromhex(rpc.call("eth_getCode", built.contracts[name], "latest")[2:])
    found = find(code)
    expected = {
        known if not known.startswith("(") else selector(signature) + known
        for signature, known in CHANGING[name].items()
    }
    assert {setter.name for setter in found.setters} == expected
