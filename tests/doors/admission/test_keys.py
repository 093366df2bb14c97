"""Getting a key over HTTP."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.config.settings import Settings
from roundtrip.domain.accounts.keys import format_key, is_key
from roundtrip.services.runtime.context import Context
from support.clocks import Clock
from support.keys import Person, random_context
from support.serving import service


@pytest.fixture
async def base_url(ctx: Context) -> AsyncIterator[str]:
    async with service(random_context(ctx, Clock())) as url:
        yield url


async def posted(
    session: aiohttp.ClientSession, url: str, body: object, **headers: str
) -> tuple[int, dict[str, Any], dict[str, str]]:
    async with session.post(url, json=body, headers=headers) as response:
        answer = {name.lower(): value for name, value in response.headers.items()}
        return response.status, await response.json(), answer


async def test_two_posts_and_a_signature_bring_a_key(base_url: str, session: aiohttp.ClientSession) -> None:
    person = Person()
    status, text, _ = await posted(session, f"{base_url}/v1/keys/nonce", {"address": person.shown})
    assert status == 200
    assert text.keys() == {"message", "sign", "claim", "claimMessage"}
    assert text["sign"] == "personal_sign"
    body = {
        "address": person.shown,
        "signature": person.sign(text["message"]),
        "label": "mine",
        "agent": True,
    }
    status, made, headers = await posted(session, f"{base_url}/v1/keys", {**body, "name": "Bot 9"})
    assert status == 200
    assert is_key(made["key"])
    assert made["mite"]["agent"] is True
    # They count by the minute, and everybody's answer is his own.
    assert {"x-ratelimit-limit", "x-ratelimit-remaining"} <= headers.keys()
    assert "x-cache" not in headers
    assert "access-control-allow-origin" not in headers
    status, again, _ = await posted(session, f"{base_url}/v1/keys", body)
    assert (status, again["error"]["code"]) == (401, "bad_signature")


async def test_a_dead_key_in_the_header_keeps_nobody_from_a_new_one(
    base_url: str, session: aiohttp.ClientSession
) -> None:
    person, dead = Person(), {"authorization": f"Bearer {format_key(bytes(range(32)))}"}
    status, text, _ = await posted(session, f"{base_url}/v1/keys/nonce", {"address": person.shown}, **dead)
    assert status == 200
    body = {"address": person.shown, "signature": person.sign(text["message"])}
    status, made, _ = await posted(session, f"{base_url}/v1/keys", body, **dead)
    assert (status, is_key(made["key"])) == (200, True)


async def test_what_the_request_says_of_its_host_is_not_signed_for(
    base_url: str, session: aiohttp.ClientSession
) -> None:
    forged = {"host": "evil.example", "x-forwarded-host": "evil.example", "origin": "https://evil.example"}
    _, text, _ = await posted(session, f"{base_url}/v1/keys/nonce", {"address": Person().address}, **forged)
    assert "evil" not in text["message"]
    assert text["message"].startswith("127.0.0.1:8463 wants")


@pytest.mark.parametrize(
    ("path", "body", "answer"),
    [
        ("/v1/keys/nonce", {"address": "0x12"}, (400, "bad_address")),
        ("/v1/keys/nonce", {}, (400, "bad_address")),
        ("/v1/keys", {}, (400, "bad_input")),
        ("/v1/keys", {"address": "0x12", "signature": "0x"}, (400, "bad_input")),
        ("/v1/keys", {"address": "0x" + "1" * 40, "signature": "hello"}, (400, "bad_input")),
        ("/v1/keys", {"address": "0x" + "1" * 40, "signature": "0x" + "00" * 8193}, (400, "bad_input")),
        ("/v1/keys", {"address": "0x" + "1" * 40, "signature": "0x" + "00" * 8192}, (401, "bad_signature")),
        ("/v1/keys", {"address": "0x" + "0" * 40, "signature": "0x" + "00" * 65}, (401, "bad_signature")),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_what_is_refused(
    base_url: str, session: aiohttp.ClientSession, path: str, body: dict[str, str], answer: tuple[int, str]
) -> None:
    status, error, _ = await posted(session, base_url + path, body)
    assert (status, error["error"]["code"]) == answer


async def test_a_sixth_key_is_a_conflict(base_url: str, session: aiohttp.ClientSession) -> None:
    person, answers = Person(), []
    for _ in range(6):
        _, text, _ = await posted(session, f"{base_url}/v1/keys/nonce", {"address": person.address})
        body = {"address": person.address, "signature": person.sign(text["message"])}
        status, answer, _ = await posted(session, f"{base_url}/v1/keys", body)
        answers.append((status, answer.get("error", {}).get("code")))
    assert answers == [(200, None)] * 5 + [(409, "too_many_keys")]


async def test_they_count_by_the_minute(ctx: Context, session: aiohttp.ClientSession) -> None:
    async with service(replace(ctx), Settings(anon_per_minute=3)) as url:
        nonce, wallet = f"{url}/v1/keys/nonce", {"address": Person().address}
        for _ in range(2):
            assert (await posted(session, nonce, wallet))[0] == 200
        # Also what is refused.
        assert (await posted(session, f"{url}/v1/keys", {**wallet, "signature": "0x"}))[0] == 401
        status, error, headers = await posted(session, nonce, wallet)
        assert (status, error["error"]["code"]) == (429, "rate_limited")
        assert 1 <= int(headers["retry-after"]) <= 60


def test_they_are_no_tools() -> None:
    rows = {one.name: one for one in OPERATIONS if (one.path or "").startswith("/v1/keys") and not one.key}
    assert rows.keys() == {"key_nonce", "make_key"}
    for row in rows.values():
        assert (row.method, row.on_mcp, row.key, row.counts, row.shared_by) == (
            "POST", False, False, "minute", None,
        )  # fmt: skip
    assert {one.name for one in OPERATIONS if one.ignores_key} == {"key_nonce", "make_key"}
