"""Exceptions that mean the database is unavailable."""

import asyncpg

DATABASE_FAULTS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # Raised by a connection that its server is just closing.
    asyncpg.InternalClientError,
)
"""Whatever the cause, the caller goes on without the database."""
