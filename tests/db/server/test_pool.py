"""A pooled connection goes back without a statement: nothing that outlasts a transaction is set on it."""

import re
from pathlib import Path

import pytest

import roundtrip
from roundtrip.store.server import connections
from support.databases import connected

_SOURCE = Path(roundtrip.__file__).parent
_ENDED = {"api/admission/leases.py", "jobs/kinds/telegram.py"}
"""They end a pooled connection after use."""
_EXEMPT = {"store/accounts/call_counts.py", "store/server/migrate.py", "sync/run.py"}
"""The leases' statements, and who has a connection of its own."""
_LASTS = re.compile(
    r"(?i:[\"']|; )SET (?!LOCAL\b)(?:SESSION )?[\w{}]+ ?(?:=|TO\b)|set_config\([^)]*false\)"
    r"|pg_(?:try_)?advisory_lock|DECLARE .* CURSOR WITH HOLD|CREATE TEMP"
    r"|\"(?:SET ROLE|LISTEN|UNLISTEN|PREPARE) "
)


async def test_a_connection_goes_back_as_its_transaction_left_it(database_url: str) -> None:
    async with connections.create_pool(database_url, max_size=1) as pool, connected(database_url) as other:
        pid = await pool.fetchval("SELECT pg_backend_pid()")
        last = "SELECT query FROM pg_stat_activity WHERE pid = $1"
        async with pool.acquire() as connection:
            usual = await connection.fetchval("SHOW work_mem")
            async with connection.transaction():
                await connection.execute("SET LOCAL work_mem = '1MB'")
        assert await other.fetchval(last, pid) == "COMMIT;"
        assert await pool.fetchval("SHOW work_mem") == usual


@pytest.mark.parametrize(
    ("text", "lasts"),
    [
        ('execute("SET synchronous_commit = off")', True),
        ('f"SET {name}=1"', True),
        ('"LISTEN jobs"', True),
        ("SET LOCAL work_mem = '1MB'", False),
        ("set_config('lock_timeout', $1, false)", True),
        ("set_config('lock_timeout', $1, true)", False),
        ("SELECT pg_advisory_lock($1)", True),
        ("SELECT pg_advisory_xact_lock($1)", False),
    ],
)
def test_what_lasts_is_told_from_what_ends_with_a_transaction(text: str, lasts: bool) -> None:
    assert bool(_LASTS.search(text)) is lasts


def test_nothing_that_lasts_is_set_on_a_pooled_connection() -> None:
    found = {
        str(path.relative_to(_SOURCE)) for path in _SOURCE.rglob("*.py") if _LASTS.search(path.read_text())
    }
    assert found - _EXEMPT <= _ENDED
    for path in _ENDED:
        assert "connection.terminate()" in (_SOURCE / path).read_text()
