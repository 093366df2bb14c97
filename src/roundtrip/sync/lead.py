"""Which sync leads: the one whose connection holds the lock."""

import asyncpg

from roundtrip.store.forget import SYNC_LOCK

LET_GO = {
    # A process that was killed is noticed in the middle of a statement, too.
    "client_connection_check_interval": "1000",
    # A machine that is gone says nothing: after two seconds of silence it is asked, twice.
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "2",
    "tcp_user_timeout": "4000",
}
"""PostgreSQL's settings of a sync's connection, by which it lets go of the lock within four seconds of the
sync's end. Where a connection is a unix socket, those of TCP mean nothing and do no harm."""
_MOST_NAME = 63


def name_of_sync(pid: int, host: str) -> str:
    """What a sync's connection is called."""
    return f"roundtrip sync, process {pid} on {host}"[:_MOST_NAME]


async def leader(connection: asyncpg.Connection) -> str | None:
    """The name of the connection that holds the lock of this database; None: nobody does."""
    found: str | None = await connection.fetchval(
        "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
        " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
        " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND l.classid::bigint << 32 | l.objid::bigint = $1",
        SYNC_LOCK,
    )
    return found
