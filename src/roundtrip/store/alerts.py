"""What mites were told. Each function takes the caller's connection and ends no transaction."""

from collections.abc import Collection, Sequence
from datetime import datetime

import asyncpg

from roundtrip.domain.alerts import Alert, Draft


async def put(connection: asyncpg.Connection, drafts: Sequence[Draft], now: datetime) -> list[Alert]:
    """Keeps them, in order. A fact that was told of already is left out."""
    raise NotImplementedError


async def alerts(connection: asyncpg.Connection, ids: Collection[int]) -> list[Alert]:
    """Those that are still kept, by id, with their tokens' symbols."""
    raise NotImplementedError


async def newest(
    connection: asyncpg.Connection, mite_id: int, since: datetime, most: int
) -> tuple[list[Alert], int]:
    """A mite's since then, the newest first, ``most`` of them; and how many there are."""
    raise NotImplementedError
