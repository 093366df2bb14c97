"""The commands that simulate a wallet's calls and prepare its trades, over a node alone."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from roundtrip.api.request.param_errors import describe_mismatch
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.names import clean
from roundtrip.library.checker import TIMEOUT_S
from roundtrip.library.node_context import open_node_context
from roundtrip.services.rehearsal.verdict import ShortCheck
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import read_address
from roundtrip.services.support.money import ETH_DECIMALS, AssetAmount, parse_amount
from roundtrip.services.trade.prepare import (
    PrepareBuyParams,
    PreparedTrade,
    PrepareSellParams,
    prepare_buy,
    prepare_sell,
)
from roundtrip.services.trade.simulate import simulate
from roundtrip.services.trade.simulate_params import SimulateParams
from roundtrip.services.trade.simulation_answer import Simulation
from roundtrip.services.trade.wallet_transaction import read_wallet_transaction

from .judging import node_of, worst_exit

_LONGEST = 4000
"""Characters of a printed line."""


def run_simulate(given: argparse.Namespace) -> int:
    """Runs the command; returns the exit code. Raises CallerFault, NodeFault."""
    named = {"from": given.sender, "to": given.to, "data": given.data, "value": given.value}
    written = read_wallet_transaction({**named, "calls": given.calls, "fund": given.fund}, None)
    params = _read_params("simulate", SimulateParams, written)
    # Refuses a wrong wallet or call before a node is asked.
    params.wallet(), params.own_calls()
    answer: Simulation = _run(given, lambda ctx: simulate(ctx, params))
    if not given.json:
        _print(answer.verdict.level.upper(), answer.verdict.text)
        _print("spends", f"{_format_amounts(answer.spent)}")
        _print("receives", f"{_format_amounts(answer.received)}")
        for approval in answer.approvals:
            _print("approves", f"{approval.spender} for {approval.amount or 'all'} of {approval.token}")
        _print_check(answer.check)
        _print("as of", f"block {answer.block:,}")
    checked = [] if answer.check is None else [answer.check.verdict.level]
    return worst_exit([answer.verdict.level, *checked])


def run_prepare(given: argparse.Namespace) -> int:
    """Runs the command; returns the exit code. Raises CallerFault, NodeFault."""
    named = {
        "token": given.token,
        "from": given.sender,
        "amount": given.amount,
        "slippageBps": given.slippage_bps,
    }
    for name, address in (("TOKEN", given.token), ("--from", given.sender)):
        read_address(address, name, "bad_input")
    if given.side == "buy":
        parse_amount(given.amount, ETH_DECIMALS, "eth")
        buy = _read_params("prepare buy", PrepareBuyParams, {**named, "fund": given.fund})
        answer: PreparedTrade = _run(given, lambda ctx: prepare_buy(ctx, buy))
    else:
        sell = _read_params("prepare sell", PrepareSellParams, named)
        sell.share()
        answer = _run(given, lambda ctx: prepare_sell(ctx, sell))
    if not given.json:
        _print_trade(answer)
    if answer.refused:
        return worst_exit(["danger" if answer.verdict.level in ("ok", "warn") else answer.verdict.level])
    # The check counts for a buy alone: selling a trap is no mistake.
    checked = [answer.check.verdict.level] if answer.side == "buy" else []
    return worst_exit([answer.verdict.level, *checked])


def _print_trade(answer: PreparedTrade) -> None:
    _print(answer.verdict.level.upper(), answer.verdict.text)
    _print("spends", f"{_format_amounts([answer.spend])}")
    _print("expects", f"{answer.expect.amount} {answer.expect.symbol or answer.expect.asset}, at least "
           f"{answer.expect.min}")  # fmt: skip
    _print_check(answer.check)
    _print("as of", f"block {answer.block:,}, valid until {answer.valid_until:%Y-%m-%d %H:%M:%S} UTC")
    for step in answer.steps:
        _print(f"step {step.n}", step.does)
        _print("", f"to {step.to}, value {step.value} wei, gas {step.gas}")
        print(f"{'':<10}data {step.data}")


def _read_params(command: str, kind: type[Any], named: Mapping[str, object]) -> Any:
    """The parameters of a use case; those that are None are left out. Raises CallerFault."""
    try:
        return msgspec.convert({name: value for name, value in named.items() if value is not None}, kind)
    except msgspec.ValidationError as error:
        raise CallerFault("bad_input", describe_mismatch(kind, command, str(error))) from None


def _run(given: argparse.Namespace, use_case: Callable[[Context], Awaitable[UseCaseAnswer[Any]]]) -> Any:
    """The use case's answer; with --json also prints it, in the API's own bytes."""

    async def ask() -> Any:
        async with open_node_context(*node_of(given), TIMEOUT_S) as ctx:
            return (await use_case(ctx)).answer

    answer = asyncio.run(ask())
    if given.json:
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()
    return answer


def _print_check(check: ShortCheck | None) -> None:
    if check is not None:
        flags = f" Flags: {', '.join(check.flags)}." if check.flags else ""
        _print("check", f"{check.verdict.level}: {check.verdict.text}{flags}")


def _format_amounts(amounts: Iterable[AssetAmount]) -> str:
    return ", ".join(f"{each.amount} {each.symbol or ''} ({each.asset})" for each in amounts) or "nothing"


def _print(label: str, text: str) -> None:
    """Prints a line, which may hold strangers' text, without what could move the cursor."""
    print(f"{label:<10}{clean(text, _LONGEST)}")
