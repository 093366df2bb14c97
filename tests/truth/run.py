"""Thousands of composed tokens: what the check says of each beside what real wallets meet.

``python -m truth.run N [SEED]`` or ``python -m truth.run --case '{...}'``; best called by
``make long NAME=truth``. With ``--real`` each answer is compared with that over a real geth instead.
"""

import argparse
import asyncio
import contextlib
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator

from roundtrip_development.devnet import world
from roundtrip_development.devnet.deploy import ContractDeployer, calldata
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.fixtures import PROJECT
from truth.cases import Case, drawn, parse
from truth.geth_table import compare_on_geth
from truth.node_checks import run_judgement
from truth.trial import Trial, deploy_case, tried

_MAX_UNKNOWN = 0.01
_AT_ONCE = 500
"""Cases on one node, which keeps a little of every block it ever made."""
_AT_ONCE_ON_GETH, _MONEY_WEI = 30, 10**28
"""Cases that stand on one chain at once, until its usdg is spent, and what fills their pools."""


def main() -> int:
    """Runs, prints, and gives 1 where the bar is missed or a verdict was another one."""
    parser = argparse.ArgumentParser(prog="truth.run", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=2000)
    parser.add_argument("seed", nargs="?", type=int)
    parser.add_argument("--case")
    parser.add_argument("--real", action="store_true", help="answers over a real geth beside anvil's")
    asked = parser.parse_args()
    if asked.case:
        (trial,) = _run([parse(asked.case)])
        if trial.agrees():
            print(trial.story())
        return 0 if trial.agrees() else 1
    with_seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    print(f"seed {with_seed}")
    cases, began = drawn(asked.count, with_seed), time.monotonic()
    if asked.real:
        return 0 if _run_real(cases) else 1
    trials = [trial for n in range(0, len(cases), _AT_ONCE) for trial in _run(cases[n : n + _AT_ONCE])]
    print(f"{len(trials)} cases in {time.monotonic() - began:.0f} s\n")
    print(table(trials))
    return 0 if bar_is_met(trials) else 1


@contextlib.contextmanager
def _chain() -> Iterator[tuple[SyncRpc, world.Built]]:
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    with world.start_world(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as rpc:
        yield rpc, built


def _run(cases: list[Case]) -> list[Trial]:
    with _chain() as (rpc, built):
        return [_shown(asyncio.run(tried(rpc, built, case))) for case in cases]


def _run_real(cases: list[Case]) -> bool:
    parts = [cases[n : n + _AT_ONCE_ON_GETH] for n in range(0, len(cases), _AT_ONCE_ON_GETH)]
    equal = [_compare_part(part) for part in parts]
    return all(equal)


def _compare_part(cases: list[Case]) -> bool:
    with _chain() as (rpc, built):
        account = rpc.call("eth_accounts")[0]
        rpc.call("anvil_setBalance", account, hex(_MONEY_WEI))
        ContractDeployer(rpc, account).send(built.contracts["weth"], calldata("deposit()"), _MONEY_WEI // 2)
        tokens = {case.text(): deploy_case(rpc, built, case)[0] for case in cases}
        return asyncio.run(compare_on_geth(rpc, built, tokens, run_judgement))


def _shown(trial: Trial) -> Trial:
    false = trial.false_ok() or trial.false_trap()
    odd = false or trial.wrong_words() or trial.overlooked() or trial.cells or trial.unmet
    if odd or not trial.agrees():
        print(trial.story(), end="\n\n", flush=True)
    return trial


def bar_is_met(trials: list[Trial]) -> bool:
    """No false ok, no false trap, no other verdict than what wallets met, unknown under one in a hundred."""
    wrong = [t for t in trials if t.wrong_words() or t.unmet or (not t.agrees() and not t.unknown())]
    false = [trial for trial in trials if trial.false_ok() or trial.false_trap()]
    unknown = sum(trial.unknown() for trial in trials)
    return not wrong and not false and unknown < max(1, _MAX_UNKNOWN * len(trials))


def table(trials: list[Trial]) -> str:
    """The confusion table: a row for what wallets met, a column for what the verdict said."""
    counts = Counter((_met(trial), "/".join(trial.said)) for trial in trials)
    rows = sorted({met for met, _ in counts})
    columns = sorted({text for _, text in counts})
    wide = max(map(len, ["met \\ said", *rows])) + 2
    lines = ["met \\ said".ljust(wide) + "  ".join(columns)]
    for row in rows:
        cells = (str(counts[row, column] or ".").rjust(len(column)) for column in columns)
        lines.append(row.ljust(wide) + "  ".join(cells))
    unknown = sum(trial.unknown() for trial in trials)
    lines += [
        "",
        f"false ok: {sum(trial.false_ok() for trial in trials)}",
        f"false traps: {sum(trial.false_trap() for trial in trials)}",
        f"unknown: {unknown} ({unknown / len(trials):.2%})",
        f"other disagreements: {sum(not t.agrees() and not t.unknown() for t in trials)}",
        f"sentences that say something else of parts: {sum(bool(t.wrong_words()) for t in trials)}",
        f"sentences that overlook what sells in another pool: {sum(bool(t.overlooked()) for t in trials)}",
        f"what a crowd met and a real wallet of its manner did not: {sum(len(t.unmet) for t in trials)}",
        f"simulated sells that differ from the real ones: {sum(len(trial.cells) for trial in trials)}",
    ]
    return "\n".join(lines)


def _met(trial: Trial) -> str:
    """What wallets met; where a figure lies on a line and the verdict is allowed, that one."""
    return "/".join(trial.said if trial.agrees() else min(text for text, _ in trial.allowed))


if __name__ == "__main__":
    sys.exit(main())
