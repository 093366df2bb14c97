"""Processes of one service that count minutes together in a real store."""

from dataclasses import dataclass, field

from roundtrip.api.admission.minute_limits import MinuteLimits, Ticket
from roundtrip.api.admission.shared_minute_limits import SharedMinutes
from roundtrip.api.sharing.valkey import Valkey
from roundtrip.api.sharing.valkey_cluster import SharedStore, open_shared_store
from roundtrip.domain.base.errors import LimitReached
from support.counting import Wall

PATIENT_S = 10.0


@dataclass
class StoreUsers:
    """Processes of one service that use the store at ``url``."""

    url: str
    bound_s: float = PATIENT_S
    stores: list[SharedStore] = field(default_factory=list)

    def hurry(self) -> None:
        """From now on a server that does not answer is given up soon."""
        for store in self.stores:
            assert isinstance(store, Valkey)
            store.bound_s = 0.05

    async def close(self) -> None:
        for store in self.stores:
            await store.close()


@dataclass
class CountingProcesses(StoreUsers):
    """Those that count minutes."""

    wall: Wall = field(default_factory=Wall)
    minutes: list[SharedMinutes] = field(default_factory=list)
    seconds: float = 0.0

    def process(self, own_clock: bool = True) -> SharedMinutes:
        valkey = open_shared_store(self.url, lambda: self.seconds, self.bound_s)
        self.stores.append(valkey)
        self.minutes.append(SharedMinutes(MinuteLimits(self.wall), valkey, self.wall if own_clock else None))
        return self.minutes[-1]


def plain(ticket: Ticket) -> Ticket:
    """As memory alone would give it."""
    return Ticket(ticket.caller, ticket.taken_ms, ticket.limit, ticket.remaining)


Told = Ticket | tuple[int | None, str, int]


def refused(error: LimitReached) -> Told:
    return error.retry_after_s, error.message, error.limit


async def taken(minutes: SharedMinutes, caller: str, limit: int) -> Told:
    try:
        return await minutes.take(caller, limit)
    except LimitReached as error:
        return refused(error)
