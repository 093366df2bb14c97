"""The stream of events, against the real service."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import aiohttp
import jsonschema
import pytest

from roundtrip.api.documents.tool_schemas import path_schema
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import Draft
from roundtrip.services.runtime.context import Context
from roundtrip.services.verdicts import news
from roundtrip.services.verdicts.news import MAX_TOKENS
from roundtrip.store.check import evidence
from roundtrip.store.check.evidence import KeptEvidence
from roundtrip.store.watch import alerts
from support.keys import Person, key_for
from support.serving import service

PATIENT_S = 10.0
SCHEMA = path_schema(next(row for row in OPERATIONS if row.name == "stream"))


@dataclass(frozen=True, slots=True)
class Event:
    """One event as a client reads it."""

    id: str
    name: str
    data: dict[str, Any]


@pytest.fixture
def own(indexed: Context) -> Context:
    return replace(indexed, entropy=lambda: secrets.token_bytes(32), now_s=time.time)


@pytest.fixture
async def base_url(own: Context) -> AsyncIterator[str]:
    async with service(own) as url:
        yield url


@pytest.fixture
async def key(own: Context) -> str:
    return str((await key_for(own, Person()))["key"])


def fresh_token() -> Address:
    return Address("0x" + secrets.token_hex(20))


async def check(ctx: Context, token: Address, code: str, level: str) -> None:
    kept = KeptEvidence(datetime.now(UTC), 7, "p", code, level, b"{}", loss_bps=60)
    async with ctx.pool.acquire() as connection:
        await evidence.keep(connection, token, kept)


class EventReader:
    """Reads a stream's events."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.last_id = ""

    async def next(self) -> Event:
        """The next event. Ids without an event are kept as the last id."""
        async with asyncio.timeout(PATIENT_S):
            while True:
                fields: dict[str, str] = {}
                while line := (await self._response.content.readline()).decode().rstrip("\n"):
                    name, _, value = line.partition(": ")
                    fields[name] = value
                # At its end a stream gives empty lines at once, for ever.
                assert fields or not self._response.content.at_eof(), self._response.status
                self.last_id = fields.get("id", self.last_id)
                if "data" in fields:
                    data = json.loads(fields["data"])
                    jsonschema.validate(data, SCHEMA, jsonschema.Draft202012Validator)
                    assert data["kind"] == fields["event"]
                    return Event(fields["id"], fields["event"], data)

    async def is_open(self) -> None:
        """Waits until the stream has begun: its first id came."""
        async with asyncio.timeout(PATIENT_S):
            for _ in range(4):
                line = (await self._response.content.readline()).decode()
                if line.startswith("id: "):
                    self.last_id = line.removeprefix("id: ").strip()
            await self._response.content.readline()


def opened(session: aiohttp.ClientSession, base_url: str, key: str, query: str = "", **headers: str) -> Any:
    return session.get(f"{base_url}/v1/stream{query}", headers={"x-api-key": key, **headers})


async def test_the_stream_of_a_revoked_key_ends(
    own: Context, base_url: str, key: str, session: aiohttp.ClientSession
) -> None:
    async with opened(session, base_url, key) as response:
        await EventReader(response).is_open()
        async with own.pool.acquire() as connection:
            await connection.execute("UPDATE accounts.key SET revoked_at = now()")
        async with asyncio.timeout(PATIENT_S):
            await response.content.read()


async def test_a_changed_verdict_is_sent_and_an_equal_one_is_not(
    own: Context, base_url: str, key: str, session: aiohttp.ClientSession
) -> None:
    token, other = fresh_token(), fresh_token()
    async with opened(session, base_url, key, f"?tokens={token}&events=verdict") as response:
        assert (response.status, response.content_type) == (200, "text/event-stream")
        assert "access-control-allow-origin" not in response.headers
        reader = EventReader(response)
        await reader.is_open()
        await check(own, token, "ok", "ok")
        await check(own, other, "ok", "ok")
        await check(own, token, "ok", "ok")
        await check(own, token, "cannot_sell", "danger")
        first, second = await reader.next(), await reader.next()
    assert (first.data["token"], first.data["before"]) == (token, None)
    assert second.data["verdict"] == {"code": "cannot_sell", "level": "danger", "roundTripLossBps": 60}
    assert second.data["before"]["code"] == "ok"
    assert second.data["text"] == f"The verdict of {token} went from ok (ok) to cannot_sell (danger)."


async def test_a_stream_resumes_after_its_last_event(
    own: Context, base_url: str, key: str, session: aiohttp.ClientSession
) -> None:
    token, query = fresh_token(), "?events=verdict&tokens="
    async with opened(session, base_url, key, query + token) as response:
        reader = EventReader(response)
        await reader.is_open()
        await check(own, token, "ok", "ok")
        seen = await reader.next()
    await check(own, token, "high_fees", "warn")
    await check(own, token, "ok", "ok")
    headers = {"last-event-id": seen.id}
    async with opened(session, base_url, key, query + token, **headers) as response:
        reader = EventReader(response)
        missed = [await reader.next(), await reader.next()]
        await check(own, token, "cannot_buy", "warn")
        new = await reader.next()
    assert [event.data["verdict"]["code"] for event in (*missed, new)] == ["high_fees", "ok", "cannot_buy"]
    # Also where it ended within what it missed.
    async with opened(session, base_url, key, f"{query}{token}&lastEventId={missed[0].id}") as response:
        assert (await EventReader(response).next()).data["verdict"]["code"] == "ok"


async def test_what_cannot_be_resumed_is_told_as_a_gap(
    base_url: str, key: str, session: aiohttp.ClientSession
) -> None:
    async with opened(session, base_url, key) as response:
        reader = EventReader(response)
        await reader.is_open()
    numbers = reader.last_id.split(".")
    old = ".".join([*numbers[:-1], str(int(numbers[-1]) - 3700)])
    unknown = ".".join(["999999999", *numbers[1:-1], str(int(numbers[-1]) - 60)])
    for last_id, text in ((old, "More than an hour"), (unknown, "not known here")):
        async with opened(session, base_url, key, **{"last-event-id": last_id}) as response:
            event = await EventReader(response).next()
        assert event.name == "gap"
        assert text in event.data["text"]


async def test_launches_and_graduations_are_resumed_from_the_chain(
    base_url: str, key: str, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The sample launches are older than an hour.
    monkeypatch.setattr(news, "RESUMES_S", 10**8)
    async with opened(session, base_url, key) as response:
        reader = EventReader(response)
        await reader.is_open()
    evidence_id, _, _, block_s, *rest = reader.last_id.split(".")
    start = ".".join([evidence_id, "0", "0", str(int(block_s) - 10**7), *rest])
    async with opened(session, base_url, key, **{"last-event-id": start}) as response:
        reader = EventReader(response)
        events = [await reader.next() for _ in range(3)]
        while "graduation" not in {event.name for event in events}:
            events.append(await reader.next())
    assert {event.name for event in events} == {"launch", "graduation"}
    blocks = [event.data["block"] for event in events]
    assert blocks == sorted(blocks)
    assert all(event.data["token"] and event.data["wallet"] for event in events)
    # The second event's id leads to the third.
    async with opened(session, base_url, key, **{"last-event-id": events[1].id}) as response:
        assert (await EventReader(response).next()).data == events[2].data


async def test_an_alert_comes_to_its_own_account_alone(
    own: Context, base_url: str, session: aiohttp.ClientSession
) -> None:
    mine, other = await key_for(own, Person()), await key_for(own, Person())
    account_id = await own.pool.fetchval(
        "SELECT id FROM accounts.account WHERE designation = $1", mine["mite"]["designation"]
    )
    token = fresh_token()
    draft = Draft(
        account_id=account_id, kind="service", source_id=None, verb=None, who=None, wallet=None, token=None,
        eth_wei=None, micro_usd=None, share_ppm=None, tx_hash=None, block_number=None, log_index=None,
        at_s=int(time.time()), rule=None, said="Your channel failed.", more=0,
    )  # fmt: skip
    async with (
        opened(session, base_url, mine["key"]) as response,
        opened(session, base_url, other["key"]) as elsewhere,
    ):
        reader, stranger = EventReader(response), EventReader(elsewhere)
        await reader.is_open()
        await stranger.is_open()
        async with own.pool.acquire() as connection:
            (alert,) = await alerts.put(connection, [draft], datetime.now(UTC))
        assert (await reader.next()).data["alert"]["id"] == alert.id
        await check(own, token, "ok", "ok")
        assert (await stranger.next()).data["token"] == token
        assert (await reader.next()).data["token"] == token


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?tokens=" + ",".join(["0x" + "1" * 40] * (MAX_TOKENS + 1)), "at most 50"),
        ("?tokens=0x12", "Each of tokens"),
        ("?tokens=,", "Each of tokens"),
        ("?events=all", "events must be some of"),
        ("?events=verdict,verdict,launch,alert,graduation,x", "events must be some of"),
        ("?lastEventId=7", "Last-Event-ID"),
        ("?lastEventId=1.2.3.4.5.6.x", "Last-Event-ID"),
        ("?lastEventId=1.2.3.4.5.6.-7", "Last-Event-ID"),
        ("?lastEventId=" + "9" * 100, "Last-Event-ID"),
        ("?lastEventId=1.2147483648.3.4.5.6.7", "Last-Event-ID"),
    ],
)
async def test_what_is_wrong_is_said(
    base_url: str, key: str, session: aiohttp.ClientSession, query: str, expected: str
) -> None:
    async with opened(session, base_url, key, query) as response:
        error = (await response.json())["error"]
    assert (response.status, error["code"]) == (400, "bad_address" if "Each" in expected else "bad_input")
    assert expected in error["message"]


async def test_an_account_has_few_streams_and_without_a_key_there_is_none(
    base_url: str, key: str, session: aiohttp.ClientSession
) -> None:
    async with session.get(f"{base_url}/v1/stream") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (401, "key_needed")
    held = []
    for _ in range(5):
        held.append(await opened(session, base_url, key))
        assert held[-1].status == 200
    async with opened(session, base_url, key) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (429, "rate_limited")
        assert "retry-after" in response.headers
    for response in held:
        response.close()
    async with session.head(f"{base_url}/v1/stream", headers={"x-api-key": key}) as response:
        assert response.status == 200
