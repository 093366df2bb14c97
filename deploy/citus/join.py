"""Makes one database on several PostgreSQL servers with Citus a coordinator and its workers.

    python deploy/citus/join.py COORDINATOR_URL WORKER_URL [WORKER_URL ...]

Each url names the same database, which has to exist. Each server has ``shared_preload_libraries = 'citus'``,
and its host and port are how the others reach it. The role of the coordinator's url is a superuser on all of
them, and the coordinator's server gets into the workers with it (pg_hba.conf, or a .pgpass of the server's
user). Tables are placed by ``roundtrip migrate --distribute``. To add a worker, run it again with one more
url; Citus' ``citus_rebalance_start()`` moves shards there.
"""

import asyncio
import sys
import urllib.parse
from collections.abc import Sequence

import asyncpg

_SHOWN_LAST = "ALTER FUNCTION pg_catalog.relation_is_a_known_shard(regclass) COST 10000"
"""Citus calls it for every row of pg_class that a query of the catalog reads, before cheaper conditions.
asyncpg's query about a type took 13 s with 26 placed tables, and takes 1 s so."""


async def join(urls: Sequence[str]) -> None:
    """Adds the later urls' servers to the first one's as workers, those that are not yet."""
    for url in urls:
        node = await asyncpg.connect(url)
        await node.execute("CREATE EXTENSION IF NOT EXISTS citus")
        await node.execute(_SHOWN_LAST)
        await node.close()
    coordinator = await asyncpg.connect(urls[0])
    try:
        if not await coordinator.fetchval("SELECT EXISTS (SELECT FROM pg_dist_node WHERE groupid = 0)"):
            await coordinator.execute("SELECT citus_set_coordinator_host($1, $2)", *_place(urls[0]))
        for url in urls[1:]:
            await coordinator.execute("SELECT citus_add_node($1, $2)", *_place(url))
    finally:
        await coordinator.close()


def _place(url: str) -> tuple[str, int]:
    parts = urllib.parse.urlsplit(url)
    if parts.hostname is None:
        raise SystemExit("a url names no host: the other nodes could not reach it")
    return parts.hostname, parts.port or 5432


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    asyncio.run(join(sys.argv[1:]))
