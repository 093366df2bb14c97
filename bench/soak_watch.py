"""What the processes of a service hold, from outside: by /proc, by their metrics, by the database."""

import asyncio
import contextlib
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import asyncpg

from roundtrip.store.server.rows import Connection

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SAMPLE = re.compile(r"^(roundtrip_\w+)(?:\{(.*)\})? ([-+.0-9e]+)$", re.M)
_METRICS_S = 20.0


def tree(pid: int) -> dict[str, list[int]]:
    """The processes under one, itself with them, by what they are, each list in the order of their start."""
    found: dict[str, list[int]] = {}
    below, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        below.append(one)
        with contextlib.suppress(OSError):
            waiting += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
    for one in sorted(below):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{one}/cmdline").read_bytes().decode(errors="replace").split("\0")
            found.setdefault(_role(words), []).append(one)
    return found


def _role(words: list[str]) -> str:
    for name in ("anvil", "valkey-server", "postgres"):
        if name in words[0]:
            return name
    if "roundtrip" in words:
        told = words[words.index("roundtrip") + 1]
        return told if told in ("serve", "sync", "work") else "parent"
    return "other"


@dataclass(slots=True)
class Held:
    """What processes hold, together. ``memory_mb``: resident; of PostgreSQL's, which share memory, each has
    its part of that."""

    memory_mb: float = 0.0
    descriptors: int = 0
    threads: int = 0

    def add(self, pid: int, shared: bool) -> None:
        """One more; one that has ended adds nothing."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            self.memory_mb += _memory_mb(pid, shared)
            self.descriptors += len(os.listdir(f"/proc/{pid}/fd"))
            self.threads += len(os.listdir(f"/proc/{pid}/task"))


def _memory_mb(pid: int, shared: bool) -> float:
    if not shared:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES / 2**20
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


@dataclass(slots=True)
class Watch:
    """Samples of a service. ``metrics``: ports, by the name of the process. ``series``: by figure, (seconds
    since the start, value). ``left``: processes that were there at the start and are gone."""

    pid: int
    postgres: int
    metrics: dict[str, int]
    database_url: str
    series: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    _known: dict[str, int] = field(default_factory=dict)
    _began_s: float = 0.0

    def begin(self) -> None:
        """What there is now is what there has to be."""
        self._began_s = time.perf_counter()
        self._known = {name: pids[0] for name, pids in self._processes().items() if len(pids) == 1}
        self.series.clear()

    def put(self, name: str, value: float) -> None:
        """One figure more."""
        self.series.setdefault(name, []).append((time.perf_counter() - self._began_s, value))

    def _processes(self) -> dict[str, list[int]]:
        found = tree(self.pid)
        found["PostgreSQL"] = [*tree(self.postgres).get("postgres", []), *found.pop("postgres", [])]
        named = {"parent": "parent", "anvil": "the chain's node", "valkey-server": "Valkey"}
        own: dict[str, list[int]] = {}
        for role, pids in found.items():
            if role in ("serve", "sync", "work"):
                own |= {f"{role} {number}": [pid] for number, pid in enumerate(pids, 1)}
            else:
                own[named.get(role, role)] = pids
        return own

    async def sample(self, session: aiohttp.ClientSession, connection: Connection) -> None:
        """All of it, once."""
        processes = self._processes()
        for name, pids in processes.items():
            held = Held()
            for pid in pids:
                held.add(pid, shared=name == "PostgreSQL")
            self.put(f"{name}: memory, MB", held.memory_mb)
            self.put(f"{name}: descriptors", held.descriptors)
            self.put(f"{name}: threads", held.threads)
        for name, pid in self._known.items():
            if pid not in processes.get(name, ()) and name not in self.left:
                self.left.append(name)
        pages = await asyncio.gather(*(self._page(session, *one) for one in self.metrics.items()))
        # Any serving process reports the whole; the last one is the worker.
        self._take(next((page for page in reversed(pages) if "roundtrip_index_block" in page), ""))
        [row] = await connection.fetch(
            "SELECT pg_database_size(current_database()) AS size,"
            " (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()) AS connected"
        )
        self.put("database: MB", row["size"] / 2**20)
        self.put("database: connections", row["connected"])

    async def _page(self, session: aiohttp.ClientSession, name: str, port: int) -> str:
        began = time.perf_counter()
        try:
            timeout = aiohttp.ClientTimeout(_METRICS_S)
            async with session.get(f"http://127.0.0.1:{port}/metrics", timeout=timeout) as answer:
                page = await answer.text()
        except (OSError, TimeoutError, aiohttp.ClientError):
            page = ""
        # The same event loop answers it: its time shows how late the loop is.
        self.put(f"{name}: its metrics, ms", (time.perf_counter() - began) * 1000)
        return page

    def _take(self, page: str) -> None:
        jobs = 0.0
        for name, labels, value in _SAMPLE.findall(page):
            if name in _TOLD:
                self.put(_TOLD[name], float(value))
            elif name == "roundtrip_jobs" and 'state="due"' in labels:
                jobs += float(value)
        if page:
            self.put("jobs due", jobs)

    async def run(self, every_s: float) -> None:
        """For ever."""
        connection = await asyncpg.connect(self.database_url)
        async with aiohttp.ClientSession() as session:
            try:
                while True:
                    await self.sample(session, connection)
                    await asyncio.sleep(every_s)
            finally:
                await connection.close()


_TOLD = {
    "roundtrip_index_behind_blocks": "sync: blocks behind",
    "roundtrip_index_behind_seconds": "sync: seconds behind",
    "roundtrip_alerts_behind_blocks": "alerts: blocks behind",
    "roundtrip_deliveries": "deliveries that wait",
}
