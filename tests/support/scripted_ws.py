"""A websocket that tells what a test wants told, and a node whose newest block a test sets."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault
from support.loopback import on_loopback
from support.one_batch import OneBatchNode

HEADS_ID, LOGS_ID = "0xaaaa", "0xbbbb"
PATH = "/s3cr3t"
_WAIT_S = 10.0

Step = str | bytes
"""A frame, or "close": it closes well, or "abort": without a word."""


def block_hash(number: int, fork: str = "a") -> str:
    return "0x" + fork * 32 + f"{number:032x}"


def header(number: int, fork: str = "a", parent_fork: str | None = None) -> dict[str, str]:
    return {
        "number": hex(number),
        "hash": block_hash(number, fork),
        "parentHash": block_hash(number - 1, parent_fork or fork) if number else "0x" + "0" * 64,
    }


def _told(subscription: str, result: dict[str, Any]) -> str:
    params = {"subscription": subscription, "result": result}
    frame = {"jsonrpc": "2.0", "method": "eth_subscription", "params": params}
    return msgspec.json.encode(frame).decode()


def head_frame(number: int, fork: str = "a", parent_fork: str | None = None) -> str:
    return _told(HEADS_ID, header(number, fork, parent_fork))


def log_frame(number: int, removed: bool) -> str:
    return _told(LOGS_ID, {"blockNumber": hex(number), "logIndex": "0x0", "removed": removed})


class ScriptedWs:
    """Acknowledges subscriptions (``acks``), then plays what is ``put``, in order, to whoever is connected.
    ``connected``: how often somebody was. ``refuses``: kinds of subscriptions that it does not take."""

    def __init__(self) -> None:
        self.acks = True
        self.refuses: frozenset[str] = frozenset()
        self.connected = 0
        self.asked: list[list[Any]] = []
        self.url = ""
        self._steps: asyncio.Queue[Step] = asyncio.Queue()
        self._changed = asyncio.Condition()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["ScriptedWs"]:
        app = web.Application()
        app.router.add_get(PATH, self._serve)
        async with on_loopback(app, shutdown_timeout=0.1) as port:
            self.url = f"ws://127.0.0.1:{port}{PATH}"
            yield self

    def put(self, *steps: Step) -> None:
        """Told as soon as somebody listens."""
        for step in steps:
            self._steps.put_nowait(step)

    async def until_connected(self, times: int) -> None:
        """Waits until somebody has come so often."""
        async with asyncio.timeout(_WAIT_S), self._changed:
            await self._changed.wait_for(lambda: self.connected >= times)

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async with self._changed:
            self.connected += 1
            self._changed.notify_all()
        playing: asyncio.Task[None] | None = None
        try:
            async for message in socket:
                await self._answer(socket, msgspec.json.decode(message.data))
                if playing is None and self.acks:
                    playing = asyncio.create_task(self._play(socket, request))
        finally:
            if playing is not None:
                playing.cancel()
                with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                    await playing
        return socket

    async def _answer(self, socket: web.WebSocketResponse, asked: dict[str, Any]) -> None:
        self.asked.append(asked["params"])
        kind = asked["params"][0]
        if not self.acks:
            return
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        if kind in self.refuses:
            answer["error"] = {"code": -32601, "message": "no such subscription"}
        else:
            answer["result"] = HEADS_ID if kind == "newHeads" else LOGS_ID
        await socket.send_json(answer)

    async def _play(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        while True:
            step = await self._steps.get()
            if step == "close":
                await socket.close()
                return
            if step == "abort":
                assert request.transport is not None
                request.transport.abort()
                return
            if isinstance(step, bytes):
                await socket.send_bytes(step)
            else:
                await socket.send_str(step)


class ToldNode(OneBatchNode):
    """Whoever is asked for the newest block: ``head`` is what a test sets; None: it is dead. ``polls``: how
    often it was asked."""

    def __init__(self, head: dict[str, str] | None = None) -> None:
        self.head = head
        self.polls = 0
        self._polled = asyncio.Event()

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        assert [(call.method, list(call.params)) for call in calls] == [
            ("eth_getBlockByNumber", ["latest", False])
        ]
        assert not budgeted
        self.polls += 1
        self._polled.set()
        if self.head is None:
            raise NodeFault("the connection to the node failed")
        return [msgspec.Raw(msgspec.json.encode(self.head))]

    async def until_polled(self, more: int = 1) -> None:
        """Waits until it was asked so many times more."""
        wanted = self.polls + more
        async with asyncio.timeout(_WAIT_S):
            while self.polls < wanted:
                self._polled.clear()
                await self._polled.wait()


@contextlib.asynccontextmanager
async def scripted() -> AsyncIterator[tuple[ScriptedWs, aiohttp.ClientSession]]:
    """A scripted websocket and a session for whoever listens to it."""
    async with aiohttp.ClientSession() as session, ScriptedWs().running() as server:
        yield server, session
