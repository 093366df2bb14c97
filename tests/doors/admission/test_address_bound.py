"""Requests of one address, of any kind, are bounded before anything of them is read."""

import aiohttp

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
        for method, path in (("POST", "/mcp"), ("GET", "/v1/tools.json"), ("GET", "/nowhere")):
            async with session.request(method, url + path) as answer:
                assert answer.status == 429
                assert (await answer.json())["error"]["code"] == "rate_limited"
                assert 0 < int(answer.headers["retry-after"]) <= 60


async def test_a_listing_is_compressed_for_who_reads_that(ctx: Context) -> None:
    app = create_app(bounded(ctx, 100), Callers())
    plain = {"accept-encoding": "identity"}
    async with served(app) as url, aiohttp.ClientSession(auto_decompress=False) as session:
        sizes = []
        for headers in (plain, {"accept-encoding": "gzip"}):
            async with session.post(url + "/mcp", json=LISTING, headers=headers) as answer:
                sizes.append(len(await answer.read()))
    assert sizes[1] * 4 < sizes[0]
