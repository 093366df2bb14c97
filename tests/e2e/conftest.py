"""One browser and one ground for all of these tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from e2e.browser import Visitor, browsing, sign_in, visiting
from e2e.ground import BrowserGround, standing
from roundtrip_development.devnet.world import Built, DevnetFolders
from support.keys import Person

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The demo starts, its cast plays, and who won is counted twice a minute."""
    for item in items:
        if item.path.parent == _HERE:
            item.add_marker(pytest.mark.timeout(400))


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with browsing() as found:
        yield found


@pytest.fixture(scope="session")
async def ground(places: DevnetFolders, built: Built) -> AsyncIterator[BrowserGround]:
    async with standing(places, built) as found:
        yield found


@pytest.fixture
async def newcomer(browser: Browser, ground: BrowserGround) -> AsyncIterator[Visitor]:
    """Somebody without an account."""
    await ground.keep_moving()
    async with visiting(browser, ground.url) as found:
        yield found


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def member(newcomer: Visitor, person: Person) -> Visitor:
    """Somebody who signed in just now."""
    await sign_in(newcomer, person)
    return newcomer
