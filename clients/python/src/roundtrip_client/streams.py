"""The stream of events, over as many connections as it takes."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx2

from . import calls
from .bodies import MAX_LINE_BYTES
from .calls import Call, read_answer, request_id_of
from .errors import UnreadableAnswer
from .models import StreamEvent
from .retries import Retries

if TYPE_CHECKING:
    from .client import AsyncClient, Client

SILENT_S = 45.0
"""Three heartbeats of the service: a connection without any is dead."""
_PAUSE_S, MIN_PAUSE_S, MAX_PAUSE_S = 1.0, 0.5, 60.0
"""Between two connections: what the service asks for, within these bounds."""


class _Position:
    """Where a stream is. ``last_event_id``: store it to go on later, up to an hour, from another program."""

    def __init__(
        self, retries: Retries, tokens: Sequence[str], events: Sequence[str], last_event_id: str
    ) -> None:
        self.last_event_id = last_event_id
        self._tokens, self._events = tokens, events
        self._retries = retries
        self._pause_s = _PAUSE_S

    def _call(self) -> Call[StreamEvent]:
        return calls.stream(self._tokens, self._events, self.last_event_id)

    def _take(self, sent: httpx2.ServerSentEvent, response: httpx2.Response) -> StreamEvent | None:
        """The event; None for a heartbeat. From the first on the stream lives for as long as it is read."""
        self._retries = replace(self._retries, attempts=None)
        self.last_event_id = sent.id or self.last_event_id
        if sent.retry is not None:
            self._pause_s = min(max(sent.retry / 1000, MIN_PAUSE_S), MAX_PAUSE_S)
        return read_answer(StreamEvent, sent.data, request_id_of(response)) if sent.data else None


class EventStream(_Position):
    """Iterate over it. It connects again by itself, after the last event; where events are missing, one of
    kind ``gap`` says so. An event may come twice."""

    def __init__(
        self, client: "Client", tokens: Sequence[str], events: Sequence[str], last_event_id: str
    ) -> None:
        super().__init__(client.retries, tokens, events, last_event_id)
        self._client = client

    def __iter__(self) -> Iterator[StreamEvent]:
        while True:
            opened = self._client.open(self._call(), retries=self._retries, timeout_s=SILENT_S)
            with closing(opened) as response:
                try:
                    for sent in httpx2.EventSource(response, MAX_LINE_BYTES):
                        if event := self._take(sent, response):
                            yield event
                except httpx2.SSEError as error:
                    raise UnreadableAnswer(str(error), request_id_of(response)) from error
                except httpx2.TransportError:
                    pass
            self._client.sleep(self._pause_s)


class AsyncEventStream(_Position):
    """The same for asyncio."""

    def __init__(
        self, client: "AsyncClient", tokens: Sequence[str], events: Sequence[str], last_event_id: str
    ) -> None:
        super().__init__(client.retries, tokens, events, last_event_id)
        self._client = client

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        while True:
            response = await self._client.open(self._call(), retries=self._retries, timeout_s=SILENT_S)
            try:
                async for sent in httpx2.EventSource(response, MAX_LINE_BYTES):
                    if event := self._take(sent, response):
                        yield event
            except httpx2.SSEError as error:
                raise UnreadableAnswer(str(error), request_id_of(response)) from error
            except httpx2.TransportError:
                pass
            finally:
                await response.aclose()
            await self._client.sleep(self._pause_s)
