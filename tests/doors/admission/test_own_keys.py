"""Listing and revoking one's keys over HTTP."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import jsonschema
import pytest

from roundtrip.api.documents.tool_schemas import answer_schema
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.services.runtime.context import Context
from support.clocks import Clock
from support.keys import Person, key_for, random_context, session_code_of, session_text_for
from support.serving import service


@pytest.fixture
def own(ctx: Context) -> Context:
    return random_context(ctx, Clock())


@pytest.fixture
async def base_url(own: Context) -> AsyncIterator[str]:
    async with service(own) as url:
        yield url


async def asked(
    session: aiohttp.ClientSession, method: str, url: str, key: str | None
) -> tuple[int, dict[str, Any]]:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    async with session.request(method, url, headers=headers) as response:
        assert "access-control-allow-origin" not in response.headers
        return response.status, await response.json()


async def test_a_key_lists_and_revokes_the_keys_of_its_account(
    own: Context, base_url: str, session: aiohttp.ClientSession
) -> None:
    person, url = Person(), f"{base_url}/v1/keys"
    first = (await key_for(own, person, label="laptop"))["key"]
    second = (await key_for(own, person))["key"]
    status, listed = await asked(session, "GET", url, first)
    assert status == 200
    assert [(key["start"], key["label"]) for key in listed["live"]] == [
        (first[:8], "laptop"), (second[:8], "")
    ]  # fmt: skip
    assert first not in str(listed)
    assert listed["revoked"] == []
    status, revoked = await asked(session, "DELETE", f"{url}/{listed['live'][1]['id']}", first)
    assert (status, revoked["text"]) == (200, f"Key {second[:8]}… is revoked.")
    assert revoked["key"]["revokedAt"] is not None
    assert (await asked(session, "GET", url, second))[0] == 401
    status, repeated = await asked(session, "DELETE", f"{url}/{listed['live'][1]['id']}", first)
    assert (status, repeated["key"]) == (200, revoked["key"])
    status, listed = await asked(session, "GET", url, first)
    assert [key["start"] for key in listed["revoked"]] == [second[:8]]
    for name, answer in (("list_keys", listed), ("revoke_key", revoked)):
        (row,) = [one for one in OPERATIONS if one.name == name]
        jsonschema.validate(answer, answer_schema(row))
    # Also its own, from the next call on.
    assert (await asked(session, "DELETE", f"{url}/{listed['live'][0]['id']}", first))[0] == 200
    assert (await asked(session, "GET", url, first))[1]["error"]["code"] == "bad_key"


async def test_what_is_not_the_accounts_key_is_not_found(
    own: Context, base_url: str, session: aiohttp.ClientSession
) -> None:
    person, other, url = Person(), Person(), f"{base_url}/v1/keys"
    key, others = (await key_for(own, person))["key"], (await key_for(own, other))["key"]
    (their,) = (await asked(session, "GET", url, others))[1]["live"]
    text, claim = await session_text_for(own, person.address)
    assert await session_code_of(own, person.address, person.sign(text), claim) == "ok"
    async with own.pool.acquire() as connection:
        ended = await connection.fetchval("SELECT max(id) FROM accounts.key WHERE kind = 'session'")
    for key_id in (their["id"], ended, 0, 9 * 10**18, 10**19 - 1):
        status, error = await asked(session, "DELETE", f"{url}/{key_id}", key)
        assert (status, error["error"]["code"]) == (404, "not_found"), key_id
    assert (await asked(session, "GET", url, others))[0] == 200
    alive = await own.pool.fetchval("SELECT revoked_at IS NULL FROM accounts.key WHERE id = $1", ended)
    assert alive is True


@pytest.mark.parametrize("key_id", ["x", "-1", "1.5", "%00", "1" * 20, "rt_4fG7a"])
async def test_what_is_no_id_is_said(
    own: Context, base_url: str, session: aiohttp.ClientSession, key_id: str
) -> None:
    key = (await key_for(own, Person()))["key"]
    status, error = await asked(session, "DELETE", f"{base_url}/v1/keys/{key_id}", key)
    assert (status, error["error"]["code"]) == (400, "bad_input")
    assert "id of a key" in error["error"]["message"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/keys"), ("DELETE", "/v1/keys/1")])
async def test_without_a_key_nothing_is_listed_or_revoked(
    base_url: str, session: aiohttp.ClientSession, method: str, path: str
) -> None:
    status, error = await asked(session, method, base_url + path, None)
    assert (status, error["error"]["code"]) == (401, "key_needed")
