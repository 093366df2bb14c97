"""Processes of one service that share answers through a real store, and runs that end when they are told."""

import asyncio
import itertools
import time
from dataclasses import dataclass, field

import redis

from roundtrip.api.sharing.places import RunPlaces
from roundtrip.api.sharing.shared_single_flight import FlightTimes, SharedInValkey
from roundtrip.api.sharing.single_flight import SharedAnswer, SharedAnswers
from roundtrip.api.sharing.valkey import Script
from roundtrip.api.sharing.valkey_cluster import open_shared_store
from support.shared_minutes import StoreUsers
from support.valkey_clusters import client_of

_NOTHING = Script("return 1")
PATIENT_S = 10.0
LONG_MS = 60_000


@dataclass
class GatedRuns:
    """What answers a question: ``gate``: when; ``fault``: how it fails."""

    ttl_ms: int = LONG_MS
    counted: bool = True
    body: bytes = b"body"
    fault: BaseException | None = None
    is_absence: bool = False
    count: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def __call__(self) -> SharedAnswer:
        self.count += 1
        self.began.set()
        number = self.count
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return SharedAnswer(
            self.body + b" %d" % number, self.ttl_ms, self.counted, is_absence=self.is_absence
        )

    async def begin(self, answers: SharedAnswers) -> "asyncio.Task[tuple[SharedAnswer, bool]]":
        """Somebody asks for "k" and is answered once the gate is opened; returns once the run has begun."""
        self.gate.clear()
        self.began.clear()
        asking = asyncio.create_task(answers.get("k", self))
        await self.began.wait()
        return asking


@dataclass
class SharingProcesses(StoreUsers):
    """Processes of one service."""

    spans: FlightTimes = field(default_factory=FlightTimes)

    def process(self, version: str = "1", places: int = 128) -> SharedAnswers:
        valkey = open_shared_store(self.url, bound_s=self.bound_s)
        number, draws = len(self.stores), itertools.count()
        self.stores.append(valkey)
        across = SharedInValkey(
            valkey, version, lambda: f"{number}.{next(draws)}", time.monotonic, self.spans
        )
        return SharedAnswers(time.monotonic, RunPlaces(places), across)

    def client(self) -> "redis.Redis":
        return client_of(self.url)


async def until_waiting(answers: SharedAnswers, key: str = "k") -> None:
    """Until somebody else's run is waited for: its lease has been seen."""
    async with asyncio.timeout(PATIENT_S):
        assert isinstance(answers.others, SharedInValkey)
        while key not in answers._flights:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for _ in range(2):
            await answers.others.valkey.run(_NOTHING, (answers.others.store_key("lease", key),), ())
