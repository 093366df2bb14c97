"""An account that asks what it watches by a real key."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
import jsonschema
import msgspec

from roundtrip.api.documents.tool_schemas import answer_schema
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.config.settings import Settings
from roundtrip.domain.accounts import keys
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.watch.alerts import Draft
from roundtrip.services.runtime.context import Context
from roundtrip.store.watch import alerts
from support.cases.base import WALLET
from support.doors import Came, over_bare_mcp
from support.keys import NOW_S, Person, account_of_key, key_for

SETTINGS = Settings(
    anon_per_minute=10_000, views_per_minute=10_000, key_per_minute=10_000, key_per_day=10_000
)
STRANGER = "0x" + "5a" * 20


def operation(name: str) -> AnyOperation:
    return next(one for one in OPERATIONS if one.name == name)


@dataclass(frozen=True, slots=True)
class Caller:
    """An account that asks by its key."""

    ctx: Context
    url: str
    key: str
    account_id: int

    async def came(self, name: str, /, **arguments: Any) -> Came:
        """By the bare door."""
        return await over_bare_mcp(self.url, operation(name), arguments, self.key)

    async def ask(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """An answer, valid against its schema."""
        came = await self.came(name, **arguments)
        assert came.answer is not None, came.code
        schema = answer_schema(operation(name))
        jsonschema.validate(came.answer, schema, jsonschema.Draft202012Validator)
        assert came.answer.keys() == schema["properties"].keys()
        return came.answer

    async def error(self, name: str, /, **arguments: Any) -> str:
        """What a call fails with: code and sentence."""
        request = {
            "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }  # fmt: skip
        return await self.refused(msgspec.json.encode(request))

    async def refused(self, body: bytes) -> str:
        """The same of a request as it is."""
        headers = {"x-api-key": self.key, "content-type": "application/json"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.url}/mcp", data=body, headers=headers) as response,
        ):
            result = (await response.json())["result"]
        assert result["isError"] is True, result
        return str(result["content"][0]["text"])


async def caller(ctx: Context, url: str, person: Person | None = None) -> Caller:
    """Somebody new, or this person."""
    key = (await key_for(ctx, person or Person()))["key"]
    async with ctx.pool.acquire() as connection:
        account = await account_of_key(connection, keys.hash_of(key))
    assert account is not None
    return Caller(ctx, url, key, account.id)


async def a_launch(me: Caller) -> tuple[str, str, str]:
    """A token, its deployer and who sent the launch, by the index."""
    [row] = await me.ctx.pool.fetch(
        "SELECT token.address AS token, deployer.address AS deployer, sender.address AS sender"
        " FROM facts.launch AS launch JOIN facts.address AS token ON token.id = launch.token_id"
        " JOIN facts.address AS deployer ON deployer.id = launch.deployer_id"
        " JOIN facts.address AS sender ON sender.id = launch.sender_id ORDER BY launch.block_number LIMIT 1"
    )
    return tuple("0x" + row[name].hex() for name in ("token", "deployer", "sender"))


@contextlib.asynccontextmanager
async def sent_by(me: Caller, token: str, sender: str) -> AsyncIterator[None]:
    """A token whose launch somebody else sent, for a while; he stands in the index."""
    _, _, was = await a_launch(me)
    change = (
        "UPDATE facts.launch SET sender_id = (SELECT id FROM facts.address WHERE address = $2)"
        " WHERE token_id = (SELECT id FROM facts.address WHERE address = $1)"
    )
    await me.ctx.pool.execute(change, bytes.fromhex(token[2:]), bytes.fromhex(sender[2:]))
    try:
        yield
    finally:
        await me.ctx.pool.execute(change, bytes.fromhex(token[2:]), bytes.fromhex(was[2:]))


def draft(me: Caller, number: int = 1, **more: Any) -> Draft:
    given: dict[str, Any] = {
        "kind": "rule", "source_id": 1, "at_s": int(NOW_S) - 60, "said": f"Hit {number}.", "verb": "buying",
        "who": "any", "wallet": Address(WALLET), "token": Address(STRANGER), "eth_wei": 10**18,
        "micro_usd": 3_500_000_000, "share_ppm": 25_000, "tx_hash": TxHash("0x" + "ab" * 32),
        "block_number": 9, "log_index": number, "rule": "any buying over 1 eth",
    }  # fmt: skip
    return Draft(account_id=me.account_id, **{**given, **more})


async def put(me: Caller, *drafts: Draft, at_s: float = NOW_S) -> list[int]:
    async with me.ctx.pool.acquire() as connection, connection.transaction():
        return [one.id for one in await alerts.put(connection, drafts, datetime.fromtimestamp(at_s, UTC))]
