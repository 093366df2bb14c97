"""The advisory lock of the leading sync: only the sync that holds it writes."""

from roundtrip.store.server.rows import Connection, fetch_optional

SYNC_LOCK = 4663_0003
"""The lock's key. A sync holds the lock as long as it writes."""

LET_GO = {
    # Detects a killed process even during a statement.
    "client_connection_check_interval": "1000",
    # Detects a dead machine: two probes after two seconds of silence.
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "2",
    "tcp_user_timeout": "4000",
}
"""PostgreSQL settings of a sync's connection, with which the server releases the lock within four seconds of
the sync's end. The TCP settings have no effect on a unix socket."""


def name_of_sync(pid: int, host: str) -> str:
    """The application name of a sync's connection. PostgreSQL keeps the first 63 bytes."""
    return f"roundtrip sync, process {pid} on {host}"


async def leader(connection: Connection) -> str | None:
    """The application name of the connection that holds this database's lock; None: no connection does."""
    return await fetch_optional(
        connection,
        str,
        "SELECT coalesce(nullif(a.application_name, ''), 'a connection without a name') FROM pg_locks l LEFT "
        "JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 "
        "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND "
        "l.classid::bigint << 32 | l.objid::bigint = $1",
        SYNC_LOCK,
    )
