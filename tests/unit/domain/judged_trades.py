"""Trades and what they came to, to be judged."""

from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.trade.judge import CallResult, Exit, ExitFinding, WalletChanges, judge_exit, judge_trade
from roundtrip.domain.trade.text import sentence
from unit.domain.builders import NODE
from unit.domain.trades import ran, received, way

Seeds = st.integers(0, 10**9)


SPENDER, OTHER = Address("0x" + "44" * 20), Address("0x" + "55" * 20)


FAILED = CallResult(False, 30_000, "paused")


DONE = CallResult(True, 30_000, None)


TRADED = WalletChanges(spent=True, received=True)


def of(code_: str, loss_bps: int | None = None) -> ExitFinding:
    gap = NODE if code_ == "unproven" else None
    return ExitFinding(received(way()), code_, loss_bps=loss_bps, missing=gap)


def text_of(one: Exit) -> str:
    found = judge_exit(one, POLICY)
    return sentence(judge_trade(ran(), (found,), TRADED, POLICY), ran(), None, POLICY)
