# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Says no from some block number on
"""

END: immutable(uint256)


@deploy
def __init__(end: uint256):
    END = end


@external
@view
def isOpen() -> bool:
    return block.number < END
