"""A node that refuses or fails in one named way, over real HTTP; no chain is needed."""

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from support.loopback import node_on_loopback

Json = dict[str, Any]
KEY = "k3yA91f0cc7d2e6b45088a1c"
"""The API key in the node's URL, which some refusals repeat."""
HASH = "0x" + "ab" * 32


@dataclass(frozen=True)
class Refusal:
    """``status``, ``body`` and ``headers``: of every answer; body None: calls are answered one by one, and
    those of ``methods`` with the result or the error given there."""

    status: int = 200
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, Json] = field(default_factory=dict)


def whole(status: int, code: int, message: str, **headers: str) -> Refusal:
    """One error object in place of a batch's answers."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return Refusal(status, json.dumps(error).encode(), {k.replace("_", "-"): v for k, v in headers.items()})


def one_method(method: str, code: int, message: str) -> Refusal:
    """An error for each call of one method."""
    return Refusal(methods={method: {"error": {"code": code, "message": message}}})


class RefusingNode:
    """``refusal``: how it answers. ``refused``: so many requests are refused, later ones only where they
    simulate; None: all of them. ``requests``: how many came so far."""

    def __init__(self, refusal: Refusal, chain_id: int, now_s: int, refused: int | None = None) -> None:
        self._refusal, self._chain_id, self._now_s = refusal, chain_id, now_s
        self._refused = refused
        self.requests = 0
        self.url = ""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["RefusingNode"]:
        async with node_on_loopback(self._serve) as url:
            self.url = f"{url}/v2/{KEY}"
            yield self

    async def _serve(self, request: web.Request) -> web.Response:
        calls = json.loads(await request.read())
        self.requests += 1
        refusal = self._refusal
        if self._refused is not None and self.requests > self._refused:
            refusal = one_method("eth_simulateV1", -32601, "the method eth_simulateV1 does not exist")
        if refusal.body is not None:
            return web.Response(status=refusal.status, body=refusal.body, headers=refusal.headers)
        return web.json_response([self._answer(call, refusal.methods) for call in calls])

    def _answer(self, call: Json, methods: Mapping[str, Json]) -> Json:
        numbered = {"jsonrpc": "2.0", "id": call["id"]}
        return numbered | (methods.get(call["method"]) or self._usual(call))

    def _usual(self, call: Json) -> Json:
        header = {
            "number": "0x64", "hash": HASH, "timestamp": hex(self._now_s), "miner": "0x" + "00" * 20,
            "mixHash": "0x" + "00" * 32, "baseFeePerGas": "0x3b9aca00",
        }  # fmt: skip
        words = "".join(f"{value:064x}" for value in (100, self._now_s, 50_000_000))
        results: Json = {
            "eth_chainId": hex(self._chain_id),
            "eth_getBlockByNumber": header,
            "eth_getCode": "0x00",
            "eth_call": "0x" + words,
            "eth_simulateV1": [],
        }
        if call["method"] not in results:
            return {"error": {"code": -32601, "message": "the method does not exist/is not available"}}
        return {"result": results[call["method"]]}


def unknown_form(now_s: int) -> Refusal:
    """Simulations whose reverts and whose ends of gas come back with codes that no known node has."""
    words = "0x" + "".join(f"{value:064x}" for value in (104, now_s + 37, 9_900_000))
    answer = {"status": "0x1", "gasUsed": hex(21_039), "returnData": words, "logs": []}
    reverted = {
        "status": "0x0", "gasUsed": hex(21_050), "returnData": "0x", "logs": [],
        "error": {"code": -31999, "message": "EVM revert instruction"},
    }  # fmt: skip
    starved = {**reverted, "error": {"code": -31998, "message": "no gas left"}}
    blocks = [
        {"number": hex(101), "timestamp": hex(now_s + 1), "calls": [answer]},
        {"number": hex(104), "timestamp": hex(now_s + 37), "calls": [answer, reverted, starved]},
    ]
    return Refusal(methods={"eth_simulateV1": {"result": blocks}})


CLOUDFLARE = (
    b"<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title><style>b{}</style></head>"
    b"<body><h1>Sorry, you have been blocked</h1></body></html>"
)
BAD_GATEWAY = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
NO_SIMULATIONS = "the method eth_simulateV1 does not exist/is not available"


def refusals(now_s: int) -> dict[str, Refusal]:
    """By name, every way that the tests know in which a node refuses a check."""
    limited = "rate limit exceeded, see https://provider.example/pricing?key=" + KEY
    return {
        "429, wait": whole(429, -32005, limited, retry_after="1"),
        "429, long wait": whole(429, -32005, limited, retry_after="60"),
        "429": whole(429, -32005, limited),
        "429, text": Refusal(429, b"Too Many Requests"),
        "401": whole(401, -32000, f"Must be authenticated! Invalid key {KEY}"),
        "403": Refusal(403, CLOUDFLARE),
        "502": Refusal(502, BAD_GATEWAY),
        "no simulations": one_method("eth_simulateV1", -32601, NO_SIMULATIONS),
        "crashed": one_method("eth_simulateV1", -32603, "method handler crashed"),
        "limited method": one_method("eth_simulateV1", -32005, "daily request count exceeded"),
        "other chain": Refusal(methods={"eth_chainId": {"result": "0x1"}, "eth_getCode": {"result": "0x"}}),
        "no node": Refusal(200, b"<html><title>Welcome</title><body>Hello</body></html>"),
        "no batch": whole(200, -32600, "batch too large"),
        "empty": Refusal(200, b""),
        "unknown form": unknown_form(now_s),
    }
