"""Answers as lines: their order, faults, disconnects, and a service that shuts down."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from roundtrip.api.dispatch import DoorReply, error_reply
from roundtrip.api.http.lines import AT_ONCE, send_lines
from roundtrip.api.server.drain import EndlessAnswers
from roundtrip.domain.base.errors import CallerFault, LimitReached

PATIENT_S = 5.0


@dataclass
class LineClient:
    """Reads lines; ``leave`` disconnects it."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.messages.append(message)

    def lines(self) -> list[dict[str, Any]]:
        body = b"".join(message.get("body", b"") for message in self.messages)
        return [msgspec.json.decode(line) for line in body.splitlines()]


@dataclass
class ReleasedRuns:
    """Runs that end when they are released."""

    started: list[str] = field(default_factory=list)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    reply: Callable[[str], DoorReply] = lambda address: DoorReply(200, b'{"of":"%s"}' % address.encode())

    async def __call__(self, address: str) -> DoorReply:
        self.started.append(address)
        if address in self.gates:
            await self.gates[address].wait()
        return self.reply(address)


async def send(
    addresses: list[str], runs: ReleasedRuns, client: LineClient, ending: EndlessAnswers | None = None
) -> None:
    headers = {"x-ratelimit-limit": "10"}
    async with asyncio.timeout(PATIENT_S):
        await send_lines(addresses, headers, runs, client.receive, client.send, ending or EndlessAnswers())


async def test_each_address_has_a_line_and_the_answer_ends() -> None:
    client = LineClient()
    await send(["a", "b", "c"], ReleasedRuns(), client)
    assert client.lines() == [
        {"address": name, "check": {"of": name}, "error": None} for name in ("a", "b", "c")
    ]
    head, last = client.messages[0], client.messages[-1]
    assert (b"content-type", b"application/x-ndjson") in head["headers"]
    assert (b"x-ratelimit-limit", b"10") in head["headers"]
    assert not last.get("more_body", False)


async def test_what_is_ready_first_is_sent_first_and_few_run_at_once() -> None:
    client, runs = LineClient(), ReleasedRuns(gates={"slow": asyncio.Event()})
    names = [f"n{number}" for number in range(3 * AT_ONCE)]
    sending = asyncio.create_task(send(["slow", *names], runs, client))
    async with asyncio.timeout(PATIENT_S):
        while len(client.lines()) < len(names):  # noqa: ASYNC110
            await asyncio.sleep(0)
    runs.gates["slow"].set()
    await sending
    assert [line["address"] for line in client.lines()] == [*names, "slow"]
    held = ReleasedRuns(gates={name: asyncio.Event() for name in names})
    sending = asyncio.create_task(send(names, held, client))
    for _ in range(50):
        await asyncio.sleep(0)
    assert held.started == names[:AT_ONCE]
    for gate in held.gates.values():
        gate.set()
    await sending


async def test_a_fault_is_its_rows_own() -> None:
    def reply(address: str) -> DoorReply:
        if address == "a":
            return error_reply(CallerFault("bad_address", "It is none."))
        return error_reply(LimitReached("rate_limited", "Too many.", 7, 10))

    client = LineClient()
    await send(["a", "b"], ReleasedRuns(reply=reply), client)
    assert client.lines() == [
        {
            "address": "a", "check": None,
            "error": {"code": "bad_address", "message": "It is none.", "retryAfterS": None},
        },
        {
            "address": "b", "check": None,
            "error": {"code": "rate_limited", "message": "Too many.", "retryAfterS": 7},
        },
    ]  # fmt: skip


async def test_who_disconnects_starts_no_more_runs() -> None:
    names = [f"n{number}" for number in range(3 * AT_ONCE)]
    client, runs = LineClient(), ReleasedRuns(gates={name: asyncio.Event() for name in names})
    sending = asyncio.create_task(send(names, runs, client))
    for _ in range(50):
        await asyncio.sleep(0)
    client.gone.set()
    await sending
    assert runs.started == names[:AT_ONCE]


async def test_a_service_that_shuts_down_ends_what_runs_and_names_the_rest() -> None:
    names = [f"n{number}" for number in range(2 * AT_ONCE)]
    client, runs, ending = LineClient(), ReleasedRuns(gates={names[0]: asyncio.Event()}), EndlessAnswers()
    runs.gates = {name: asyncio.Event() for name in names[:AT_ONCE]}
    sending = asyncio.create_task(send(names, runs, client, ending))
    for _ in range(50):
        await asyncio.sleep(0)
    ending.end_all()
    for gate in runs.gates.values():
        gate.set()
    await sending
    lines = client.lines()
    assert {line["address"] for line in lines} == set(names)
    assert {line["address"] for line in lines if line["error"] is None} == set(names[:AT_ONCE])
    assert {line["error"]["code"] for line in lines if line["error"]} == {"busy"}
