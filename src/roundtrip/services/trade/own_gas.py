"""The gas limits that the caller's own wallet sets: whether the calls go through with them."""

from collections.abc import Mapping

from roundtrip.chain.wallet.calls import WalletCalls
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.trade.judge import CallResult, RunResult
from roundtrip.domain.trade.text import failure_clause
from roundtrip.services.trade.touched_assets import AssetsToWatch, WalletCase, allow_used_gas
from roundtrip.services.trade.wallet_run import received_tokens, run_watched, same_effects
from roundtrip.venues.base import Call

_OUT_OF_GAS = "out of gas"
_DIFFERENT = Missing("token", "with the wallet's own gas limit the calls do something else")
_TRANSACTION_GAS, _ZERO_BYTE_GAS, _BYTE_GAS = 21_000, 10, 40
"""The least that a transaction costs (EIP-7623): a node runs none with a lower limit."""


async def run_with_own_gas(
    case: WalletCase, assets: AssetsToWatch, rehearsed: RunResult, balance_wei: int
) -> RunResult | Missing | None:
    """The run with the wallet's own gas limits, where a call fails with its own; Missing: it could not be
    found out. None: they are enough, or it sets none. ``rehearsed``: the run with plenty of gas, which goes
    through."""
    own = _find_given(case)
    if not own:
        return None
    limits = tuple(
        own.get(number, max(limit, case.first_gas()))
        for number, limit in enumerate(allow_used_gas(case, rehearsed).gas_limits)
    )
    refused = _find_refused(case, rehearsed, own)
    if refused is not None:
        return _fail_at(rehearsed, refused, limits[refused])
    calls = WalletCalls(case.wallet, case.calls, limits, None)
    if case.fund:
        sent = calls.with_plenty()
    else:
        sent = calls.as_sent(rehearsed, balance_wei, case.environment, case.ctx.policy)
    run = await run_watched(case, [sent], assets, case.meter)
    ran = run.single.proven(run.assets)
    if isinstance(ran, Missing):
        return ran
    if ran.has_reverted():
        return ran if _find_failed(ran) in own else None
    return None if same_effects(rehearsed, ran) or not received_tokens(case, ran) else _DIFFERENT


def describe_own_gas(case: WalletCase, rehearsed: RunResult, failed: RunResult) -> str:
    """The sentence for a call that fails with the wallet's own gas limit, and with another does not."""
    number = _find_failed(failed)
    call, limit, used = failed.calls[number], case.own_gas[number], rehearsed.calls[number].gas_used
    assert limit is not None
    which = "It" if len(failed.calls) == 1 else f"Call {number + 1} of {len(failed.calls)}"
    # The rehearsal had ``first_gas`` or ``most_gas``: which of both is not known here.
    than = "more" if limit < max(case.first_gas(), used) else "another"
    more = f"its gas limit is {limit:,}, and with {than} it goes through and uses {used:,}"
    if call.reason == _OUT_OF_GAS or call.gas_used * 10 >= limit * 9:
        return f"{which} would run out of gas: {more}."
    return f"{which} would fail{failure_clause(call.reason)}: {more}."


def _find_failed(ran: RunResult) -> int:
    return next(number for number, call in enumerate(ran.calls) if not call.ok)


def _find_given(case: WalletCase) -> dict[int, int]:
    """The wallet's gas limits, by the number of the call, as far as one simulation has so much."""
    return {
        number: min(limit, case.most_gas()) for number, limit in enumerate(case.own_gas) if limit is not None
    }


def _find_refused(case: WalletCase, rehearsed: RunResult, own: Mapping[int, int]) -> int | None:
    """The number of the first call that no node runs with its limit; None: there is none."""
    for number, limit in own.items():
        if limit < min(rehearsed.calls[number].gas_used, _least_gas(case.calls[number])):
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
