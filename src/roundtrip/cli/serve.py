"""The command that runs the HTTP service."""

import contextlib
import socket
from dataclasses import replace
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
    with_jobs: Annotated[
        bool, typer.Option("--all", help="Also follow the chain and run the jobs in this process.")
    ] = False,
    process_count: Annotated[
        int,
        typer.Option(
            "--processes",
            help="The number of processes on the port; SIGUSR1 replaces them one by one.",
            min=1,
        ),
    ] = 1,
    descriptor: Annotated[int | None, typer.Option("--listening", hidden=True)] = None,
) -> None:
    """Serves the API, the tools and the console, on the configured network."""
    settings = Settings()
    log_to_stderr()
    network = build.select_network(settings)
    build.collect_garbage_rarely()
    with (
        http_server.take_port(settings)
        if descriptor is None
        else http_server.inherit_socket(descriptor) as listening
    ):
        if process_count > 1:
            run(_serve_in_processes(process_count, settings, listening, with_jobs))
        else:
            run(_serve(settings, network, listening, with_jobs, takes_turns=descriptor is not None))


async def _serve_in_processes(
    process_count: int, settings: Settings, listening: socket.socket, with_jobs: bool
) -> None:
    if settings.redis_url is None:
        structlog.get_logger().warning(
            "without ROUNDTRIP_REDIS_URL each process has its own limits, shared answers and checks"
        )
    async with build.open_database(settings) as database_url:
        await build.migrate_database(database_url)
        role = processes.serve_role(listening, process_count, *(["--all"] if with_jobs else []))
        service_environment = environment(
            ROUNDTRIP_DATABASE_URL=database_url, ROUNDTRIP_PORT=str(listening.getsockname()[1])
        )
        supervisor = processes.Supervisor(
            [role],
            service_environment,
            on_terminal=is_on_terminal(),
            environment_of=prometheus.metrics_ports(settings.metrics_port),
        )
        await supervisor.run(lambda _: print(_ready_line(listening), flush=True))


def _ready_line(listening: socket.socket) -> str:
    return processes.SERVES + "http://{}:{}".format(*listening.getsockname()[:2])


async def _serve(
    settings: Settings, network: Network, listening: socket.socket, with_jobs: bool, takes_turns: bool
) -> None:
    context_args = (settings, build.node_urls(settings, network), network.contracts)
    async with contextlib.AsyncExitStack() as stack:
        database_url = await stack.enter_async_context(build.open_database(settings))
        opening = build.open_context(*context_args, database_url, network.look_back_blocks)
        opened = await stack.enter_async_context(opening)
        opened = await stack.enter_async_context(build.add_replicas(settings, database_url, opened))
        ctx = replace(opened, stock_tokens=network.stock_tokens, explorer_url=network.explorer_url)
        if with_jobs:
            jobs = build.run_sync_and_jobs(settings, network, database_url, ctx)
            await stack.enter_async_context(jobs)
        await stack.enter_async_context(
            prometheus.serve_metrics(settings, ctx.measures, prometheus.service_metrics(ctx))
        )
        await stack.enter_async_context(tracing.trace_to_collector(settings, ctx.measures, "serve"))
        await http_server.build_http_server(
            http_server.build_application(settings, ctx),
            settings.most_connections,
            settings.trusted_proxies,
            lambda: print(_ready_line(listening), flush=True),
            takes_turns=takes_turns,
            measures=ctx.measures,
        ).serve(sockets=[listening])
