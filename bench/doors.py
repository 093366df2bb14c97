"""Measures the cost of the doors: a cached check over HTTP and over the tool server, beside constants in
the same app.

    python -m bench.doors [--requests 4000] [--rounds 5]

The constant route answers bytes of the same size as any handler of the framework does; the bare bytes are
less than any route can be. The constant tool is the protocol's own library with nothing behind it, once with
the same answer and once with one word. The load comes from a process of its own over 32 connections that
never pause, so the times hold the queue; compare the ratios. Rounds take turns.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import asyncpg
import mcp_types as types
import msgspec
import uvloop
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from roundtrip.api.admission.call_counter import CallCounter, DatabaseCalls
from roundtrip.api.admission.gate import Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.dispatch import Dispatch
from roundtrip.api.documents.about import NOTE
from roundtrip.api.http.app import create_app
from roundtrip.api.request.callers import Callers
from roundtrip.api.sharing.single_flight import SharedAnswer, SharedAnswers
from roundtrip.app.http_server import build_http_server, listen
from roundtrip.domain.accounts import keys
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.check_answer import Check
from roundtrip.store.accounts import accounts
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.server.rows import Connection

from . import figures
from .serving import connected, serving
from .timing import Times

TOKEN = "0x" + "1a" * 20
CONNECTIONS = 32
KEY = keys.format_key(bytes(32))
LOAD = Path(__file__).with_name("load.py")
HERE = {"address": TOKEN}
BESIDE = (
    ("cached check, HTTP", "constant route"),
    ("cached check, HTTP, with a key", "constant route"),
    ("cached check, tool", "constant tool, same answer"),
)
"""The cases that ``make bench`` shows."""
ANSWER: dict[str, Any] = {
    **HERE, "chainId": 4663, "flags": ["owner_active"], "launchpad": None,
    "verdict": {
        "code": "ok", "level": "ok",
        "text": "All of it was sold again, in a later block, after an hour and after a day; 0.61 % was lost.",
    },
    "token": {
        "symbol": "PLAIN", "name": "Plain token", "decimals": 18, "totalSupply": "1000000000",
        "owner": "0x" + "2b" * 20, "ownerRenounced": False,
    },
    "venue": {
        "kind": "amm_v3", "quote": "weth", "poolFeeBps": 30, "dynamicFee": False, "hook": None,
        "pool": "0x" + "3c" * 20, "poolId": None, "poolsFound": 1,
    },
    "trade": {
        "method": "simulated_trade", "paid": {"amount": "0.1", "asset": "eth"}, "tokensOut": "98765.4321",
        "roundTripLossBps": 61, "feesBps": 60, "priceImpactBps": 1, "buyReverts": None, "sellReverts": None,
    },
    "price": {"usd": 0.0035, "marketCapUsd": 3500000.0}, "checkedAt": "2026-01-02T03:04:05Z",
}  # fmt: skip


class Constant:
    """The same bytes for every request."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        await send({"type": "http.response.body", "body": self._body})


def constant_tool(result: types.CallToolResult) -> StreamableHTTPSessionManager:
    """The protocol's library with one tool, set up as the service's own."""

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return result

    server: Server[Any] = Server("constant", on_call_tool=call_tool)
    server.middleware.clear()
    guard = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True, security_settings=guard)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class _Nowhere:
    public_url = "http://127.0.0.1"
    chain_id = 4663
    measures = Measures()


@contextlib.asynccontextmanager
async def application(pool: asyncpg.Pool) -> AsyncIterator[Starlette]:
    """The service with one check that stays fresh, and the constants beside it."""
    body = msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(ANSWER), type=Check))
    allowance = CallAllowance(10**9, 10**9)
    shared = SharedAnswers(time.monotonic)

    async def made() -> SharedAnswer:
        return SharedAnswer(body, 10**9, True)

    await shared.get(f"check_token:{TOKEN}", made)
    gate = Gate(
        MinuteLimits(_now_ms),
        Allowances(allowance, allowance, allowance),
        CallCounter(DatabaseCalls(pool), _now_ms),
    )
    app = create_app(Dispatch(cast(Context, _Nowhere()), gate, shared), Callers(), gate.open)

    async def constant(request: Request) -> Response:
        return Response(body, media_type="application/json")

    app.router.routes.insert(0, Route("/constant", constant))
    app.router.routes.insert(0, Route("/bare", Constant(body)))
    text = "\n".join([NOTE, body.decode()])
    same = types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=msgspec.json.decode(body)
    )
    word = types.CallToolResult(content=[types.TextContent(type="text", text="ok")])
    async with contextlib.AsyncExitStack() as stack:
        for path, result in (("/same", same), ("/word", word)):
            manager = constant_tool(result)
            await stack.enter_async_context(manager.run())
            app.router.routes.append(Route(path, StreamableHTTPASGIApp(manager), methods=["POST"]))
        yield app


async def with_a_key(connection: Connection) -> None:
    """An account that has the key."""
    wallet, chosen = Address(f"0x{1:040x}"), datetime.now(UTC)
    found = await accounts.lock_account(connection, wallet, iter(["mite-test"]), chosen)
    await accounts.add_key(connection, found.account.id, keys.hash_of(KEY), keys.start_of(KEY), "", chosen)


async def load(url: str, requests: int, posted: dict[str, Any] | None, key: str) -> tuple[float, list[float]]:
    """Requests a second, and the times."""
    body = "" if posted is None else json.dumps(posted)
    process = await asyncio.create_subprocess_exec(
        sys.executable, LOAD, url, str(requests), str(CONNECTIONS), body, key, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    told = json.loads(said)
    if (statuses := told["statuses"]) != {"200": len(told["times_ms"])}:
        raise SystemExit(f"{url} answered {statuses}")
    return float(told["per_second"]), list(told["times_ms"])


def asked(method: str, **params: Any) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def main(requests: int, rounds: int, kept: Path | None = None) -> None:
    """Runs the rounds and prints what they came to."""
    call = asked("tools/call", name="check_token", arguments=HERE)
    roads: dict[str, tuple[str, dict[str, Any] | None, int]] = {
        "bare bytes": ("/bare", None, 1),
        "constant route": ("/constant", None, 1),
        "cached check, HTTP": (f"/v1/check/{TOKEN}", None, 1),
        "cached check, HTTP, with a key": (f"/v1/check/{TOKEN}", None, 1),
        "constant tool, one word": ("/word", call, 4),
        "constant tool, same answer": ("/same", call, 4),
        "cached check, tool, library's way": ("/mcp", asked(**call_by_library(call)), 4),
        "cached check, tool": ("/mcp", call, 1),
        "cached check, tool, with a key": ("/mcp", call, 1),
        "tools/list, library's way": ("/mcp", asked("tools/list", _meta={}), 16),
        "tools/list": ("/mcp", asked("tools/list"), 1),
    }
    rates: dict[str, list[float]] = {name: [] for name in roads}
    times: dict[str, list[float]] = {name: [] for name in roads}
    processor_us: dict[str, list[float]] = {name: [] for name in roads}
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = await stack.enter_async_context(EmbeddedPostgres(Path(folder)))
        pool = await stack.enter_async_context(connected(server.dsn))
        async with pool.acquire() as connection:
            await migrate(connection)
            await with_a_key(connection)
        app = await stack.enter_async_context(application(pool))
        listening = stack.enter_context(listen("127.0.0.1", 0, "a port"))
        url = await stack.enter_async_context(serving(build_http_server(app), listening))
        for number in range(rounds + 1):
            for name, (path, posted, slower) in roads.items():
                before_s = time.process_time()
                rate, took = await load(
                    url + path, requests // slower, posted, KEY if name.endswith("with a key") else ""
                )
                if number > 0:
                    rates[name].append(rate)
                    times[name] += took
                    processor_us[name].append((time.process_time() - before_s) / len(took) * 1e6)
    show(rates, times, processor_us)
    rows = [
        figures.beside(f"doors: {name}", Times(times[name]), other, Times(times[other]))
        for name, other in BESIDE
    ]
    title = f"{CONNECTIONS} connections that never pause"
    figures.keep(kept, [figures.Table(title, figures.SIDE_BY_SIDE, rows)])


def call_by_library(call: dict[str, Any]) -> dict[str, Any]:
    """The same call with something in it that changes nothing, and that only the library looks at."""
    return {"method": "tools/call", **call["params"], "_meta": {}}


def show(
    rates: dict[str, list[float]], times: dict[str, list[float]], processor_us: dict[str, list[float]]
) -> None:
    """Medians, percentiles, what a request takes of the server's processor, and ratios."""
    middle = {name: statistics.median(found) for name, found in rates.items()}
    for name, found in times.items():
        ordered = sorted(found)
        at = {share: ordered[int(len(ordered) * share)] for share in (0.5, 0.95, 0.99)}
        told = f"median {at[0.5]:7.2f} ms   p95 {at[0.95]:7.2f}   p99 {at[0.99]:7.2f}"
        spent = f"processor {statistics.median(processor_us[name]):5.0f} us"
        print(f"{name:36} {middle[name]:8.0f}/s   {told}   {spent}")
    for name, beside, aim in (
        ("cached check, HTTP", "constant route", 0.9),
        ("cached check, HTTP, with a key", "constant route", 0.8),
        ("cached check, HTTP", "bare bytes", 0.0),
        ("cached check, tool", "constant tool, same answer", 0.8),
        ("cached check, tool, with a key", "constant tool, same answer", 0.8),
        ("cached check, tool", "constant tool, one word", 0.8),
        ("cached check, tool, library's way", "constant tool, same answer", 0.8),
        ("tools/list", "tools/list, library's way", 0.0),
    ):
        print(f"{name} / {beside}: {middle[name] / middle[beside]:.2f}{f' (aim {aim})' if aim else ''}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(options.requests, options.rounds, options.keep))
