# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token whose functions lie in facets
@notice It looks up the facet of each function by the selector.
"""

# Behind what the facets keep.
before: uint256[64]
facets: HashMap[bytes4, address]


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, facet: address):
    self.facets[method_id("name()", output_type=bytes4)] = facet
    self.facets[method_id("symbol()", output_type=bytes4)] = facet
    self.facets[method_id("decimals()", output_type=bytes4)] = facet
    self.facets[method_id("totalSupply()", output_type=bytes4)] = facet
    self.facets[method_id("balanceOf(address)", output_type=bytes4)] = facet
    self.facets[method_id("allowance(address,address)", output_type=bytes4)] = facet
    self.facets[method_id("approve(address,uint256)", output_type=bytes4)] = facet
    self.facets[method_id("transfer(address,uint256)", output_type=bytes4)] = facet
    self.facets[method_id("transferFrom(address,address,uint256)", output_type=bytes4)] = facet
    raw_call(
        facet,
        abi_encode(
            name, symbol, supply, msg.sender,
            method_id=method_id("initialize(string,string,uint256,address)"),
        ),
        is_delegate_call=True,
    )


@external
@raw_return
def __default__() -> Bytes[1024]:
    facet: address = self.facets[convert(slice(msg.data, 0, 4), bytes4)]
    assert facet != empty(address), "no such function"
    return raw_call(facet, msg.data, max_outsize=1024, is_delegate_call=True)
