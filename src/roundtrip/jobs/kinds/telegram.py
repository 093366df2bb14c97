"""Listens to the Telegram bot: who starts it with a good code is told from then on. One process does it,
whoever holds the lock; the others stand by."""

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
"""The advisory lock of whoever listens."""
WAIT_S = 20
"""How long one question waits for somebody to start the bot."""
AGAIN_S = 5.0
REFUSED_AGAIN_S = 60.0
MOST_REFUSED = 1000
"""Chats in that time; further ones are not answered."""
log = structlog.get_logger(__name__)


async def link_chats(ctx: Context, again_s: float = AGAIN_S, wait_s: int = WAIT_S) -> None:
    """Until it is cancelled; where there is no bot there is nothing to do."""
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
            # Whatever it is: nobody else would begin this again.
            log.warning("the Telegram bot cannot be listened to", error=describe_error(error))
        await asyncio.sleep(again_s)


async def _listen(ctx: Context, telegram: ChatUpdates, connection: Connection, wait_s: int) -> None:
    """As long as the lock is ours. Asked from the first update that Telegram still has: a code is good once,
    so that what is heard twice does no harm."""
    after = 0
    refusals = Refusals(ctx.now_s)
    while True:
        await connection.fetchval("SELECT 1")
        found, newest = await telegram.read_started(after, wait_s)
        for started in found:
            await _answer(ctx, telegram, started, refusals)
        after = newest


class Refusals:
    """Which chats were told lately that their code is not good: a stranger who goes on is not answered."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._told_s: dict[int, float] = {}

    def may(self, chat_id: int) -> bool:
        """Whether to tell it now; then it is not told again for a while."""
        now_s = self._now_s()
        self._told_s = {chat: at_s for chat, at_s in self._told_s.items() if now_s - at_s < REFUSED_AGAIN_S}
        if chat_id in self._told_s or len(self._told_s) >= MOST_REFUSED:
            return False
        self._told_s[chat_id] = now_s
        return True


async def _answer(ctx: Context, telegram: ChatUpdates, started: StartedChat, refusals: Refusals) -> None:
    try:
        said = await link(ctx, started)
    except (RoundtripError, *DATABASE_FAULTS) as error:
        log.warning("a chat could not be linked", error=describe_error(error))
        said = "That did not work just now: open the link again."
    if said == NO_CODE and not refusals.may(started.chat_id):
        return
    try:
        reply = await telegram.tell(started.chat_id, [said])
    except PostNotTried as error:
        log.warning("a chat could not be told", error=describe_error(error))
        return
    if not reply.ok:
        log.info("a chat could not be told", error=reply.error, status=reply.status)
