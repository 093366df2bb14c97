"""A key is used in every way and in every wrong place; then everything that is left is searched for it."""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import aiohttp
import asyncpg
import pytest
import structlog

from roundtrip.cli.terminal import log_to_stderr
from roundtrip.domain.accounts import keys
from roundtrip.services.runtime.context import Context
from roundtrip.store.accounts import accounts
from support.clocks import Clock
from support.keys import Person, key_for, random_context, revoke_of
from support.serving import service

_CALL = {
    "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "my_mite", "arguments": {}},
}  # fmt: skip
_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def shop(ctx: Context) -> Context:
    return random_context(ctx, Clock())


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """Logs of libraries are written, too; ours as they were before, afterwards."""
    before = logging.getLogger().level
    logging.getLogger().setLevel(logging.DEBUG)
    yield
    logging.getLogger().setLevel(before)
    structlog.reset_defaults()


@dataclass
class Asker:
    """Asks, and keeps every answer with its headers."""

    base_url: str
    session: aiohttp.ClientSession
    seen: list[str] = field(default_factory=list)

    async def ask(
        self, path: str, headers: dict[str, str] | None = None, body: object = None
    ) -> tuple[int, str]:
        """By POST where there is a body."""
        method = "GET" if body is None else "POST"
        async with self.session.request(
            method, self.base_url + path, json=body, headers=headers, allow_redirects=False
        ) as response:
            text = await response.text()
            self.seen += [text, str(response.headers), str(response.reason)]
            return response.status, text

    async def call(self, path: str = "/mcp", **headers: str) -> tuple[int, str]:
        """my_mite."""
        return await self.ask(path, headers, _CALL)


async def everything_in(url: str) -> str:
    """Every row of every table of every schema of ours, as text, and what the server last ran."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET bytea_output = hex")
        names = await connection.fetch(
            "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        found: list[str] = []
        for row in names:
            lines = await connection.fetch(f"SELECT t::text AS line FROM {row['name']} AS t")  # noqa: S608
            found += [line["line"] for line in lines]
        ran = await connection.fetch("SELECT query FROM pg_stat_activity")
        return "\n".join([*found, *(one["query"] or "" for one in ran)])
    finally:
        await connection.close()


def written_by_its_server(folder: Path) -> str:
    """The logs below a folder."""
    paths = [path for path in folder.rglob("*log*") if path.is_file() and "pg_wal" not in path.parts]
    return "\n".join(path.read_text(errors="replace") for path in paths)


def traces_of(key: str) -> list[str]:
    """What nobody may have: more than its start, in any way that text or bytes are written."""
    body = key[3:]
    return [key[:9], body, body[:43], body[-20:], key.encode().hex(), key.encode().hex()[:24]]


def assert_nowhere(key: str, where: dict[str, str]) -> None:
    for place, text in where.items():
        for trace in traces_of(key):
            at = text.find(trace)
            assert at == -1, f"{place}: {text[max(0, at - 200) : at + 100]}"


async def use(asker: Asker, key: str) -> list[tuple[int, str]]:
    """In each of the three ways, for a tool that needs it and for what does not."""
    answer = [
        await asker.call(authorization=f"Bearer {key}"),
        await asker.call(**{"x-api-key": key}),
        await asker.call(f"/mcp/{key}"),
        await asker.call(f"/mcp/{key}", authorization=f"Bearer {key}"),
    ]
    wallet = {"address": Person().address}
    await asker.ask("/v1/keys/nonce", {"x-api-key": key}, wallet)
    await asker.ask(f"/v1/check/{wallet['address']}", {"authorization": f"Bearer {key}"})
    await asker.ask(f"/mcp/{key}", None, _LIST)
    return answer


async def misuse(asker: Asker, key: str) -> None:
    """Everywhere that a key does not belong, and a little wrong."""
    typo = key[:-1] + ("0" if key[-1] != "0" else "1")
    for wrong in (typo, key + "x", key.upper(), key[:-6]):
        await asker.call(authorization=f"Bearer {wrong}")
        await asker.call(f"/mcp/{wrong}")
    await asker.call(authorization=f"Bearer {key}", **{"x-api-key": typo})
    await asker.call(f"/mcp/{key}", **{"x-api-key": typo})
    await asker.call(authorization=f"Basic {key}", cookie=f"key={key}")
    for path in (
        f"/mcp?key={key}", f"/mcp/{key}/", f"/mcp/{key}/more", f"/mcp/{key}?deep={key}", f"/mcp//{key}",
    ):  # fmt: skip
        await asker.call(path)
        await asker.ask(path)
    for path in (f"/v1/check/{key}", f"/{key}", f"/v1/holders/{key}?deep={key}", f"/v1/keys/{key}"):
        await asker.ask(path)
    for path in ("/v1/keys", "/v1/keys/nonce", "/v1/simulate"):
        for name in ("address", "signature", "from", "label", key):
            await asker.ask(path, None, {name: key})
        await asker.ask(path, None, [key])
    for arguments in ({"address": key}, {key: 1}, {"query": key}):
        for tool in ("check_token", "look_up", key):
            call = {**_CALL, "params": {"name": tool, "arguments": arguments}}
            await asker.ask("/mcp", None, call)
            await asker.ask(f"/mcp/{key}", None, call)

    await misuse_envelopes(asker, key)


async def misuse_envelopes(asker: Asker, key: str) -> None:
    """Wherever the protocol's library looks first."""
    by_list: tuple[dict[str, object], ...] = (
        {"method": 3, "apiKey": key}, {"method": key}, {"jsonrpc": key}, {"params": key}, {"id": [key]},
        {"params": {"cursor": key}}, {"params": {"_meta": key}}, {"method": f"prompts/{key}"},
        {"method": "initialize", "params": {"protocolVersion": key, "clientInfo": key}},
        {"method": "ping", "params": {"_meta": {"progressToken": [key]}}},
        {"method": "tools/call", "params": {"name": [key], "arguments": key}},
        {"method": "tools/call", "params": {"name": "my_mite", "arguments": key}},
    )  # fmt: skip
    bodies: list[object] = [{"apiKey": key}, [key], key, {"jsonrpc": "2.0", "method": key}]
    for sent in [*bodies, *({**_LIST, **part} for part in by_list)]:
        method = str(sent.get("method", "-")) if isinstance(sent, dict) else "-"
        for version in ("2025-06-18", "2026-07-28", key, f"1999-{key}"):
            answer = {"mcp-protocol-version": version, "mcp-method": method}
            await asker.ask("/mcp", answer, sent)
            await asker.ask(
                "/mcp", {**answer, "mcp-method": key, "mcp-name": key, "mcp-session-id": key}, sent
            )
            await asker.ask("/mcp", {**answer, "accept": key}, sent)


async def metrics_of(asker: Asker) -> str:
    return "\n".join([(await asker.ask(path))[1] for path in ("/metrics", "/v1/health", "/v1/tools.json")])


async def test_a_key_is_nowhere_but_in_the_answer_that_made_it(
    shop: Context,
    session: aiohttp.ClientSession,
    database_url: str,
    open_folder: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    log_to_stderr()
    person = Person()
    key = (await key_for(shop, person, agent=True, name="Bot", label="mine"))["key"]
    async with service(shop) as base_url:
        asker = Asker(base_url, session)
        for status, text in await use(asker, key):
            assert status == 200
            assert person.address in text
        await misuse(asker, key)
        await revoke_of(shop, person.address, 0)
        for status, text in await use(asker, key):
            assert status in (200, 401)
            assert "bad_key" in text
        where = {"answers": "\n".join(asker.seen), "metrics": await metrics_of(asker)}
    written = capfd.readouterr()
    where |= {"output": written.out + written.err, "logs": caplog.text}
    where |= {"database": await everything_in(database_url), "its log": written_by_its_server(open_folder)}
    # The search itself finds what is there.
    assert key[:8] in where["database"]
    assert keys.hash_of(key).hex() in where["database"]
    assert_nowhere(key, where)


async def test_a_fault_of_ours_is_logged_without_the_key(
    shop: Context,
    session: aiohttp.ClientSession,
    database_url: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    log_to_stderr()
    key = (await key_for(shop, Person()))["key"]
    broken = [False]

    def now_s() -> float:
        if broken[0]:
            raise RuntimeError("the clock is broken")
        return 1_760_000_000.0

    async with service(replace(shop, now_s=now_s)) as base_url:
        asker = Asker(base_url, session)
        broken[0] = True
        for path, headers in (
            ("/mcp", {"authorization": f"Bearer {key}"}), ("/mcp", {"x-api-key": key}), (f"/mcp/{key}", {}),
        ):  # fmt: skip
            _, text = await asker.call(path, **headers)
            assert "internal" in text
    written = capfd.readouterr()
    assert "the clock is broken" in written.err
    where = {"answers": "\n".join(asker.seen), "output": written.out + written.err, "logs": caplog.text}
    assert_nowhere(key, where | {"database": await everything_in(database_url)})


async def test_a_new_key_that_could_not_be_kept_is_not_told(
    shop: Context,
    session: aiohttp.ClientSession,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its row fails in the database, which says so with the row."""
    caplog.set_level(logging.DEBUG)
    log_to_stderr()
    person, drawn = Person(), b"\x07" * 32
    taken = keys.format_key(drawn)
    first = replace(shop, entropy=lambda: drawn)
    async with shop.pool.acquire() as connection:
        is_taken = await accounts.keys_like(connection, None, keys.hash_of(taken), None)
    if not is_taken:
        await key_for(first, Person())
    async with service(first) as base_url:
        asker = Asker(base_url, session)
        _, text = await asker.ask("/v1/keys/nonce", None, {"address": person.address})
        body = {"address": person.address, "signature": person.sign(json.loads(text)["message"])}
        status, _ = await asker.ask("/v1/keys", None, body)
        assert status >= 500
    written = capfd.readouterr()
    where = {"answers": "\n".join(asker.seen), "output": written.out + written.err, "logs": caplog.text}
    assert_nowhere(taken, where)
