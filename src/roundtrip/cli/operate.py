"""The operator's commands: run jobs, migrate the schema, examine the nodes."""

import asyncio
from dataclasses import replace
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from roundtrip.app import build, supervisor
from roundtrip.chain.doctor import NEEDED, NEEDED_TO_SERVE
from roundtrip.config.networks import Network
from roundtrip.config.settings import Settings
from roundtrip.observability import prometheus, tracing

from .terminal import console, log_to_stderr, run


def work() -> None:
    """Runs only the background jobs and the alerts, on the configured network."""
    settings = Settings()
    log_to_stderr()
    build.collect_garbage_rarely()
    run(_work(settings, build.select_network(settings)))


async def _work(settings: Settings, network: Network) -> None:
    context_args = (settings, build.node_urls(settings, network), network.contracts)
    async with (
        build.open_database(settings) as database_url,
        build.open_context(*context_args, database_url, network.look_back_blocks) as ctx,
        prometheus.serve_metrics(settings, ctx.measures, prometheus.service_metrics(ctx)),
        tracing.trace_to_collector(settings, ctx.measures, "work"),
    ):
        print(f"{supervisor.WORKS}{ctx.chain_id}. Press Ctrl-C to stop.", flush=True)
        await build.run_worker(replace(ctx, stock_tokens=network.stock_tokens))


def migrate(
    places: Annotated[
        bool,
        typer.Option(
            "--distribute",
            help="Also place the largest tables on the workers of Citus; exit 1: there are none.",
        ),
    ] = False,
) -> None:
    """Brings the database's schema up to date."""
    settings = Settings()
    run(_migrate(settings, places))


async def _migrate(settings: Settings, places: bool) -> None:
    async with build.open_database(settings) as database_url:
        applied = await build.migrate_database(database_url)
        print(f"applied: {', '.join(map(str, applied)) or 'nothing; the schema is up to date'}")
        if places:
            placed = await build.distribute_tables(database_url)
            print(f"placed: {', '.join(placed) or 'nothing; all tables are placed'}")


def doctor() -> None:
    """Shows what each node lacks, and what a check and the service lose by it; exit 1: with no node can the
    service follow the chain."""
    settings = Settings()
    findings = asyncio.run(build.examine_nodes(settings, build.select_network(settings)))
    for host, rows in findings:
        columns = "", "state", "seen", "serve --all loses", "check loses"
        table = Table(*columns, title=escape(host), title_justify="left")
        for row in rows:
            of_check = row.costs if row.check_costs is None else row.check_costs
            table.add_row(row.what, row.state, escape(row.seen), row.costs, of_check)
        console.print(table)
        for command, needed in (("roundtrip check", NEEDED), ("roundtrip serve --all", NEEDED_TO_SERVE)):
            lacks = sorted(row.what for row in rows if row.state == "missing" and row.what in needed)
            outcome = f"cannot work, for want of {', '.join(lacks)}" if lacks else "works"
            console.print(f"{command}: {outcome}")
    lacking = (
        any(row.state == "missing" and row.what in NEEDED_TO_SERVE for row in rows) for _, rows in findings
    )
    raise SystemExit(1 if all(lacking) else 0)
