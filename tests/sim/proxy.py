"""The node as the sync sees it: late, cut off, refusing, lying, or telling of blocks that are no more."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import aiohttp
from aiohttp import web

from sim.lies import LIES, Batch

MAX_LATE_S = 0.2
HANGS_S = 2.0
STALLS = "stalls"
"""Every request is taken, and none answered."""
_KEPT_ANSWERS = 4
_WIRE = ("late", "hangs", "closed", "cut off", "status 500", "status 429", "no json")
_OLD = ("an old answer", "all old answers", "another request's answers")
_KINDS = (*("late",) * 3, *_WIRE, *_OLD, *LIES)


class Proxy:
    """Stands before the node at ``upstream``. ``rate``: the share of requests that a fault is drawn for, from
    0 to 1. Which one comes next is ``rng``'s to say, and no clock's."""

    def __init__(self, upstream: str, rng: Random) -> None:
        self._upstream, self._rng = upstream, rng
        self.rate = 0.0
        self.always: str | None = None
        self.url = ""
        self.requests = 0
        self.put_in: Counter[str] = Counter()
        """Faults so far, by name."""
        self._known: dict[str, list[Any]] = {}
        self._last: list[Any] = []
        self._came = asyncio.Condition()

    @property
    def faults(self) -> int:
        """How many so far."""
        return sum(self.put_in.values())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        """Listens on a free port of the loopback."""
        async with aiohttp.ClientSession() as self._session:
            app = web.Application(client_max_size=64 * 2**20)
            app.router.add_post("/", self._serve)
            runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
                yield self
            finally:
                await runner.cleanup()

    async def more(self, requests: int, limit_s: float) -> bool:
        """Waits until so many more requests have come; False when they have not within the limit."""
        wanted = self.requests + requests
        async with self._came:
            try:
                await asyncio.wait_for(self._came.wait_for(lambda: self.requests >= wanted), limit_s)
            except TimeoutError:
                return False
        return True

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        calls = json.loads(body)
        async with self._came:
            self.requests += 1
            self._came.notify_all()
        fault = self.always or (self._rng.choice(_KINDS) if self._rng.random() < self.rate else None)
        if fault in (*_WIRE, STALLS) and (refused := await self._on_the_wire(fault, request)) is not None:
            return refused
        async with self._session.post(
            self._upstream, data=body, headers={"content-type": "application/json"}
        ) as answer:
            answers = json.loads(await answer.read())
        if isinstance(calls, list) and isinstance(answers, list):
            answers = self._wrong(fault, calls, answers)
        return web.json_response(answers)

    async def _on_the_wire(self, fault: str, request: web.Request) -> web.StreamResponse | None:
        """None: the request goes on, late."""
        self.put_in[fault] += 1
        if fault == STALLS:
            await asyncio.get_running_loop().create_future()
        if fault in ("late", "hangs"):
            await asyncio.sleep(HANGS_S if fault == "hangs" else self._rng.uniform(0.01, MAX_LATE_S))
            return None
        if fault.startswith("status"):
            return web.Response(status=int(fault[-3:]), text="not now")
        if fault == "no json":
            return web.Response(body=b"\xff\x00<html>", content_type="text/html")
        if fault == "cut off":
            response = web.StreamResponse(headers={"content-type": "application/json"})
            await response.prepare(request)
            await response.write(b'[{"jsonrpc":"2.0","id":0,"result":"0x')
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    def _wrong(self, fault: str | None, calls: Batch, answers: Batch) -> Any:
        """The answers with a fault in them, where one was drawn that applies here; the right ones are kept
        for later, when they will be old."""
        wrong: Any = None
        if fault in LIES:
            wrong = LIES[fault](self._rng, calls, answers)
        elif fault in _OLD:
            wrong = self._old(fault, calls, answers)
        self._keep(calls, answers)
        if wrong is None or wrong == answers:
            return answers
        assert fault is not None
        self.put_in[fault] += 1
        return wrong

    def _old(self, fault: str, calls: Batch, answers: Batch) -> Batch | None:
        """Answers that were right once: those of another request, or those from before a fork."""
        if fault == "another request's answers":
            results = self._last
            return [
                {**one, "result": result} for one, result in zip(answers, results, strict=False)
            ] + answers[len(results) :]
        by_id = {call["id"]: call for call in calls}
        places = [
            place
            for place, answer in enumerate(answers)
            if any(old != answer.get("result") for old in self._known.get(_key(by_id[answer["id"]]), ()))
        ]
        if not places:
            return None
        if fault == "an old answer":
            places = [self._rng.choice(places)]
        changed = list(answers)
        for place in places:
            olds = self._known[_key(by_id[answers[place]["id"]])]
            result = self._rng.choice([old for old in olds if old != answers[place].get("result")])
            changed[place] = {**answers[place], "result": result}
        return changed

    def _keep(self, calls: Batch, answers: Batch) -> None:
        by_id = {call["id"]: call for call in calls}
        self._last = [answer.get("result") for answer in answers]
        for answer in answers:
            if answer.get("result") is not None:
                kept = self._known.setdefault(_key(by_id[answer["id"]]), [])
                if answer["result"] not in kept:
                    kept.append(answer["result"])
                    del kept[:-_KEPT_ANSWERS]


def _key(call: dict[str, Any]) -> str:
    return json.dumps([call["method"], call["params"]], sort_keys=True)
