# pragma version 0.4.3
"""
@title Native eth and ERC-20 tokens alike
@notice The zero address stands for native eth.
"""

from ethereum.ercs import IERC20

from . import errors

interface Escrow:
    def credit(account: address, asset: address, amount: uint256): payable


@internal
def _collect(asset: address, payer: address, amount: uint256, sent: uint256):
    # Takes what a call brings: its value must be the native amount, or nothing.
    if asset == empty(address):
        if sent != amount:
            errors._native_value_mismatch()
    else:
        if sent != 0:
            errors._unexpected_native_value()
        assert extcall IERC20(asset).transferFrom(payer, self, amount, default_return_value=True)


@internal
def _pay(asset: address, to: address, amount: uint256):
    if amount == 0:
        return
    if asset == empty(address):
        raw_call(to, b"", value=amount)
    else:
        assert extcall IERC20(asset).transfer(to, amount, default_return_value=True)


@internal
def _credit(escrow: address, account: address, asset: address, amount: uint256):
    # Leaves an amount at the escrow for someone to fetch.
    if amount == 0:
        return
    if asset == empty(address):
        extcall Escrow(escrow).credit(account, asset, amount, value=amount)
    else:
        assert extcall IERC20(asset).approve(escrow, amount, default_return_value=True)
        extcall Escrow(escrow).credit(account, asset, amount)
