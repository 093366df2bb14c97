"""Cold checks of one checkout, with a node's answers replayed: ``bench.check --replay`` runs it for each.

    python -m bench.replayed_check URL CONTRACTS NOW

Reads lines of standard input, and writes a line of JSON for each. ``check TOKEN``: one cold check, with the
same seed and clock (``NOW``) each time, so that it sends the same bytes; its processor time, its answer, and
how many of its trips had not been recorded. Those are asked of the node, and recorded. ``turn TOKEN``: the
longest that another one held the event loop. ``bodies TOKEN``: what the last check sent. It imports nothing
but what checkouts since 418f632e have under the same names.
"""

import asyncio
import hashlib
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from roundtrip.app.build import open_context
from roundtrip.chain.rpc.client import Node
from roundtrip.config.networks import contracts_from
from roundtrip.config.settings import Settings
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.postgres import EmbeddedPostgres

_IDLE_POLL_MS = 60_000
"""So that following the head takes no part of the time."""


@dataclass(slots=True)
class ReplayingNode(Node):
    """Answers a body that it has sent before from memory. ``sent``: the bodies of one check."""

    recorded: dict[bytes, bytes] = field(default_factory=dict)
    sent: list[bytes] = field(default_factory=list)
    missed: int = 0

    async def _post(self, body: bytes, timeout_s: float) -> bytes:
        self.sent.append(body)
        if body not in self.recorded:
            self.missed += 1
            self.recorded[body] = await Node._post(self, body, timeout_s)
        return self.recorded[body]


async def _check(ctx: Context, token: str) -> dict[str, Any]:
    assert isinstance(ctx.node, ReplayingNode)
    ctx.node.sent.clear()
    ctx.node.missed = 0
    began_s = time.process_time()
    answered = await check(ctx, CheckParams(token))
    spent_ms = (time.process_time() - began_s) * 1000
    return {"ms": spent_ms, "missed": ctx.node.missed, "answer": msgspec.to_builtins(answered.answer)}


async def _measure_turn(ctx: Context, token: str) -> dict[str, float]:
    """The longest turn of the event loop during a check, by the thread's processor time."""
    longest_s, check = 0.0, asyncio.create_task(_check(ctx, token))
    while not check.done():
        began_s = time.thread_time()
        await asyncio.sleep(0)
        longest_s = max(longest_s, time.thread_time() - began_s)
    return {"turn_ms": longest_s * 1000}


async def _serve(url: str, contracts: dict[str, str], now_s: float) -> None:
    settings = Settings(poll_ms=_IDLE_POLL_MS)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            EmbeddedPostgres(Path(folder)) as server,
            open_context(settings, url, contracts_from(contracts), server.dsn) as ctx,
        ):
            assert isinstance(ctx.node, Node)
            node = ReplayingNode(ctx.node.url, ctx.node.session)
            seed = hashlib.sha256(b"replay").digest()
            steady = replace(ctx, node=node, entropy=lambda: seed, now_s=lambda: now_s)
            print("ready", flush=True)
            while line := await asyncio.to_thread(sys.stdin.readline):
                what, token = line.split()
                if what == "check":
                    print(json.dumps(await _check(steady, token)), flush=True)
                elif what == "turn":
                    print(json.dumps(await _measure_turn(steady, token)), flush=True)
                else:
                    print(json.dumps([body.decode() for body in node.sent]), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(sys.argv[1], json.loads(sys.argv[2]), float(sys.argv[3])))
