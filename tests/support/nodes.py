"""One node, or several, behind a context; and public nodes with their quirks, in front of a real one."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, Literal

from aiohttp import web

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.chain.rpc.client import Meter, Node
from roundtrip.chain.rpc.endpoints import NodeUrl
from roundtrip.chain.rpc.node_pool import NodePool
from roundtrip.chain.simulate.rates import Rates
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.verdict import judge
from roundtrip.services.runtime.context import Context
from support.faulty_node import ANSWER_FAULTS, Batch, FaultyNode
from support.gathering import gather_evidence

MAX_CALLS = 20
RETRY_AFTER_S = 30


def node_of(ctx: Context) -> Node:
    """The one node behind a context that has but one."""
    assert isinstance(ctx.node, Node)
    return ctx.node


def over(ctx: Context, *urls: str | NodeUrl, timeout_s: float = 20.0, **options: Any) -> Context:
    """The same context over several nodes instead, in this order; its head is not known yet."""
    given = [NodeUrl(url) if isinstance(url, str) else url for url in urls]
    nodes = NodePool(given, node_of(ctx).session, ctx.chain_id, timeout_s, **options)
    heads = Heads(nodes, ctx.chain_id, ctx.contracts, market_age_s=0.0, venue_index=VenueIndex(ctx.contracts))
    return replace(ctx, node=nodes, heads=heads, rates=Rates(nodes, ctx.contracts))


def nodes_of(ctx: Context) -> NodePool:
    """The several nodes behind a context."""
    assert isinstance(ctx.node, NodePool)
    return ctx.node


Quirk = Literal[
    "403", "429", "hangs", "html", "cut off", "413", "one error for a large batch",
    "one answer to a large batch", "no eth_simulateV1", "wrong chain id", "behind", "pruned", "limited",
    "half an answer", "swapped answers", "tells no chain", "dead",
]  # fmt: skip


def _pinned(call: dict[str, Any]) -> bool:
    return "blockHash" in json.dumps(call.get("params", []))


def _errors(code: int, message: str, of: Callable[[dict[str, Any]], bool]) -> Callable[[Batch, Batch], Batch]:
    def twisted(request: Batch, answers: Batch) -> Batch:
        ids = {call["id"] for call in request if of(call)}
        error = {"code": code, "message": message}
        return [{"jsonrpc": "2.0", "id": a["id"], "error": error} if a["id"] in ids else a for a in answers]

    return twisted


_TWISTS: dict[str, Callable[[Batch, Batch], Any]] = {
    "behind": _errors(-32000, "header not found", _pinned),
    "pruned": _errors(-32000, "missing trie node 1f2e (path ) state 0x3d is not available", _pinned),
    "tells no chain": _errors(-32000, "not today", lambda call: call["method"] == "eth_chainId"),
    "limited": _errors(-32005, "daily request count exceeded, request rate limited", lambda _: True),
}


class QuirkyNode(FaultyNode):
    """``quirk`` None: everything passes. ``after``: so many requests pass before it sets in. ``sent`` are the
    requests that came, by their methods."""

    def __init__(self, upstream: str, quirk: Quirk | None = None) -> None:
        super().__init__(upstream)
        self.quirk = quirk
        self.sent: list[list[str]] = []
        self.stalls: Callable[[int], float] = lambda _: 0.0
        """How long the nth request waits, in seconds."""

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        nth = len(self.sent)
        self.sent.append([call["method"] for call in body])
        if stall_s := self.stalls(nth):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), stall_s)
        quirk = self.quirk
        if self.after > 0:
            self.after, quirk = self.after - 1, None
        if (refused := self._refused(quirk, body)) is not None:
            return refused
        if quirk == "hangs":
            return await self._wire_fault("slow", request)
        if quirk == "cut off":
            return await self._wire_fault("cut off", request)
        if quirk == "dead":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        answers: Any = await self.answered(body)
        if quirk in _TWISTS:
            answers = _TWISTS[quirk](body, answers)
        elif quirk in ANSWER_FAULTS:
            answers = ANSWER_FAULTS[quirk](body, answers)
        return web.json_response(answers)

    async def answered(self, body: Batch) -> Batch:
        """What the real node says."""
        async with self._session.post(self._upstream, json=body) as answer:
            found: Batch = await answer.json(content_type=None)
            return found

    def _refused(self, quirk: Quirk | None, body: Batch) -> web.Response | None:
        error = {"code": -32600, "message": "batch too large"}
        if quirk == "403":
            return web.Response(status=403, text="<!DOCTYPE html><title>Just a moment...</title>")
        if quirk == "429":
            headers = {"retry-after": str(RETRY_AFTER_S)}
            return web.Response(status=429, text="slow down", headers=headers)
        if quirk == "html":
            return web.Response(text="<html>maintenance</html>", content_type="text/html")
        if len(body) <= MAX_CALLS:
            return None
        if quirk == "413":
            return web.Response(status=413, text="Request Entity Too Large")
        if quirk == "one error for a large batch":
            return web.json_response({"jsonrpc": "2.0", "id": None, "error": error}, status=400)
        if quirk == "one answer to a large batch":
            return web.json_response([{"jsonrpc": "2.0", "id": body[0]["id"], "error": error}])
        return None


@contextlib.asynccontextmanager
async def pair(url: str) -> AsyncIterator[tuple[QuirkyNode, QuirkyNode]]:
    """Two in front of the same node."""
    async with QuirkyNode(url).running() as one, QuirkyNode(url).running() as other:
        assert isinstance(one, QuirkyNode)
        assert isinstance(other, QuirkyNode)
        yield one, other


async def run_check_at(ctx: Context, token: str, meter: Meter | None = None) -> tuple[str, str, str]:
    """What a check comes to: code, level and text."""
    evidence = await gather_evidence(ctx, Address(token), meter or Meter())
    verdict = judge(evidence, ctx.policy).verdict
    return verdict.code, verdict.level, verdict.text
