"""Listens to the Telegram bot: a chat that starts it with a valid code receives alerts from then on. The
process that holds the advisory lock listens; the others wait for the lock."""

import asyncio
from collections.abc import Callable

import structlog

from roundtrip.chain.rpc.background import is_cancelled
from roundtrip.channels.post import PostNotTried
from roundtrip.channels.telegram import StartedChat
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.jobs.engine.loop import describe_error
from roundtrip.services.delivery.telegram_link import NO_CODE, link
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.notifiers import ChatUpdates
from roundtrip.store.server.errors import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection

LOCK = 4663_0013
"""The advisory lock of the listening process."""
WAIT_S = 20
"""How long one getUpdates call waits for an update."""
AGAIN_S = 5.0
REFUSED_AGAIN_S = 60.0
MOST_REFUSED = 1000
"""Refused chats in ``REFUSED_AGAIN_S``; further ones get no answer."""
log = structlog.get_logger(__name__)


async def link_chats(ctx: Context, again_s: float = AGAIN_S, wait_s: int = WAIT_S) -> None:
    """Runs until it is cancelled; returns at once when no bot is configured."""
    if ctx.outward.bot is None:
        return
    while True:
        try:
            async with ctx.pool.acquire(timeout=again_s) as connection:
                if await connection.fetchval("SELECT pg_try_advisory_lock($1)", LOCK):
                    await _listen(ctx, ctx.outward.bot.telegram, connection, wait_s)
        except Exception as error:
            if is_cancelled():
                raise asyncio.CancelledError from error
            # Any error: nothing else would restart this loop.
            log.warning("listening to the Telegram bot failed", error=describe_error(error))
        await asyncio.sleep(again_s)


async def _listen(ctx: Context, telegram: ChatUpdates, connection: Connection, wait_s: int) -> None:
    """Listens as long as this connection holds the lock. Starts at the first update that Telegram still has:
    a code is valid once, so an update that is read twice does no harm."""
    after = 0
    refusals = Refusals(ctx.now_s)
    while True:
        await connection.fetchval("SELECT 1")
        started, newest = await telegram.read_started(after, wait_s)
        for chat in started:
            await _answer(ctx, telegram, chat, refusals)
        after = newest


class Refusals:
    """The chats that were recently refused for an invalid code: each is answered once a minute."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._refused_s: dict[int, float] = {}

    def may_answer(self, chat_id: int) -> bool:
        """Whether to answer the chat now; if so, the answer is recorded."""
        now_s = self._now_s()
        self._refused_s = {
            chat: at_s for chat, at_s in self._refused_s.items() if now_s - at_s < REFUSED_AGAIN_S
        }
        if chat_id in self._refused_s or len(self._refused_s) >= MOST_REFUSED:
            return False
        self._refused_s[chat_id] = now_s
        return True


async def _answer(ctx: Context, telegram: ChatUpdates, started: StartedChat, refusals: Refusals) -> None:
    try:
        text = await link(ctx, started)
    except (RoundtripError, *DATABASE_FAULTS) as error:
        log.warning("linking a chat failed", error=describe_error(error))
        text = "That did not work. Open the link again."
    if text == NO_CODE and not refusals.may_answer(started.chat_id):
        return
    try:
        reply = await telegram.send_rows(started.chat_id, [text])
    except PostNotTried as error:
        log.warning("answering a chat failed", error=describe_error(error))
        return
    if not reply.ok:
        log.info("answering a chat failed", error=reply.error, status=reply.status)
