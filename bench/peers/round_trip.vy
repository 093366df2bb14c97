# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Buys a token and sells it again in one call
@notice Does the calls that a wallet would do, as the wallet, one after another
        in one block, and tells what its balances came to. `paid_in` is the
        zero address for eth. Put at an address by a state override it is
        asked by `round_trip`; made in an eth_call it does all of it before
        it has any code, and tells by reverting.
"""

struct Step:
    target: address
    value: uint256
    data: Bytes[2048]
    patch: uint256  # where the amount to sell stands in `data`; 0: nowhere

struct Outcome:
    refused: uint256  # the number of the first call that failed, from 1 on; 0: none
    bought: uint256
    sold: uint256
    paid: uint256
    back: uint256

BALANCE_GAS: constant(uint256) = 1_000_000


@deploy
@payable
def __init__(
    token: address,
    paid_in: address,
    money: DynArray[Step, 8],
    buys: DynArray[Step, 4],
    sells: DynArray[Step, 4],
):
    raw_revert(abi_encode(self._round_trip(token, paid_in, money, buys, sells)))


@external
@payable
def __default__():
    pass


@external
@payable
def round_trip(
    token: address,
    paid_in: address,
    money: DynArray[Step, 8],
    buys: DynArray[Step, 4],
    sells: DynArray[Step, 4],
) -> Outcome:
    return self._round_trip(token, paid_in, money, buys, sells)


@internal
def _round_trip(
    token: address,
    paid_in: address,
    money: DynArray[Step, 8],
    buys: DynArray[Step, 4],
    sells: DynArray[Step, 4],
) -> Outcome:
    out: Outcome = empty(Outcome)
    number: uint256 = 0
    for step: Step in money:
        assert self._done(step, 0), "no money"
    held: uint256 = self._balance(paid_in)
    for step: Step in buys:
        number += 1
        if not self._done(step, 0):
            out.refused = number
            return out
    out.bought = self._balance(token)
    left: uint256 = self._balance(paid_in)
    out.paid = held - min(held, left)
    for step: Step in sells:
        number += 1
        if not self._done(step, out.bought):
            out.refused = number
            return out
    out.sold = out.bought - min(out.bought, self._balance(token))
    after: uint256 = self._balance(paid_in)
    out.back = after - min(after, left)
    return out


@internal
def _done(step: Step, amount: uint256) -> bool:
    data: Bytes[4128] = step.data
    if step.patch > 0:
        at: uint256 = step.patch
        data = concat(
            slice(step.data, 0, at),
            convert(amount, bytes32),
            slice(step.data, at + 32, len(step.data) - at - 32),
        )
    return raw_call(step.target, data, value=step.value, revert_on_failure=False)


@internal
@view
def _balance(asset: address) -> uint256:
    if asset == empty(address):
        return self.balance
    done: bool = False
    told: Bytes[32] = b""
    done, told = raw_call(
        asset,
        abi_encode(self, method_id=method_id("balanceOf(address)")),
        max_outsize=32,
        gas=BALANCE_GAS,
        is_static_call=True,
        revert_on_failure=False,
    )
    if not done or len(told) != 32:
        return 0
    return convert(told, uint256)
