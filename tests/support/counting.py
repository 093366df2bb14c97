"""Counts in memory, as a database would keep them; and accounts and keys put straight into a real one."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from uuid import UUID, uuid4

from roundtrip.domain.accounts import keys
from roundtrip.domain.accounts.account import Account, CreditPayment
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.store.accounts import credits
from roundtrip.store.accounts.call_counts import AccountDay, CountedCall, LeaseChange, LiveKey, RefundedCall
from roundtrip.store.accounts.credits import CreditHold
from roundtrip.store.server.rows import Connection


@dataclass
class Wall:
    """A clock that stands still until it is moved; a morning of 2025."""

    ms: int = 1_760_000_000_000

    def __call__(self) -> int:
        return self.ms


def key_of(name: str) -> str:
    """A key, the same for the same name."""
    return keys.format_key(hashlib.sha256(name.encode()).digest())


def hashed(name: str) -> bytes:
    """The hash by which that key is looked up."""
    return keys.hash_of(key_of(name))


def account(number: int) -> Account:
    """Made up."""
    return Account(number, f"mite-{number:04}", Address(f"0x{number:040x}"))


@dataclass
class DrawnIds:
    """Ids one after another, never the same twice."""

    last: int = 0

    def __call__(self) -> UUID:
        self.last += 1
        return UUID(int=self.last)


@dataclass
class Balance:
    """The credits that an account paid for: those that are left, and those that were spent."""

    credits: int = 0
    spent: int = 0


@dataclass
class Counts:
    """Outlives the gates that write to it, as a database does. ``fault``: what a write raises, before writing
    or, with ``is_done``, afterwards; ``moving_fault``, ``is_moved``: the same for credits. ``is_silent``: the
    calls of the last minute cannot be read. ``asked``: how many calls it was given."""

    live: dict[bytes, Account] = field(default_factory=dict)
    days: Counter[tuple[int, date]] = field(default_factory=Counter)
    leased: Counter[tuple[int, date]] = field(default_factory=Counter)
    minute: Counter[tuple[str, int]] = field(default_factory=Counter)
    fault: Exception | None = None
    is_done: bool = False
    is_silent: bool = False
    writes: int = 0
    asked: int = 0
    balances: dict[int, Balance] = field(default_factory=dict)
    holds: dict[UUID, CreditHold] = field(default_factory=dict)
    moving_fault: Exception | None = None
    is_moved: bool = False
    moves: int = 0

    async def write(
        self, calls: Sequence[CountedCall], handed_back: Sequence[RefundedCall], forget_before_ms: int
    ) -> list[LiveKey | None]:
        """Counts the calls in order, one at a time, after the refunds."""
        self.writes += 1
        self.asked += len(calls)
        if self.fault is not None and not self.is_done:
            raise self.fault
        for back in handed_back:
            if back.day is not None and back.account_id is not None:
                self.days[back.account_id, back.day] = max(0, self.days[back.account_id, back.day] - 1)
            if back.caller is not None:
                self.minute[back.caller, back.taken_ms] -= 1
        live_keys = [self._counted(call) for call in calls]
        if self.fault is not None:
            raise self.fault
        return live_keys

    def _counted(self, call: CountedCall) -> LiveKey | None:
        owner = None if call.key_hash is None else self.live.get(call.key_hash)
        if call.key_hash is not None and owner is None:
            return None
        has_room = True
        if owner is not None and call.day is not None:
            key = owner.id, call.day
            has_room = self.days[key] + self.leased[key] < call.per_day
            self.days[owner.id, call.day] += has_room
        if call.caller is not None and has_room:
            self.minute[call.caller, call.taken_ms] += 1
        if owner is None:
            return None
        return LiveKey(owner, has_room, not has_room and owner.id in self.balances)

    async def move_leases(
        self, changes: Sequence[LeaseChange], minutes: Mapping[tuple[str, int], int]
    ) -> dict[AccountDay, int]:
        """Moves leases in order, one at a time, as the statement does."""
        self.writes += 1
        if self.fault is not None and not self.is_done:
            raise self.fault
        lent = {}
        for change in changes:
            key = change.key()
            self.days[key] += change.spent
            self.leased[key] = max(0, self.leased[key] - change.spent - change.returned)
            left = change.per_day - self.days[key] - self.leased[key]
            lent[key] = max(0, min(change.wanted, left // 256))
            self.leased[key] += lent[key]
        self.minute.update(minutes)
        if self.fault is not None:
            raise self.fault
        return lent

    async def move(
        self, settled: Sequence[UUID], released: Sequence[UUID], wanted: Sequence[CreditHold], now_ms: int
    ) -> set[UUID]:
        """One at a time, in order; what goes back first."""
        self.moves += 1
        if self.moving_fault is not None and not self.is_moved:
            raise self.moving_fault
        for one in [*settled, *released]:
            hold = self.holds.pop(one, None)
            if hold is not None:
                self.balances[hold.account_id].spent += one in settled
                self.balances[hold.account_id].credits += one not in settled
        given = {one.id for one in wanted if self._held(one, now_ms)}
        if self.moving_fault is not None:
            raise self.moving_fault
        return given

    def _held(self, wanted: CreditHold, now_ms: int) -> bool:
        has = self.balances.get(wanted.account_id)
        if has is None:
            return False
        own = [one for one in self.holds.values() if one.account_id == wanted.account_id]
        for one in [one for one in own if one.until_ms <= now_ms]:
            del self.holds[one.id]
            has.credits += 1
        if not has.credits:
            return False
        has.credits -= 1
        self.holds[wanted.id] = wanted
        if wanted.caller is not None:
            self.minute[wanted.caller, wanted.taken_ms] += 1
        return True

    async def recent(self, now_ms: int) -> list[tuple[str, int, int]]:
        """As it was written."""
        if self.is_silent:
            raise OSError
        rows = sorted(self.minute.items(), key=lambda row: row[0][1])
        return [(caller, at, count) for (caller, at), count in rows if at > now_ms - 60_000 and count > 0]

    async def close(self) -> None:
        """Nothing is open."""


async def put_account(connection: Connection, wallet: Address, *names: str) -> int:
    """An account with the keys of these names; its number."""
    made_at = datetime.now(UTC)
    number: int = await connection.fetchval(
        "INSERT INTO accounts.account (wallet, designation, made_at) VALUES ($1, $2, $3) RETURNING id",
        bytes.fromhex(wallet[2:]),
        f"mite-{wallet[-12:]}",
        made_at,
    )
    for name in names:
        await connection.execute(
            "INSERT INTO accounts.key (account_id, hash, start, label, made_at) VALUES ($1, $2, $3, '', $4)",
            number,
            hashed(name),
            keys.start_of(key_of(name)),
            made_at,
        )
    return number


async def put_credits(connection: Connection, account_id: int, credited: int) -> None:
    """As if the account had paid for so many calls."""
    payment = CreditPayment(TxHash(f"0x{uuid4().int:064x}"), 1, 1, "0x" + "ab" * 32)
    async with connection.transaction():
        await credits.redeem(connection, account_id, payment, credited, datetime.now(UTC))


async def conserved(connection: Connection, now_ms: int) -> dict[int, tuple[int, int, int]]:
    """Of every account that ever paid: credits, holds, spent. Asserts that they are what it paid for, and
    that what it is told it has is what it can spend."""
    found: dict[int, tuple[int, int, int]] = {}
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        rows = await connection.fetch(
            """
            SELECT account_id, credits, spent,
                (SELECT count(*) FROM accounts.hold AS held WHERE held.account_id = had.account_id) AS holds,
                (SELECT count(*) FROM accounts.hold AS held
                    WHERE held.account_id = had.account_id AND held.until_ms <= $1) AS over,
                (SELECT sum(credited) FROM accounts.payment AS paid
                    WHERE paid.account_id = had.account_id) AS paid
            FROM accounts.balance AS had
            """,
            now_ms,
        )
        for row in rows:
            assert row["paid"] == row["credits"] + row["holds"] + row["spent"], dict(row)
            answer = await credits.balance(connection, row["account_id"], now_ms)
            assert answer == row["credits"] + row["over"], (answer, dict(row))
            found[row["account_id"]] = row["credits"], row["holds"], row["spent"]
    return found
