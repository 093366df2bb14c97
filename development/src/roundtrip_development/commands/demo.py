"""The commands of the local chain: alone, and with the whole service."""

import contextlib
import functools
import ipaddress
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.status import Status

from roundtrip.app import build, http_server
from roundtrip.app import supervisor as processes
from roundtrip.chain.rpc.background import run_in_background
from roundtrip.cli.terminal import console, environment, is_on_terminal, log_to_stderr, run
from roundtrip.config.networks import CHAIN_ID, Network, contracts_from
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import CannotRun
from roundtrip.observability import prometheus, tracing
from roundtrip.store.server import valkey
from roundtrip_development.commands import demo_accounts
from roundtrip_development.devnet import live_actors, world
from roundtrip_development.devnet.node import NodeOptions, RunningNode
from roundtrip_development.devnet.project import project_folder
from roundtrip_development.devnet.stories import STORIES

DEMO_BLOCK_TIME_S = 1.0
_MEMORY_WARNING_BYTES = 4 * 2**30
_MEMORY_LOOK_S = 30
_Welcome = Callable[..., None]


def _find_folders(settings: Settings) -> world.DevnetFolders:
    var = settings.var.absolute()
    with contextlib.suppress(OSError):
        var.mkdir(parents=True, exist_ok=True)
    if not os.access(var, os.W_OK):
        raise CannotRun(f"{var} cannot be written to: set ROUNDTRIP_VAR to a folder that can")
    with console.status("finding the local chain's node") as status:
        project = project_folder(var, _report_to(status))
    return world.DevnetFolders(project, var)


def _build_chain(folders: world.DevnetFolders, genesis_s: int | None) -> world.Built:
    """The local chain's cached state, built with progress on first use."""
    with console.status("preparing the local chain") as status:
        if genesis_s is None:
            return world.build_until(folders, _report_to(status), int(time.time()))
        return world.build(folders, _report_to(status), genesis_s)


def _node_options(port: int, block_time_s: float, built: world.Built, genesis_s: int | None) -> NodeOptions:
    """The node's options. Without ``genesis_s``, its clock is the current time."""
    return NodeOptions(
        port, block_time_s, built.state, timestamp_s=int(time.time()) if genesis_s is None else None
    )


def _report_to(status: Status) -> Callable[[str], None]:
    return lambda step: status.update(step) if console.is_terminal else print(step)


Genesis = Annotated[
    int | None,
    typer.Option(
        "--genesis", min=1,
        help="The Unix time of the chain's first block; its clock continues where its history of nine days "
        "ends. Left out: the history ends now, and the chain follows your clock.",
    ),
]  # fmt: skip
Actors = Annotated[bool, typer.Option("--actors", help="Let simulated actors keep trading.")]
ProcessCount = Annotated[
    int,
    typer.Option(
        "--processes", min=1,
        help="The number of serving processes; two more follow the chain, one runs jobs, one is Valkey.",
    ),
]  # fmt: skip


def demo(actors: Actors = False, process_count: ProcessCount = 1, genesis_s: Genesis = None) -> None:
    """A local chain, a database and the service, with sample tokens to try it on."""
    settings = relax_limits(Settings())
    log_to_stderr()
    rpc_port = ("127.0.0.1", settings.rpc_port, "ROUNDTRIP_RPC_PORT")
    _check_ports_free((settings.host, settings.port, "ROUNDTRIP_PORT"), rpc_port)
    with http_server.take_port(settings) as listening:
        folders = _find_folders(settings)
        built = _build_chain(folders, genesis_s)
        options = _node_options(settings.rpc_port, DEMO_BLOCK_TIME_S, built, genesis_s)
        with (
            world.start_world(folders, built, options) as node,
            _MemoryWatch(node),
            _run_actors(node, built, actors),
        ):
            description = world.write_description(folders, built, node.url)
            base_url = "http://{}:{}".format(*listening.getsockname()[:2])
            welcome = functools.partial(_print_welcome, base_url, built, description)
            serve = (
                _serve_demo if process_count == 1 else functools.partial(_serve_in_processes, process_count)
            )
            run(serve(settings, built, node.url, listening, welcome))


_ANON_PER_MINUTE = 60


def relax_limits(settings: Settings) -> Settings:
    """A demo's settings: a person alone on this machine gets a higher limit than a stranger. Keeps limits
    that are set, and the defaults if others can reach the demo."""
    is_private = settings.host == "localhost" or _is_loopback(settings.host)
    if not is_private or settings.trusted_proxies or "anon_per_minute" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"anon_per_minute": _ANON_PER_MINUTE})


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _serve_demo(
    settings: Settings, built: world.Built, rpc_url: str, listening: socket.socket, welcome: _Welcome
) -> None:
    contracts = contracts_from(built.contracts)
    network = Network(CHAIN_ID, contracts, rpc_url, None)
    local = settings.model_copy(update={"rpc_url": rpc_url, "rpc_urls": ()})
    async with (
        build.open_database(settings) as database_url,
        build.open_context(settings, rpc_url, contracts, database_url) as ctx,
        build.run_sync_and_jobs(local, network, database_url, ctx),
        run_in_background(demo_accounts.run(ctx, built, rpc_url), "cast"),
        prometheus.serve_metrics(settings, ctx.measures, prometheus.service_metrics(ctx)),
        tracing.trace_to_collector(settings, ctx.measures, "demo"),
    ):
        welcome()
        await http_server.build_http_server(
            http_server.build_application(settings, ctx),
            settings.most_connections,
            settings.trusted_proxies,
            measures=ctx.measures,
        ).serve(sockets=[listening])


async def _serve_in_processes(
    process_count: int,
    settings: Settings,
    built: world.Built,
    rpc_url: str,
    listening: socket.socket,
    welcome: _Welcome,
) -> None:
    roles = [
        processes.serve_role(listening, process_count),
        processes.Role("sync", ("sync",), processes.FOLLOWS, 2),
        processes.Role("work", ("work",), processes.WORKS),
    ]
    async with build.open_database(settings) as database_url:
        await build.migrate_database(database_url)
        async with _open_valkey(settings) as redis_url:
            service_environment = environment(
                ROUNDTRIP_DATABASE_URL=database_url,
                ROUNDTRIP_REDIS_URL=redis_url,
                ROUNDTRIP_NETWORK="devnet",
                ROUNDTRIP_RPC_URL=rpc_url,
                ROUNDTRIP_RPC_URLS=None,
                ROUNDTRIP_PORT=str(listening.getsockname()[1]),
                ROUNDTRIP_ANON_PER_MINUTE=str(settings.anon_per_minute),
            )
            supervisor = processes.Supervisor(
                roles,
                service_environment,
                on_terminal=is_on_terminal(),
                environment_of=prometheus.metrics_ports(settings.metrics_port),
            )
            async with run_in_background(_run_cast(settings, built, rpc_url, database_url), "cast"):
                await supervisor.run(lambda running: welcome(_describe_processes(running)))


async def _run_cast(settings: Settings, built: world.Built, rpc_url: str, database_url: str) -> None:
    """Runs the demo's cast in the parent process."""
    contracts = contracts_from(built.contracts)
    async with build.open_context(settings, rpc_url, contracts, database_url) as ctx:
        await demo_accounts.run(ctx, built, rpc_url)


def _open_valkey(settings: Settings) -> contextlib.AbstractAsyncContextManager[str]:
    if settings.redis_url is not None:
        return contextlib.nullcontext(settings.redis_url)
    return valkey.running()


def _describe_processes(running: processes.Supervisor) -> list[str]:
    """The roles and their process ids, and commands to try on them."""
    children = running.children()
    pids: dict[str, list[str]] = {}
    for child in children:
        pids.setdefault(child.role.name, []).append(str(child.pid))
    serving_pid = pids["serve"][0]
    return [
        f"{len(children)} processes under process {os.getpid()}:",
        *(f"  {name}: {' '.join(role_pids)}" for name, role_pids in pids.items()),
        f"  kill -9 {serving_pid}        another process takes its place; callers do not notice",
        f"  kill -USR1 {os.getpid()}     each process is replaced in turn; no request is lost",
        "  roundtrip sync --who   shows which sync leads; kill -9 it, and the other takes over",
        "",
    ]


def _print_welcome(base_url: str, built: world.Built, description: Path, running: Sequence[str] = ()) -> None:
    samples = [(story, built.tokens[story.key]) for story in STORIES if story.sample]
    lines = [
        f"roundtrip is at {base_url}",
        "Open it in a browser. docs/first-minutes.md guides you to your first practice trade.",
        "",
        "Five tokens to try, by address:",
    ]
    lines += [f"  {address}  {story.key}: {story.line}" for story, address in samples]
    plain, more_count = samples[0][1], len(built.tokens) - len(samples)
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "check_token", "arguments": {"address": plain}},
    }
    lines += [
        "",
        "For programs:",
        f"  curl -s {base_url}/v1/check/{plain}",
        f"  curl -s {base_url}/mcp -H 'content-type: application/json' -d '{json.dumps(call)}'",
        "",
        f"The local chain is described in {description}, with {more_count} more tokens:",
        f"  {', '.join(_MORE_SAMPLES)} and others.",
        *running,
        "Press Ctrl-C to stop.",
    ]
    print("\n".join(lines), flush=True)


_MORE_SAMPLES = ("curve", "swept", "graduated", "hook_takes_tenth", "v4_fee_on_sell", "hook_bait")
"""Further samples: phases of a launch, a hook, a tax, a bait."""


class _MemoryWatch:
    """Prints a warning once if the local node uses more memory than it should need."""

    def __init__(self, node: RunningNode) -> None:
        self._node = node
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(_MEMORY_LOOK_S):
            if self._node.memory_bytes() > _MEMORY_WARNING_BYTES:
                print("The local chain uses over 4 GB of memory. Restart it soon.", flush=True)
                return


def _run_actors(
    node: RunningNode, built: world.Built, actors: bool
) -> contextlib.AbstractContextManager[None]:
    return live_actors.trading(node.url, built) if actors else contextlib.nullcontext()


def _check_ports_free(*ports: tuple[str, int, str]) -> None:
    """Takes hosts, ports and the settings that move them. Raises CannotRun: one is in use; where several are,
    by another demo as a rule, it names them all."""
    errors, moved = [], []
    for host, port, setting in ports:
        try:
            http_server.listen(host, port, setting).close()
        except CannotRun as error:
            errors.append(error)
            moved.append(f"{setting}={port + 1}")
    if len(errors) > 1:
        raise CannotRun(
            f"Ports {' and '.join(str(port) for _, port, _ in ports)} are in use, perhaps by another demo: "
            f"end it, or move this one, as in {' '.join(moved)} make run."
        )
    if errors:
        raise errors[0]


def devnet(
    block_time_s: Annotated[float, typer.Option(help="Seconds between blocks.")] = DEMO_BLOCK_TIME_S,
    actors: Actors = False,
    genesis_s: Genesis = None,
) -> None:
    """Only the local chain; var/devnet.json describes it."""
    settings = Settings()
    _check_ports_free(("127.0.0.1", settings.rpc_port, "ROUNDTRIP_RPC_PORT"))
    folders = _find_folders(settings)
    built = _build_chain(folders, genesis_s)
    options = _node_options(settings.rpc_port, block_time_s, built, genesis_s)
    with world.start_world(folders, built, options) as node:
        path = world.write_description(folders, built, node.url)
        print(f"The local chain is at {node.url}, described in {path}. Press Ctrl-C to stop.", flush=True)
        with _MemoryWatch(node), _run_actors(node, built, actors):
            signal.pause()
