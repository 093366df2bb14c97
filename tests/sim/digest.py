"""All that the index says, in one number: two indexes of one chain have it in common, whatever befell them.

Ids are handed out in the order in which things are met, and that is no fact: the addresses that they stand
for take their place. Every other column of a table counts, also one that is added tomorrow.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass
from itertools import islice

import asyncpg

from roundtrip.store.server.rows import Connection

_SHOWN_ROWS = 5

DIGESTED = {
    "cursor": "true",
    "block": "true",
    "pool": "true",
    "launch": "true",
    "launch_quote": "true",
    "launch_step": "true",
    "trade": "true",
    "liquidity": "true",
    "lp_position": "true",
    "lp_transfer": "true",
    "pool_state": "true",
    # Kept for seven days: how much longer an older row lies there is up to whoever clears away.
    "transfer": "at_s >= (SELECT at_s FROM facts.cursor) - 7 * 86400",
    "price": "true",
    "origin": "true",
    "position": "true",
    "closing": "true",
    "curve": "true",
    "buyback": "true",
    # As with transfers: written of recent blocks only, and cleared away some time later.
    "inside": "at_s >= (SELECT at_s FROM facts.cursor) - 7 * 86400",
}
"""The tables, and which of their rows."""

LEFT_OUT = {
    "evidence": "what checks saw; no fact of the chain alone",
    "proof": "what was proved to somebody",
    "address": "the ids themselves; every address that a fact names stands in that fact's row",
    "older_origin": "found by a job in an archive, whenever it comes to it",
    "token": "read by a job, whenever it comes to it",
    "fair_token": "found by a job, whenever it comes to it",
    "winner": "counted by a job, now and then",
    "winners_counted": "by when that was",
    "holder_read": "read off the chain itself, as far as somebody asked",
    "position_base": "where folding begins; what comes of it stands in position",
    "score": "what became of checks; found by a job, whenever it comes to it",
    "score_count": "how many of those there are",
    "score_cursor": "how far that was found",
    "score_token": "of how many tokens those are",
    "score_wait": "which of them wait for a receipt",
    "failed_sell": "real sells that failed; found by a job, whenever it comes to it",
    "recalled_wallet": "wallets that checks try again, by the wall clock",
    "caught_holder": "holders that checks try again, by the wall clock",
    "exposure": "what was read for boards, by the wall clock",
    "unlock": "when locked liquidity can be withdrawn; read off the chain when somebody asked",
    "rewound": "reorganisations that were seen; a fresh sync sees none of them",
}
"""The other tables of the schema, and why."""

NO_FACTS = {"cursor": {"only_one", "trades_from_s", "changes", "rewinds"}, "pool": {"id"}}
"""Columns that differ between equal indexes."""

_COLUMNS = """
    SELECT column_name FROM information_schema.columns
    WHERE table_schema = 'facts' AND table_name = $1 ORDER BY ordinal_position
"""


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its rows as lines of text, in their order."""

    lines: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Of all lines, in hex."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Digest:
    """What an index says, by table."""

    tables: dict[str, Table]

    @property
    def rows(self) -> int:
        """Of all tables."""
        return sum(len(table.lines) for table in self.tables.values())

    @property
    def short(self) -> str:
        """16 hex digits that stand for all of it."""
        parts = (f"{name} {len(table.lines)} {table.sha256}" for name, table in self.tables.items())
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


async def digest(connection: Connection) -> Digest:
    """The index in ``connection``'s database, as it is at one moment."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        addresses = {
            row["id"]: "0x" + row["address"].hex()
            for row in await connection.fetch("SELECT id, address FROM facts.address")
        }
        pools = {
            row["id"]: "0x" + row["at"].hex()
            for row in await connection.fetch("SELECT id, at FROM facts.pool")
        }
        tables = {}
        for name, which in DIGESTED.items():
            found = [row["column_name"] for row in await connection.fetch(_COLUMNS, name)]
            columns = [column for column in found if column not in NO_FACTS.get(name, ())]
            # Every name here stands in this file or in the schema.
            query = f"SELECT {', '.join(columns)} FROM facts.{name} WHERE {which}"  # noqa: S608
            rows = await connection.fetch(query)
            tables[name] = Table(tuple(sorted(_line(row, addresses, pools) for row in rows)))
        return Digest(tables)


def difference(one: Digest, other: Digest, names: tuple[str, str] = ("one", "other")) -> list[str]:
    """What a person reads of two digests that differ: the tables, and the first rows that only one has."""
    messages = []
    for table, mine in one.tables.items():
        yours = other.tables[table]
        if mine == yours:
            continue
        messages.append(f"{table}: {len(mine.lines)} rows in {names[0]}, {len(yours.lines)} in {names[1]}")
        for name, only in zip(names, _only(mine, yours), strict=True):
            messages += [f"  only in {name}: {line}" for line in islice(only, _SHOWN_ROWS)]
            if len(only) > _SHOWN_ROWS:
                messages.append(f"  and {len(only) - _SHOWN_ROWS} more only in {name}")
    return messages


def _only(mine: Table, yours: Table) -> tuple[list[str], list[str]]:
    left, right = Counter(mine.lines), Counter(yours.lines)
    return _by_block(left - right), _by_block(right - left)


def _by_block(lines: Counter[str]) -> list[str]:
    """The earliest first: what went wrong began there."""

    def number(line: str) -> int:
        for word in line.split():
            name, _, value = word.partition("=")
            if name in ("block_number", "first_number", "number", "last_s"):
                return int(value)
        return 0

    return sorted(lines.elements(), key=lambda line: (number(line), line))


def _line(row: asyncpg.Record, addresses: dict[int, str], pools: dict[int, str]) -> str:
    words = []
    for name, value in row.items():
        if name.endswith("_id") and value is not None:
            # Half a row is shown as it is: it is the very thing that is looked for.
            known = pools if name == "pool_id" else addresses
            words.append(f"{name.removesuffix('_id')}={known.get(value, f'(no such id: {value})')}")
        else:
            words.append(f"{name}={'0x' + value.hex() if isinstance(value, bytes) else value}")
    return " ".join(words)
