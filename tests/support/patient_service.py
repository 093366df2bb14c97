"""``roundtrip serve`` for busy cores: Valkey may take ten seconds. The settings name a database."""

import asyncio

from roundtrip.app import build, http_server
from roundtrip.cli.terminal import log_to_stderr
from roundtrip.config.settings import Settings
from support.serving import PATIENT_STORE


async def serve() -> None:
    """Serves until it is killed."""
    settings = Settings()
    log_to_stderr()
    network = build.select_network(settings)
    nodes, database_url = build.node_urls(settings, network), settings.database_url or ""
    with http_server.take_port(settings) as listening:
        async with build.open_context(settings, nodes, network.contracts, database_url) as ctx:
            await http_server.build_http_server(
                http_server.build_application(settings, ctx, PATIENT_STORE),
                ready=lambda: print(
                    f"roundtrip is at http://127.0.0.1:{listening.getsockname()[1]}", flush=True
                ),
            ).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(serve())
