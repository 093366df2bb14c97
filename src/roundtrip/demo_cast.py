"""The demo's cast: a few mites with a history, so that what people do together has something to show.

Only of the local chain. A crowd comes there (``devnet/demo/crowd.py``), and mites of wallets that traded in
the chain's history do what people do, through the same use cases. Done again, nothing is added: each act
looks at what there is first.
"""

import asyncio
import hashlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import structlog

from roundtrip.devnet.demo.crowd import Crowd, visitor
from roundtrip.devnet.trading import actor_address
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.mite import MOST_TRIES, Mite, designation
from roundtrip.domain.types import parse_address
from roundtrip.services.accounts import accounts
from roundtrip.services.context import Context
from roundtrip.services.follow_wallet import follow_wallet
from roundtrip.services.index_answer import Nothing
from roundtrip.services.standing_rules import create_rule
from roundtrip.services.watch_answer import FollowParams, RuleParams
from roundtrip.services.winners import winners
from roundtrip.store import accounts as accounts_store
from roundtrip.store import chain

CAST = ("trader 2", "trader 10", "trader 11", "trader 12")
"""Whose mites they are: wallets that traded for nine days, each paid by another, and none by the funder of
the crowd's deployer."""
AGE_S = 9 * 86_400
_LOOK_S = 1.0
_PATIENCE_S = 300.0
_log = structlog.get_logger(__name__)


@dataclass
class Stage:
    """Where the cast acts. ``crowd``: the chain's side, which blocks its thread."""

    ctx: Context
    built: Built
    crowd: Crowd
    mites: dict[str, Mite] = field(default_factory=dict)

    def ago(self, seconds: float) -> Context:
        """The same context, its clock so long ago."""
        now_s = self.ctx.now_s
        return replace(self.ctx, now_s=lambda: now_s() - seconds)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Waits for what others do. Raises TimeoutError."""
        async with asyncio.timeout(_PATIENCE_S):
            while not await holds():  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)


async def run(ctx: Context, built: Built, rpc_url: str) -> None:
    """All acts, in order. What fails is logged, and ends it: the demo serves all the same."""
    over = threading.Event()
    try:
        with SyncRpc(rpc_url) as node:
            stage = Stage(ctx, built, Crowd(node, built, over))
            for name, act in ACTS:
                try:
                    await act(stage)
                except Exception:
                    _log.warning("the demo's cast stops", act=name, exc_info=True)
                    return
    finally:
        over.set()


async def _caught_up(stage: Stage) -> None:
    """The index has the chain as it was built."""

    async def is_there() -> bool:
        async with accounts(stage.ctx) as connection:
            stands = await chain.cursor(connection)
        return stands is not None and stands.block.timestamp_s >= stage.built.head_s

    await stage.until(is_there)


async def _join(stage: Stage) -> None:
    """They became mites nine days ago. Nobody has their keys."""
    ctx = stage.ago(AGE_S)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    for name in CAST:
        wallet = parse_address(actor_address(name))
        async with accounts(ctx) as connection:
            found = await accounts_store.locked(connection, wallet, _designations(name), now)
        stage.mites[name] = found.mite


def _designations(name: str) -> Iterator[str]:
    """The same in each demo."""
    for tries in range(MOST_TRIES):
        yield designation(hashlib.sha256(f"roundtrip cast: {name} {tries}".encode()).digest(), tries)


async def _watch(stage: Stage) -> None:
    """They follow who will win, and have a rule."""
    token = stage.crowd.places.crowded.token
    for mite in stage.mites.values():
        for number in range(2):
            wanted = FollowParams(address=visitor(number), name=f"Visitor{number}")
            await follow_wallet(stage.ctx, wanted, mite)
        await create_rule(stage.ctx, RuleParams(rule=f"any buying over 0.05 eth on {token}"), mite)


async def _crowd(stage: Stage) -> None:
    """Visitors come, and some of them win."""
    if not await asyncio.to_thread(stage.crowd.has_come):
        await asyncio.to_thread(stage.crowd.come)


async def _fair(stage: Stage) -> None:
    """The index counted them: their token is fair from here on."""

    async def is_counted() -> bool:
        return bool((await winners(stage.ctx, Nothing())).answer.rows)

    await stage.until(is_counted)


async def _practise(stage: Stage) -> None:
    """PART TO COME: each mite buys ``crowded`` and sells it in three parts, by ``practice_buy`` and
    ``practice_sell`` with an idempotency key of the cast, one of them as an agent (``mark_as_agent``)."""


async def _mark(stage: Stage) -> None:
    """PART TO COME: three of them and more give visitor 0 the same name and mark, by ``mark_wallet``."""


async def _flag(stage: Stage) -> None:
    """PART TO COME: one flags ``left`` as drains, and another ``crowded`` as runs, by ``flag_token``: the
    first is proved when the deployer leaves, the second stays open."""


async def _deployer_leaves(stage: Stage) -> None:
    """A deployer sells all he bought of a token."""
    await asyncio.to_thread(stage.crowd.deployer_leaves)


ACTS: tuple[tuple[str, Callable[[Stage], Awaitable[None]]], ...] = (
    ("caught up", _caught_up),
    ("join", _join),
    ("watch", _watch),
    ("crowd", _crowd),
    ("flag", _flag),
    ("deployer leaves", _deployer_leaves),
    ("fair", _fair),
    ("practise", _practise),
    ("mark", _mark),
)
"""What happens, in order. Flags come before what proves them, practice after its token is fair."""
