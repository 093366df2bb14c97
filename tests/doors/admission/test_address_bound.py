"""Requests of one address, of any kind, are bounded before anything of them is read."""

import asyncio
from dataclasses import replace
from ipaddress import IPv4Network

import aiohttp
import pytest

from roundtrip.api.admission.gate import gate_over
from roundtrip.api.dispatch import Dispatch
from roundtrip.api.http.app import create_app
from roundtrip.api.request.callers import Callers
from roundtrip.api.sharing.single_flight import SharedAnswers
from roundtrip.domain.accounts.account import AddressAllowance, Allowances, CallAllowance
from roundtrip.services.runtime.context import Context
from support.serving import served

LISTING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def bounded(ctx: Context, requests: int) -> Dispatch:
    gate = gate_over(ctx)
    ask, paid = CallAllowance(10), CallAllowance(60, 20_000)
    gate.allowances = Allowances(ask, paid, paid, AddressAllowance(requests=requests, loopback=True))
    return Dispatch(ctx, gate, SharedAnswers(lambda: 0.0))


async def test_listings_documents_and_health_are_bounded_by_address(ctx: Context) -> None:
    app = create_app(bounded(ctx, 4), Callers())
    async with served(app) as url, aiohttp.ClientSession() as session:
        for path in ("/v1/tools.json", "/v1/openapi.json", "/v1/health"):
            async with session.get(url + path) as answer:
                assert answer.status == 200
        async with session.post(url + "/mcp", json=LISTING) as answer:
            assert answer.status == 200
        async with session.post(url + "/mcp") as answer:
            assert answer.status == 429
            assert (await answer.json())["error"]["code"] == "rate_limited"
            assert 0 < int(answer.headers["retry-after"]) <= 60


@pytest.mark.parametrize(("method", "path"), [("GET", "/ready"), ("OPTIONS", "/v1/health"), ("GET", "/mcp")])
async def test_a_caller_over_its_limit_is_answered_once_and_then_not_read(
    ctx: Context, method: str, path: str
) -> None:
    """Its connection is closed, and a new one waits, whatever it sends. Others are answered."""
    dispatch = bounded(ctx, 2)
    now_s = 1_000.0
    app = create_app(replace(dispatch, ctx=replace(ctx, now_s=lambda: now_s)), Callers())
    request = f"{method} {path} HTTP/1.1\r\nhost: a\r\n\r\n".encode()
    async with served(app) as url, asyncio.timeout(10):
        port = int(url.rsplit(":", 1)[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request * 4)
        answers = await reader.read()
        writer.close()
        assert [answer[:3] for answer in answers.split(b"HTTP/1.1 ")[3:]] == [b"429"]
        assert b"\r\nretry-after: " in answers
        assert b"\r\nx-request-id: " in answers
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        other, other_writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        writer.write(request)
        await writer.drain()
        waiting = asyncio.create_task(reader.read(1))
        other_writer.write(request)
        assert (await other.readuntil(b"\r\n")).split()[1] != b"429"
        assert app.address_limit.pause_s("127.0.0.1") > 0
        assert not waiting.done()
        waiting.cancel()
        writer.close()
        other_writer.close()


async def test_behind_a_proxy_only_the_request_is_refused(ctx: Context) -> None:
    """Its connection carries others' requests, too."""
    proxies = (IPv4Network("127.0.0.1/32"),)
    app = create_app(bounded(ctx, 1), Callers(proxies))
    async with served(app) as url, aiohttp.ClientSession() as session:
        statuses = []
        for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::ffff:1"):
            async with session.get(url + "/ready", headers={"x-forwarded-for": address}) as answer:
                statuses.append(answer.status)
                assert "connection" not in answer.headers
    assert statuses == [200, 429, 200, 200, 429]
    assert app.address_limit.pause_s("192.0.2.1") == 0


async def test_a_listing_is_compressed_for_who_reads_that(ctx: Context) -> None:
    app = create_app(bounded(ctx, 100), Callers())
    plain = {"accept-encoding": "identity"}
    async with served(app) as url, aiohttp.ClientSession(auto_decompress=False) as session:
        sizes = []
        for headers in (plain, {"accept-encoding": "gzip"}):
            async with session.post(url + "/mcp", json=LISTING, headers=headers) as answer:
                sizes.append(len(await answer.read()))
    assert sizes[1] * 4 < sizes[0]
