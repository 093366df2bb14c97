# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token that runs the logic that its beacon names
"""

interface Beacon:
    def implementation() -> address: view

BEACON: immutable(address)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, beacon: address):
    BEACON = beacon
    raw_call(
        staticcall Beacon(beacon).implementation(),
        abi_encode(
            name, symbol, supply, msg.sender,
            method_id=method_id("initialize(string,string,uint256,address)"),
        ),
        is_delegate_call=True,
    )


@external
@raw_return
def __default__() -> Bytes[1024]:
    return raw_call(staticcall Beacon(BEACON).implementation(), msg.data, max_outsize=1024, is_delegate_call=True)
