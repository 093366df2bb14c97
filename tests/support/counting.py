"""Counts in memory, as a database would keep them; and mites and keys put straight into a real one."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

import asyncpg

from roundtrip.domain import keys
from roundtrip.domain.mite import Mite
from roundtrip.domain.types import Address
from roundtrip.store.counting import Call, HandedBack, Live


@dataclass
class Wall:
    """A clock that stands still until it is moved; a morning of 2025."""

    ms: int = 1_760_000_000_000

    def __call__(self) -> int:
        return self.ms


def key_of(name: str) -> str:
    """A key, the same for the same name."""
    return keys.written(hashlib.sha256(name.encode()).digest())


def hashed(name: str) -> bytes:
    """What that key is looked up by."""
    return keys.hash_of(key_of(name))


def mite(number: int) -> Mite:
    """Made up."""
    return Mite(number, f"mite-{number:04}", Address(f"0x{number:040x}"))


@dataclass
class Counts:
    """``fault``: what writing meets instead, or ``is_done`` afterwards; ``is_silent``: of the last minute
    nothing is told; ``asked``: calls that it was given. Outlives the gates that write to it, as a database
    does."""

    live: dict[bytes, Mite] = field(default_factory=dict)
    days: Counter[tuple[int, date]] = field(default_factory=Counter)
    minute: Counter[tuple[str, int]] = field(default_factory=Counter)
    fault: Exception | None = None
    is_done: bool = False
    is_silent: bool = False
    writes: int = 0
    asked: int = 0

    async def write(
        self, calls: Sequence[Call], handed_back: Sequence[HandedBack], forget_before_ms: int
    ) -> list[Live | None]:
        """One at a time, in order; hand-backs first."""
        self.writes += 1
        self.asked += len(calls)
        if self.fault is not None and not self.is_done:
            raise self.fault
        for back in handed_back:
            if back.day is not None and back.mite_id is not None:
                self.days[back.mite_id, back.day] = max(0, self.days[back.mite_id, back.day] - 1)
            if back.caller is not None:
                self.minute[back.caller, back.taken_ms] -= 1
        came = [self._counted(call) for call in calls]
        if self.fault is not None:
            raise self.fault
        return came

    def _counted(self, call: Call) -> Live | None:
        owner = None if call.key_hash is None else self.live.get(call.key_hash)
        if call.key_hash is not None and owner is None:
            return None
        has_room = True
        if owner is not None and call.day is not None:
            has_room = self.days[owner.id, call.day] < call.per_day
            self.days[owner.id, call.day] += has_room
        if call.caller is not None and has_room:
            self.minute[call.caller, call.taken_ms] += 1
        return None if owner is None else Live(owner, has_room)

    async def recent(self, now_ms: int) -> list[tuple[str, int, int]]:
        """As it was written."""
        if self.is_silent:
            raise OSError
        rows = sorted(self.minute.items(), key=lambda row: row[0][1])
        return [(caller, at, count) for (caller, at), count in rows if at > now_ms - 60_000 and count > 0]

    async def close(self) -> None:
        """Nothing is open."""


async def put_mite(connection: asyncpg.Connection, wallet: Address, *names: str) -> int:
    """An account with the keys of these names; its number."""
    made_at = datetime.now(UTC)
    number: int = await connection.fetchval(
        "INSERT INTO accounts.mite (wallet, designation, made_at) VALUES ($1, $2, $3) RETURNING id",
        bytes.fromhex(wallet[2:]),
        f"mite-{wallet[-12:]}",
        made_at,
    )
    for name in names:
        await connection.execute(
            "INSERT INTO accounts.key (mite_id, hash, start, label, made_at) VALUES ($1, $2, $3, '', $4)",
            number,
            hashed(name),
            keys.start_of(key_of(name)),
            made_at,
        )
    return number
