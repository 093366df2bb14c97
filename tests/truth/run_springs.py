"""Tokens that spring on some wallets only: what checks say of each, by spring.

``python -m truth.run_springs N [SEED]`` or ``--case '{...}'``; best called by ``make long NAME=springs``.
"""

import argparse
import asyncio
import secrets
import sys
import time
from collections import defaultdict
from math import comb

from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.fixtures import PROJECT
from truth.spring_trial import SpringTrial, tried
from truth.springs import SPRINGS, SpringCase, drawn, parse

_AT_ONCE = 300
"""Cases on one node, which keeps a little of every block it ever made."""


def main() -> int:
    """Runs, prints, and gives 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="truth.run_springs", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=340)
    parser.add_argument("seed", nargs="?", type=int)
    parser.add_argument("--case", help="a line that an earlier run printed")
    parser.add_argument("--checks", type=int, default=3, help="of each token")
    parser.add_argument("--first", type=int, default=0, help="the number of the first check")
    parser.add_argument("--only", default="", help="springs whose name begins so")
    asked = parser.parse_args()
    if asked.case:
        cases = [parse(asked.case)]
    else:
        with_seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
        print(f"seed {with_seed}")
        names = tuple(name for name in SPRINGS if name.startswith(asked.only))
        cases = drawn(asked.count, with_seed, names)
    began = time.monotonic()
    trials = [
        trial
        for n in range(0, len(cases), _AT_ONCE)
        for trial in _run(cases[n : n + _AT_ONCE], asked.checks, asked.first)
    ]
    checks = sum(len(trial.results) for trial in trials)
    print(f"\n{len(trials)} cases, {checks} checks in {time.monotonic() - began:.0f} s\n\n{table(trials)}")
    met = not faults(trials[0]) if asked.case else bar_is_met(trials)
    return 0 if met else 1


def _run(cases: list[SpringCase], checks: int, first: int) -> list[SpringTrial]:
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    with world.start_world(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as rpc:
        return [_shown(asyncio.run(tried(rpc, built, case, checks, first)), first) for case in cases]


def _shown(trial: SpringTrial, first: int) -> SpringTrial:
    wrong = faults(trial)
    if wrong:
        flags = f"--checks 1 --first {first + wrong[0][0]}"
        print(f"{trial.case.spring}: {'; '.join(sorted({text for _, text in wrong}))}")
        print(f"  again: make long NAME=springs CASE='{trial.case.text()}' FLAGS='{flags}'", flush=True)
    return trial


def faults(trial: SpringTrial) -> list[tuple[int, str]]:
    """What is wrong, by the check's number: an ok for a trap, a false trap, a plain token that is not ok."""
    label, wrong = trial.case.row().label, []
    if trial.otherwise:
        wrong.append((0, f"the label is wrong: {trial.otherwise}"))
    for number, result in enumerate(trial.results):
        if label == "trap" and result.level == "ok":
            wrong.append((number, "missed"))
        elif label != "trap" and result.code == "cannot_sell":
            wrong.append((number, f"false trap: {result.text}"))
        elif label == "plain" and result.level != "ok":
            wrong.append((number, f"not ok: {result.text}"))
    return wrong


_BARS = {"address, 1 in 8": (0.95, 0.999), "marked at the buy, 1 in 8": (0.95, 0.999)}
"""The least shares that one check and three checks catch."""
_BY_CHANCE = 0.01
"""A result that is less probable than this is no accident."""


def bar_is_met(trials: list[SpringTrial]) -> bool:
    """No false trap, no plain token that is not ok, no wrong label, and as much caught as it takes."""
    for trial in trials:
        if any(text != "missed" for _, text in faults(trial)):
            return False
    for name, (least_single, least_of_three) in _BARS.items():
        of_it = [trial for trial in trials if trial.case.spring == name]
        single = [caught for trial in of_it for caught in trial.caught()]
        of_three = [caught for trial in of_it for caught in trial.caught_of_three()]
        if not (may_catch(least_single, single) and may_catch(least_of_three, of_three)):
            return False
    return True


def may_catch(share: float, caught: list[bool]) -> bool:
    """Whether checks that catch this share of a trap miss so many of these, or more, in one run of 100. A run
    of 18 checks that each miss once in 50 misses two by chance in one run of 20."""
    count, missed = len(caught), caught.count(False)
    fewer = (comb(count, n) * (1 - share) ** n * share ** (count - n) for n in range(missed))
    return 1 - sum(fewer) > _BY_CHANCE


def table(trials: list[SpringTrial]) -> str:
    """A row for each spring."""
    rows = defaultdict(list)
    for trial in trials:
        rows[trial.case.spring].append(trial)
    head = ("spring", "label", "tokens", "checks", "not ok", "of three", "cannot_sell", "unknown", "wrong")
    lines = [head, *(_line(name, rows[name]) for name in SPRINGS if name in rows)]
    wide = [max(len(line[n]) for line in lines) for n in range(len(head))]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, wide, strict=True)) for line in lines]
    return "\n".join(line.rstrip() for line in [*shown, "", *_sums(trials)])


def _line(name: str, trials: list[SpringTrial]) -> tuple[str, ...]:
    results = [result for trial in trials for result in trial.results]
    caught = [c for trial in trials for c in trial.caught()]
    of_three = [c for trial in trials for c in trial.caught_of_three()]
    return (
        name,
        SPRINGS[name].label,
        str(len(trials)),
        str(len(results)),
        _share(caught),
        _share(of_three),
        str(sum(result.code == "cannot_sell" for result in results)),
        str(sum(result.level == "unknown" for result in results)),
        str(sum(bool(trial.otherwise) for trial in trials)),
    )


def _share(caught: list[bool]) -> str:
    return f"{sum(caught) / len(caught):.1%}" if caught else "-"


def _sums(trials: list[SpringTrial]) -> list[str]:
    traps = [trial for trial in trials if trial.case.row().label == "trap"]
    plain = [result for trial in trials if trial.case.row().label == "plain" for result in trial.results]
    return [
        f"traps, one check: {_share([c for trial in traps for c in trial.caught()])} caught",
        f"traps, three checks: {_share([c for trial in traps for c in trial.caught_of_three()])} caught",
        f"false traps: {sum(trial.false_traps() for trial in trials)}",
        f"plain tokens that are not ok: {sum(result.level != 'ok' for result in plain)}",
        f"labels that wallets did not meet: {sum(bool(trial.otherwise) for trial in trials)}",
    ]


if __name__ == "__main__":
    sys.exit(main())
