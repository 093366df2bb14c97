"""The gas limits that the caller's own wallet sets: whether the calls go through with them."""

from roundtrip.chain.wallet.calls import WalletCalls
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.trade.judge import CallResult, RunResult
from roundtrip.domain.trade.text import failure_clause
from roundtrip.services.trade.touched_assets import AssetsToWatch, WalletCase, enough
from roundtrip.services.trade.wallet_run import received_tokens, run_watched, same_effects
from roundtrip.venues.base import Call

_OUT_OF_GAS = "out of gas"
_DIFFERENT = Missing("token", "with the wallet's own gas limit the calls do something else")
_TRANSACTION_GAS, _ZERO_BYTE_GAS, _BYTE_GAS = 21_000, 10, 40
"""The least that a transaction costs (EIP-7623): a node runs none with a lower limit."""


async def run_with_own_gas(
    case: WalletCase, look: AssetsToWatch, rehearsed: RunResult, balance_wei: int
) -> RunResult | Missing | None:
    """The run with the wallet's own gas limits, where a call fails with them; Missing: it could not be found
    out. None: they are enough, or it sets none. ``rehearsed``: the run with plenty of gas, which goes
    through."""
    limits = _bound_limits(case, rehearsed)
    if limits is None:
        return None
    refused = _find_refused(case, rehearsed, limits)
    if refused is not None:
        return _fail_at(rehearsed, refused, limits[refused])
    calls = WalletCalls(case.wallet, case.calls, limits, None)
    if case.fund:
        sent = calls.with_plenty()
    else:
        sent = calls.as_sent(rehearsed, balance_wei, case.environment, case.ctx.policy)
    run = await run_watched(case, [sent], look, case.meter)
    ran = run.single.proven(run.look)
    if isinstance(ran, Missing) or ran.has_reverted():
        return ran
    return None if same_effects(rehearsed, ran) or not received_tokens(case, ran) else _DIFFERENT


def describe_own_gas(case: WalletCase, rehearsed: RunResult, failed: RunResult) -> str:
    """The sentence for a call that fails with the wallet's own gas limits, and with more does not."""
    number = next(number for number, call in enumerate(failed.calls) if not call.ok)
    call, used = failed.calls[number], rehearsed.calls[number].gas_used
    limit = case.own_gas[number]
    which = "It" if len(failed.calls) == 1 else f"Call {number + 1} of {len(failed.calls)}"
    if limit is None:
        return f"{which} would fail{failure_clause(call.reason)}: an earlier call gets too little gas."
    more = f"with more it goes through and uses {used:,}"
    if call.reason == _OUT_OF_GAS or call.gas_used * 10 >= limit * 9:
        return f"{which} would run out of gas: its gas limit is {limit:,}, and {more}."
    return f"{which} would fail{failure_clause(call.reason)}: its gas limit is {limit:,}, and {more}."


def _bound_limits(case: WalletCase, rehearsed: RunResult) -> tuple[int, ...] | None:
    """The gas limits of the run: the wallet's own, of others as much as is plenty. None: all are plenty."""
    plenty = enough(case, rehearsed).gas_limits
    own = case.own_gas or (None,) * len(plenty)
    pairs = zip(own, plenty, strict=True)
    limits = tuple(most if limit is None else min(limit, most) for limit, most in pairs)
    return None if limits == plenty else limits


def _find_refused(case: WalletCase, rehearsed: RunResult, limits: tuple[int, ...]) -> int | None:
    """The number of the first call that no node runs with its limit; None: there is none."""
    for number, (call, ran, limit) in enumerate(zip(case.calls, rehearsed.calls, limits, strict=True)):
        if limit < min(ran.gas_used, _least_gas(call)):
            return number
    return None


def _least_gas(call: Call) -> int:
    data = bytes.fromhex(call.data.removeprefix("0x"))
    zeros = data.count(0)
    return _TRANSACTION_GAS + zeros * _ZERO_BYTE_GAS + (len(data) - zeros) * _BYTE_GAS


def _fail_at(rehearsed: RunResult, number: int, limit: int) -> RunResult:
    """The run of which call ``number`` is refused for its gas limit. Nothing counts as moved."""
    later = len(rehearsed.calls) - number - 1
    calls = (
        *rehearsed.calls[:number],
        CallResult(False, limit, _OUT_OF_GAS),
        *[CallResult(False, 0, "")] * later,
    )
    return RunResult(calls, (), (), (0,) * len(calls), rehearsed.gas_price_wei)
