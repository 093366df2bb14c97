"""Records one real answer for each operation: of the tools from a walk of the tour, of the others over HTTP.

``api/documents/openapi.py`` puts them into the OpenAPI document.
"""

import asyncio
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from roundtrip_development.devnet.demo.wallet import DemoWallet
from roundtrip_development.devnet.deploy import calldata

from .steps import Answer
from .walk import NothingToShow, ServiceUrls, WalkedStep

PAY_TO = "0xa0ee7a142d267c1f36714e4a8f75612f20a79720"
"""Account 9 of the local chain, which takes the payment."""
PAYER = 0
"""The index of the local chain's account that pays: it has usdg."""
_ONE_USDG = 10**6
_MAX_TRIES, _AGAIN_S, _STREAM_S = 30, 1.0, 30.0
_MAX_ROWS, _MAX_CHARACTERS, _CUT = 2, 400, "…"
_NEVER_SHOWN = {"key": "rt_<your key>", "secret": "whsec_<your secret>", "claim": "0" * 64}
_CLAIM = re.compile(r"\b[0-9a-f]{64}\b")


async def record_examples(
    urls: ServiceUrls, payer: DemoWallet, walked: Sequence[WalkedStep]
) -> dict[str, Answer]:
    """The examples by operation name, sorted. Raises NothingToShow, and what sending raises."""
    found = {step.tool.name: step.answer for step in walked}
    token = found["check_token"]["address"]
    async with aiohttp.ClientSession() as session:
        client = _Client(session, urls.url)
        found["health"] = await client.get("/v1/health")
        found["check_proof"] = await client.get(f"/v1/check/{token}/proof")
        found["check_history"] = await client.get(f"/v1/check/{token}/history")
        found["token_liquidity"] = await client.get(f"/v1/liquidity/{token}")
        found["check_tokens"] = await client.post("/v1/checks", {"addresses": [token]})
        nonce = await client.post("/v1/keys/nonce", {"address": payer.address})
        signature = payer.sign_text(nonce["message"])
        made = await client.post("/v1/keys", {"address": payer.address, "signature": signature})
        found |= {"key_nonce": nonce, "make_key": made}
        keyed = _Client(session, urls.url, made["key"])
        found["credits"] = await keyed.get("/v1/credits")
        position = (await keyed.first_field("/v1/stream", b"id")).decode()
        before_all = f"0.{position.partition('.')[2]}"
        path = f"/v1/stream?events=verdict&lastEventId={before_all}"
        found["stream"] = msgspec.json.decode(await keyed.first_field(path, b"data"))
        found["unlock_calendar"] = await keyed.get("/v1/unlocks")
        found["list_keys"] = await keyed.get("/v1/keys")
        spare = await client.post("/v1/keys/nonce", {"address": payer.address})
        signature = payer.sign_text(spare["message"])
        await client.post("/v1/keys", {"address": payer.address, "signature": signature})
        spare_id = (await keyed.get("/v1/keys"))["live"][-1]["id"]
        found["revoke_key"] = await keyed.delete(f"/v1/keys/{spare_id}")
        tx = await asyncio.to_thread(functools.partial(_pay, urls.rpc_url, payer, found["credits"]["pay"]))
        found["redeem_payment"] = await keyed.post("/v1/credits", {"tx": tx}, again_at="no_such_tx")
    return {name: shorten(answer) for name, answer in sorted(found.items())}


def write_examples(examples: dict[str, Answer]) -> bytes:
    """The file's content. Raises ValueError: it would contain a secret."""
    text = msgspec.json.format(msgspec.json.encode(examples), indent=1) + b"\n"
    if re.search(rb"rt_[0-9A-Za-z]{20,}|whsec_[0-9A-Za-z+/=]{10,}", text):
        raise ValueError("the examples would contain a secret")
    return text


def _pay(rpc_url: str, payer: DemoWallet, pay: dict[str, Any]) -> str:
    """Pays one usdg and makes its block final; returns the transaction's hash."""
    data = calldata("transfer(address,uint256)", pay["payTo"], _ONE_USDG)
    return payer.send_finally(
        rpc_url, {"n": 1, "to": pay["asset"], "data": data, "value": "0", "gas": 100_000}
    )


@dataclass(frozen=True, slots=True)
class _Client:
    session: aiohttp.ClientSession
    url: str
    key: str | None = None

    async def get(self, path: str) -> Answer:
        return await self._ask("GET", path, None, None)

    async def post(self, path: str, body: dict[str, Any], again_at: str | None = None) -> Answer:
        """``again_at``: the error code at which the request is repeated."""
        return await self._ask("POST", path, body, again_at)

    async def delete(self, path: str) -> Answer:
        return await self._ask("DELETE", path, None, None)

    async def first_field(self, path: str, name: bytes) -> bytes:
        """The first field of this name that a stream sends."""
        headers = {"x-api-key": self.key or ""}
        async with asyncio.timeout(_STREAM_S), self.session.get(self.url + path, headers=headers) as response:
            async for line in response.content:
                field, _, value = line.rstrip().partition(b": ")
                if field == name:
                    return value
        raise NothingToShow(f"{path} sent no {name.decode()}")

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None, again_at: str | None) -> Answer:
        headers = {"x-api-key": self.key} if self.key else {}
        tries = 0
        while True:
            async with self.session.request(method, self.url + path, json=body, headers=headers) as response:
                answer: Answer = msgspec.json.decode(await response.read())
            if response.status == 200:
                return answer
            tries += 1
            if answer["error"]["code"] not in (again_at, "busy") or tries == _MAX_TRIES:
                raise NothingToShow(f"{path} answered {response.status}: {answer['error']['message']}")
            await asyncio.sleep(_AGAIN_S)


def shorten(value: Any, name: str = "") -> Any:
    """An answer without secrets; lists are cut after two rows, and long texts after 400 characters."""
    if isinstance(value, dict):
        return {key: shorten(part, key) for key, part in value.items()}
    if isinstance(value, list):
        return [shorten(part, name) for part in value[:_MAX_ROWS]]
    if not isinstance(value, str):
        return value
    if name in _NEVER_SHOWN:
        return _NEVER_SHOWN[name]
    if name == "claimMessage":
        value = _CLAIM.sub(_NEVER_SHOWN["claim"], value)
    return value if len(value) <= _MAX_CHARACTERS else value[:_MAX_CHARACTERS] + _CUT
