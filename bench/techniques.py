"""Our check beside the techniques that others use: who is right about which token, and how soon.

    make bench NAME=techniques, or: PYTHONPATH=src:tests python -m bench.techniques [--rounds 3] [--misses]

Every token of the zoo (``zoo``), on one local node, asked in turns by each technique (``other_techniques``)
and by our check, cold; then real wallets trade each token (``zoo_truth``). Printed: the table, and with
--misses each token that a technique is wrong about, by name.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from roundtrip.app.build import open_context
from roundtrip.chain.rpc.client import Meter
from roundtrip.config.networks import contracts_from
from roundtrip.config.settings import Settings
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc

from .figures import Table, keep
from .other_techniques import (
    Answer,
    Level,
    Technique,
    compiled_helper,
    helper_at_caller,
    helper_in_creation,
    quoter,
    selectors,
    transfer,
)
from .timing import Times
from .zoo import Case, cases
from .zoo_truth import Kind, Met, bought_before, met

PROJECT = Path(__file__).resolve().parents[1]
OURS = "our check"
RIGHT: dict[Kind, tuple[Level, ...]] = {
    "fair": ("ok",),
    "snag": ("warn",),
    "trap": ("danger",),
    "closed": ("warn", "danger"),
}
"""Which levels are right. For a token that cannot be bought, anything but ok is."""
HEADS = (
    "technique", "traps called fine", "traps only warned of", "fair called traps", "fair warned of",
    "snags called fine", "snags called traps", "cannot tell", "right", "median ms", "p95 ms", "trips",
)  # fmt: skip


@dataclass(slots=True)
class Tried:
    """What one technique said of each token at first, every level it ever gave, and what asking it took."""

    answers: dict[str, Answer] = field(default_factory=dict)
    levels: dict[str, set[Level]] = field(default_factory=dict)
    times_ms: list[float] = field(default_factory=list)
    trips: list[int] = field(default_factory=list)

    def add(self, case: Case, answer: Answer, took_ms: float, trips: int) -> None:
        """One more answer."""
        self.answers.setdefault(case.name, answer)
        self.levels.setdefault(case.name, set()).add(answer.level)
        self.times_ms.append(took_ms)
        self.trips.append(trips)


def ours(ctx: Context) -> Technique:
    """The check as the service makes it, not through shared answers; its evidence is kept."""

    async def ask(_: object, __: object, case: Case, meter: Meter) -> Answer:
        answered = await check(ctx, CheckParams(case.token))
        assert answered.meter is not None
        meter.trips = answered.meter.trips
        verdict, trade = answered.answer.verdict, answered.answer.trade
        loss_bps = trade.round_trip_loss_bps if trade is not None else None
        return Answer(verdict.level, loss_bps, verdict.code)

    return ask


async def tried(
    ctx: Context, techniques: dict[str, Technique], found: list[Case], rounds: int
) -> dict[str, Tried]:
    """Every token asked of every technique, in turns; the first round's answers count, its times do not."""
    told = {name: Tried() for name in techniques}
    for number in range(rounds + 1):
        for case in found:
            for name, technique in techniques.items():
                meter, began = Meter(), time.perf_counter()
                answer = await technique(ctx.node, ctx.contracts, case, meter)
                took_ms = (time.perf_counter() - began) * 1000
                told[name].add(case, answer, took_ms, meter.trips)
        if number == 0:
            for one in told.values():
                one.times_ms.clear()
    return told


# --- what it came to -------------------------------------------------------------------------------


def count(answers: dict[str, Answer], truth: dict[str, Met]) -> Counter[tuple[Kind, Level]]:
    """Tokens by what they are and what was said of them."""
    return Counter((truth[name].kind, answers[name].level) for name in truth)


def row(name: str, one: Tried, truth: dict[str, Met]) -> list[str]:
    """One technique's line."""
    found, times = count(one.answers, truth), Times(one.times_ms)
    of = Counter(met.kind for met in truth.values())
    right = sum(found[kind, level] for kind, levels in RIGHT.items() for level in levels)
    cells = [
        f"{found['trap', 'ok']} of {of['trap']}", f"{found['trap', 'warn']}",
        f"{found['fair', 'danger']} of {of['fair']}", f"{found['fair', 'warn']}",
        f"{found['snag', 'ok']} of {of['snag']}", f"{found['snag', 'danger']}",
        f"{sum(found[kind, 'unknown'] for kind in RIGHT)}", f"{right} of {len(truth)}",
        f"{times.median:.1f}", f"{times.p95:.1f}", f"{statistics.median(one.trips):g}",
    ]  # fmt: skip
    return [name, *cells]


def misses(told: dict[str, Tried], truth: dict[str, Met]) -> list[str]:
    """By technique and kind of mistake, the tokens."""
    lines = []
    for name, one in told.items():
        wrong: dict[tuple[Kind, Level], list[str]] = {}
        for case, was in truth.items():
            level = one.answers[case].level
            if level not in RIGHT[was.kind]:
                wrong.setdefault((was.kind, level), []).append(case)
        for (kind, level), names in sorted(wrong.items()):
            lines.append(f"{name}: {kind} called {level} ({len(names)}): {', '.join(names)}")
        unsteady = [
            f"{case} ({', '.join(sorted(levels))})" for case, levels in one.levels.items() if len(levels) > 1
        ]
        if unsteady:
            lines.append(f"{name}: not the same each time: {', '.join(unsteady)}")
    return lines


def for_some(told: dict[str, Tried], found: list[Case]) -> list[str]:
    """Of tokens that refuse some wallets only, which a technique ever called fine: one line each."""
    names = [case.name for case in found if case.for_some]
    lines = []
    for name, one in told.items():
        fine = [case for case in names if "ok" in one.levels[case]]
        lines.append(f"{name}: {len(fine)} of {len(names)} called fine: {', '.join(fine) or 'none'}")
    return lines


def measure(rpc: SyncRpc, built: world.Built, rounds: int) -> tuple[list[Case], dict[str, Tried]]:
    """With a service's context over the node, every technique tried."""
    creation, runtime = compiled_helper()
    print("putting the zoo on the chain", flush=True)
    found = [bought_before(rpc, built, case) for case in cases(rpc, built, lambda _: None)]

    async def run() -> dict[str, Tried]:
        with tempfile.TemporaryDirectory() as folder:
            async with (
                EmbeddedPostgres(Path(folder)) as server,
                open_context(Settings(), rpc.url, contracts_from(built.contracts), server.dsn) as ctx,
            ):
                await ctx.heads.refresh()
                techniques: dict[str, Technique] = {
                    OURS: ours(ctx),
                    "helper contract, code at its caller": helper_at_caller(runtime),
                    "helper contract, in its constructor": helper_in_creation(creation),
                    "quoter": quoter,
                    "transfer to a dead address": transfer,
                    "function names in the code": selectors,
                }
                return await tried(ctx, techniques, found, rounds)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return found, runner.run(run())


def main() -> None:
    """Builds or finds the local chain, asks everybody, then trades."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--misses", action="store_true", help="names of the tokens")
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    with world.start_world(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as rpc:
        found, told = measure(rpc, built, asked.rounds)
        print("trading each token for real", flush=True)
        truth = {case.name: met(rpc, built, case) for case in found if not case.for_some}
    apart = len(found) - len(truth)
    table = Table(
        f"{len(truth)} tokens ({apart} more are counted apart), asked {asked.rounds} times each",
        HEADS,
        [row(name, one, truth) for name, one in told.items()],
    )  # fmt: skip
    print(table.text())
    print("\nof tokens that refuse some wallets, or some manners of trading:")
    print("\n".join(for_some(told, found)))
    if asked.misses:
        print("\n" + "\n".join(misses(told, truth)))
    keep(asked.keep, [table])


if __name__ == "__main__":
    main()
