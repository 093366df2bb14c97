"""A service whose node gives few blocks at once, for tests of how holders are read."""

from collections.abc import AsyncIterator

import pytest

from roundtrip.chain.width import Width
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.services import books, token_read
from roundtrip.services.context import Context
from roundtrip.services.token_read import Bounds
from support.holding import Stage
from support.reading import RANGE, Service, service_over


@pytest.fixture
async def service(
    ctx: Context, rpc: SyncRpc, built: Built, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Service]:
    monkeypatch.setattr(books, "new_width", lambda: Width(RANGE, RANGE))
    async with service_over(ctx, Stage(rpc, built), database_url) as found:
        yield found


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every token of more than some dozen transfers is."""
    monkeypatch.setattr(token_read, "AT_ONCE", Bounds(5, 60.0))
    monkeypatch.setattr(token_read, "PIECE", Bounds(8, 60.0))
