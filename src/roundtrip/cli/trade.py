"""The commands that simulate a wallet's calls and prepare its trades, over a node alone."""

import argparse
import asyncio
import json
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

from .judging import ArgumentReader, worst_exit

_EPILOG = "Exit code: 0 ok, 1 warn, 2 danger, 3 unknown, 64 wrong arguments."
_LONGEST = 4000
"""Characters of a printed line."""


def read_simulate() -> ArgumentReader:
    """The arguments of ``simulate``."""
    reader = ArgumentReader(
        "roundtrip simulate",
        description="Runs a wallet's calls in a simulation and sells straight back what they bring.",
        epilog=_EPILOG,
    )
    reader.add_argument(
        "--from", dest="sender", required=True, metavar="WALLET", help="the wallet that sends"
    )
    reader.add_argument("--to", metavar="ADDRESS", help="the address to call")
    reader.add_argument("--data", metavar="HEX", help="the calldata; left out: none")
    reader.add_argument("--value", metavar="WEI", help="the eth to send along, in wei; left out: none")
    reader.add_argument(
        "--calls", metavar="JSON", type=json.loads,
        help='several calls in place of these, such as \'[{"to": "0x…", "data": "0x…", "value": "0"}]\'',
    )  # fmt: skip
    reader.add_argument("--fund", action="store_true", help="run as if the wallet held plenty of eth")
    reader.add_node()
    return reader


def run_simulate(arguments: list[str]) -> int:
    """Runs the command; returns the exit code. Raises CallerFault, NodeFault."""
    given = read_simulate().parse_args(arguments)
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


def read_prepare() -> ArgumentReader:
    """The arguments of ``prepare``."""
    reader = ArgumentReader(
        "roundtrip prepare",
        description="Writes a trade for your wallet to sign, simulated before. Nothing is signed or sent.",
        epilog=_EPILOG + " A refused trade: 2 or 3. roundtrip verify-trade proves the answer of --json.",
    )
    reader.add_argument("side", choices=("buy", "sell"))
    reader.add_argument("token", metavar="TOKEN", help="the token's address")
    reader.add_argument(
        "--from", dest="sender", required=True, metavar="WALLET", help="the wallet that signs"
    )
    reader.add_argument(
        "--amount", required=True, help="of a buy: eth or usdg to spend; of a sell: tokens to sell, or all"
    )
    reader.add_argument(
        "--slippage-bps",
        type=int,
        default=100,
        help="how much less is accepted; left out: 100, which is 1 %%",
    )
    reader.add_argument("--fund", action="store_true", help="rehearse a buy as if there were plenty of eth")
    reader.add_node()
    return reader


def run_prepare(arguments: list[str]) -> int:
    """Runs the command; returns the exit code. Raises CallerFault, NodeFault."""
    given = read_prepare().parse_args(arguments)
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
        raise CallerFault("bad_input", describe_mismatch(kind, command, (), str(error))) from None


def _run(given: argparse.Namespace, use_case: Callable[[Context], Awaitable[UseCaseAnswer[Any]]]) -> Any:
    """The use case's answer; with --json also prints it, in the API's own bytes."""

    async def ask() -> Any:
        url = given.rpc or given.network.rpc_url
        async with open_node_context(url, given.network, TIMEOUT_S) as ctx:
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
