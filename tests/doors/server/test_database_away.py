"""Two processes that serve over one server of PostgreSQL, which is ended, killed, and stopped under them."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.sharing.places import MAX_LINE
from roundtrip.domain.base.types import Address
from roundtrip.store.server import jobs
from roundtrip_development.devnet import world
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.cases import GOOD
from support.counting import key_of, put_account
from support.databases import connected
from support.servers import STRANGE, ServerPostgres
from support.serving import serve_apart

WAIT_S = 60.0
BOUND_S = 45.0
"""A run's own limit of 30 s, with what counting it takes, and a moment."""
WALLET = Address("0x" + "c0" * 20)
ASKED = {
    row.name
    for row in OPERATIONS
    if row.name in GOOD and (GOOD[row.name] or not row.params.__struct_fields__)
}
"""Those that answer whoever has a key; tools that write to an account have tests of their own."""
WITHOUT = {"explain_transaction", "simulate_transaction", "prepare_buy", "prepare_sell"}
"""Answered by the node alone."""
KEYED = {operation.name for operation in OPERATIONS if operation.key}


@dataclass(frozen=True, slots=True)
class NamedOutcome:
    """What was asked, and the code of what came; None: it was answered."""

    name: str
    code: str | None


@dataclass(slots=True)
class AskedService:
    """One process that serves, and who asks it everything that can be asked."""

    base_url: str
    session: aiohttp.ClientSession
    asked: list[tuple[str, dict[str, Any]]]
    came: list[NamedOutcome] = field(default_factory=list)

    async def ask(self, name: str, arguments: dict[str, Any]) -> NamedOutcome:
        """By the tools' door; a key where one is needed."""
        headers = {"x-api-key": key_of("k")} if name in KEYED else {}
        call = {"name": name, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        async with self.session.post(f"{self.base_url}/mcp", json=body, headers=headers) as response:
            assert response.status == 200, await response.text()
            result = (await response.json())["result"]
        code = result["content"][0]["text"].split(":")[0] if result["isError"] else None
        return NamedOutcome(name, code)

    async def get(self, path: str, key: str | None = None) -> tuple[int, str | None, str | None]:
        """Status, code, and how long to wait."""
        headers = {"x-api-key": key_of(key)} if key else {}
        async with self.session.get(self.base_url + path, headers=headers) as response:
            body = await response.json()
            if response.status == 200:
                return 200, None, None
            assert body.keys() == {"error"}
            assert body["error"].keys() == {"code", "message"}
            code = body["error"]["code"]
            return response.status, code, response.headers.get("retry-after")

    async def health(self) -> dict[str, Any]:
        """Told, whatever is missing."""
        async with self.session.get(f"{self.base_url}/v1/health") as response:
            assert response.status == 200
            found: dict[str, Any] = await response.json()
            return found

    async def is_well(self) -> bool:
        return bool((await self.health())["ok"])

    async def all(self) -> list[NamedOutcome]:
        """Everything, as much at once as the line of one caller holds."""
        line = asyncio.Semaphore(MAX_LINE)

        async def ask_in_line(name: str, arguments: dict[str, Any]) -> NamedOutcome:
            async with line:
                return await self.ask(name, arguments)

        came = await asyncio.gather(*(ask_in_line(*asked) for asked in self.asked))
        self.came += came
        return came

    async def answers_all(self) -> bool:
        return all(one.code is None for one in await self.all())


def processes_of(server: ServerPostgres) -> list[int]:
    """The server's, its first one at the end."""
    first = int((server.home / "data" / "postmaster.pid").read_text().split("\n")[0])
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    return [*map(int, children), first]


def signalled(server: ServerPostgres, what: signal.Signals) -> None:
    """All of the server's processes: it neither answers nor says goodbye."""
    for pid in processes_of(server):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, what)


def codes(came: Iterable[NamedOutcome]) -> dict[str, str | None]:
    return {one.name: one.code for one in came}


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WAIT_S):
        # Only asking tells.
        while not await holds():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.fixture
async def server(open_folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[ServerPostgres]:
    """One of a test's own, set as nobody would expect."""
    found = ServerPostgres(open_folder / request.node.name, settings=STRANGE)
    await found.open()
    try:
        yield found
    finally:
        await found.stop()


@pytest.fixture
async def two(
    server: ServerPostgres, rpc: SyncRpc, places: world.DevnetFolders, built: world.Built, tmp_path: Path
) -> AsyncIterator[list[AskedService]]:
    """Two processes that serve, of which the first follows the chain and does the jobs; it has caught up."""
    world.write_description(world.DevnetFolders(places.project, tmp_path), built, rpc.url)
    environment = {
        "ROUNDTRIP_DATABASE_URL": server.url,
        "ROUNDTRIP_RPC_URL": rpc.url,
        "ROUNDTRIP_VAR": str(tmp_path),
        "ROUNDTRIP_PORT": "0",
        "ROUNDTRIP_ANON_PER_MINUTE": "100000",
        "ROUNDTRIP_KEY_PER_MINUTE": "100000",
        "ROUNDTRIP_KEY_PER_DAY": "100000",
    }
    asked = [
        (name, next(iter(cases.values()))(built) if cases else {})
        for name, cases in GOOD.items()
        if name in ASKED
    ]
    limit = aiohttp.ClientTimeout(total=BOUND_S)
    async with (
        serve_apart(environment, "--all") as one,
        serve_apart(environment) as other,
        aiohttp.ClientSession(timeout=limit) as session,
    ):
        found = [AskedService(url, session, asked) for url in (one, other)]
        await until(found[0].is_well)
        await until(found[1].is_well)
        async with connected(server.url) as connection:
            await put_account(connection, WALLET, "k")
        yield found


async def test_without_the_database_what_needs_it_is_busy_and_heals_when_asked(
    server: ServerPostgres, two: list[AskedService], built: world.Built
) -> None:
    path = f"/v1/check/{built.tokens['plain']}"
    await server.stop()
    for came in await asyncio.gather(*(service.all() for service in two)):
        assert codes(came) == {name: None if name in WITHOUT else "busy" for name in ASKED}
    for service in two:
        for key in (None, "k"):
            status, code, wait = await service.get(path, key)
            assert (status, code) == (503, "busy")
            assert int(wait or 0) >= 1
        health = await service.health()
        assert not health["ok"]
        assert "database" in [lack["what"] for lack in health["lacks"]]
    await server.start()
    for came in await asyncio.gather(*(service.all() for service in two)):
        # Whoever shows a key is told so for a second longer; everybody else is answered at once.
        assert {name for name, code in codes(came).items() if code == "busy"} <= KEYED
    for service in two:
        await until(service.answers_all)
        assert (await service.get(path, "k"))[0] == 200


async def test_under_load_a_server_that_crashes_or_stops_is_never_an_error(
    server: ServerPostgres, two: list[AskedService], rpc: SyncRpc, built: world.Built
) -> None:
    is_over, rounds = asyncio.Event(), [0, 0]

    async def load(turn: int) -> None:
        while not is_over.is_set():
            await two[turn].all()
            rounds[turn] += 1

    async def a_round() -> None:
        """That began after now has ended, of both."""
        wanted = [done + 2 for done in rounds]

        async def is_done() -> bool:
            return all(done >= goal for done, goal in zip(rounds, wanted, strict=True))

        await until(is_done)

    async with asyncio.TaskGroup() as loads:
        for turn in range(2):
            loads.create_task(load(turn))
        os.kill(processes_of(server)[-1], signal.SIGQUIT)
        await a_round()
        await server.stop()
        await server.start()
        await a_round()
        signalled(server, signal.SIGSTOP)
        try:
            await a_round()
        finally:
            signalled(server, signal.SIGCONT)
        await a_round()
        is_over.set()
    for service in two:
        assert {one.code for one in service.came} == {None, "busy"}
        await until(service.answers_all)
    rpc.call("evm_mine")
    newest = int(rpc.call("eth_blockNumber"), 16)

    async def is_followed() -> bool:
        found = [await service.health() for service in two]
        return all((one["ok"], one["head"], one["blocksBehind"]) == (True, newest, 0) for one in found)

    await until(is_followed)
    async with connected(server.url) as connection:
        # A job of its own kind of fault would wait; this one needs the database and the node.
        await jobs.enqueue(connection, "token", built.tokens["plain"])

        async def is_done() -> bool:
            return not await jobs.is_there(connection, "token", built.tokens["plain"])

        await until(is_done)
