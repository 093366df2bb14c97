"""The commands of the index: follow the chain, rebuild, delete, query."""

from datetime import UTC, datetime
from typing import Annotated

import asyncpg
import typer

from roundtrip.app import build, supervisor
from roundtrip.chain.holders.origins import NothingReached
from roundtrip.config.networks import Network
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.observability import prometheus, tracing
from roundtrip.store.maintenance.backup import FORGOTTEN, KEPT

from .progress import show_progress
from .terminal import console, log_to_stderr, run

_NO, _UNKNOWN = 1, 2
"""Exit codes."""


def sync(
    first: Annotated[
        int | None, typer.Option("--from", help="The first block to read, in an empty database.", min=0)
    ] = None,
    any_fork: Annotated[
        bool,
        typer.Option(
            "--any-fork", help="Accept a reorg of any depth; facts of the replaced blocks are deleted."
        ),
    ] = False,
    who: Annotated[
        bool, typer.Option("--who", help="Only show which sync of this database leads; exit 1: none does.")
    ] = False,
) -> None:
    """Follows the chain into the database: launches, pools, trades, wallets. Of several one leads, and the
    others wait."""
    settings = Settings() if first is None else Settings(sync_from=first)
    if who:
        run(_who(settings))
        return
    log_to_stderr()
    build.collect_garbage_rarely()
    run(_sync(settings, build.select_network(settings), any_fork))


async def _who(settings: Settings) -> None:
    async with build.open_database(settings, joins=True) as database_url:
        leader = await build.find_leader(database_url)
    print("none leads" if leader is None else f"{leader} leads")
    if leader is None:
        raise SystemExit(_NO)


async def _sync(settings: Settings, network: Network, any_fork: bool) -> None:
    measures = Measures()
    with show_progress(console) as report:
        async with (
            build.open_database(settings) as database_url,
            build.open_sync(settings, network, database_url, report, any_fork, measures) as sync,
            prometheus.serve_metrics(settings, measures),
            tracing.trace_to_collector(settings, measures, "sync"),
        ):
            print(f"{supervisor.FOLLOWS}{network.chain_id}. Press Ctrl-C to stop.", flush=True)
            await sync.run()


def rebuild() -> None:
    """Recomputes positions and profits from the trades, while everything goes on."""
    settings = Settings()
    run(_rebuild(settings, build.select_network(settings)))


async def _rebuild(settings: Settings, network: Network) -> None:
    async with build.open_database(settings) as database_url:
        count = await build.rebuild_positions(database_url, network)
    print(f"Rebuilt {count:,} positions.")


def forget(
    sure: Annotated[
        bool, typer.Option("--yes", help="Do it. Without this option it only shows what it would do.")
    ] = False,
) -> None:
    """Deletes what sync stored, and the holder books, so that the next sync starts over; exit 1: nothing was
    done."""
    if not sure:
        deleted, kept = (
            ", ".join(name.removeprefix("facts.") for name in names) for names in (FORGOTTEN, KEPT)
        )
        print(f"This would empty these tables of schema facts: {deleted}.")
        print(f"It keeps {kept} and every other schema.")
        print("The next sync then starts over at ROUNDTRIP_SYNC_FROM. Add --yes to do it.")
        raise SystemExit(_NO)
    run(_forget(Settings()))


async def _forget(settings: Settings) -> None:
    async with build.open_database(settings) as database_url:
        try:
            await build.forget_index(database_url)
        except asyncpg.LockNotAvailableError:
            print("roundtrip: a table is in use, so nothing was done; try again")
            raise SystemExit(_NO) from None
    print("Emptied. The next sync starts over.")


def origin(wallet: Annotated[str, typer.Argument(help="The wallet's address.")]) -> None:
    """Shows when a wallet was first seen and who funded it, from the index or an archive; exit 2: unknown."""
    try:
        address = parse_address(wallet)
    except ValueError as error:
        print(f"roundtrip: {error}")
        raise SystemExit(_UNKNOWN) from None
    settings = Settings()
    run(_origin(settings, build.select_network(settings), address))


async def _origin(settings: Settings, network: Network, wallet: Address) -> None:
    async with build.open_database(settings) as database_url:
        try:
            origin = await build.find_wallet_origin(settings, network, database_url, wallet)
        except RoundtripError as error:
            print(f"{wallet}: unknown. {error.message}")
            raise SystemExit(_UNKNOWN) from None
    print(_describe_origin(wallet, origin))
    if origin is None:
        raise SystemExit(_UNKNOWN)


def _describe_origin(wallet: Address, origin: FirstSeen | NothingReached | None) -> str:
    if origin is None:
        return f"{wallet}: unknown. The index does not reach back that far, and no node's archive answered."
    if isinstance(origin, NothingReached):
        return f"{wallet} has not appeared up to block {origin.searched_number:,}."
    seen_at = datetime.fromtimestamp(origin.first_s, UTC)
    funder = f"funded by {origin.funder}" if origin.funder else "its funder is not known"
    return (
        f"{wallet} first appeared in block {origin.first_number:,}, {seen_at:%Y-%m-%d %H:%M:%S} "
        f"UTC; {funder}."
    )
