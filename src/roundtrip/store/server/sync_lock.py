"""Which sync leads: the one whose connection holds the lock."""

from roundtrip.store.server.rows import Connection

SYNC_LOCK = 4663_0003
"""The advisory lock that a sync holds as long as it writes."""

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


def name_of_sync(pid: int, host: str) -> str:
    """What a sync's connection is called. PostgreSQL keeps the first 63 bytes."""
    return f"roundtrip sync, process {pid} on {host}"


async def leader(connection: Connection) -> str | None:
    """The name of the connection that holds the lock of this database, whoever's it is; None: nobody does."""
    found: str | None = await connection.fetchval(
        "SELECT coalesce(nullif(a.application_name, ''), 'a connection without a name')"
        " FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)"
        " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
        " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND l.classid::bigint << 32 | l.objid::bigint = $1",
        SYNC_LOCK,
    )
    return found
