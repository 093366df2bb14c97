"""``my_mite``: what an account reads of itself."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import HandlerCall
from roundtrip.domain.accounts import keys
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from support.clocks import Clock
from support.fixtures import closed_database
from support.keys import Person, account_of_key, asked, key_for, random_context, revoke_of

TOOL = next(operation for operation in OPERATIONS if operation.name == "my_mite")
MADE = "2025-10-09T08:53:20Z"


@pytest.fixture
def shop(ctx: Context) -> Context:
    return random_context(ctx, Clock())


async def read_profile(shop: Context, key: str) -> dict[str, Any]:
    async with shop.pool.acquire() as connection:
        account = await account_of_key(connection, keys.hash_of(key))
    assert account is not None
    reply = await TOOL.handler(HandlerCall(shop, Nothing(), account))
    answer: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(reply.answer))
    msgspec.convert(answer, TOOL.answer)
    return answer


def test_it_is_a_tool_that_needs_a_key_and_counts_by_the_minute() -> None:
    assert (TOOL.key, TOOL.counts, TOOL.path, TOOL.on_mcp, TOOL.writes) == (True, "minute", None, True, False)


async def test_a_new_account(shop: Context) -> None:
    person = Person()
    made = await key_for(shop, person, label="first")
    answer = await read_profile(shop, made["key"])
    called = made["mite"]["designation"]
    assert answer == {
        "text": f"You are {called}: the account of {person.address}, level 1. None of your flags is decided "
        "yet. Your limits are 60 calls a minute and 20,000 a day; 20,000 are left today. You have 1 live key "
        "of at most 5.",
        "designation": called,
        "wallet": person.address,
        "agent": False,
        "agentName": None,
        "level": 1,
        "accuracy": None,
        "proved": 0,
        "decided": 0,
        "baseRate": None,
        "aheadOfChance": None,
        "limits": {"perMinute": 60, "perDay": 20_000},
        "usedToday": 0,
        "remainingToday": 20_000,
        "credits": 0,
        "madeAt": MADE,
        "liveKeys": 1,
        "keys": [{"start": made["key"][:8], "label": "first", "madeAt": MADE}],
    }


async def test_an_agent_with_several_keys_and_calls(shop: Context) -> None:
    person = Person()
    first = await key_for(shop, person, agent=True, name="Bot")
    second, third = await key_for(shop, person), await key_for(shop, person)
    await revoke_of(shop, person.address, 0)
    for day, calls in (("2025-10-08", 5), ("2025-10-09", 20_007)):
        await shop.pool.execute(
            "INSERT INTO accounts.day (account_id, day, calls, granted) "
            "SELECT id, $2::text::date, $3, 1 FROM accounts.account "
            "WHERE wallet = $1",
            bytes.fromhex(person.address[2:]),
            day,
            calls,
        )
    answer = await read_profile(shop, second["key"])
    assert (answer["agent"], answer["agentName"]) == (True, "Bot")
    assert (answer["usedToday"], answer["remainingToday"], answer["liveKeys"]) == (20_007, 0, 2)
    assert [key["start"] for key in answer["keys"]] == [second["key"][:8], third["key"][:8]]
    assert f'{first["mite"]["designation"]} "Bot": the agent account of' in answer["text"]
    assert "20,000 a day; 0 are left today. You have 2 live keys of at most 5." in answer["text"]


async def test_no_answer_holds_a_key_or_its_hash(shop: Context) -> None:
    key = (await key_for(shop, Person()))["key"]
    answer = str(await read_profile(shop, key))
    assert key[:9] not in answer
    assert keys.hash_of(key).hex() not in answer


async def test_without_a_database_accounts_are_busy(shop: Context) -> None:
    person = Person()
    gone = replace(shop, pool=closed_database())
    with pytest.raises(ServiceFull):
        await TOOL.handler(HandlerCall(gone, Nothing(), Account(1, "mite-2345", person.address)))
    with pytest.raises(ServiceFull):
        await asked(gone, "key_nonce", address=person.address)
