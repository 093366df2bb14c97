"""Decodes any log of the chain with the module that knows it."""

from collections.abc import Callable

from roundtrip.domain.base.events import Event
from roundtrip.domain.base.types import Address

from . import DECODERS
from .base import Contracts, Log


class Decoder:
    """Decodes the logs of one network. ``topics``: the first topics of every log that it may decode."""

    def __init__(self, contracts: Contracts) -> None:
        self._by_topic: dict[str, dict[Address | None, Callable[[Log], Event | None]]] = {}
        for emitter, topic, read in (row for file in DECODERS for row in file.decoders(contracts)):
            by_emitter = self._by_topic.setdefault(topic, {})
            assert emitter not in by_emitter, "read in two ways"
            by_emitter[emitter] = read
        self.topics = frozenset(self._by_topic)

    def __call__(self, log: Log) -> Event | None:
        """The log's event; None for a log that no module knows, and for one that does not fit its topic. A
        decoder of one emitter goes before that of any. Never raises."""
        topics = log.topics
        by_emitter = self._by_topic.get(topics[0]) if topics else None
        if by_emitter is None:
            return None
        read = by_emitter.get(log.address) or by_emitter.get(None)
        return None if read is None else read(log)
