"""Both Python clients in one shape, over answers that a test scripts."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

import httpx2

from roundtrip_client import AsyncClient, Client, Retries, models
from roundtrip_client.calls import Call
from support.documents import PROJECT

T = TypeVar("T")
DOCUMENT = json.loads((PROJECT / "docs" / "openapi.json").read_text())
KEY = "rt_key"


def example_of(path: str, method: str = "get") -> Any:
    """The document's example of an answer."""
    content, *_ = DOCUMENT["paths"][path][method]["responses"]["200"]["content"].values()
    return content["example"]


CHECK = example_of("/v1/check/{address}")


@dataclass(frozen=True)
class ClientStep:
    """What the service does with one request. ``cut``: the connection ends within the answer."""

    status: int
    parts: Sequence[str]
    headers: Mapping[str, str]
    cut: bool = False

    def response(self) -> httpx2.Response:
        return httpx2.Response(self.status, headers=self.headers, stream=_Pieces(self.parts, self.cut))


def answer(body: object = CHECK, status: int = 200, **headers: str) -> ClientStep:
    return text_answer(json.dumps(body), status, **headers)


def text_answer(text: str, status: int = 200, **headers: str) -> ClientStep:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ClientStep(status, [text], {"x-request-id": "r" * 8, **named})


def refusal(status: int, code: str, **headers: str) -> ClientStep:
    return answer({"error": {"code": code, "message": "why"}}, status, **headers)


def lines(*parts: str, cut: bool = False) -> ClientStep:
    """NDJSON, in pieces as they come."""
    return ClientStep(200, parts, {"content-type": "application/x-ndjson"}, cut)


def events(*parts: str, cut: bool = False) -> ClientStep:
    """Server-sent events, in pieces as they come."""
    return ClientStep(200, parts, {"content-type": "text/event-stream"}, cut)


class _Pieces(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    def __init__(self, parts: Sequence[str], cut: bool) -> None:
        self._parts, self._cut = parts, cut

    def __iter__(self) -> Iterator[bytes]:
        yield from (part.encode() for part in self._parts)
        if self._cut:
            raise httpx2.ReadError("cut")

    async def __aiter__(self) -> Any:
        for part in self:
            yield part


@dataclass
class ScriptedClient:
    """One of the clients. ``steps``: answers or failures, in turn. ``asked``: its requests; ``slept``: its
    waits in seconds."""

    is_async: bool
    steps: list[ClientStep | Exception]
    retries: Retries = Retries()  # noqa: RUF009
    asked: list[httpx2.Request] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def send(self, call: Call[T]) -> T:
        if not self.is_async:
            with self._client() as client:
                return client.send(call)

        async def send() -> T:
            async with self._async_client() as client:
                return await client.send(call)

        return asyncio.run(send())

    def method(self, name: str, *args: Any) -> Any:
        if not self.is_async:
            with self._client() as client:
                return getattr(client, name)(*args)

        async def run() -> Any:
            async with self._async_client() as client:
                return await getattr(client, name)(*args)

        return asyncio.run(run())

    def checks(self, addresses: Sequence[str], into: list[models.CheckLine]) -> None:
        self._read(lambda client: client.checks(addresses), None, into)

    def stream(
        self, count: int, last_event_id: str = "", **only: Sequence[str]
    ) -> tuple[list[models.StreamEvent], str]:
        """So many events, and the position after them."""
        found: list[models.StreamEvent] = []
        streams: list[Any] = []

        def opened(client: Any) -> Any:
            streams.append(client.stream(**only, last_event_id=last_event_id))
            return streams[0]

        self._read(opened, count, found)
        return found, streams[0].last_event_id

    def _read(self, opened: Callable[[Any], Any], count: int | None, into: list[Any]) -> None:
        if not self.is_async:
            with self._client() as client:
                into.extend(islice(opened(client), count))
            return

        async def read() -> None:
            async with self._async_client() as client:
                async for item in opened(client):
                    into.append(item)
                    if len(into) == count:
                        return

        asyncio.run(read())

    def _client(self) -> Client:
        return Client(
            "http://service/", KEY, retries=self.retries, transport=httpx2.MockTransport(self._answer),
            sleep=self.slept.append, random=lambda: 1.0,
        )  # fmt: skip

    def _async_client(self) -> AsyncClient:
        async def sleep(wait_s: float) -> None:
            self.slept.append(wait_s)

        return AsyncClient(
            "http://service/", KEY, retries=self.retries, transport=httpx2.MockTransport(self._answer),
            sleep=sleep, random=lambda: 1.0,
        )  # fmt: skip

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step.response()
