"""What accounts watch: standing rules and followed wallets. Each function takes the caller's connection and
ends no transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import MOST_FOLLOWS, MOST_RULES
from roundtrip.domain.watch.rule_index import AlertSource
from roundtrip.domain.watch.rules import Over, Rule, Who
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection

_CHANGES_LOCK = 4663_0010
"""An advisory lock: changes come to light in the order of their numbers, and none while alerts are made. It
is taken before any row of a rule or a follow."""
ENDED_KEPT = timedelta(days=1)
"""Whoever has all of them in memory has looked since, or reads all of them again."""


class TooManyWatches(Exception):
    """The account has as many as it may have."""

    def __init__(self, most: int) -> None:
        super().__init__(f"there may be {most}")
        self.most = most


@dataclass(frozen=True, slots=True)
class KeptRule:
    """A live rule. ``wallet``: who is meant, of ``wallet``, ``deployer`` and ``creator``. ``hits``: how often
    it was, without what was taken back."""

    id: int
    rule: Rule
    wallet: Address | None
    hits: int
    from_number: int
    made_at: datetime


@dataclass(frozen=True, slots=True)
class KeptFollow:
    """A wallet that is followed, as the account calls it. ``from_number``: as of a rule."""

    id: int
    wallet: Address
    name: str
    from_number: int
    made_at: datetime


@dataclass(frozen=True, slots=True)
class WatchChange:
    """A rule or a follow as it is after its last change. ``rule`` is None of a follow; ``wallet`` as in the
    index of rules. Not ``live``: it was ended."""

    number: int
    source: AlertSource
    rule: Rule | None
    wallet: Address | None
    live: bool


_INDEXED = "coalesce((SELECT number FROM facts.cursor), -1)"
_REWOUND = "coalesce((SELECT max(id) FROM facts.rewound), 0)"
"""Those that are no longer kept were undone long ago."""


async def _hold(connection: Connection, account_id: int) -> None:
    """Nobody else changes what the account watches until the transaction ends. What it is told meanwhile does
    not wait for that."""
    await connection.execute("SELECT FROM accounts.account WHERE id = $1 FOR NO KEY UPDATE", account_id)


async def _next_change(connection: Connection) -> int:
    """The number of a change. The lock is had before there is a number, and kept to the transaction's end."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _CHANGES_LOCK)
    number: int = await connection.fetchval("SELECT nextval('accounts.watch_changes')")
    return number


# --- rules -----------------------------------------------------------------------------------------


async def add_rule(
    connection: Connection,
    account_id: int,
    rule: Rule,
    wallet: Address | None,
    head: int,
    now: datetime,
) -> int:
    """The new rule's id, or that of the same one where the account has it. Facts count of blocks that are
    later than the index's last and than ``head``, the newest that is known otherwise: an index that is still
    far from it reads history. Raises TooMany."""
    await _hold(connection, account_id)
    live = await connection.fetch(
        "SELECT id, said FROM accounts.rule WHERE account_id = $1 AND ended_at IS NULL", account_id
    )
    there: dict[str, int] = {row["said"]: row["id"] for row in live}
    if rule.text() in there:
        return there[rule.text()]
    if len(there) >= MOST_RULES:
        raise TooManyWatches(MOST_RULES)
    who_address = rule.who.address
    made: int = await connection.fetchval(
        "INSERT INTO accounts.rule (account_id, said, who, who_address, wallet, verb, unit, over_raw, token,"  # noqa: S608
        " from_number, rewound, made_at, change) VALUES"
        f" ($1, $2, $3, $4, $5, $6, $7, $8, $9, greatest($10, {_INDEXED}), {_REWOUND}, $11, $12)"
        " RETURNING id",
        account_id,
        rule.text(),
        rule.who.kind,
        None if who_address is None else as_bytes(who_address),
        None if wallet is None else as_bytes(wallet),
        rule.verb,
        None if rule.over is None else rule.over.unit,
        None if rule.over is None else rule.over.raw,
        None if rule.token is None else as_bytes(rule.token),
        head,
        now,
        # Had before it is read how far the index is: no step goes further until this is seen.
        await _next_change(connection),
    )
    return made


async def rules_of(connection: Connection, account_id: int) -> list[KeptRule]:
    """An account's live rules, the oldest first."""
    rows = await connection.fetch(
        "SELECT * FROM accounts.rule WHERE account_id = $1 AND ended_at IS NULL ORDER BY id", account_id
    )
    return [
        KeptRule(row["id"], _rule(row), _wallet(row), row["hits"], row["from_number"], row["made_at"])
        for row in rows
    ]


async def end_rule(connection: Connection, account_id: int, rule_id: int, now: datetime) -> bool:
    """It is told of no more. False: the account has no such rule."""
    done: str = await connection.execute(
        "UPDATE accounts.rule SET ended_at = $3, change = $4"
        " WHERE id = $1 AND account_id = $2 AND ended_at IS NULL",
        rule_id,
        account_id,
        now,
        await _next_change(connection),
    )
    return done != "UPDATE 0"


def _rule(row: asyncpg.Record) -> Rule:
    address = row["who_address"]
    who = Who(row["who"], None if address is None else as_address(address))
    over = None if row["unit"] is None else Over(row["unit"], int(row["over_raw"]))
    return Rule(who, row["verb"], over, None if row["token"] is None else as_address(row["token"]))


def _wallet(row: asyncpg.Record) -> Address | None:
    return None if row["wallet"] is None else as_address(row["wallet"])


# --- follows ---------------------------------------------------------------------------------------


async def add_follow(
    connection: Connection,
    account_id: int,
    wallet: Address,
    name: str,
    head: int,
    now: datetime,
) -> int:
    """The new follow's id, or that of the one that there is, which has the new name then. ``head``: as of a
    rule. Raises TooMany."""
    await _hold(connection, account_id)
    live = await connection.fetch(
        "SELECT id, wallet, name FROM accounts.follow WHERE account_id = $1 AND ended_at IS NULL", account_id
    )
    for row in live:
        if as_address(row["wallet"]) == wallet:
            if row["name"] != name:
                await _rename(connection, row["id"], name)
            found: int = row["id"]
            return found
    if len(live) >= MOST_FOLLOWS:
        raise TooManyWatches(MOST_FOLLOWS)
    made: int = await connection.fetchval(
        "INSERT INTO accounts.follow (account_id, wallet, name, from_number, rewound, made_at, change)"  # noqa: S608
        f" VALUES ($1, $2, $3, greatest($4, {_INDEXED}), {_REWOUND}, $5, $6) RETURNING id",
        account_id,
        as_bytes(wallet),
        name,
        head,
        now,
        # Had before it is read how far the index is: no step goes further until this is seen.
        await _next_change(connection),
    )
    return made


async def _rename(connection: Connection, follow_id: int, name: str) -> None:
    change = await _next_change(connection)
    await connection.execute(
        "UPDATE accounts.follow SET name = $2, change = $3 WHERE id = $1", follow_id, name, change
    )


async def follows_of(connection: Connection, account_id: int) -> list[KeptFollow]:
    """Whom an account follows, the oldest first."""
    rows = await connection.fetch(
        "SELECT * FROM accounts.follow WHERE account_id = $1 AND ended_at IS NULL ORDER BY id", account_id
    )
    return [
        KeptFollow(row["id"], as_address(row["wallet"]), row["name"], row["from_number"], row["made_at"])
        for row in rows
    ]


async def end_follow(connection: Connection, account_id: int, wallet: Address, now: datetime) -> bool:
    """It is followed no more. False: the account did not follow it."""
    done: str = await connection.execute(
        "UPDATE accounts.follow SET ended_at = $3, change = $4"
        " WHERE wallet = $1 AND account_id = $2 AND ended_at IS NULL",
        as_bytes(wallet),
        account_id,
        now,
        await _next_change(connection),
    )
    return done != "UPDATE 0"


# --- for who tells ---------------------------------------------------------------------------------


async def hold(connection: Connection) -> None:
    """Nobody changes what is watched until the transaction ends; several may hold it at once."""
    await connection.execute("SELECT pg_advisory_xact_lock_shared($1)", _CHANGES_LOCK)


_RULE_FIELDS = (
    "'rule' AS kind, id, account_id, said AS name, from_number, ended_at, change, wallet,"
    " who, who_address, verb, unit, over_raw, token"
)
_FOLLOW_FIELDS = (
    "'follow' AS kind, id, account_id, name, from_number, ended_at, change, wallet,"
    " NULL::text AS who, NULL::bytea AS who_address, NULL::text AS verb, NULL::text AS unit,"
    " NULL::numeric AS over_raw, NULL::bytea AS token"
)
# One statement: its rules and its follows are of one moment.
_CHANGES = f"""
(SELECT {_RULE_FIELDS} FROM accounts.rule
WHERE change > $1 AND ($1 > 0 OR ended_at IS NULL) ORDER BY change LIMIT $2)
UNION ALL
(SELECT {_FOLLOW_FIELDS} FROM accounts.follow
WHERE change > $1 AND ($1 > 0 OR ended_at IS NULL) ORDER BY change LIMIT $2)
ORDER BY change LIMIT $2
"""  # noqa: S608
MOST_CHANGES = 5_000


async def changes_since(connection: Connection, number: int, most: int = MOST_CHANGES) -> list[WatchChange]:
    """What was changed after the change of this number, in order, the first ``most``; 0: of all that is live.
    Everything up to the last of them is seen: of two changes the one with the lower number comes to light
    first."""
    return [_change(row) for row in await connection.fetch(_CHANGES, number, most)]


def _change(row: asyncpg.Record) -> WatchChange:
    source = AlertSource(row["kind"], row["id"], row["account_id"], row["name"], row["from_number"])
    rule = _rule(row) if row["kind"] == "rule" else None
    return WatchChange(row["change"], source, rule, _wallet(row), row["ended_at"] is None)


async def turn_back(connection: Connection, undone: int, last: int) -> list[WatchChange]:
    """What was set before one of the reorganisations after ``undone`` up to ``last`` counts from where that
    went back to: the blocks that came instead are news. Gives these as they are now, under the numbers of
    their last changes: who knows of them under those, and did not do this, reads all again."""
    turned: list[WatchChange] = []
    for table, fields in (("rule", _RULE_FIELDS), ("follow", _FOLLOW_FIELDS)):
        rows = await connection.fetch(
            f"UPDATE accounts.{table} AS watched SET from_number = ("  # noqa: S608
            "SELECT min(to_number) FROM facts.rewound WHERE id > greatest($1, watched.rewound) AND id <= $2)"
            " WHERE ended_at IS NULL AND EXISTS (SELECT FROM facts.rewound"
            " WHERE id > greatest($1, watched.rewound) AND id <= $2 AND to_number < watched.from_number)"
            f" RETURNING {fields}",
            undone,
            last,
        )
        turned += [_change(row) for row in rows]
    return turned


async def count_hits(connection: Connection, hits: Sequence[tuple[int, int]]) -> None:
    """Adds to rules' hits: ids and how many; below zero takes away."""
    if hits:
        # In order: nobody waits for us while we wait for them.
        ordered = sorted(hits)
        await connection.execute(
            "UPDATE accounts.rule AS rule SET hits = greatest(0, rule.hits + given.hits)"
            " FROM unnest($1::bigint[], $2::bigint[]) AS given (id, hits) WHERE rule.id = given.id",
            [rule_id for rule_id, _ in ordered],
            [more for _, more in ordered],
        )


async def forget_ended(connection: Connection, now: datetime) -> None:
    """Takes away what was ended a day ago."""
    for table in ("rule", "follow"):
        await connection.execute(
            f"DELETE FROM accounts.{table} WHERE ended_at < $1",  # noqa: S608
            now - ENDED_KEPT,
        )
