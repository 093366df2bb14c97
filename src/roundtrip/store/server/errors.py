"""What it looks like when the database cannot be asked."""

import asyncpg

DATABASE_FAULTS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    # Of a connection whose server has just said goodbye, and whose end is not here yet.
    asyncpg.InternalClientError,
)
"""Whatever the reason: who asks does without."""
