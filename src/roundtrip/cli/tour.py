"""The tour: its page written anew from a walk over a demo of its own, or over one that runs."""

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
from roundtrip.config import resources
from roundtrip.config.settings import Settings
from roundtrip.devnet import world
from roundtrip.devnet.demo.wallet import DemoWallet
from roundtrip.devnet.node import free_port
from roundtrip.tour.page import page
from roundtrip.tour.redact import Placeholders, build_placeholders
from roundtrip.tour.steps import TourGround
from roundtrip.tour.walk import ServiceUrls, WalkedStep, walk

from .terminal import console, environment, run

WALLET = 7
"""Which of the local chain's accounts walks: one that bought launches."""
_RECEIVER_PORT = 9000
RECEIVER = f"http://127.0.0.1:{_RECEIVER_PORT}/alerts"
"""What the page says in the place of the address that alerts went to."""
_START_S = 60.0
_END_S = 20.0


@dataclass(frozen=True, slots=True)
class TourWalk:
    """What a walk was told, and the key that is not to be seen anywhere."""

    told: list[WalkedStep]
    known: Placeholders
    key: str

    def page(self) -> str:
        """The page. Raises ValueError where a secret would stand in it."""
        written = page(self.told, self.known)
        secrets = [self.key, *(str(one.answer.get("secret", self.key)) for one in self.told)]
        if any(secret in written for secret in secrets):
            raise ValueError("a secret would stand in the page")
        return written


@dataclass(frozen=True, slots=True)
class RunningDemo:
    """A demo with a receiver of alerts beside it."""

    place: ServiceUrls
    receiver_url: str


def tour(
    file: Annotated[Path, typer.Argument(help="Where the page goes.")] = Path("docs/tour.md"),
    url: Annotated[
        str | None,
        typer.Option(
            help="Of a demo that runs on the chain of var/devnet.json, started without --genesis and with "
            "ROUNDTRIP_WEBHOOK_LOOPBACK='[\"127.0.0.1:9000\"]'; left out: one of its own."
        ),
    ] = None,
) -> None:
    """Writes docs/tour.md: every tool once, called on a demo."""
    settings = Settings()
    var = settings.var.absolute()
    places = world.DevnetFolders(resources.project(var, print), var)
    with console.status("preparing the local chain"):
        built = _built(places, url)
    written: list[str] = []
    with place_for(places) as var:
        running = demo(var) if url is None else _running_at(url.rstrip("/"), settings.var)
        run(_write_walk(running, built, written))
    file.write_text("".join(written))
    print(f"written: {file}")


def _built(places: world.DevnetFolders, url: str | None) -> world.Built:
    """The chain of a demo of its own, whose clock goes on where its history ends: the page of today is that
    of tomorrow. A demo that runs has the time of day."""
    if url is None:
        return world.build(places, lambda step: None)
    return world.build_until(places, lambda step: None, int(time.time()))


async def _write_walk(
    demo: contextlib.AbstractAsyncContextManager[RunningDemo], built: world.Built, written: list[str]
) -> None:
    async with demo as running:
        walked = await walked_on(running, built, lambda tool: print(tool, flush=True))
    written.append(walked.page())


async def walked_on(running: RunningDemo, built: world.Built, tell: Callable[[str], None]) -> TourWalk:
    """Walks the tour there. Raises as ``walk`` does."""
    wallet = DemoWallet(built, WALLET)
    ground = TourGround(built, wallet.address, running.receiver_url)
    told, key = await walk(running.place, wallet, ground, tell)
    account = re.search(r"mite-\w+", str(ground.answers["my_mite"]))
    names = {running.receiver_url: RECEIVER, running.receiver_url.split("//")[1]: RECEIVER.split("//")[1]}
    if account:
        names[account[0]] = "<mite>"
    return TourWalk(told, build_placeholders(built, names), key)


@contextlib.contextmanager
def place_for(places: world.DevnetFolders) -> Iterator[Path]:
    """A folder for a demo's files, with the chain that was built."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        var = Path(name) / "var"
        var.mkdir()
        # The database's own user has to reach it.
        for folder in (var.parent, var):
            folder.chmod(0o711)
        (var / "devnet").symlink_to(places.var / "devnet")
        yield var


@contextlib.asynccontextmanager
async def demo(var: Path) -> AsyncIterator[RunningDemo]:
    """``roundtrip demo`` on free ports, its files in ``var``, until the block ends; on the chain that is the
    same whenever it is built."""
    async with _receiver() as receiver_url, _demo(var, receiver_url) as url:
        yield RunningDemo(ServiceUrls(url, _rpc_url(var)), receiver_url)


@contextlib.asynccontextmanager
async def _running_at(url: str, var: Path) -> AsyncIterator[RunningDemo]:
    async with _receiver(_RECEIVER_PORT) as receiver_url:
        yield RunningDemo(ServiceUrls(url, _rpc_url(var)), receiver_url)


def _rpc_url(var: Path) -> str:
    return str(json.loads((var / "devnet.json").read_text())["rpcUrl"])


@contextlib.asynccontextmanager
async def _demo(var: Path, receiver_url: str) -> AsyncIterator[str]:
    ours = environment(
        ROUNDTRIP_VAR=str(var),
        ROUNDTRIP_PORT=str(free_port()),
        ROUNDTRIP_RPC_PORT=str(free_port()),
        ROUNDTRIP_ANON_PER_MINUTE="1000",
        ROUNDTRIP_KEY_PER_MINUTE="1000",
        ROUNDTRIP_WEBHOOK_LOOPBACK=json.dumps([receiver_url.split("/")[2]]),
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "roundtrip", "demo", "--genesis", str(world.GENESIS_S)),
        env=ours,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(_START_S):
            url = ""
            async for line in process.stdout:
                found = re.match(r"roundtrip is at (\S+)", line.decode())
                url = found[1] if found else url
                if line.startswith(b"Ctrl-C ends it all"):
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
async def _receiver(port: int = 0) -> AsyncIterator[str]:
    """Somebody's server, which takes what it is sent."""

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
