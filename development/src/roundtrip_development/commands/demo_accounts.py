"""The demo's cast: a few accounts with a history, so that community features have something to show.

Only on the local chain. A crowd trades there (``devnet/demo/crowd.py``), and accounts of wallets from the
chain's history act through the use cases. Repeating it adds nothing: each act first looks at what exists.
"""

import asyncio
import contextlib
import hashlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import structlog

from roundtrip.domain.accounts.account import MAX_TRIES, Account, designation
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import parse_address
from roundtrip.domain.community.flag_calls import WEEK_S
from roundtrip.domain.community.marks import OLD
from roundtrip.domain.practice.practice import monday_s
from roundtrip.services.boards.winners import winners
from roundtrip.services.community.flag_token import FlagParams, flag_token
from roundtrip.services.community.mark_wallet import MarkParams, mark_wallet
from roundtrip.services.community.proven_flags import ProvenParams, proven_calls
from roundtrip.services.practice.buy import practice_buy
from roundtrip.services.practice.league import AgentParams, mark_as_agent
from roundtrip.services.practice.schema import PracticeBuyParams, PracticeSellParams
from roundtrip.services.practice.sell import practice_sell
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing, accounts
from roundtrip.services.watch.rules import FollowParams, RuleParams, create_rule, follow_wallet
from roundtrip.store.accounts import accounts as accounts_store
from roundtrip.store.community import flags, public_names
from roundtrip.store.index import cursor, tokens
from roundtrip.store.wallets import wallets
from roundtrip.store.watch import alert_cursor
from roundtrip_development.devnet.actors import DUMPER
from roundtrip_development.devnet.demo.crowd import DemoCrowd, visitor
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.trading import actor_address
from roundtrip_development.devnet.world import Built

CAST = ("trader 2", "trader 10", "trader 11", "trader 12")
"""The actors whose wallets are the accounts': they traded for nine days, each has another funder, and none
shares one with the crowd's deployer."""
AGE_S = 9 * 86_400
_LOOK_S = 1.0
_PATIENCE_S = 300.0
_log = structlog.get_logger(__name__)


@dataclass
class DemoStage:
    """The service and chain on which the cast acts. ``crowd``: acts on the chain, and blocks its thread."""

    ctx: Context
    built: Built
    crowd: DemoCrowd
    accounts: dict[str, Account] = field(default_factory=dict)

    def shift_clock(self, seconds: float) -> Context:
        """The context with its clock set back."""
        now_s = self.ctx.now_s
        return replace(self.ctx, now_s=lambda: now_s() - seconds)

    async def wait_until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Waits until a condition holds. Raises TimeoutError."""
        async with asyncio.timeout(_PATIENCE_S):
            while not await condition():  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)


async def run(ctx: Context, built: Built, rpc_url: str) -> None:
    """Runs all acts, in order. A failure is logged and ends the cast; the demo goes on serving."""
    is_over = threading.Event()
    try:
        with SyncRpc(rpc_url) as node:
            stage = DemoStage(ctx, built, DemoCrowd(node, built, is_over))
            for name, act in ACTS:
                try:
                    await act(stage)
                except Exception:
                    _log.warning("the demo's cast stops", act=name, exc_info=True)
                    return
    finally:
        is_over.set()


async def _await_index(stage: DemoStage) -> None:
    """Waits until the index has reached the end of the built chain."""

    async def is_there() -> bool:
        async with accounts(stage.ctx) as connection:
            index_cursor = await cursor.cursor(connection)
        return index_cursor is not None and index_cursor.block.timestamp_s >= stage.built.head_s

    await stage.wait_until(is_there)


async def _join(stage: DemoStage) -> None:
    """Creates the accounts, nine days ago and without keys."""
    ctx = stage.shift_clock(AGE_S)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    for name in CAST:
        wallet = parse_address(actor_address(name))
        async with accounts(ctx) as connection:
            locked = await accounts_store.lock_account(connection, wallet, _designations(name), now)
        stage.accounts[name] = locked.account


def _designations(name: str) -> Iterator[str]:
    """Candidate designations, the same in each demo."""
    for tries in range(MAX_TRIES):
        yield designation(hashlib.sha256(f"roundtrip cast: {name} {tries}".encode()).digest(), tries)


async def _watch(stage: DemoStage) -> None:
    """They follow the coming winners, and set a rule."""
    token = stage.crowd.tokens.crowded.token
    for account in stage.accounts.values():
        for index in range(2):
            params = FollowParams(address=visitor(index), name=f"Visitor{index}")
            await follow_wallet(stage.ctx, params, account)
        await create_rule(stage.ctx, RuleParams(rule=f"any buying over 0.05 eth on {token}"), account)


async def _run_crowd(stage: DemoStage) -> None:
    """Visitors trade, and some of them win."""
    if not await asyncio.to_thread(stage.crowd.has_run):
        await asyncio.to_thread(stage.crowd.run_crowd)


async def _await_fair_token(stage: DemoStage) -> None:
    """Waits until the index has counted the visitors, which makes their token fair."""

    async def is_counted() -> bool:
        return bool((await winners(stage.ctx, Nothing())).answer.rows)

    await stage.wait_until(is_counted)


async def _flag(stage: DemoStage) -> None:
    """One account flagged a launch in the past as one whose deployer sells: the chain's history proves it at
    once."""
    wallet = parse_address(actor_address(DUMPER))
    async with accounts(stage.ctx) as connection:
        index_cursor = await cursor.cursor(connection)
        assert index_cursor is not None
        launches = await wallets.launches(connection, await tokens.id_of(connection, wallet) or 0)
        launch = next(
            candidate
            for candidate in launches
            if candidate.bought_raw and 2 * candidate.sold_raw >= candidate.bought_raw
        )
        token = (await tokens.labels(connection, [launch.token_id]))[launch.token_id].address
        place = await alert_cursor.block_before(connection, launch.at_s)
    calls = (await proven_calls(stage.ctx, ProvenParams(token))).answer
    if calls.rows or calls.waiting:
        return
    # The launch's own second contains the deployer's buy.
    at_s = launch.at_s + 1
    ago_s = index_cursor.block.timestamp_s - at_s
    now = datetime.fromtimestamp(stage.shift_clock(ago_s).now_s(), UTC)
    basis = flags.FlagBasis(deployer_raw=launch.bought_raw)
    flag = flags.NewFlag(token, "drains", at_s, place.number, at_s + WEEK_S, basis)
    async with accounts(stage.ctx) as connection:
        await flags.add(connection, stage.accounts[CAST[0]].id, flag, None, now, now)


async def _practise(stage: DemoStage) -> None:
    """They buy before the crowd does."""
    for name, account in stage.accounts.items():
        params = PracticeBuyParams(stage.crowd.tokens.crowded.token, "0.3")
        await practice_buy(stage.ctx, params, account, _weekly_key(stage, f"{name} buys"))
    await mark_as_agent(stage.ctx, AgentParams(name="Early bird"), stage.accounts[CAST[0]])


async def _take_profit(stage: DemoStage) -> None:
    """They sell in three parts after the crowd has raised the price; the last one keeps some."""
    token = stage.crowd.tokens.crowded.token
    for index, (name, account) in enumerate(stage.accounts.items()):
        parts = (20, 50, 100) if index + 1 < len(CAST) else (10, 20, 30)
        for percent in parts:
            params = PracticeSellParams(token, float(percent))
            await practice_sell(stage.ctx, params, account, _weekly_key(stage, f"{name} sells {percent}"))


def _weekly_key(stage: DemoStage, act: str) -> str:
    """The idempotency key of an act that happens once a week: the league restarts on Monday."""
    return f"cast {monday_s(int(stage.ctx.now_s()))} {act}"


async def _mark(stage: DemoStage) -> None:
    """They agree on two wallets' names and marks, and one flags a token."""
    for account in stage.accounts.values():
        await mark_wallet(stage.ctx, MarkParams(visitor(0), "Early visitor", "good"), account)
        await mark_wallet(stage.ctx, MarkParams(actor_address(DUMPER), None, "scam"), account)
    # As the job does within a minute.
    async with stage.ctx.pool.acquire() as connection, connection.transaction():
        index_cursor = await cursor.cursor(connection)
        assert index_cursor is not None
        made_before = datetime.fromtimestamp(stage.ctx.now_s(), UTC) - OLD
        await public_names.count(connection, made_before, index_cursor.block.timestamp_s)
    with contextlib.suppress(CallerFault):
        # The flag may be set already.
        params = FlagParams(stage.crowd.tokens.crowded.token, "runs")
        await flag_token(stage.ctx, params, stage.accounts[CAST[1]])


async def _sell_deployers_tokens(stage: DemoStage) -> None:
    """A deployer sells all that it bought of a token."""
    await asyncio.to_thread(stage.crowd.sell_deployers_tokens)


ACTS: tuple[tuple[str, Callable[[DemoStage], Awaitable[None]]], ...] = (
    ("caught up", _await_index),
    ("join", _join),
    ("watch", _watch),
    ("flag", _flag),
    ("practise", _practise),
    ("crowd", _run_crowd),
    ("deployer leaves", _sell_deployers_tokens),
    ("fair", _await_fair_token),
    ("take profit", _take_profit),
    ("mark", _mark),
)
"""The acts, in order. Only sells of a fair token count for the league."""
