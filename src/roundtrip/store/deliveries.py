"""What is to be sent to whom. Each function takes the caller's connection and ends no transaction."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from roundtrip.domain.alerts import Alert


async def wish(
    connection: asyncpg.Connection, alerts: Sequence[Alert], now: datetime, retracted: bool = False
) -> None:
    """A delivery of these to every channel of their mites that is not off, in the caller's transaction: rows
    of one mite and kind together, as many as a message of the channel holds. ``retracted``: it takes back
    what they said."""
    raise NotImplementedError
