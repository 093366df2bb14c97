"""The dependencies of a check alone: it needs a node, and no database. The steps of checks under way, for
people who wait for one."""

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from roundtrip.chain.rpc.client import RpcNode
from roundtrip.chain.simulate.rates import RateSource
from roundtrip.domain.base.policy import Policy
from roundtrip.venues.base import Contracts


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The dependencies of a check, apart from its head: what it takes to run the same check again."""

    chain_id: int
    contracts: Contracts
    node: RpcNode
    policy: Policy
    rates: RateSource


_OWN: ContextVar[list[str] | None] = ContextVar("check_steps", default=None)


class CheckSteps:
    """The steps that each running check of this process has done, by the key that equal checks share."""

    def __init__(self) -> None:
        self._running: dict[str, list[str]] = {}

    @contextlib.contextmanager
    def follow(self, key: str) -> Iterator[None]:
        """What the block notes are steps of the check ``key``."""
        steps: list[str] = []
        self._running[key] = steps
        outer = _OWN.set(steps)
        try:
            yield
        finally:
            _OWN.reset(outer)
            if self._running.get(key) is steps:
                del self._running[key]

    def find(self, key: str) -> Sequence[str] | None:
        """The steps of the check that runs now; they grow until it ends. None: none runs in this process."""
        return self._running.get(key)


def note_step(text: str) -> None:
    """Adds a step to the check that runs here, if somebody follows it. ``text``: nothing that strangers
    wrote."""
    steps = _OWN.get()
    if steps is not None:
        steps.append(text)
