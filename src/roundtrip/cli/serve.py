"""The command that serves."""

import contextlib
import socket
from typing import Annotated

import structlog
import typer

from roundtrip.app import build, http_server
from roundtrip.app import supervisor as processes
from roundtrip.config.networks import Network
from roundtrip.config.settings import Settings
from roundtrip.observability import prometheus, tracing

from .terminal import environment, is_on_terminal, log_to_stderr, run


def serve(
    whole: Annotated[
        bool, typer.Option("--all", help="Follow the chain and do the jobs in this process, too.")
    ] = False,
    several: Annotated[
        int, typer.Option("--processes", help="So many processes on one port; SIGUSR1 replaces them.", min=1)
    ] = 1,
    descriptor: Annotated[int | None, typer.Option("--listening", hidden=True)] = None,
) -> None:
    """The service, on the network that is set."""
    settings = Settings()
    log_to_stderr()
    network = build.network_of(settings)
    build.spare_the_collector()
    given = settings.host, settings.port, "ROUNDTRIP_PORT"
    with (
        http_server.listen(*given)
        if descriptor is None
        else http_server.inherit_socket(descriptor) as listening
    ):
        if several > 1:
            run(_serve_in(several, settings, listening, whole))
        else:
            run(_serve(settings, network, listening, whole, shares=descriptor is not None))


async def _serve_in(several: int, settings: Settings, listening: socket.socket, whole: bool) -> None:
    if settings.redis_url is None:
        structlog.get_logger().warning(
            "without ROUNDTRIP_REDIS_URL each process has limits, shared answers and checks of its own"
        )
    async with build.database(settings) as database_url:
        await build.migrate_database(database_url)
        role = processes.serving(listening, several, *(["--all"] if whole else []))
        ours = environment(
            ROUNDTRIP_DATABASE_URL=database_url, ROUNDTRIP_PORT=str(listening.getsockname()[1])
        )
        supervisor = processes.Supervisor(
            [role], ours, on_terminal=is_on_terminal(), of_place=prometheus.ports(settings.metrics_port)
        )
        await supervisor.run(lambda _: print(_said_at(listening), flush=True))


def _said_at(listening: socket.socket) -> str:
    return processes.SERVES + "http://{}:{}".format(*listening.getsockname()[:2])


async def _serve(
    settings: Settings, network: Network, listening: socket.socket, whole: bool, shares: bool
) -> None:
    given = (settings, build.node_urls(settings, network), network.contracts)
    async with contextlib.AsyncExitStack() as stack:
        database_url = await stack.enter_async_context(build.database(settings))
        opening = build.context(*given, database_url, network.look_back_blocks)
        ctx = await stack.enter_async_context(opening)
        if whole:
            beside = build.beside_serving(settings, network, database_url, ctx)
            await stack.enter_async_context(beside)
        await stack.enter_async_context(
            prometheus.serve_metrics(settings, ctx.measures, prometheus.of_service(ctx))
        )
        await stack.enter_async_context(tracing.sent(settings, ctx.measures, "serve"))
        await http_server.http_server(
            http_server.application(settings, ctx),
            settings.most_connections,
            settings.trusted_proxies,
            lambda: print(_said_at(listening), flush=True),
            takes_turns=shares,
            measures=ctx.measures,
        ).serve(sockets=[listening])
