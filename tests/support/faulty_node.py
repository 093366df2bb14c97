"""A node that lies, stalls or dies, in front of a real one."""

import asyncio
import contextlib
import functools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
from aiohttp import web

from roundtrip.config.networks import CHAIN_ID
from support.loopback import node_on_loopback

Batch = list[dict[str, Any]]


def _wrong_chain(request: Batch, answers: Batch) -> Batch:
    """The chain's id is told by a request of its own, and inside simulations."""
    ours, other = f"{CHAIN_ID:064x}", f"{1:064x}"
    methods = {call["id"]: call["method"] for call in request}
    answer = [{**a, "result": "0x1"} if methods[a["id"]] == "eth_chainId" else a for a in answers]
    changed: Batch = json.loads(json.dumps(answer).replace(f'"0x{ours}"', f'"0x{other}"'))
    return changed


def lacking(method: str, request: Batch, answers: Batch) -> Batch:
    methods = {call["id"]: call["method"] for call in request}
    refused = {"code": -32601, "message": f"the method {method} does not exist"}
    return [
        {"jsonrpc": "2.0", "id": answer["id"], "error": refused}
        if methods[answer["id"]] == method
        else answer
        for answer in answers
    ]


def _other_block(request: Batch, answers: Batch) -> Batch:
    for answer in answers:
        result = answer.get("result")
        if isinstance(result, list) and result and "calls" in result[0]:
            for block in result:
                block["number"] = hex(int(block["number"], 16) + 5)
    return answers


def _fewer_calls(request: Batch, answers: Batch) -> Batch:
    for answer in answers:
        result = answer.get("result")
        if isinstance(result, list) and result and "calls" in result[0]:
            result[-1]["calls"] = result[-1]["calls"][:-1]
    return answers


def _odd_fields(request: Batch, answers: Batch) -> Batch:
    for answer in answers:
        result = answer.get("result")
        if isinstance(result, list) and result and "calls" in result[0]:
            for call in result[-1]["calls"]:
                call["returnData"] = "0xzz"
    return answers


def _swapped(request: Batch, answers: Batch) -> Batch:
    ids = [answer["id"] for answer in answers]
    return [{**answer, "id": other} for answer, other in zip(answers, reversed(ids), strict=True)]


ANSWER_FAULTS: dict[str, Callable[[Batch, Batch], Any]] = {
    "wrong chain id": _wrong_chain,
    "no eth_simulateV1": functools.partial(lacking, "eth_simulateV1"),
    "half an answer": lambda request, answers: answers[::2],
    "the other half": lambda request, answers: answers[1::2],
    "first answer only": lambda request, answers: answers[:1],
    "another block": _other_block,
    "fewer calls": _fewer_calls,
    "odd fields": _odd_fields,
    "swapped answers": _swapped,
    "all null": lambda request, answers: [{**answer, "result": None} for answer in answers],
    "all errors": lambda request, answers: [
        {"jsonrpc": "2.0", "id": answer["id"], "error": {"code": -32000, "message": "header not found"}}
        for answer in answers
    ],
    "strange ids": lambda request, answers: [{**answer, "id": "x"} for answer in answers],
    "one object": lambda request, answers: answers[0],
    "an empty batch": lambda request, answers: [],
    "numbers": lambda request, answers: [{**answer, "result": 7} for answer in answers],
}
"""Faults that twist a real answer."""

WIRE_FAULTS = ("slow", "nonsense", "html with status 200", "status 500", "redirect", "endless", "cut off")
"""Faults below JSON."""


class FaultyNode:
    """``fault`` None: everything passes. ``after``: so many batches pass before the fault sets in.
    ``lacks``: a method that it does not serve."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self.fault: str | None = None
        self.after, self.lacks = 0, ""
        self.url = ""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["FaultyNode"]:
        async with aiohttp.ClientSession() as self._session, node_on_loopback(self._serve) as self.url:
            yield self

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        fault = self.fault
        if fault is not None and self.after > 0:
            self.after -= 1
            fault = None
        if fault in WIRE_FAULTS:
            return await self._wire_fault(fault, request)
        async with self._session.post(
            self._upstream, data=body, headers={"content-type": "application/json"}
        ) as r:
            raw = await r.read()
        if self.lacks:
            raw = json.dumps(lacking(self.lacks, json.loads(body), json.loads(raw))).encode()
        if fault is not None:
            raw = json.dumps(ANSWER_FAULTS[fault](json.loads(body), json.loads(raw))).encode()
        return web.Response(body=raw, content_type="application/json")

    async def _wire_fault(self, fault: str, request: web.Request) -> web.StreamResponse:
        if fault == "slow":
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 30)
        if fault == "status 500":
            return web.Response(status=500, text="oops")
        if fault == "redirect":
            return web.Response(status=302, headers={"location": self._upstream})
        if fault in ("endless", "cut off"):
            response = web.StreamResponse(headers={"content-type": "application/json"})
            await response.prepare(request)
            await response.write(b'[{"jsonrpc":"2.0","id":0,"result":"0x')
            if fault == "cut off":
                assert request.transport is not None
                request.transport.close()
                return response
            with contextlib.suppress(ConnectionError):
                for _ in range(1024):
                    await response.write(b"0" * 65_536)
            return response
        return web.Response(body=b"\xff\x00<html>", content_type="text/html")
