"""The clients: one that blocks, and one for asyncio. They differ in waiting only."""

import asyncio
import functools
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, closing
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2
import msgspec

from . import calls, models
from .bodies import Lines, aread_body, read_body
from .calls import Call, read_answer, read_error, request_id_of
from .errors import ClientError, ConnectionFailed
from .retries import Attempts, Retries
from .streams import AsyncEventStream, EventStream

P = ParamSpec("P")
T = TypeVar("T")
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
NAME = "roundtrip-client/0.1.0"
_DEFAULT_RETRIES = Retries()


def _blocking(build: Callable[P, Call[T]]) -> "Callable[Concatenate[Client, P], T]":
    """A method that sends the call and waits for its answer."""

    def method(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client.send(build(*args, **kwargs))

    functools.update_wrapper(method, build)
    return method


def _awaited(build: Callable[P, Call[T]]) -> "Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]":
    """The same to await."""

    async def method(client: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await client.send(build(*args, **kwargs))

    functools.update_wrapper(method, build)
    return method


class _Settings:
    """What both clients know. ``timeout_s``: to connect, and for a silence within an answer."""

    def __init__(self, base_url: str, key: str | None, retries: Retries, timeout_s: float) -> None:
        self.retries = retries
        self.timeout_s = timeout_s
        self._base_url = base_url.rstrip("/")
        self._headers = {"user-agent": NAME} | ({"authorization": f"Bearer {key}"} if key else {})

    def _build(
        self, http: httpx2.Client | httpx2.AsyncClient, call: Call[T], timeout_s: float | None
    ) -> httpx2.Request:
        headers, content = {**self._headers, **call.headers}, None
        if call.body is not None:
            headers["content-type"], content = "application/json", msgspec.json.encode(call.body)
        return http.build_request(
            call.method,
            self._base_url + call.path,
            params=call.query,
            headers=headers,
            content=content,
            timeout=timeout_s or self.timeout_s,
        )


class Client(_Settings):
    """Calls the service and blocks until it answered. Every method raises ServiceError, ConnectionFailed or
    UnreadableAnswer. ``key``: from make_key; ``transport``, ``sleep`` and ``random`` are for tests."""

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        retries: Retries = _DEFAULT_RETRIES,
        timeout_s: float = 60.0,
        transport: httpx2.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(base_url, key, retries, timeout_s)
        self._http = httpx2.Client(transport=transport)
        self.sleep, self._random = sleep, random

    check = _blocking(calls.check)
    proof = _blocking(calls.proof)
    history = _blocking(calls.history)
    holders = _blocking(calls.holders)
    liquidity = _blocking(calls.liquidity)
    unlocks = _blocking(calls.unlocks)
    simulate = _blocking(calls.simulate)
    prepare_buy = _blocking(calls.prepare_buy)
    prepare_sell = _blocking(calls.prepare_sell)
    key_text = _blocking(calls.key_text)
    make_key = _blocking(calls.make_key)
    keys = _blocking(calls.keys)
    revoke_key = _blocking(calls.revoke_key)
    credits = _blocking(calls.credits)
    redeem_payment = _blocking(calls.redeem_payment)
    health = _blocking(calls.health)

    def send(self, call: Call[T]) -> T:
        """The answer to any call whose answer is one JSON object."""
        response, body = self._exchange(call, False)
        return read_answer(call.answer, body, request_id_of(response))

    def checks(self, addresses: Sequence[str]) -> Iterator[models.CheckLine]:
        """Checks up to 50 tokens and gives each line once it is there. A line has a check or an error."""
        call = calls.checks(addresses)
        with closing(self.open(call)) as response:
            lines = Lines(response)
            try:
                for chunk in response.iter_bytes():
                    for line in lines.feed(chunk):
                        yield read_answer(call.answer, line, request_id_of(response))
                for line in lines.end():
                    yield read_answer(call.answer, line, request_id_of(response))
            except httpx2.TransportError as error:
                raise ConnectionFailed(f"the answer was cut: {error!r}") from error

    def stream(
        self, tokens: Sequence[str] = (), events: Sequence[str] = (), last_event_id: str = ""
    ) -> EventStream:
        """Events to iterate over, without end. Needs a key. Nothing named: all tokens, all kinds."""
        return EventStream(self, tokens, events, last_event_id)

    def open(
        self, call: Call[T], *, retries: Retries | None = None, timeout_s: float | None = None
    ) -> httpx2.Response:
        """The first answer that is no error. Its body is not read yet; the caller closes it."""
        return self._exchange(call, True, retries, timeout_s)[0]

    def _exchange(
        self, call: Call[T], stream: bool, retries: Retries | None = None, timeout_s: float | None = None
    ) -> tuple[httpx2.Response, bytes]:
        """The first answer that is no error, and its body, unless that is left to ``stream``."""
        attempts = Attempts(retries or self.retries, call.repeatable, self._random)
        while True:
            failure: ClientError
            was_sent = True
            try:
                response = self._http.send(self._build(self._http, call, timeout_s), stream=True)
                if stream and response.is_success:
                    return response, b""
                with closing(response):
                    body = read_body(response)
                if response.is_success:
                    return response, body
                failure = read_error(response, body, time.time())
            except httpx2.TransportError as error:
                failure = ConnectionFailed(f"no answer: {error!r}")
                was_sent = not isinstance(error, NEVER_SENT)
            self.sleep(attempts.wait_s(failure, was_sent))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(_Settings):
    """The same for asyncio."""

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        retries: Retries = _DEFAULT_RETRIES,
        timeout_s: float = 60.0,
        transport: httpx2.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(base_url, key, retries, timeout_s)
        self._http = httpx2.AsyncClient(transport=transport)
        self.sleep, self._random = sleep, random

    check = _awaited(calls.check)
    proof = _awaited(calls.proof)
    history = _awaited(calls.history)
    holders = _awaited(calls.holders)
    liquidity = _awaited(calls.liquidity)
    unlocks = _awaited(calls.unlocks)
    simulate = _awaited(calls.simulate)
    prepare_buy = _awaited(calls.prepare_buy)
    prepare_sell = _awaited(calls.prepare_sell)
    key_text = _awaited(calls.key_text)
    make_key = _awaited(calls.make_key)
    keys = _awaited(calls.keys)
    revoke_key = _awaited(calls.revoke_key)
    credits = _awaited(calls.credits)
    redeem_payment = _awaited(calls.redeem_payment)
    health = _awaited(calls.health)

    async def send(self, call: Call[T]) -> T:
        """As of Client."""
        response, body = await self._exchange(call, False)
        return read_answer(call.answer, body, request_id_of(response))

    async def checks(self, addresses: Sequence[str]) -> AsyncIterator[models.CheckLine]:
        """As of Client."""
        call = calls.checks(addresses)
        response = await self.open(call)
        lines = Lines(response)
        try:
            async for chunk in response.aiter_bytes():
                for line in lines.feed(chunk):
                    yield read_answer(call.answer, line, request_id_of(response))
            for line in lines.end():
                yield read_answer(call.answer, line, request_id_of(response))
        except httpx2.TransportError as error:
            raise ConnectionFailed(f"the answer was cut: {error!r}") from error
        finally:
            await response.aclose()

    def stream(
        self, tokens: Sequence[str] = (), events: Sequence[str] = (), last_event_id: str = ""
    ) -> AsyncEventStream:
        """As of Client."""
        return AsyncEventStream(self, tokens, events, last_event_id)

    async def open(
        self, call: Call[T], *, retries: Retries | None = None, timeout_s: float | None = None
    ) -> httpx2.Response:
        """As of Client."""
        return (await self._exchange(call, True, retries, timeout_s))[0]

    async def _exchange(
        self, call: Call[T], stream: bool, retries: Retries | None = None, timeout_s: float | None = None
    ) -> tuple[httpx2.Response, bytes]:
        attempts = Attempts(retries or self.retries, call.repeatable, self._random)
        while True:
            failure: ClientError
            was_sent = True
            try:
                response = await self._http.send(self._build(self._http, call, timeout_s), stream=True)
                if stream and response.is_success:
                    return response, b""
                async with aclosing(response):
                    body = await aread_body(response)
                if response.is_success:
                    return response, body
                failure = read_error(response, body, time.time())
            except httpx2.TransportError as error:
                failure = ConnectionFailed(f"no answer: {error!r}")
                was_sent = not isinstance(error, NEVER_SENT)
            await self.sleep(attempts.wait_s(failure, was_sent))

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
