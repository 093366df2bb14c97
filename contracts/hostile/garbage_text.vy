# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Name and symbol that are not text
@notice The token trades honestly, but its name and symbol are bytes that are not
        valid UTF-8, or an answer whose text lies outside of the answer.
"""

from ..tokens.lib import erc20

initializes: erc20

exports: (
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    erc20.transfer,
    erc20.transferFrom,
)

# No byte sequence of these is valid UTF-8.
GARBAGE: constant(Bytes[12]) = x"fffe80c0afeda080f8880000"

# Whether the encoding of the answer itself is wrong.
MALFORMED: public(immutable(bool))


@deploy
def __init__(supply: uint256, malformed: bool):
    erc20.__init__("", "", 18, supply)
    MALFORMED = malformed


@internal
@view
def _text() -> Bytes[96]:
    if MALFORMED:
        # The place of the text, its length, and nothing at that place.
        return abi_encode(max_value(uint256) - 31, max_value(uint256))
    return abi_encode(GARBAGE)


@external
@view
@raw_return
def name() -> Bytes[96]:
    return self._text()


@external
@view
@raw_return
def symbol() -> Bytes[96]:
    return self._text()
