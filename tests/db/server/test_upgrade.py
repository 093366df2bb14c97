"""A database of an older release is brought up to date, and what stood in it stands in it."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from roundtrip.domain.accounts import keys
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.scorecard.scorecard import VerdictScore
from roundtrip.domain.watch.rules import Rule, Who
from roundtrip.store.liquidity.positions import read_positions
from roundtrip.store.scorecard import scorecard
from roundtrip.store.scorecard.scorecard import ScoredVerdict
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.migrate import migrate, migrations
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import watches
from roundtrip.sync.apply import Writer
from support.databases import connected, database
from support.keys import account_of_key
from support.told_blocks import WETH, Chain, sent, v4_at, v4_moved, v4_opened
from unit.sync.telling import ALICE, LOW
from unit.venues.logs import NETWORK

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = keys.format_key(bytes(32))
FIRST, SCORES = 10, 19
"""The first release with accounts that watch; the first with a scorecard, which later migrations count."""
POSITIONS = 27
"""The last release that folded no positions."""
RENAMED = 25
NEW_NAMES = {"accounts.mite": "accounts.account", '"mite_id"': '"account_id"'}
"""What that migration calls otherwise."""

OF_THEN = """
INSERT INTO facts.address (address)
    VALUES (decode(repeat('ab', 20), 'hex')), (decode(repeat('2b', 20), 'hex'));
INSERT INTO facts.evidence (token, checked_at, block_number, policy_version, verdict_code,
    verdict_level, document)
    VALUES (decode(repeat('ab', 20), 'hex'), '2026-01-01Z', 7, '1', 'ok', 'ok', '\\x7b7d');
INSERT INTO facts.rewound (to_number, to_s) VALUES (5, 50);
INSERT INTO jobs.job (kind, key, run_at) VALUES ('token', '0x01', '2026-01-01Z');
INSERT INTO accounts.mite (wallet, designation, keys_made, made_at)
    VALUES (decode(repeat('1a', 20), 'hex'), 'mite-1', 1, '2026-01-01Z');
INSERT INTO accounts.day VALUES (1, '2026-01-01', 5, 5);
INSERT INTO accounts.balance VALUES (1, 100, 3);
INSERT INTO accounts.follow (mite_id, wallet, name, from_number, rewound, made_at, change)
    VALUES (1, decode(repeat('2b', 20), 'hex'), 'whale', 3, 1, '2026-01-01Z', 1);
INSERT INTO accounts.rule (mite_id, said, who, verb, from_number, rewound, made_at, hits, change)
    VALUES (1, 'any launching', 'any', 'launching', 3, 1, '2026-01-01Z', 2, 2);
INSERT INTO accounts.alert_cursor (number, at_s, rewound) VALUES (6, 60, 1);
INSERT INTO accounts.alert (mite_id, kind, source_id, at_s, said, made_at)
    VALUES (1, 'rule', 1, 60, 'Told.', '2026-01-01Z');
INSERT INTO accounts.alert_minute (kind, source_id, minute, mite_id, raised) VALUES ('rule', 1, 1, 1, 2);
INSERT INTO accounts.channel (mite_id, kind, target, shown, secret, state, made_at)
    VALUES (1, 'webhook', '\\x00', 'https://one.example', '\\x01', 'live', '2026-01-01Z');
INSERT INTO accounts.delivery (channel_id, webhook_id, kind, alert_ids, next_at, made_at)
    VALUES (1, 'msg_1', 'alert', '{1}', '2026-01-01Z', '2026-01-01Z');
INSERT INTO accounts.delivery_try VALUES (1, 1, '2026-01-01Z', 500, NULL, 9);
"""


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    """Of an empty database."""
    async with database(database_url, "upgraded") as url, connected(url) as found:
        yield found


async def columns(connection: Connection) -> dict[str, list[str]]:
    """By table, in the order of their names."""
    rows = await connection.fetch(
        "SELECT table_schema || '.' || table_name AS name, array_agg('\"' || column_name || '\"'"
        " ORDER BY column_name) AS columns FROM information_schema.columns"
        " WHERE table_schema IN ('facts', 'jobs', 'accounts') GROUP BY 1"
    )
    return {row["name"]: row["columns"] for row in rows}


async def rows_of(connection: Connection, of: dict[str, list[str]]) -> dict[str, list[str]]:
    """What stands in these columns."""
    found = {}
    for table, names in of.items():
        query = f"SELECT row({', '.join(names)})::text AS line FROM {table} ORDER BY 1"  # noqa: S608
        found[table] = [row["line"] for row in await connection.fetch(query)]
    return {table: lines for table, lines in found.items() if lines}


def rename(of: dict[str, list[str]]) -> dict[str, list[str]]:
    """The same columns in the same order, under their new names."""
    return {
        NEW_NAMES.get(table, table): [NEW_NAMES.get(name, name) for name in names]
        for table, names in of.items()
    }


async def test_what_an_older_release_wrote_is_kept(connection: Connection) -> None:
    assert await migrate(connection, migrations()[:FIRST]) == list(range(1, FIRST + 1))
    await connection.execute(OF_THEN)
    await connection.execute(
        "INSERT INTO accounts.key (mite_id, hash, start, label, made_at) VALUES (1, $1, $2, 'mine', $3)",
        keys.hash_of(KEY), KEY[:8], NOW,
    )  # fmt: skip
    of_then = await columns(connection)
    before = await rows_of(connection, of_then)
    assert len(before) == 16
    for number in range(FIRST + 1, len(migrations()) + 1):
        assert await migrate(connection, migrations()[:number]) == [number]
        if number == RENAMED:
            of_then, before = (
                rename(of_then),
                {NEW_NAMES.get(table, table): lines for table, lines in before.items()},
            )
        assert await rows_of(connection, of_then) == before, f"migration {number}"
    # And who reads it now finds it.
    account = await account_of_key(connection, keys.hash_of(KEY))
    assert account is not None
    assert account.designation == "mite-1"
    assert [(kept.rule, kept.hits) for kept in await watches.rules_of(connection, account.id)] == [
        (Rule(Who("any"), "launching"), 2)
    ]


async def test_an_index_of_before_has_whole_positions_of_later_pools_only(connection: Connection) -> None:
    """Of the pool that is there already positions may be missing: also what a fork takes away again is not
    taken off them."""
    await migrate(connection, migrations()[:POSITIONS])
    chain, at = Chain(), v4_at(LOW, WETH)
    await connection.execute(
        "INSERT INTO facts.cursor (start_number, number, hash, at_s, older_number, rewinds)"
        " VALUES (99, 99, $1, $2, 99, 1)",
        as_bytes(chain.parent.hash), chain.parent.timestamp_s,
    )  # fmt: skip
    await connection.execute(
        "WITH put AS (INSERT INTO facts.address (address) VALUES ($1), ($2) RETURNING id)"
        " INSERT INTO facts.pool (at, kind, token_id, quote_id, in_money_from, fee_pips, tick_spacing,"
        " block_number, log_index, at_s)"
        " SELECT $3, 'amm_v4', min(id), max(id), 99, 0, 200, 99, 0, 9 FROM put",
        as_bytes(LOW), as_bytes(WETH), as_bytes(at),
    )  # fmt: skip
    await migrate(connection)
    chain.block(sent(v4_moved(at, ALICE, 7), v4_opened(LOW, ZERO_ADDRESS)))
    writer = Writer(NETWORK)
    await writer.append(connection, chain.blocks, 0)

    async def wholes() -> list[tuple[int, bool]]:
        found = await read_positions(connection, NETWORK, LOW, 9, 9)
        assert found is not None
        return [(one.pool.spot.block_number, one.is_whole) for one in found.pools]

    assert await wholes() == [(100, True), (99, False)]
    await writer.rewind(connection, chain.blocks[0].ref, chain.parent)
    assert await wholes() == [(99, False)]
    assert await connection.fetchval("SELECT count(*) FROM facts.lp_position") == 0


async def test_scores_of_before_are_counted(connection: Connection) -> None:
    await migrate(connection, migrations()[:SCORES])
    for number in (1, 2, 3):
        await connection.execute(
            "INSERT INTO facts.score (evidence_id, token, code, level, from_number, from_s, hour, outcome,"
            " cause, scored_at) VALUES ($1, $2, 'ok', 'ok', 1, 1, $4, 'right', 'sold', $3)",
            number, bytes([number // 2]) * 20, NOW, number,
        )  # fmt: skip
    await connection.execute("INSERT INTO facts.score_count VALUES ('ok', 'right', 3)")
    assert await migrate(connection) == list(range(SCORES + 1, len(migrations()) + 1))
    row = await connection.fetchrow("SELECT scored, tokens FROM facts.score_count")
    assert row is not None
    assert tuple(row) == (3, 2)
    scored = ScoredVerdict(9, Address("0x" + "00" * 20), "ok", "ok", 1, 1, VerdictScore("right", "sold"))
    await scorecard.put(connection, [scored], 0, 9, NOW, [])
    row = await connection.fetchrow("SELECT scored, tokens FROM facts.score_count")
    assert row is not None
    assert tuple(row) == (4, 2)
