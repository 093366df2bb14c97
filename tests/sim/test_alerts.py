"""Whatever befalls those that tell, each fact is told of once, and taken back where it is gone."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet.world import Built, DevnetFolders
from sim import arena
from sim.alert_run import followed, run

SEEDS = (*range(1, 4), 232)
"""``make long NAME=sweep`` runs more of them. 232: a crash takes a rule back that was heard of already."""


@pytest.fixture(scope="session")
async def server(places: DevnetFolders, built: Built, open_folder: Path) -> AsyncIterator[EmbeddedPostgres]:
    """A database server that runs may end as they like, with the chain as it was built."""
    folder = open_folder / "alerts"
    async with arena.server(folder / "postgres") as found, followed(places, built, found, folder):
        yield found


@pytest.mark.parametrize("seed", SEEDS)
async def test_every_fact_is_told_of_once_whatever_befell_those_that_tell(
    seed: int, places: DevnetFolders, built: Built, server: EmbeddedPostgres, open_folder: Path
) -> None:
    outcome = await run(seed, places, built, server, open_folder / "alerts")
    print(outcome.line())
    assert not outcome.wrong, "\n".join(outcome.report())
    assert outcome.rows > 0
