# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A contract without a way out
@notice It accepts every NFT, and can do nothing with it.
"""


@external
def onERC721Received(operator: address, sender: address, tokenId: uint256, data: Bytes[1024]) -> bytes4:
    return method_id("onERC721Received(address,address,uint256,bytes)", output_type=bytes4)
