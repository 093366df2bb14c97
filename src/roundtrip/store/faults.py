"""What it looks like when the database cannot be asked."""

import asyncpg

DATABASE_FAULTS = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)
"""Whatever the reason: who asks does without."""
