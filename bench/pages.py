"""Measures the size of the pages, and the time of a token's page.

    make bench NAME=pages, or: PYTHONPATH=src:tests python -m bench.pages [--runs 200]

Weights: every page of the table, each of an account's rooms and each board, with all that it loads (scripts,
styles, icons, and the pieces that come by themselves), in uncompressed bytes, with an empty browser
cache.

Times: of the local chain as its actors left it, asked one after the other over one connection that stays
open, beside a constant route of the same application in the same run. Compare the ratios.
"""

import argparse
import asyncio
import contextlib
import re
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from itertools import product
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import asyncpg
import uvloop
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from roundtrip.app.http_server import build_application
from roundtrip.config.settings import Settings
from roundtrip.console.pages.account import ROOMS
from roundtrip.console.pages.boards import BOARDS
from roundtrip.console.routes import PAGES
from roundtrip.devnet import world
from roundtrip.devnet.node import NodeOptions
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.postgres import EmbeddedPostgres
from support.fixtures import PROJECT, context_for
from support.indexing import at, follow
from support.keys import Person
from support.serving import served

from .timing import Times, tell, timed

RUNS = 200
AIM_MS, MOST_BYTES = 300.0, 150_000
HEADERS = {"accept": "text/html", "accept-encoding": "identity"}
_LOADED = re.compile(r'(?:src|href)="(/static/[^"]+)"|hx-get="([^"]+)"[^>]*hx-trigger="load"')
_FIELD = re.compile(r"\{(\w+)\}")
_BUSIEST = """
SELECT '0x' || encode(address.address, 'hex') FROM facts.launch JOIN facts.position USING (token_id)
JOIN facts.address ON address.id = token_id GROUP BY address.address ORDER BY count(*) DESC LIMIT 1
"""
_TRADER = """
SELECT '0x' || encode(address.address, 'hex') FROM facts.trade JOIN facts.address ON address.id = trader_id
GROUP BY address.address ORDER BY count(*) DESC LIMIT 1
"""


@contextlib.asynccontextmanager
async def house(folder: Path) -> AsyncIterator[tuple[Context, SyncRpc]]:
    """The local chain, the index of it, and a context over both."""
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    async with contextlib.AsyncExitStack() as stack:
        node = stack.enter_context(world.start_world(places, built, NodeOptions(state=built.state)))
        rpc = stack.enter_context(SyncRpc(node.url))
        server = await stack.enter_async_context(EmbeddedPostgres(folder))
        pool = await stack.enter_async_context(asyncpg.create_pool(server.dsn))
        async with pool.acquire() as connection:
            await migrate(connection)
        await follow(node.url, built, server.dsn, 0, at(int(rpc.call("eth_blockNumber"), 16)))
        ctx = await stack.enter_async_context(context_for(node.url, built, pool))
        await ctx.heads.refresh()
        yield ctx, rpc


class Browser:
    """A client that is signed in. ``url``: of the service."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url, self._session = url, session

    async def sign_in(self) -> None:
        """As a page's script does it."""
        person = Person()
        async with self._session.post(f"{self._url}/sign-in/text", data={"address": person.address}) as told:
            text = (await told.json())["message"]
        form = {"address": person.address, "signature": person.sign(text)}
        async with self._session.post(f"{self._url}/sign-in", data=form) as answer:
            assert answer.url.path == "/account", answer.url

    async def get(self, path: str) -> tuple[int, bytes]:
        """Status and bytes, as they come."""
        async with self._session.get(urljoin(self._url, path), headers=HEADERS) as answer:
            return answer.status, await answer.read()

    async def weight(self, path: str) -> tuple[int, int, int]:
        """Status, the page's own bytes, and those with all that it loads."""
        status, page = await self.get(path)
        loaded = {one or other for one, other in _LOADED.findall(page.decode())}
        rest = [len((await self.get(one))[1]) for one in sorted(loaded)]
        return status, len(page), len(page) + sum(rest)


def paths(values: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """The addresses of each page of the table, by the values that they may contain: ``token`` and
    ``wallet`` are what an address of either sort of page is."""
    for page in PAGES:
        if page.method != "GET":
            continue
        kind = page.path.split("/")[1]
        names = [kind if name == "address" else name for name in _FIELD.findall(page.path)]
        if not all(values.get(name) for name in names):
            print(f"not measured, because no value for its address is known: {page.path}")
            continue
        for chosen in product(*(values[name] for name in names)):
            left = iter(chosen)
            yield _FIELD.sub(lambda _, left=left: next(left), page.path)  # type: ignore[misc]


def newest_transaction(rpc: SyncRpc) -> str:
    """The hash of the last one on the chain."""
    for number in range(int(rpc.call("eth_blockNumber"), 16), 0, -1):
        for found in rpc.call("eth_getBlockByNumber", hex(number), False)["transactions"]:
            return str(found)
    raise LookupError("the chain is empty")


async def weigh(browser: Browser, values: dict[str, tuple[str, ...]]) -> None:
    """A line for each page, the heaviest first."""
    found = [(await browser.weight(path), path) for path in paths(values)]
    for (status, own, whole), path in sorted(found, key=lambda one: -one[0][2]):
        missed = "HEAVY" if whole >= MOST_BYTES else ""
        print(f"{missed:6}{whole:8,} bytes, {own:7,} its own   {status}   {path}")


async def times(browser: Browser, token: str, runs: int) -> None:
    """The token's page beside the constant."""

    async def kept(path: str) -> Times:
        async def ask() -> None:
            status, _ = await browser.get(path)
            assert status == 200, (path, status)

        return await timed(ask, runs)

    began = time.perf_counter()
    await browser.get(f"/token/{token}")
    print(f"a check that is made now: {(time.perf_counter() - began) * 1000:.0f} ms")
    constant = await kept("/constant")
    tell("a constant route", constant, constant, "a constant route")
    for name, path in (
        ("the page of a check that is shared", f"/token/{token}"),
        ("the check alone, over HTTP", f"/v1/check/{token}"),
        ("who holds it, its piece", f"/token/{token}/holders"),
        ("the first page", "/"),
    ):
        tell(name, await kept(path), constant, "a constant route", AIM_MS if "page of" in name else None)


async def main(folder: Path, runs: int) -> None:
    """Serves in this process, and asks."""
    async with contextlib.AsyncExitStack() as stack:
        ctx, rpc = await stack.enter_async_context(house(folder / "postgres"))
        app = build_application(
            Settings(anon_per_minute=10**6, views_per_minute=10**6, key_per_minute=10**6, key_per_day=10**6),
            ctx,
        )

        async def constant(request: Request) -> Response:
            return Response(b"x" * 12_000, media_type="text/html")

        app.router.routes.insert(0, Route("/constant", constant))
        url = await stack.enter_async_context(served(app))
        jar = aiohttp.CookieJar(unsafe=True)
        session = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=jar))
        token = await ctx.pool.fetchval(_BUSIEST)
        browser = Browser(url, session)
        await times(browser, token, runs)
        await browser.sign_in()
        values = {
            "token": (token,),
            "wallet": (await ctx.pool.fetchval(_TRADER),),
            "hash": (newest_transaction(rpc),),
            "board": tuple(board.tool for board in BOARDS),
            "room": tuple(room.name for room in ROOMS),
        }
        await weigh(browser, values)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        # The database's own user has to reach it.
        Path(name).chmod(0o711)
        runner.run(main(Path(name), options.runs))
