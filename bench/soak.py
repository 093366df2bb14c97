"""Loads the whole service at twice what it sustains, for long: what grows, falls behind, and is answered.

    PYTHONPATH=src:tests python -m bench.soak [--minutes 30] [--processes 2] [--rate 0] [--slow 1000]

``roundtrip demo --actors --processes N`` as a stranger runs it on one machine, with an embedded PostgreSQL,
and a load of its own process on the same machine (``soak_load``, ``soak_mix``).

The **sustainable load** is the highest rate, found by doubling and then three halvings of the gap, at which
for twelve seconds p95 of all answers stays under ``BOUND_MS``, no answer is busy, and nothing is lost;
times count from when a request was due. Twice that is then offered for so many minutes, whether or not
answers come.

**Flat** is what tests/support/flatness.py says, with the allowances of ``ALLOWED``. These caches fill up to a
bound of their own, which a mix of so many different questions does not reach: answers that are shared, 10,000
a process; minutes of callers, 100,000; what each connection to PostgreSQL knows of tables. What a bounded
one adds shows as ``fills``, and what goes on rising as ``rises``. Rows are not caches: evidence of every
check is kept, so the database's size is printed and not judged; nor is the local chain's node, which keeps
every block.

Ends with 1 where a figure of ours rises or is high, a process ended, an answer was wrong (a known trap that
is not ``danger`` or ``unknown``, a fair token that is not ``ok`` or ``unknown``), an answer was not a
documented one, more than one in a thousand was lost or not sent, or what was answered at twice the load was
not soon (``ANSWERED_MS``, ``BUSY_MS``).
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import free_port
from support.flatness import Allowance, Course, course

from .soak_mix import Plan
from .soak_plan import plan_for
from .soak_watch import Watch
from .watched import Watched, started

PROJECT = Path(__file__).resolve().parents[1]
BOUND_MS = 500.0
FIRST_RATE, STEP_S, HALVINGS, WARM_S = 25.0, 12.0, 3, 40.0
ANSWERED_MS, BUSY_MS = 2500.0, 1500.0
"""p95 at twice the load, by the median of the windows: of answers, and of busy ones."""
MAX_LOST = 0.001
SAMPLE_S = 5.0
STREAMS, SLOW = 30, 20
_SAYS_EVERY_S = 60.0
ALLOWED = {
    "memory, MB": Allowance(0.04, 8.0),
    # Each of its connections keeps the files of tables open that it has read, up to a thousand.
    "PostgreSQL: descriptors": Allowance(0.5, 2000.0),
    "descriptors": Allowance(0.1, 10.0),
    "threads": Allowance(0.1, 2.0),
    "metrics, ms": Allowance(0.5, 300.0),
    "connections": Allowance(0.1, 3.0),
    "blocks behind": Allowance(0.5, 2.0, most=30.0),
    "seconds behind": Allowance(0.5, 2.0, most=30.0),
    "jobs due": Allowance(0.2, 10.0),
    "deliveries that wait": Allowance(0.2, 10.0),
    "answered p95, ms": Allowance(0.3, 200.0, most=ANSWERED_MS),
    "busy p95, ms": Allowance(0.3, 200.0, most=BUSY_MS),
    "requests waiting": Allowance(0.2, 50.0),
}
"""By the end of a figure's name; what is not here is printed, and not judged."""
_NOT_OURS = "the chain's node"


@dataclass
class Answers:
    """The results of a load, window by window."""

    windows: list[dict[str, Any]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    callers: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    slow: dict[str, dict[str, int]] = field(default_factory=dict)

    def take(self, window: dict[str, Any]) -> None:
        """One more."""
        self.windows.append(window)
        self.outcomes.update(window["outcomes"])
        self.kinds.update(window["by_kind"])
        self.callers.update(window["callers"])
        self.wrong.update(window["wrong"])

    def total(self, name: str) -> int:
        """Of all windows."""
        return sum(int(window[name]) for window in self.windows)

    def middle_ms(self, name: str) -> list[float]:
        """The medians of the windows' p50, p95 and p99."""
        found = [window[name] for window in self.windows if window[name]]
        return [statistics.median(each) for each in zip(*found, strict=True)]

    def of_kinds(self) -> dict[str, list[float]]:
        """The same by kind."""
        found: dict[str, list[list[float]]] = {}
        for window in self.windows:
            for kind, times in window["kind_ms"].items():
                found.setdefault(kind, []).append(times)
        return {
            kind: [statistics.median(each) for each in zip(*times, strict=True)]
            for kind, times in found.items()
        }

    def sustained(self, most_busy: float = 0.0) -> bool:
        """Whether this load can be borne; its first window does not count. ``most_busy``: the share of busy
        answers that is borne."""
        later = self.windows[1:] or self.windows
        refused = sum(self.outcomes[code] for code in ("busy", "page 503"))
        refused = refused if refused > most_busy * self.total("offered") else 0
        p95 = [window["answered_ms"][1] for window in later if window["answered_ms"]]
        fine = refused + self.total("unsent") + self.total("lost") == 0
        return fine and bool(p95) and max(p95) < BOUND_MS


class Loading:
    """The load's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def offer(self, rate: float, seconds: float, watch: Watch | None = None, **more: int) -> Answers:
        """So many a second for so long."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"rate": rate, "seconds": seconds, **more}
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        found, said_s = Answers(), time.perf_counter()
        async for line in self._process.stdout:
            window = json.loads(line)
            if "done" in window:
                found.slow = {"came": window["slow"], "ended": window["ended"]}
                return found
            found.take(window)
            if watch is None:
                continue
            if window["answered_ms"]:
                watch.put("load: answered p95, ms", window["answered_ms"][1])
            watch.put("load: busy p95, ms", window["busy_ms"][1] if window["busy_ms"] else 0.0)
            watch.put("load: requests waiting", window["waiting"])
            if time.perf_counter() - said_s > _SAYS_EVERY_S:
                said_s = time.perf_counter()
                print(f"  {_briefly(window)}", flush=True)
        raise SystemExit("the load ended")


def _briefly(window: dict[str, Any]) -> str:
    per_s = window["spent_s"] or 1.0
    said = ", ".join(f"{code} {count / per_s:.0f}/s" for code, count in window["outcomes"].items())
    return f"{said}; p50, p95, p99 {window['answered_ms']} ms, {window['waiting']} wait"


@contextlib.asynccontextmanager
async def loading(plan: Plan, folder: Path, seed: int) -> AsyncIterator[Loading]:
    """Ended at the end."""
    (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.soak_load", str(folder / "plan.json"), str(seed)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**22,
        cwd=PROJECT,
    )
    try:
        yield Loading(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def sustainable(load: Loading, most_busy: float = 0.0) -> float:
    """The highest rate that was borne, within a gap of an eighth of a doubling. Raises SystemExit."""
    await load.offer(FIRST_RATE, STEP_S)
    rate, borne = FIRST_RATE, 0.0
    while await _is_borne(load, rate, most_busy):
        borne, rate = rate, rate * 2
    if not borne:
        raise SystemExit(f"not even {FIRST_RATE:.0f} requests a second are borne")
    for _ in range(HALVINGS):
        middle = (borne + rate) / 2
        if await _is_borne(load, middle, most_busy):
            borne = middle
        else:
            rate = middle
    return borne


async def _is_borne(load: Loading, rate: float, most_busy: float) -> bool:
    answers = await load.offer(rate, STEP_S)
    borne = answers.sustained(most_busy)
    p95 = answers.middle_ms("answered_ms")[1:2]
    said = {code: count for code, count in answers.outcomes.items() if code != "ok"}
    print(f"  {rate:.0f} a second: {'borne' if borne else 'too much'}, p95 {p95} ms, {said}", flush=True)
    # What was too much is let go of.
    await asyncio.sleep(0.0 if borne else 3.0)
    return borne


def told(watch: Watch, answers: Answers) -> list[str]:
    """Prints the table; what is not as it should be."""
    print("| figure | start | middle | end | most | an hour | |\n|---|---|---|---|---|---|---|")
    faults = []
    for name, samples in sorted(watch.series.items()):
        allowed = next((rule for end, rule in ALLOWED.items() if name.endswith(end)), None)
        if len(samples) < 6:
            continue
        found = course(samples, allowed or Allowance(0.0, 0.0))
        judged = allowed is not None and not name.startswith(_NOT_OURS)
        print(_row(name, found, found.says if judged else "not judged"))
        if judged and found.says in ("rises", "high"):
            faults.append(f"{name} {found.says}: {found.start:.1f}, {found.middle:.1f}, {found.end:.1f}")
    return faults + [f"a process ended: {name}" for name in watch.left] + _faults_of(answers)


def _row(name: str, found: Course, says: str) -> str:
    figures = " | ".join(f"{value:.1f}" for value in (found.start, found.middle, found.end, found.most))
    return f"| {name} | {figures} | {found.per_hour:+.1f} | {says} |"


def _faults_of(answers: Answers) -> list[str]:
    offered = answers.total("offered")
    faults = [f"wrong, {count} times: {what}" for what, count in answers.wrong.most_common(10)]
    faults += [
        f"{answers.total(name)} of {offered} {name}"
        for name in ("lost", "unsent")
        if answers.total(name) > MAX_LOST * offered
    ]
    if not answers.outcomes["ok"]:
        faults.append("nothing was answered")
    return faults


def tell_answers(answers: Answers) -> None:
    """Prints the results of the load."""
    spent_s = sum(window["spent_s"] for window in answers.windows)
    offered = answers.total("offered")
    for name in ("answered_ms", "busy_ms"):
        found = ", ".join(f"{value:.0f}" for value in answers.middle_ms(name))
        print(f"{name.removesuffix('_ms')}: p50, p95, p99 {found or '-'} ms (medians of the windows)")
    print(
        f"{offered / spent_s:.0f} requests a second for {spent_s:.0f} s; {answers.total('unsent')} not sent, "
        f"{answers.total('lost')} lost, {answers.total('again')} sent twice; {answers.total('events')} events"
    )
    print("\n| answer | a second | share |\n|---|---|---|")
    for code, count in answers.outcomes.most_common():
        print(f"| {code} | {count / spent_s:.1f} | {count / offered:.2%} |")
    print("\n| kind | p50 | p95 | p99 |\n|---|---|---|---|")
    for kind, times in sorted(answers.of_kinds().items()):
        print(f"| {kind} | " + " | ".join(f"{value:.0f}" for value in times) + " |")
    print("\nby kind: " + "; ".join(f"{kind} {count}" for kind, count in sorted(answers.kinds.items())))
    print(f"slow clients: {answers.slow}")


def environment(folder: Path, port: int, database_url: str, metrics: int, code: Path) -> dict[str, str]:
    """Settings as they come, except the limits of callers: the load has some thousand, and must be
    admitted."""
    return {
        "PYTHONPATH": str(code / "src"),
        "ROUNDTRIP_VAR": str(folder),
        "ROUNDTRIP_PORT": str(port),
        "ROUNDTRIP_RPC_PORT": str(free_port()),
        "ROUNDTRIP_DATABASE_URL": database_url,
        "ROUNDTRIP_METRICS_PORT": str(metrics),
        "ROUNDTRIP_ANON_PER_MINUTE": "600",
        "ROUNDTRIP_VIEWS_PER_MINUTE": "600",
        "ROUNDTRIP_KEY_PER_MINUTE": "6000",
        "ROUNDTRIP_KEY_PER_DAY": str(10**9),
    }


@contextlib.asynccontextmanager
async def service(
    folder: Path, processes: int, code: Path = PROJECT, actors: bool = True
) -> AsyncIterator[tuple[Watched, int, Watch]]:
    """The demo of the project in ``code``, its port, and what watches it; ended at the end. ``actors``:
    wallets that trade all the time."""
    for kept in ("devnet", "artifacts"):
        (folder / kept).symlink_to(PROJECT / "var" / kept)
    port, metrics = free_port(), free_port()
    command = [sys.executable, "-m", "roundtrip", "demo", "--processes", str(processes)]
    command += ["--actors"] if actors else []
    command += ["--genesis", str(world.GENESIS_S)]
    async with EmbeddedPostgres(folder / "database") as server:
        given = environment(folder, port, server.dsn, metrics, code)
        with started(command, given, folder / "log", code) as demo:
            async with asyncio.timeout(120):
                while "Press Ctrl-C to stop." not in demo.log.read_text():
                    demo.check()
                    await asyncio.sleep(0.1)
            names = [f"serve {number}" for number in range(1, processes + 1)] if processes > 1 else ["parent"]
            names += ["sync 1", "sync 2", "work 1"] if processes > 1 else []
            ports = {name: metrics + place for place, name in enumerate(names)}
            yield demo, port, Watch(demo.process.pid, os.getpid(), ports, server.dsn)


def tell_log(log: Path) -> None:
    """Prints what the service said that it should not have."""
    found: Counter[str] = Counter()
    for line in log.read_text(errors="replace").splitlines():
        with contextlib.suppress(ValueError, AttributeError):
            said = json.loads(line)
            if said.get("level") in ("error", "critical", "warning"):
                found[f"{said['level']}: {said.get('event')} {str(said.get('error', ''))[:100]}"] += 1
    for event, count in found.most_common(15):
        print(f"  log, {count} times: {event}")


async def main(asked: argparse.Namespace, folder: Path) -> list[str]:
    """One run; what is not as it should be."""
    async with service(folder, asked.processes) as (demo, port, watch):
        plan = await plan_for(port, watch.database_url, folder)
        known = len(plan.levels)
        print(
            f"{len(plan.tokens)} tokens, of {known} of them it is known what a check has to say", flush=True
        )
        async with loading(plan, folder, asked.seed) as load:
            rate = asked.rate or await sustainable(load)
            print(f"sustainable: {rate:.0f} requests a second; offered: {2 * rate:.0f}", flush=True)
            more = {"streams": STREAMS, "slow": asked.slow}
            # Until as many connections are kept as will be.
            await load.offer(2 * rate, WARM_S, **more)
            watch.begin()
            watching = asyncio.create_task(watch.run(SAMPLE_S))
            answers = await load.offer(2 * rate, asked.minutes * 60, watch, **more)
            watching.cancel()
        demo.check()
        print(f"\n{os.cpu_count()} processors, {asked.minutes:g} minutes, {asked.processes} serving\n")
        faults = told(watch, answers)
        print()
        tell_answers(answers)
        tell_log(demo.log)
        return faults


def tell_end(faults: Sequence[str]) -> None:
    """In plain words. Raises SystemExit."""
    for fault in faults:
        print(f"NOT WELL: {fault}")
    if faults:
        raise SystemExit(1)
    print("All of ours is flat, and every answer was as it should be.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.0, help="sustainable, where it is known")
    parser.add_argument("--slow", type=int, default=SLOW, help="slow clients beside it")
    parser.add_argument("--seed", type=int, default=14)
    options = parser.parse_args()
    world.build(world.DevnetFolders(PROJECT, PROJECT / "var"), print)
    with (
        tempfile.TemporaryDirectory() as scratch,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        tell_end(runner.run(main(options, Path(scratch))))
