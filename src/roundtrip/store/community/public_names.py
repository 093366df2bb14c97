"""Public names and marks of wallets: those that enough people give (``domain/community/marks.py``). Counted
by the database, stored whole, and read by a key. Tests compare them with the same count in Python."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from roundtrip.domain.base.types import Address
from roundtrip.domain.community.marks import PEOPLE, MarkCount, PublicMarks
from roundtrip.domain.market.fairness import FAIRNESS, Fairness
from roundtrip.store.boards.fair_tokens import is_kin, pays_many
from roundtrip.store.server.rows import Connection, as_bytes, fetch, read

COUNTING_S = 120.0
"""Timeout of each of the two statements: one counts, one stores."""
_WORK_MEM = "64MB"
"""Memory of each sort and hash of a count; larger ones spill to disk."""
MAX_SAID = 20
"""Names and marks of a wallet that are shown, those that most people gave."""

_KIN = is_kin("by.id", "by", "of", by_exchange="(exchange.funder_id IS NOT NULL)", young_s="$3")
# $1 made_before, $2 at_s, $3 young_s, $4 most_funded, $5 how many people
_COUNT = f"""
WITH giver AS MATERIALIZED (
    SELECT account.id AS account_id, own.id, origin.first_s, origin.funder_id, origin.funded_s,
        his.first_s AS funder_first_s
    FROM accounts.account AS account JOIN facts.address AS own ON own.address = account.wallet
    LEFT JOIN facts.origin AS origin ON origin.wallet_id = own.id
    LEFT JOIN facts.origin AS his ON his.wallet_id = origin.funder_id
    WHERE account.made_at <= $1 AND EXISTS (SELECT FROM accounts.mark AS mark
        WHERE mark.account_id = account.id)
        AND EXISTS (SELECT FROM facts.positions_of(own.id, 1))
), exchange AS MATERIALIZED (
    SELECT funder_id FROM (SELECT DISTINCT funder_id FROM giver WHERE funder_id IS NOT NULL) AS funder
    WHERE {pays_many("funder.funder_id", "$4")}
), by AS MATERIALIZED (
    -- 0 is no wallet's number: it stands for all wallets that may be one person.
    SELECT giver.*, CASE
        WHEN giver.first_s <= $2::int - $3::int
            AND (giver.funder_id IS NULL OR exchange.funder_id IS NOT NULL) THEN giver.id
        WHEN giver.funder_first_s <= $2::int - $3::int THEN giver.funder_id
        ELSE 0 END AS purse
    FROM giver LEFT JOIN exchange ON exchange.funder_id = giver.funder_id
), marked AS MATERIALIZED (
    SELECT mark.wallet, target.id AS deployer_id, origin.funder_id AS paid_by, origin.funded_s AS paid_s
    FROM (
        SELECT mark.wallet FROM accounts.mark AS mark JOIN by ON by.account_id = mark.account_id
        GROUP BY mark.wallet HAVING count(DISTINCT by.purse) >= $5
    ) AS mark
    LEFT JOIN facts.address AS target ON target.address = mark.wallet
    LEFT JOIN facts.origin AS origin ON origin.wallet_id = target.id
), given AS (
    SELECT mark.wallet, mark.name, mark.name_key, mark.mark, by.purse
    FROM marked AS of JOIN accounts.mark AS mark ON mark.wallet = of.wallet
    JOIN by ON by.account_id = mark.account_id LEFT JOIN exchange ON exchange.funder_id = by.funder_id
    WHERE NOT {_KIN}
), said AS MATERIALIZED (
    SELECT wallet, 'name' AS what, name_key AS key, mode() WITHIN GROUP (ORDER BY name COLLATE "C") AS said,
        count(DISTINCT purse)::int AS people
    FROM given WHERE name_key IS NOT NULL GROUP BY wallet, name_key HAVING count(DISTINCT purse) >= $5
    UNION ALL
    SELECT wallet, 'mark', mark, mark, count(DISTINCT purse)::int
    FROM given WHERE mark IS NOT NULL GROUP BY wallet, mark HAVING count(DISTINCT purse) >= $5
)
SELECT wallet, what, key, said, people,
    1 = row_number() OVER (PARTITION BY wallet ORDER BY people DESC, what, key COLLATE "C") AS is_first
FROM said
"""  # noqa: S608
# $1 to $6 the columns of what was counted. Rows that did not change are not written.
_STORE = """
WITH found AS MATERIALIZED (
    SELECT * FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::int[], $6::boolean[])
    AS found (wallet, what, key, said, people, is_first)
), gone AS (
    DELETE FROM accounts.public_name AS kept WHERE NOT EXISTS (
        SELECT FROM found WHERE found.wallet = kept.wallet AND found.what = kept.what AND found.key = kept.key
    )
)
INSERT INTO accounts.public_name AS kept (wallet, what, key, said, people, is_first)
SELECT wallet, what, key, said, people, is_first FROM found
ON CONFLICT (wallet, what, key) DO UPDATE
SET said = excluded.said, people = excluded.people, is_first = excluded.is_first
WHERE (kept.said, kept.people, kept.is_first) <> (excluded.said, excluded.people, excluded.is_first)
"""


async def count(
    connection: Connection,
    made_before: datetime,
    at_s: int,
    fairness: Fairness = FAIRNESS,
    timeout_s: float = COUNTING_S,
) -> None:
    """Counts the public names and marks at the chain's time ``at_s``, of accounts made up to ``made_before``,
    and stores them in place of the old ones; unchanged rows are not written. Call it in a transaction. Raises
    TimeoutError."""
    await connection.execute(
        "SELECT set_config('work_mem', $1, true), set_config('plan_cache_mode', 'force_custom_plan', true)",
        _WORK_MEM,
    )
    counted = read(
        await connection.fetch(
            _COUNT, made_before, at_s, fairness.young_s, fairness.most_funded, PEOPLE, timeout=timeout_s
        ),
        tuple[bytes, str, str, str, int, bool],
    )
    columns = [[row[n] for row in counted] for n in range(6)]
    await connection.execute(_STORE, *columns, timeout=timeout_s)


class _PublicNameRow(NamedTuple):
    wallet: Address
    what: str
    said: str
    people: int


async def first(connection: Connection, limit: int) -> list[PublicMarks]:
    """At most ``limit`` wallets, those first whose most frequent name or mark was given by most people."""
    rows = await fetch(
        connection,
        _PublicNameRow,
        "SELECT shown.wallet, kept.what, kept.said, kept.people FROM ("
        "  SELECT wallet FROM accounts.public_name WHERE is_first ORDER BY people DESC, wallet LIMIT $1"
        ") AS shown CROSS JOIN LATERAL ("
        "  SELECT what, said, people, key FROM accounts.public_name AS own WHERE own.wallet = shown.wallet"
        '  ORDER BY people DESC, what, key COLLATE "C" LIMIT $2'
        ') AS kept ORDER BY shown.wallet, kept.people DESC, kept.what, kept.key COLLATE "C"',
        limit,
        MAX_SAID,
    )
    wallets = dict.fromkeys(row.wallet for row in rows)
    names = [
        PublicMarks(wallet, _mark_counts(rows, wallet, "name"), _mark_counts(rows, wallet, "mark"))
        for wallet in wallets
    ]
    return sorted(names, key=lambda public: (-public.people, public.wallet))


def _mark_counts(rows: Iterable[_PublicNameRow], wallet: Address, what: str) -> tuple[MarkCount, ...]:
    return tuple(MarkCount(row.said, row.people) for row in rows if row.wallet == wallet and row.what == what)


@dataclass(frozen=True, slots=True)
class Bearer:
    """A wallet with a public name, and how many people gave it that name."""

    wallet: Address
    people: int


async def bearers(connection: Connection, key: str, limit: int) -> list[Bearer]:
    """The wallets with a public name, those first that most people call by it; ``key``: the name's
    ``name_key``."""
    return await fetch(
        connection,
        Bearer,
        "SELECT wallet, people FROM accounts.public_name WHERE what = 'name' AND key = $1"
        " ORDER BY people DESC, wallet LIMIT $2",
        key,
        limit,
    )


async def scams(connection: Connection, wallets: Iterable[Address]) -> dict[Address, int]:
    """How many people mark each of these wallets as a scam; a wallet that too few people mark is missing."""
    wallets = set(wallets)
    if not wallets:
        return {}
    rows = await fetch(
        connection,
        tuple[Address, int],
        "SELECT wallet, people FROM accounts.public_name"
        " WHERE wallet = ANY($1::bytea[]) AND what = 'mark' AND key = 'scam'",
        [as_bytes(wallet) for wallet in wallets],
    )
    return dict(rows)


async def of_wallet(connection: Connection, wallet: Address) -> PublicMarks:
    """The public names and marks of a wallet, the most frequent first; there may be none."""
    rows = await fetch(
        connection,
        _PublicNameRow,
        "SELECT wallet, what, said, people FROM accounts.public_name WHERE wallet = $1"
        ' ORDER BY people DESC, what, key COLLATE "C" LIMIT $2',
        as_bytes(wallet),
        MAX_SAID,
    )
    return PublicMarks(wallet, _mark_counts(rows, wallet, "name"), _mark_counts(rows, wallet, "mark"))
