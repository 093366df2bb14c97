"""A service behind its doors, and who comes to them."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from roundtrip.services.runtime.context import Context
from support.clocks import Clock
from support.console_house import ConsoleHouse, house_of
from support.keys import random_context
from support.serving import service


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as found:
        yield found


@pytest.fixture
async def base_url(ctx: Context) -> AsyncIterator[str]:
    async with service(ctx) as url:
        yield url


@pytest.fixture
async def house(indexed: Context) -> AsyncIterator[ConsoleHouse]:
    """The pages over an index of the local chain."""
    clock = Clock()
    async with house_of(random_context(indexed, clock), clock) as found:
        yield found
