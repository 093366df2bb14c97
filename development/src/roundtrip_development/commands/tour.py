"""The command that writes the tour's page from a walk over a demo, its own or a running one."""

import asyncio
import contextlib
import json
import re
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import aiohttp.web
import typer

from roundtrip.app import http_server
from roundtrip.cli.terminal import console, environment, run
from roundtrip.config.settings import Settings
from roundtrip_development.devnet import world
from roundtrip_development.devnet.demo.wallet import DemoWallet
from roundtrip_development.devnet.node import free_port
from roundtrip_development.devnet.project import project_folder
from roundtrip_development.tour.examples import PAY_TO, PAYER, record_examples, write_examples
from roundtrip_development.tour.page import page
from roundtrip_development.tour.redact import Placeholders, build_placeholders
from roundtrip_development.tour.steps import TourGround
from roundtrip_development.tour.walk import ServiceUrls, WalkedStep, walk

WALLET = 7
"""The index of the local chain's account that takes the tour: one that bought launches."""
_RECEIVER_PORT = 9000
RECEIVER = f"http://127.0.0.1:{_RECEIVER_PORT}/alerts"
"""What the page shows in place of the actual receiver's url."""
_START_S = 60.0
_END_S = 20.0


@dataclass(frozen=True, slots=True)
class TourWalk:
    """The steps of a walk, the placeholders, and the key, which must not appear in the page."""

    told: list[WalkedStep]
    known: Placeholders
    key: str

    def page(self) -> str:
        """The page's markdown. Raises ValueError: it would contain a secret."""
        text = page(self.told, self.known)
        secrets = [self.key, *(str(step.answer.get("secret", self.key)) for step in self.told)]
        if any(secret in text for secret in secrets):
            raise ValueError("the page would contain a secret")
        return text


@dataclass(frozen=True, slots=True)
class RunningDemo:
    """A running demo, and the url of a receiver of alerts."""

    place: ServiceUrls
    receiver_url: str


def tour(
    file: Annotated[Path, typer.Argument(help="Where the page goes.")] = Path("docs/tour.md"),
    examples: Annotated[
        Path | None,
        typer.Option(help="Where the examples of the OpenAPI document go; without it, they are not written."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="Of a demo that runs on the chain of var/devnet.json, started without --genesis and with "
            "ROUNDTRIP_WEBHOOK_LOOPBACK='[\"127.0.0.1:9000\"]'; left out: one of its own."
        ),
    ] = None,
) -> None:
    """Writes docs/tour.md: every tool once, called on a demo. With --examples also an answer of each."""
    settings = Settings()
    var = settings.var.absolute()
    places = world.DevnetFolders(project_folder(var, print), var)
    with console.status("preparing the local chain"):
        built = _build_chain(places, url)
    results: list[tuple[str, bytes]] = []
    with make_demo_folder(places) as var:
        demo = start_demo(var) if url is None else _attach_to_demo(url.rstrip("/"), settings.var)
        run(_walk_and_record(demo, built, examples is not None, results))
    ((page_text, recorded),) = results
    file.write_text(page_text)
    print(f"written: {file}")
    if examples is not None:
        examples.write_bytes(recorded)
        print(f"written: {examples}")


def _build_chain(places: world.DevnetFolders, url: str | None) -> world.Built:
    """The chain of the demo. The tour's own demo uses a clock that continues from the chain's history, so
    that the page is the same every day; a running demo uses the current time."""
    if url is None:
        return world.build(places, lambda step: None)
    return world.build_until(places, lambda step: None, int(time.time()))


async def _walk_and_record(
    demo: contextlib.AbstractAsyncContextManager[RunningDemo],
    built: world.Built,
    records: bool,
    results: list[tuple[str, bytes]],
) -> None:
    """Adds the page, and the examples if ``records`` (else empty)."""
    async with demo as running:
        tour_walk = await walk_demo(running, built, lambda tool: print(tool, flush=True))
        recorded = b""
        if records:
            payer = DemoWallet(built, PAYER)
            recorded = write_examples(await record_examples(running.place, payer, tour_walk.told))
    results.append((tour_walk.page(), recorded))


async def walk_demo(running: RunningDemo, built: world.Built, report: Callable[[str], None]) -> TourWalk:
    """Walks the tour on a demo. Raises as ``walk`` does."""
    wallet = DemoWallet(built, WALLET)
    ground = TourGround(built, wallet.address, running.receiver_url)
    steps, key = await walk(running.place, wallet, ground, report)
    account = re.search(r"mite-\w+", str(ground.answers["my_mite"]))
    names = {running.receiver_url: RECEIVER, running.receiver_url.split("//")[1]: RECEIVER.split("//")[1]}
    if account:
        names[account[0]] = "<mite>"
    return TourWalk(steps, build_placeholders(built, names), key)


@contextlib.contextmanager
def make_demo_folder(places: world.DevnetFolders) -> Iterator[Path]:
    """A temporary folder for a demo's files, with the chain that was built."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        var = Path(name) / "var"
        var.mkdir()
        # The database runs as another user, which must be able to enter the folder.
        for folder in (var.parent, var):
            folder.chmod(0o711)
        (var / "devnet").symlink_to(places.var / "devnet")
        yield var


@contextlib.asynccontextmanager
async def start_demo(var: Path) -> AsyncIterator[RunningDemo]:
    """Runs ``roundtrip demo`` on free ports while the block runs, its files in ``var``, on the chain with a
    fixed genesis."""
    async with _run_receiver() as receiver_url, _run_demo(var, receiver_url) as url:
        yield RunningDemo(ServiceUrls(url, _read_rpc_url(var)), receiver_url)


@contextlib.asynccontextmanager
async def _attach_to_demo(url: str, var: Path) -> AsyncIterator[RunningDemo]:
    async with _run_receiver(_RECEIVER_PORT) as receiver_url:
        yield RunningDemo(ServiceUrls(url, _read_rpc_url(var)), receiver_url)


def _read_rpc_url(var: Path) -> str:
    return str(json.loads((var / "devnet.json").read_text())["rpcUrl"])


@contextlib.asynccontextmanager
async def _run_demo(var: Path, receiver_url: str) -> AsyncIterator[str]:
    demo_environment = environment(
        ROUNDTRIP_VAR=str(var),
        ROUNDTRIP_PORT=str(free_port()),
        ROUNDTRIP_RPC_PORT=str(free_port()),
        ROUNDTRIP_ANON_PER_MINUTE="1000",
        ROUNDTRIP_VIEWS_PER_MINUTE="1000",
        ROUNDTRIP_KEY_PER_MINUTE="1000",
        ROUNDTRIP_WEBHOOK_LOOPBACK=json.dumps([receiver_url.split("/")[2]]),
        ROUNDTRIP_PAY_TO=PAY_TO,
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "roundtrip", "demo", "--genesis", str(world.GENESIS_S)),
        env=demo_environment,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_START_S):
            url = ""
            async for line in process.stdout:
                match = re.match(r"roundtrip is at (\S+)", line.decode())
                url = match[1] if match else url
                if line.startswith(b"Press Ctrl-C to stop"):
                    break
            else:
                raise OSError("the demo did not start")
        yield url
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _END_S)
        except TimeoutError:
            process.kill()
            await process.wait()


@contextlib.asynccontextmanager
async def _run_receiver(port: int = 0) -> AsyncIterator[str]:
    """Runs a receiver of alerts, which accepts every message."""

    async def take(request: aiohttp.web.Request) -> aiohttp.web.Response:
        await request.read()
        return aiohttp.web.Response(status=204)

    app = aiohttp.web.Application()
    app.router.add_post("/alerts", take)
    runner = aiohttp.web.AppRunner(app, access_log=None)
    await runner.setup()
    listening: socket.socket = http_server.listen("127.0.0.1", port, "another one")
    await aiohttp.web.SockSite(runner, listening).start()
    try:
        yield "http://{}:{}/alerts".format(*listening.getsockname()[:2])
    finally:
        await runner.cleanup()
