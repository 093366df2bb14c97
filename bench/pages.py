"""Measures the weight and the speed of the pages.

    make bench NAME=pages, or: PYTHONPATH=src:tests python -m bench.pages [--runs 50]

What misses its aim stands first in each list. On the local chain as its actors left it:

- Weights: every page of the table, each of an account's rooms and each board, with all that it loads
  (scripts, styles, icons, and the pieces that come by themselves), in bytes as they are sent, with an empty
  browser cache; and with the pieces that come when one scrolls to them, the chart among them.
- Times: each page, asked one after the other over one connection that stays open, beside a constant route of
  the same application in the same run. Compare the ratios.
- Seen: in Chromium (CHROMIUM=), with an empty cache and as wide as a phone, a check that nobody made before:
  from the arrival of its answer to the frame that shows the verdict. And from scrolling there to the drawn
  chart.
"""

import argparse
import asyncio
import contextlib
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from gzip import decompress
from itertools import product
from pathlib import Path
from statistics import median
from urllib.parse import urljoin

import aiohttp
import uvloop
from playwright.async_api import Browser as Chromium
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from e2e.browser import PHONE, browsing, is_there
from roundtrip.app.http_server import build_application
from roundtrip.config.settings import Settings
from roundtrip.console.pages.account_rooms import ROOMS
from roundtrip.console.pages.boards import BOARDS
from roundtrip.console.routes import PAGES
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.fixtures import PROJECT, context_for
from support.indexing import at, follow
from support.keys import Person
from support.serving import served

from .serving import connected
from .timing import Times, tell, timed

RUNS = 50
SEEN_RUNS = 12
AIM_MS, SEEN_AIM_MS = 300.0, 300.0
MAX_BYTES, MAX_WITH_CHART_BYTES = 150_000, 260_000
HEADERS = {"accept": "text/html", "accept-encoding": "gzip"}
_STATIC = re.compile(r'(?:src|href)="(/static/[^"]+)"')
_PIECE = re.compile(r'hx-get="([^"]+)"[^>]*hx-trigger="(load|revealed)"')
_FIELD = re.compile(r"\{(\w+)\}")
_SHOWN = """
addEventListener("DOMContentLoaded", () => requestAnimationFrame(function look() {
  const word = document.querySelector(".hero .word strong");
  if (!word || !word.getBoundingClientRect().height) return requestAnimationFrame(look);
  requestAnimationFrame(() => { window.shownAt = performance.now(); });
}));
"""
_DRAW = """() => new Promise((done, fail) => {
  const began = performance.now();
  document.getElementById("chart").scrollIntoView();
  requestAnimationFrame(function look() {
    const chart = document.getElementById("chart");
    if (performance.now() - began > 10000) return fail(chart.parentNode.textContent);
    if (!document.querySelector(".plot canvas")) return requestAnimationFrame(look);
    requestAnimationFrame(() => done(performance.now() - began));
  });
})"""
_TO_SEE = "() => window.shownAt - performance.getEntriesByType('navigation')[0].responseStart"
_BUSIEST = """
SELECT '0x' || encode(address.address, 'hex') FROM facts.launch JOIN facts.position USING (token_id)
JOIN facts.address ON address.id = token_id GROUP BY address.address ORDER BY count(*) DESC LIMIT 1
"""
_DECIMALS = """
INSERT INTO facts.token (token, decimals, read_number) VALUES (decode(substr($1, 3), 'hex'), 18, 1)
"""
_TRADER = """
SELECT '0x' || encode(address.address, 'hex') FROM facts.trade JOIN facts.address ON address.id = trader_id
GROUP BY address.address ORDER BY count(*) DESC LIMIT 1
"""


@contextlib.asynccontextmanager
async def house(folder: Path) -> AsyncIterator[tuple[Context, SyncRpc, world.Built]]:
    """The local chain, the index of it, and a context over both."""
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    async with contextlib.AsyncExitStack() as stack:
        node = stack.enter_context(world.start_world(places, built, NodeOptions(state=built.state)))
        rpc = stack.enter_context(SyncRpc(node.url))
        server = await stack.enter_async_context(EmbeddedPostgres(folder))
        pool = await stack.enter_async_context(connected(server.dsn))
        async with pool.acquire() as connection:
            await migrate(connection)
        await follow(node.url, built, server.dsn, 0, at(int(rpc.call("eth_blockNumber"), 16)))
        ctx = await stack.enter_async_context(context_for(node.url, built, pool))
        await stack.enter_async_context(ctx.heads.following())
        yield ctx, rpc, built


@dataclass(slots=True)
class Weight:
    """Of one page, in bytes as they are sent. ``loaded``: by path, what comes with it; ``later``: what comes
    when one scrolls there."""

    status: int
    own: int
    loaded: dict[str, int] = field(default_factory=dict)
    later: dict[str, int] = field(default_factory=dict)

    def first(self) -> int:
        """What a first visit loads."""
        return self.own + sum(self.loaded.values())

    def whole(self) -> int:
        """The same with what comes later."""
        return self.first() + sum(size for path, size in self.later.items() if path not in self.loaded)

    def is_heavy(self) -> bool:
        """Whether it misses its aim."""
        return self.first() >= MAX_BYTES or self.whole() >= MAX_WITH_CHART_BYTES


class Browser:
    """A client. ``url``: of the service."""

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

    async def get(self, path: str) -> tuple[int, bytes, str]:
        """Status, bytes as they come, and the text."""
        async with self._session.get(urljoin(self._url, path), headers=HEADERS) as answer:
            body = await answer.read()
            is_packed = answer.headers.get("content-encoding") == "gzip"
            plain = decompress(body) if is_packed else body
            return answer.status, body, plain.decode(errors="replace")

    async def weigh(self, path: str) -> Weight:
        """What a page and all that it loads weigh."""
        status, body, page = await self.get(path)
        found = Weight(status, len(body))
        for one in _STATIC.findall(page):
            found.loaded[one] = len((await self.get(one))[1])
        for piece, when in _PIECE.findall(page):
            _, body, text = await self.get(piece)
            sizes = found.loaded if when == "load" else found.later
            sizes[piece] = len(body)
            for one in _STATIC.findall(text):
                sizes[one] = len((await self.get(one))[1])
        return found


@dataclass(frozen=True, slots=True)
class Asked:
    """An address of a page. ``signed_in``: only with an account."""

    path: str
    signed_in: bool


def pages(values: dict[str, tuple[str, ...]]) -> Iterator[Asked]:
    """Each page of the table, by the values that its address may contain: ``token`` and ``wallet`` are what
    an address of either sort of page is."""
    for page in PAGES:
        if page.method != "GET" or page.streams:
            continue
        kind = page.path.split("/")[-2 if "decisions" in page.path else 1]
        names = [kind if name in ("address", "page") else name for name in _FIELD.findall(page.path)]
        if not all(values.get(name) for name in names):
            print(f"not measured, because no value for its address is known: {page.path}")
            continue
        for chosen in product(*(values[name] for name in names)):
            left = iter(chosen)
            path = _FIELD.sub(lambda _, left=left: next(left), page.path)  # type: ignore[misc]
            yield Asked(path, page.signed_in)


def newest_transaction(rpc: SyncRpc) -> str:
    """The hash of the last one on the chain."""
    for number in range(int(rpc.call("eth_blockNumber"), 16), 0, -1):
        for found in rpc.call("eth_getBlockByNumber", hex(number), False)["transactions"]:
            return str(found)
    raise LookupError("the chain is empty")


Browsers = dict[bool, Browser]
"""Somebody without an account, and with one."""


async def weigh(browsers: Browsers, asked: list[Asked]) -> None:
    """A line for each page: those that are too heavy first, then the heaviest."""
    found = [(await browsers[one.signed_in].weigh(one.path), one.path) for one in asked]
    print("bytes of a first visit, with what comes later, of the page itself:")
    for weight, path in sorted(found, key=lambda one: (not one[0].is_heavy(), -one[0].whole())):
        missed = "HEAVY" if weight.is_heavy() else ""
        print(f"{missed:6}{weight.first():8,} {weight.whole():8,} {weight.own:7,}   {weight.status}   {path}")


async def time_pages(browsers: Browsers, asked: list[Asked], token: str, runs: int) -> None:
    """A line for each page, and for a check alone: those that are too slow first, then the slowest."""

    async def kept(browser: Browser, path: str) -> Times:
        async def ask() -> None:
            status, *_ = await browser.get(path)
            assert status in (200, 404), (path, status)

        return await timed(ask, runs)

    constant = await kept(browsers[False], "/constant")
    tell("a constant route", constant, constant, "a constant route")
    check = Asked(f"/v1/check/{token}", False)
    found = [(await kept(browsers[one.signed_in], one.path), one.path) for one in (check, *asked)]
    for times, path in sorted(found, key=lambda one: -one[0].p95):
        tell(path[:52], times, constant, "a constant route", AIM_MS)


async def see(chromium: Chromium, url: str, tokens: list[str], chart: str) -> None:
    """How soon a person sees a verdict that was not known before, and a chart."""
    size = {"width": PHONE[0], "height": PHONE[1]}
    verdicts, charts = [], []
    for token in tokens:
        context = await chromium.new_context(viewport=size)  # type: ignore[arg-type]
        await context.add_init_script(_SHOWN)
        page = await context.new_page()
        await page.goto(f"{url}/token/{token}")
        await page.wait_for_function("() => window.shownAt", timeout=10_000)
        verdicts.append(await page.evaluate(_TO_SEE))
        await context.close()
    for _ in tokens:
        context = await chromium.new_context(viewport=size)  # type: ignore[arg-type]
        page = await context.new_page()
        await page.goto(f"{url}/token/{chart}")
        await page.wait_for_load_state("load")
        charts.append(await page.evaluate(_DRAW))
        await context.close()
    for name, times, aim_ms in (("verdict", verdicts, SEEN_AIM_MS), ("chart", charts, None)):
        missed = "SLOW" if aim_ms is not None and max(times) >= aim_ms else ""
        print(f"{missed:5}seen: {name:8} median {median(times):7.1f} ms   worst {max(times):7.1f} ms")


async def main(folder: Path, runs: int) -> None:
    """Serves in this process, and asks."""
    async with contextlib.AsyncExitStack() as stack:
        ctx, rpc, built = await stack.enter_async_context(house(folder / "postgres"))
        app = build_application(
            Settings(anon_per_minute=10**6, views_per_minute=10**6, key_per_minute=10**6, key_per_day=10**6),
            ctx,
        )

        async def constant(request: Request) -> Response:
            return Response(b"x" * 12_000, media_type="text/html")

        app.router.routes.insert(0, Route("/constant", constant))
        url = await stack.enter_async_context(served(app))
        browsers = {}
        for is_member in (False, True):
            jar = aiohttp.CookieJar(unsafe=True)
            session = await stack.enter_async_context(
                aiohttp.ClientSession(cookie_jar=jar, auto_decompress=False)
            )
            browsers[is_member] = Browser(url, session)
        chromium = await stack.enter_async_context(browsing())
        token = await ctx.pool.fetchval(_BUSIEST)
        # The job that reads decimals does not run here, and without them no price is known.
        await ctx.pool.execute(_DECIMALS, token)
        unknown = [one for one in built.tokens.values() if one.lower() != token][:SEEN_RUNS]
        await see(chromium, url, unknown, token)
        await browsers[True].sign_in()
        wallet = await ctx.pool.fetchval(_TRADER)
        values = {
            "token": (token,),
            "wallet": (wallet,),
            "hash": (newest_transaction(rpc),),
            "board": tuple(board.tool for board in BOARDS),
            "room": tuple(room.name for room in ROOMS),
            "tool": ("check-token",),
            "docs": ("verdicts.md",),
            "decisions": ("0010-dialects.md",),
        }
        asked = [*pages(values), Asked(f"/trade?token={token}&amount=0.1&from={built.accounts[7]}", False)]
        await weigh(browsers, asked)
        await time_pages(browsers, asked, token, runs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    is_there()
    with tempfile.TemporaryDirectory() as name, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        # The database's own user has to reach it.
        Path(name).chmod(0o711)
        runner.run(main(Path(name), options.runs))
