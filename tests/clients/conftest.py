"""Who the clients call."""

from collections.abc import AsyncIterator

import pytest

from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.live_service import Live, live_service


@pytest.fixture
async def live(indexed: Context, built: Built) -> AsyncIterator[Live]:
    async with live_service(indexed, built) as found:
        yield found
