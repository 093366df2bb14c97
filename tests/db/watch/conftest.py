"""Alerts that have begun."""

from collections.abc import AsyncIterator

import pytest

from roundtrip.store.server import connections
from support.alert_ground import AlertGround
from support.alerting import accounts
from support.databases import connected
from support.tables import begin_index
from support.told_blocks import Chain, launched, sent
from unit.sync.telling import CURVE, DEV, HIGH


@pytest.fixture
async def ground(url: str) -> AsyncIterator[AlertGround]:
    """A curve was launched, and the alerts have begun."""
    made = Chain()
    async with connected(url) as index, connections.create_pool(url, min_size=1, max_size=6) as pool:
        await index.execute("TRUNCATE accounts.alert_cursor, accounts.alert_minute, accounts.account CASCADE")
        writer = await begin_index(index, made.parent)
        (account,) = await accounts(index, 1)
        found = AlertGround(pool, index, made, writer, account)
        await found.block(sent(launched(HIGH, CURVE, DEV), sender=DEV))
        await found.read()
        yield found
