"""The HTTP door's own manners: limits, shared answers, the error shape everywhere."""

import asyncio
import contextlib
from dataclasses import replace

import aiohttp
import pytest
from yarl import URL

from roundtrip.config.settings import Settings
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.nodes import node_of
from support.serving import service

JSON = {"content-type": "application/json"}


async def error_of(response: aiohttp.ClientResponse) -> str:
    body = await response.json()
    assert response.content_type == "application/json"
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"code", "message"}
    assert all(isinstance(value, str) and value for value in body["error"].values())
    return str(body["error"]["code"])


async def test_an_answer_is_shared_and_says_so(
    base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    token = built.tokens["plain"]
    shouted = "0x" + token[2:].upper()
    async with (
        session.get(f"{base_url}/v1/check/{token}") as first,
        session.get(f"{base_url}/v1/check/{shouted}") as second,
    ):
        assert (first.headers["x-cache"], second.headers["x-cache"]) == ("miss", "hit")
        assert await first.read() == await second.read()
        assert first.headers["access-control-allow-origin"] == "*"


async def test_a_deep_answer_is_shared_apart_from_the_plain_one(
    base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    url = f"{base_url}/v1/check/{built.tokens['max_transaction']}"
    came = []
    for query in ("", "?deep=1", "?deep=true", "?deep=0", "?deep=false"):
        async with session.get(URL(url + query, encoded=True)) as response:
            assert response.status == 200
            text = (await response.json())["verdict"]["text"]
            came.append((response.headers["x-cache"], "Its owner" in text))
    plain, deep = ("hit", False), ("hit", True)
    assert came == [("miss", False), ("miss", True), deep, plain, plain]


@pytest.mark.parametrize("value", ["2", "", "yes", "1%20", "TRUE", "%ff", "1" * 5000])
async def test_any_other_deep_is_refused(
    base_url: str, built: Built, session: aiohttp.ClientSession, value: str
) -> None:
    url = f"{base_url}/v1/check/{built.tokens['plain']}?deep={value}"
    async with session.get(URL(url, encoded=True)) as response:
        assert (response.status, await error_of(response)) == (400, "bad_input")
        assert (await response.json())["error"][
            "message"
        ] == "deep must be 0, 1, false or true, such as ?deep=1."


async def test_a_query_is_no_way_around_the_path(
    base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    plain, other = built.tokens["plain"], built.tokens["cooldown"]
    for query in (f"address={other}", "dep=1", "deep=1&x=%ff"):
        async with session.get(URL(f"{base_url}/v1/check/{plain}?{query}", encoded=True)) as response:
            assert (response.status, await error_of(response)) == (400, "bad_input")


async def test_many_who_ask_at_once_cause_one_run(
    ctx: Context, base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    token = built.tokens["cooldown"]
    counting = "SELECT count(*) FROM facts.evidence WHERE token = $1"

    async def ask() -> tuple[str, bytes]:
        async with session.get(f"{base_url}/v1/check/{token}") as response:
            assert response.status == 200
            return response.headers["x-cache"], await response.read()

    before = await ctx.pool.fetchval(counting, bytes.fromhex(token[2:]))
    came = await asyncio.gather(*(ask() for _ in range(50)))
    assert sorted(cache for cache, _ in came) == ["hit"] * 49 + ["miss"]
    assert len({body for _, body in came}) == 1
    assert await ctx.pool.fetchval(counting, bytes.fromhex(token[2:])) == before + 1


async def test_ten_calls_a_minute_without_a_key(
    ctx: Context, built: Built, session: aiohttp.ClientSession
) -> None:
    async with service(ctx, Settings()) as base_url:
        url = f"{base_url}/v1/check/{built.tokens['plain']}"
        left = []
        for _ in range(10):
            async with session.get(url) as response:
                assert response.status == 200
                assert response.headers["x-ratelimit-limit"] == "10"
                left.append(int(response.headers["x-ratelimit-remaining"]))
        assert left == list(range(9, -1, -1))
        async with session.get(url) as response:
            assert response.status == 429
            assert await error_of(response) == "rate_limited"
            assert 1 <= int(response.headers["retry-after"]) <= 60
            assert response.headers["x-ratelimit-remaining"] == "0"
        for path in ("/v1/tools.json", "/v1/health"):
            async with session.get(base_url + path) as response:
                assert response.status == 200


async def test_a_call_that_the_node_spoiled_is_not_counted(
    ctx: Context, built: Built, session: aiohttp.ClientSession
) -> None:
    async with service(ctx, Settings()) as base_url:
        good = node_of(ctx).url
        node_of(ctx).url = "http://127.0.0.1:1"
        for _ in range(12):
            async with session.get(f"{base_url}/v1/check/{built.tokens['plain']}") as response:
                assert response.status == 502
                assert await error_of(response) == "upstream"
        node_of(ctx).url = good
        async with session.get(f"{base_url}/v1/check/{built.tokens['plain']}") as response:
            assert response.headers["x-ratelimit-remaining"] == "9"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/check", 404, "not_found"),
        ("GET", "/v1/check/", 404, "not_found"),
        ("GET", "/v1/check/0x12/more", 404, "not_found"),
        ("GET", "/v1/health/", 404, "not_found"),
        ("POST", "/v1/health", 405, "method_not_allowed"),
        ("DELETE", "/v1/check/0x12", 405, "method_not_allowed"),
        ("GET", "/mcp", 405, "method_not_allowed"),
        ("DELETE", "/mcp", 405, "method_not_allowed"),
        ("GET", "/v1/check/0x12", 400, "bad_address"),
    ],
)
async def test_errors_have_one_shape(
    base_url: str, session: aiohttp.ClientSession, method: str, path: str, status: int, code: str
) -> None:
    async with session.request(method, base_url + path) as response:
        assert response.status == status
        assert await error_of(response) == code
        if status in (404, 405):
            # A page of another site is told, too.
            assert response.headers["access-control-allow-origin"] == "*"
            assert "x-request-id" in response.headers["access-control-expose-headers"]


@pytest.mark.parametrize(
    ("public_url", "wanted"), [("https://roundtrip.example", ["max-age=31536000"]), (None, [])]
)
async def test_behind_https_every_answer_says_to_come_by_it(
    ctx: Context, session: aiohttp.ClientSession, public_url: str | None, wanted: list[str]
) -> None:
    """Pages, documents, answers, errors of every kind."""
    page = {"accept": "text/html"}
    async with service(ctx, Settings(public_url=public_url, anon_per_minute=1)) as url:
        for method, path, headers, status in (
            ("GET", "/", page, 200), ("GET", "/sign-in", page, 200), ("GET", "/account", page, 303),
            ("GET", "/v1/health", JSON, 200), ("GET", "/v1/tools.json", JSON, 200),
            ("GET", "/v1/check/0x12", JSON, 400), ("GET", "/v1/check/0x12", JSON, 429),
            ("GET", "/nothing", JSON, 404), ("PUT", "/v1/health", JSON, 405), ("POST", "/mcp", JSON, 400),
            ("OPTIONS", "/v1/health", JSON, 200),
        ):  # fmt: skip
            async with session.request(
                method, url + path, headers=headers, allow_redirects=False
            ) as response:
                assert response.status == status, path
                assert response.headers.getall("strict-transport-security", []) == wanted, path


async def test_head_answers_without_a_body(base_url: str, session: aiohttp.ClientSession) -> None:
    async with session.head(f"{base_url}/v1/health") as response:
        assert response.status == 200
        assert await response.read() == b""


@pytest.mark.parametrize("header", [{"authorization": "Bearer rt_nope"}, {"x-api-key": "rt_nope"}])
async def test_a_key_that_is_not_live_is_refused(
    base_url: str, built: Built, session: aiohttp.ClientSession, header: dict[str, str]
) -> None:
    url = f"{base_url}/v1/check/{built.tokens['plain']}"
    async with session.get(url, headers=header) as response:
        assert response.status == 401
        assert await error_of(response) == "bad_key"
        assert "www-authenticate" not in response.headers


async def test_a_fault_of_ours_tells_nothing_but_a_request_id(
    ctx: Context, built: Built, session: aiohttp.ClientSession
) -> None:
    def no_chance() -> bytes:
        raise ZeroDivisionError("the pool of chance is dry")

    ctx = replace(ctx, entropy=no_chance)
    async with (
        service(ctx) as base_url,
        session.get(f"{base_url}/v1/check/{built.tokens['plain']}") as response,
    ):
        assert response.status == 500
        body = await response.json()
    assert body["error"]["code"] == "internal"
    assert "pool" not in body["error"]["message"]
    assert "Request " in body["error"]["message"]


async def test_more_checks_than_the_service_runs_at_once_are_told_busy(
    ctx: Context, built: Built, session: aiohttp.ClientSession
) -> None:
    async def ask(base_url: str, token: str) -> int:
        async with session.get(f"{base_url}/v1/check/{token}") as response:
            return response.status

    async with service(ctx, Settings(anon_per_minute=1000, most_checks_at_once=2)) as base_url:
        came = await asyncio.gather(*(ask(base_url, t) for t in list(built.tokens.values())[:16]))
    assert set(came) == {200, 503}


async def test_without_its_database_a_check_is_told_busy_and_costs_nothing(
    ctx: Context, built: Built, session: aiohttp.ClientSession
) -> None:
    await ctx.pool.close()
    path = f"/v1/check/{built.tokens['plain']}"
    # A head that nobody follows is too old after fifteen seconds, and twelve checks may take longer.
    async with ctx.heads.following(), service(ctx, Settings()) as base_url:
        for _ in range(12):
            async with session.get(base_url + path) as response:
                assert response.status == 503
                assert await error_of(response) == "busy"


async def test_health_needs_no_key_and_minds_none(base_url: str, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{base_url}/v1/health", headers={"x-api-key": "rt_nope"}) as response:
        assert response.status == 200


@pytest.mark.parametrize("head", [b"x: " + b"a" * 5_000_000, b"x: a\r\n" * 500_000])
async def test_a_head_without_end_is_cut_off(base_url: str, head: bytes) -> None:
    host, port = base_url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    with contextlib.suppress(ConnectionError):
        writer.write(b"GET /v1/health HTTP/1.1\r\n" + head)
        await writer.drain()
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionError):
            came = await reader.read()
            assert came == b"" or came.startswith(b"HTTP/1.1 431")
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def test_a_large_body_beside_a_head_is_no_head(base_url: str, session: aiohttp.ClientSession) -> None:
    async with session.post(f"{base_url}/mcp", data=b"{" + b" " * 60_000, headers=JSON) as response:
        assert response.status == 400
