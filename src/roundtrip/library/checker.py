"""The checker as a program uses it. Importing it is quick; opening it imports what a check needs."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from roundtrip.config.networks import ROBINHOOD, Network

if TYPE_CHECKING:
    from roundtrip.services.support.check_answer import Check

    from .node_checks import CheckWithCard, NodeChecks

A = TypeVar("A")
OnStep = Callable[[str], None]
TIMEOUT_S = 15.0


def _ignore_step(step: str) -> None:
    pass


class Checker:
    """Buys tokens and sells them straight back in simulations, over one node.

    ``rpc_url``: an http or https URL of a node that answers ``eth_simulateV1``. ``network``: the contracts to
    trust; ``roundtrip.config.networks.network_from`` reads them from a file. ``timeout_s``: for each request
    to the node. ``now_s`` and ``entropy``: the clock, seconds since 1970, and 32 unpredictable bytes. Open it
    with ``async with``; one open checker runs any number of checks, also at the same time."""

    def __init__(
        self,
        rpc_url: str,
        *,
        network: Network = ROBINHOOD,
        timeout_s: float = TIMEOUT_S,
        now_s: Callable[[], float] = time.time,
        entropy: Callable[[], bytes] = lambda: secrets.token_bytes(32),
    ) -> None:
        self._rpc_url, self._network, self._timeout_s = rpc_url, network, timeout_s
        self._now_s, self._entropy = now_s, entropy
        self._stack = AsyncExitStack()
        self._checks: NodeChecks | None = None

    async def __aenter__(self) -> "Checker":
        opened = import_module("roundtrip.library.node_checks").open_checks(
            self._rpc_url, self._network, self._timeout_s, self._now_s, self._entropy
        )
        self._checks = await self._stack.enter_async_context(opened)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._checks = None
        await self._stack.aclose()

    async def check(self, address: str, *, amount_eth: str | None = None, deep: bool = False) -> "Check":
        """The answer of ``GET /v1/check/{address}``, without what only an index knows. ``amount_eth``: the
        size of the buy, 0.001 to 10 eth; None: 0.1. ``deep``: also tries what the owner may call.

        Raises CallerFault: the address, the amount or the network is wrong. Raises NodeFault: the node gave
        no usable answer; that is no verdict."""
        return (await self.check_with_card(address, amount_eth=amount_eth, deep=deep)).answer

    async def check_with_card(
        self,
        address: str,
        *,
        amount_eth: str | None = None,
        deep: bool = False,
        on_step: OnStep = _ignore_step,
    ) -> "CheckWithCard":
        """The answer with its card. ``on_step``: called with what the check begins to do. Raises as
        ``check``."""
        if self._checks is None:
            raise RuntimeError("open the checker first: async with Checker(rpc_url) as checker")
        return await self._checks.run(address, amount_eth, deep, on_step)


class BlockingChecker:
    """A ``Checker`` for programs without asyncio: ``with BlockingChecker(rpc_url) as checker``. It takes what
    ``Checker`` takes, runs one check at a time, and belongs to one thread."""

    def __init__(self, rpc_url: str, *, network: Network = ROBINHOOD, timeout_s: float = TIMEOUT_S) -> None:
        self._checker = Checker(rpc_url, network=network, timeout_s=timeout_s)
        self._runner = asyncio.Runner()

    def __enter__(self) -> "BlockingChecker":
        self._run(self._checker.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._run(self._checker.__aexit__(kind, error, trace))
        finally:
            self._runner.close()

    def check(self, address: str, *, amount_eth: str | None = None, deep: bool = False) -> "Check":
        """As ``Checker.check``."""
        return self._run(self._checker.check(address, amount_eth=amount_eth, deep=deep))

    def _run(self, wait: Awaitable[A]) -> A:
        async def finish() -> A:
            return await wait

        return self._runner.run(finish())
