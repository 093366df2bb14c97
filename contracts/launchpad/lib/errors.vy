# pragma version 0.4.3
"""
@title The launchpad's errors
@notice Each reverts with the error's selector and its arguments.
"""


@internal
@pure
def _curve_graduated():
    raw_revert(method_id("CurveGraduated()"))


@internal
@pure
def _zero_amount():
    raw_revert(method_id("ZeroAmount()"))


@internal
@pure
def _native_value_mismatch():
    raw_revert(method_id("NativeValueMismatch()"))


@internal
@pure
def _unexpected_native_value():
    raw_revert(method_id("UnexpectedNativeValue()"))


@internal
@pure
def _slippage_exceeded(got: uint256, wanted: uint256):
    raw_revert(abi_encode(got, wanted, method_id=method_id("SlippageExceeded(uint256,uint256)")))
