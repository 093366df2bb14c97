"""Walks the tour over a running service: gets a key for a signature, and calls a tool in every step."""

import asyncio
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from roundtrip.api.operations.operation import AnyOperation
from roundtrip.domain.base.errors import CannotRun
from roundtrip_development.devnet.demo.wallet import DemoWallet

from .steps import Answer, Arguments, TourGround, TourStep, steps

PATIENCE_S = 100.0
"""How long a step that only reads may have nothing to show, because the demo has just started."""
_AGAIN_S = 1.0
_TIMEOUT = aiohttp.ClientTimeout(total=60)


class NothingToShow(CannotRun):
    """A step failed, or had nothing to show in time."""


@dataclass(frozen=True, slots=True)
class WalkedStep:
    """The result of a step. ``text``: the answer's sentences, or its verdict's."""

    step: TourStep
    tool: AnyOperation
    arguments: Arguments
    text: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class ServiceUrls:
    """``url``: of the service; ``rpc_url``: of the local chain's node."""

    url: str
    rpc_url: str


async def walk(
    urls: ServiceUrls,
    wallet: DemoWallet,
    ground: TourGround,
    report: Callable[[str], None],
    patience_s: float = PATIENCE_S,
) -> tuple[list[WalkedStep], str]:
    """The results of all steps, and the key that was used. Raises NothingToShow, aiohttp.ClientError, and
    what sending raises."""
    results: list[WalkedStep] = []
    async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
        key = await _key(session, urls.url, wallet)
        for step, tool in steps():
            report(step.tool)
            result = await _take_step(_Caller(session, urls.url, key), step, tool, ground, patience_s)
            ground.answers[step.tool] = result.answer
            results.append(result)
            if step.is_sent:
                send = functools.partial(wallet.send, urls.rpc_url, result.answer["steps"])
                await asyncio.to_thread(send)
    return results, key


def has_something(step: TourStep, answer: Answer) -> bool:
    """Whether the field that the step shows is not empty."""
    value: Any = answer
    for name in step.shows.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value not in (None, [], {}, "")


def read_sentences(answer: Answer) -> str:
    """The sentences of an answer: its text, or its verdict's; empty: it has none."""
    return str(answer.get("text") or answer.get("verdict", {}).get("text", ""))


def request(tool: str, arguments: Arguments) -> dict[str, Any]:
    """The body of the call."""
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


async def _key(session: aiohttp.ClientSession, url: str, wallet: DemoWallet) -> str:
    challenge = await _post(session, f"{url}/v1/keys/nonce", {"address": wallet.address})
    signature = wallet.sign_text(challenge["message"])
    issued = await _post(
        session, f"{url}/v1/keys", {"address": wallet.address, "signature": signature, "label": "tour"}
    )
    return str(issued["key"])


async def _post(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> Answer:
    async with session.post(url, json=body) as response:
        answer: Answer = msgspec.json.decode(await response.read())
    if response.status != 200:
        raise NothingToShow(f"{url} answered {response.status}: {answer['error']['message']}")
    return answer


@dataclass(frozen=True, slots=True)
class _Caller:
    session: aiohttp.ClientSession
    url: str
    key: str

    async def call(self, tool: AnyOperation, arguments: Arguments) -> tuple[str | None, Answer]:
        """The error (None: there is none), and the answer."""
        headers = {"x-api-key": self.key} if tool.key else {}
        async with self.session.post(
            f"{self.url}/mcp", json=request(tool.name, arguments), headers=headers
        ) as response:
            result = msgspec.json.decode(await response.read())["result"]
        text = str(result["content"][0]["text"])
        if result["isError"]:
            return text, {}
        return None, result["structuredContent"]


async def _take_step(
    caller: _Caller, step: TourStep, tool: AnyOperation, ground: TourGround, patience_s: float
) -> WalkedStep:
    """A step's answer; repeats a call that has nothing to show yet. A tool that writes is only repeated while
    the service is busy."""
    arguments, until_s = step.arguments(ground), time.monotonic() + patience_s
    while True:
        error, answer = await caller.call(tool, arguments)
        if error is None and has_something(step, answer):
            return WalkedStep(step, tool, arguments, read_sentences(answer), answer)
        is_busy = error is not None and error.startswith(("rate_limited", "busy"))
        if (tool.writes and not is_busy) or time.monotonic() > until_s:
            raise NothingToShow(f"{step.tool}: {error or f'nothing in {step.shows}'}")
        await asyncio.sleep(_AGAIN_S)
