"""The reads by key of the schema: PostgreSQL plans them as if they stood in the statement."""

import pytest

from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.server.migrate import distribute
from roundtrip.store.server.partitions import DAILY, ensure
from roundtrip.store.server.rows import Connection
from support.databases import needs_one_server

_READS = """
SELECT proname || '(' || array_to_string(ARRAY(
    SELECT CASE type::regtype::text
        WHEN 'integer[]' THEN 'ARRAY[keys.n]' WHEN 'boolean' THEN 'keys.n > 0' ELSE 'keys.n'
    END FROM unnest(proargtypes::oid[]) AS type
), ', ') || ')'
FROM pg_proc JOIN pg_language ON pg_language.oid = prolang
WHERE pronamespace = 'facts'::regnamespace AND lanname = 'sql' ORDER BY 1
"""


@needs_one_server
async def test_each_is_planned_in_place(connection: Connection) -> None:
    for table in DAILY:
        await ensure(connection, table, 0, 0)
    reads = [row[0] for row in await connection.fetch(_READS)]
    assert len(reads) >= 9
    for read in reads:
        plan = await connection.fetch(
            f"EXPLAIN SELECT * FROM generate_series(1, 9) AS keys (n) CROSS JOIN LATERAL facts.{read} AS one"  # noqa: S608
        )
        name = read.partition("(")[0]
        # The planner asks before it puts the body in place.
        safe = "SELECT bool_and(proparallel = 's') FROM pg_proc WHERE proname = $1"
        assert await connection.fetchval(safe, name), read
        assert not any(f"Function Scan on {name} " in row[0] for row in plan), read


@needs_one_server
async def test_without_workers_nothing_is_placed(connection: Connection) -> None:
    with pytest.raises(CannotRun):
        await distribute(connection)
    assert await connection.fetch(_READS)
