"""The command line: what each command puts together and runs."""

import asyncio
import contextlib
import re
import signal
import socket
import time
from pathlib import Path
from typing import Annotated

import msgspec
import structlog
import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from roundtrip import (
    assembly,
    delivery_commands,
    demo_commands,
    index_commands,
    key_commands,
    processes,
    serving,
    tour_commands,
    verify,
)
from roundtrip.api import publish as publishing
from roundtrip.api.llms import llms_txt
from roundtrip.api.openapi import openapi_json
from roundtrip.api.valkey import BadUrl
from roundtrip.chain.doctor import NEEDED
from roundtrip.devnet.artifacts import ArtifactError
from roundtrip.devnet.node import NodeStartError
from roundtrip.domain.policy import POLICY
from roundtrip.installation import NotInstalled
from roundtrip.networks import Network
from roundtrip.processes import ProcessEnded
from roundtrip.services.claim import MOST_FILE_BYTES, read_claim
from roundtrip.services.outward import OtherKey
from roundtrip.serving import PortTaken
from roundtrip.settings import Settings
from roundtrip.store.embedded_valkey import ValkeyStartError
from roundtrip.store.forget import StillFollowed
from roundtrip.store.postgres import EmbeddedPostgresError
from roundtrip.sync.fork import OtherChain
from roundtrip.terminal import console, environment, is_on_terminal, log_to_stderr, run
from roundtrip.tour.walk import NothingToShow

serving.bound_recursion()

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

_INTERRUPTED = 130
_EXPECTED = (
    BadUrl,
    PortTaken,
    ArtifactError,
    NotInstalled,
    NodeStartError,
    ValkeyStartError,
    ProcessEnded,
    EmbeddedPostgresError,
    OtherChain,
    OtherKey,
    NothingToShow,
    StillFollowed,
    OSError,
    ValidationError,
    SettingsError,
)


def main() -> None:
    """The entry point: expected failures are one line, Ctrl-C and a termination end quietly."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        app()
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    except SystemExit as ended:
        # The command line library turns an interrupt into 130; ending us is no failure.
        raise SystemExit(0 if ended.code == _INTERRUPTED else ended.code) from None
    except _EXPECTED as error:
        console.print(f"roundtrip: {_in_a_line(error)}", markup=False)
        raise SystemExit(1) from None


def _in_a_line(error: Exception) -> str:
    """An expected failure for who runs this. What a setting was set to is not repeated: it may be a key."""
    if isinstance(error, ValidationError):
        found = [
            (".".join(map(str, one["loc"][:1])), one["msg"]) for one in error.errors(include_input=False)
        ]
        return "; ".join(
            f"{name} (ROUNDTRIP_{name.upper()}): {said}" if name else said for name, said in found
        )
    if isinstance(error, SettingsError) and (named := re.search(r'field "(\w+)"', str(error))):
        return f"ROUNDTRIP_{named[1].upper()} is not the JSON that it has to be"
    return str(error)


def _as_interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


app.command()(demo_commands.demo)
app.command()(demo_commands.devnet)
app.command()(tour_commands.tour)


@app.command()
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
    network = assembly.network_of(settings)
    assembly.spare_the_collector()
    given = settings.host, settings.port, "ROUNDTRIP_PORT"
    with serving.listen(*given) if descriptor is None else serving.inherited(descriptor) as listening:
        if several > 1:
            run(_serve_in(several, settings, listening, whole))
        else:
            run(_serve(settings, network, listening, whole, shares=descriptor is not None))


async def _serve_in(several: int, settings: Settings, listening: socket.socket, whole: bool) -> None:
    if settings.redis_url is None:
        structlog.get_logger().warning(
            "without ROUNDTRIP_REDIS_URL each process has limits, shared answers and checks of its own"
        )
    async with assembly.database(settings) as database_url:
        await assembly.migrated(database_url)
        role = processes.serving(listening, several, *(["--all"] if whole else []))
        ours = environment(
            ROUNDTRIP_DATABASE_URL=database_url, ROUNDTRIP_PORT=str(listening.getsockname()[1])
        )
        supervisor = processes.Supervisor([role], ours, on_terminal=is_on_terminal())
        await supervisor.run(lambda _: print(_said_at(listening), flush=True))


def _said_at(listening: socket.socket) -> str:
    return processes.SERVES + "http://{}:{}".format(*listening.getsockname()[:2])


async def _serve(
    settings: Settings, network: Network, listening: socket.socket, whole: bool, shares: bool
) -> None:
    given = (settings, assembly.node_urls(settings, network), network.contracts)
    async with contextlib.AsyncExitStack() as stack:
        database_url = await stack.enter_async_context(assembly.database(settings))
        opening = assembly.context(*given, database_url, network.look_back_blocks)
        ctx = await stack.enter_async_context(opening)
        if whole:
            beside = assembly.beside_serving(settings, network, database_url, ctx)
            await stack.enter_async_context(beside)
        await serving.http_server(
            serving.application(settings, ctx),
            settings.most_connections,
            settings.trusted_proxies,
            lambda: print(_said_at(listening), flush=True),
            takes_turns=shares,
        ).serve(sockets=[listening])


app.command()(index_commands.sync)
app.command()(index_commands.rebuild)
app.command()(index_commands.forget)
app.command()(index_commands.origin)
app.add_typer(key_commands.app, name="keys")
app.add_typer(delivery_commands.app, name="deliveries")


@app.command()
def work() -> None:
    """Only the work that is to be done later, and alerts, on the network that is set."""
    settings = Settings()
    log_to_stderr()
    assembly.spare_the_collector()
    run(_work(settings, assembly.network_of(settings)))


async def _work(settings: Settings, network: Network) -> None:
    given = (settings, assembly.node_urls(settings, network), network.contracts)
    async with (
        assembly.database(settings) as database_url,
        assembly.context(*given, database_url, network.look_back_blocks) as ctx,
    ):
        print(f"{processes.WORKS}{ctx.chain_id}. Ctrl-C ends it.", flush=True)
        await assembly.worked(ctx)


@app.command()
def migrate() -> None:
    """Brings the database's schema up to date."""
    settings = Settings()
    run(_migrate(settings))


async def _migrate(settings: Settings) -> None:
    async with assembly.database(settings) as database_url:
        applied = await assembly.migrated(database_url)
    print(f"applied: {', '.join(map(str, applied)) or 'nothing, it is up to date'}")


@app.command()
def doctor() -> None:
    """What works of each node and the network, what is missing and what that costs; exit 1: no check can be
    made."""
    settings = Settings()
    found = asyncio.run(assembly.examined(settings, assembly.network_of(settings)))
    for host, rows in found:
        table = Table("", "state", "seen", "what that costs", title=escape(host), title_justify="left")
        for row in rows:
            table.add_row(row.what, row.state, escape(row.seen), row.costs)
        console.print(table)
    fit = (not any(row.state == "missing" and row.what in NEEDED for row in rows) for _, rows in found)
    raise SystemExit(0 if any(fit) else 1)


@app.command("verify")
def verify_proof(
    file: Annotated[Path, typer.Argument(help="The answer of GET /v1/check/{address}/proof.")],
    rpc: Annotated[str | None, typer.Option(help="A node of your own, to send the requests to.")] = None,
    network: Annotated[
        Path | None,
        typer.Option(help="Whose contracts to trust, as devnet.json; left out: the set network's."),
    ] = None,
) -> None:
    """Makes a check again from its proof: exit 0 all of it holds, 1 something does not, 2 not found out."""
    try:
        trusted = assembly.network_from(network) if network else assembly.network_of(Settings())
        with file.open("rb") as opened:
            claim = read_claim(opened.read(MOST_FILE_BYTES + 1))
    except (ValueError, OSError) as error:
        console.print(f"roundtrip: {error}", markup=False)
        raise SystemExit(2) from None
    found = asyncio.run(assembly.verified_proof(claim, trusted, rpc))
    table = Table("", "holds", "seen")
    for row in found:
        table.add_row(row.what, {True: "yes", False: "NO", None: "unknown"}[row.holds], Text(row.seen))
    console.print(table)
    holds = [row.holds for row in found]
    raise SystemExit(1 if False in holds else 2 if None in holds else 0)


@app.command("verify-trade")
def verify_trade(
    file: Annotated[Path, typer.Argument(help="The answer of POST /v1/prepare/buy or /v1/prepare/sell.")],
    network: Annotated[
        Path | None, typer.Option(help="Whose contracts to trust; var/devnet.json when left out.")
    ] = None,
    wallet: Annotated[str | None, typer.Option("--from", help="The wallet that you asked for.")] = None,
    token: Annotated[str | None, typer.Option(help="The token that you asked for.")] = None,
    side: Annotated[str | None, typer.Option(help="buy or sell.")] = None,
    amount: Annotated[str | None, typer.Option(help="The amount that you asked for.")] = None,
    asset: Annotated[str | None, typer.Option(help="What that amount is of: eth or usdg.")] = None,
    slippage_bps: Annotated[int | None, typer.Option(help="The slippage that you asked for.")] = None,
) -> None:
    """Proves a prepared trade from its own bytes, without the service: exit 0 proven, 1 not, 2 not read."""
    asked = verify.Request(wallet, token, side, amount, None, slippage_bps, asset)
    try:
        trusted = verify.Network.read(verify.parse((network or Settings().var / "devnet.json").read_text()))
        report = verify.verify(verify.parse(file.read_text()), trusted, asked, int(time.time()))
    except (verify.Unreadable, UnicodeDecodeError, OSError) as error:
        console.print(f"roundtrip: {error}", markup=False)
        raise SystemExit(2) from None
    print("\n".join(verify.lines(report)))
    raise SystemExit(0 if report.ok else 1)


@app.command()
def publish(
    folder: Annotated[Path, typer.Argument(help="Where the documents go.")] = Path("docs"),
) -> None:
    """Writes the interface's documentation from the table of operations."""
    (folder / "api.md").write_text(publishing.api_markdown())
    (folder / "llms.txt").write_text(llms_txt())
    for name, told in (("tools.json", publishing.tools_json()), ("openapi.json", openapi_json())):
        (folder / name).write_bytes(msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n")
    verdicts = folder / "verdicts.md"
    page = verdicts.read_text() if verdicts.exists() else publishing.EMPTY_VERDICTS
    verdicts.write_text(publishing.verdicts_markdown(page, POLICY))
    print(f"written: api.md, tools.json, openapi.json, llms.txt and verdicts.md in {folder}")
