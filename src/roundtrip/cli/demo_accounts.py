"""The demo's cast: a few accounts with a history, so that what people do together has something to show.

Only of the local chain. A crowd comes there (``devnet/demo/crowd.py``), and accounts of wallets that traded
in the chain's history do what people do, through the same use cases. Done again, nothing is added: each act
looks at what there is first.
"""

import asyncio
import contextlib
import hashlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import structlog

from roundtrip.devnet.actors import DUMPER
from roundtrip.devnet.demo.crowd import DemoCrowd, visitor
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.trading import actor_address
from roundtrip.devnet.world import Built
from roundtrip.domain.accounts.account import MOST_TRIES, Account, designation
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import parse_address
from roundtrip.domain.community.flag_calls import WEEK_S
from roundtrip.domain.community.marks import OLD
from roundtrip.domain.practice.practice import monday_s
from roundtrip.services.accounts.database import accounts
from roundtrip.services.boards.winners import winners
from roundtrip.services.community.flag_token import FlagParams, flag_token
from roundtrip.services.community.mark_wallet import MarkParams, mark_wallet
from roundtrip.services.community.proven_flags import ProvenParams, proven_calls
from roundtrip.services.practice.agent_tag import AgentParams, mark_as_agent
from roundtrip.services.practice.buy import practice_buy
from roundtrip.services.practice.schema import PracticeBuyParams, PracticeSellParams
from roundtrip.services.practice.sell import practice_sell
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.watch.follows import follow_wallet
from roundtrip.services.watch.rules import create_rule
from roundtrip.services.watch.schema import FollowParams, RuleParams
from roundtrip.store.accounts import accounts as accounts_store
from roundtrip.store.community import flags, public_names
from roundtrip.store.index import addresses, cursor, tokens
from roundtrip.store.wallets import wallets
from roundtrip.store.watch import alert_cursor

CAST = ("trader 2", "trader 10", "trader 11", "trader 12")
"""Whose accounts they are: wallets that traded for nine days, each paid by another, and none by the funder of
the crowd's deployer."""
AGE_S = 9 * 86_400
_LOOK_S = 1.0
_PATIENCE_S = 300.0
_log = structlog.get_logger(__name__)


@dataclass
class DemoStage:
    """Where the cast acts. ``crowd``: the chain's side, which blocks its thread."""

    ctx: Context
    built: Built
    crowd: DemoCrowd
    accounts: dict[str, Account] = field(default_factory=dict)

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
            stage = DemoStage(ctx, built, DemoCrowd(node, built, over))
            for name, act in ACTS:
                try:
                    await act(stage)
                except Exception:
                    _log.warning("the demo's cast stops", act=name, exc_info=True)
                    return
    finally:
        over.set()


async def _caught_up(stage: DemoStage) -> None:
    """The index has the chain as it was built."""

    async def is_there() -> bool:
        async with accounts(stage.ctx) as connection:
            stands = await cursor.cursor(connection)
        return stands is not None and stands.block.timestamp_s >= stage.built.head_s

    await stage.until(is_there)


async def _join(stage: DemoStage) -> None:
    """They became accounts nine days ago. Nobody has their keys."""
    ctx = stage.ago(AGE_S)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    for name in CAST:
        wallet = parse_address(actor_address(name))
        async with accounts(ctx) as connection:
            found = await accounts_store.lock_account(connection, wallet, _designations(name), now)
        stage.accounts[name] = found.account


def _designations(name: str) -> Iterator[str]:
    """The same in each demo."""
    for tries in range(MOST_TRIES):
        yield designation(hashlib.sha256(f"roundtrip cast: {name} {tries}".encode()).digest(), tries)


async def _watch(stage: DemoStage) -> None:
    """They follow who will win, and have a rule."""
    token = stage.crowd.tokens.crowded.token
    for account in stage.accounts.values():
        for number in range(2):
            wanted = FollowParams(address=visitor(number), name=f"Visitor{number}")
            await follow_wallet(stage.ctx, wanted, account)
        await create_rule(stage.ctx, RuleParams(rule=f"any buying over 0.05 eth on {token}"), account)


async def _crowd(stage: DemoStage) -> None:
    """Visitors come, and some of them win."""
    if not await asyncio.to_thread(stage.crowd.has_run):
        await asyncio.to_thread(stage.crowd.run_crowd)


async def _fair(stage: DemoStage) -> None:
    """The index counted them: their token is fair from here on."""

    async def is_counted() -> bool:
        return bool((await winners(stage.ctx, Nothing())).answer.rows)

    await stage.until(is_counted)


async def _flag(stage: DemoStage) -> None:
    """One said long ago of a launch that its deployer would sell: the chain's history proves it, which nobody
    has to wait for."""
    wallet = parse_address(actor_address(DUMPER))
    async with accounts(stage.ctx) as connection:
        stands = await cursor.cursor(connection)
        assert stands is not None
        sold = await wallets.launches(connection, await addresses.id_of(connection, wallet) or 0)
        newest = next(one for one in sold if one.bought_raw and 2 * one.sold_raw >= one.bought_raw)
        token = (await tokens.labels(connection, [newest.token_id]))[newest.token_id].address
        place = await alert_cursor.place_before(connection, newest.at_s)
    told = (await proven_calls(stage.ctx, ProvenParams(token))).answer
    if told.rows or told.waiting:
        return
    # The launch itself has the deployer's own buy.
    at_s = newest.at_s + 1
    ago_s = stands.block.timestamp_s - at_s
    now = datetime.fromtimestamp(stage.ago(ago_s).now_s(), UTC)
    basis = flags.FlagBasis(deployer_raw=newest.bought_raw)
    flag = flags.NewFlag(token, "drains", at_s, place.number, at_s + WEEK_S, basis)
    async with accounts(stage.ctx) as connection:
        await flags.add(connection, stage.accounts[CAST[0]].id, flag, None, now, now)


async def _practise(stage: DemoStage) -> None:
    """They buy before the crowd comes."""
    for name, account in stage.accounts.items():
        wanted = PracticeBuyParams(stage.crowd.tokens.crowded.token, "0.3")
        await practice_buy(stage.ctx, wanted, account, _once(stage, f"{name} buys"))
    await mark_as_agent(stage.ctx, AgentParams(name="Early bird"), stage.accounts[CAST[0]])


async def _take_profit(stage: DemoStage) -> None:
    """They sell in three parts what the crowd made dearer; the last keeps some."""
    token = stage.crowd.tokens.crowded.token
    for number, (name, account) in enumerate(stage.accounts.items()):
        parts = (20, 50, 100) if number + 1 < len(CAST) else (10, 20, 30)
        for percent in parts:
            wanted = PracticeSellParams(token, float(percent))
            await practice_sell(stage.ctx, wanted, account, _once(stage, f"{name} sells {percent}"))


def _once(stage: DemoStage, what: str) -> str:
    """The key of what is done once a week: on Monday the league begins anew."""
    return f"cast {monday_s(int(stage.ctx.now_s()))} {what}"


async def _mark(stage: DemoStage) -> None:
    """They agree on two wallets, and one says what will become of a token."""
    for account in stage.accounts.values():
        await mark_wallet(stage.ctx, MarkParams(visitor(0), "Early visitor", "good"), account)
        await mark_wallet(stage.ctx, MarkParams(actor_address(DUMPER), None, "scam"), account)
    # As the job does it within a minute.
    async with stage.ctx.pool.acquire() as connection, connection.transaction():
        stands = await cursor.cursor(connection)
        assert stands is not None
        made_before = datetime.fromtimestamp(stage.ctx.now_s(), UTC) - OLD
        await public_names.count(connection, made_before, stands.block.timestamp_s)
    with contextlib.suppress(CallerFault):
        # It may be said already.
        wanted = FlagParams(stage.crowd.tokens.crowded.token, "runs")
        await flag_token(stage.ctx, wanted, stage.accounts[CAST[1]])


async def _deployer_leaves(stage: DemoStage) -> None:
    """A deployer sells all he bought of a token."""
    await asyncio.to_thread(stage.crowd.sell_deployers_tokens)


ACTS: tuple[tuple[str, Callable[[DemoStage], Awaitable[None]]], ...] = (
    ("caught up", _caught_up),
    ("join", _join),
    ("watch", _watch),
    ("flag", _flag),
    ("practise", _practise),
    ("crowd", _crowd),
    ("deployer leaves", _deployer_leaves),
    ("fair", _fair),
    ("take profit", _take_profit),
    ("mark", _mark),
)
"""What happens, in order. Only sells count for the league, and only of a token that is fair."""
