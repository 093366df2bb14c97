"""Listens to the Telegram bot: a chat that starts it with a valid code receives alerts from then on, and
``/check`` is answered with a token's card. The process that holds the advisory lock listens; the others wait
for the lock."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Literal

import structlog

from roundtrip.chain.rpc.background import is_cancelled
from roundtrip.channels.post import PostNotTried, PostReply
from roundtrip.channels.telegram import ChatCheck, ChatMessage, StartedChat
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.jobs.engine.loop import describe_error
from roundtrip.services.cards.newest_check import ChatChecks, check_for_chat
from roundtrip.services.check.handler import check_and_store
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.delivery.channels import NO_CODE, link
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.notifiers import ChatUpdates
from roundtrip.services.support.check_answer import Check
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection

LOCK = 4663_0013
"""The advisory lock of the listening process."""
WAIT_S = 20
"""How long one getUpdates call waits for an update."""
AGAIN_S = 5.0
"""The wait before the lock is tried again, also after an error."""
REFUSED_AGAIN_S = 60.0
MAX_REFUSED = 1000
"""Refused chats within ``REFUSED_AGAIN_S``; further ones get no answer."""
MAX_OF_A_CHAT, MAX_OF_ALL = 6, 60
"""In a minute, besides links: messages of a chat, and checks of all chats."""
_MINUTE_S = 60.0
HELP = "Send /check and a token's address to have it bought and sold in a simulation: /check 0x..."
NO_ADDRESS = "A token's address is missing: 0x and 40 hex digits, after /check and a space."
TOO_MANY = f"You can send {MAX_OF_A_CHAT} messages a minute. Wait a minute; until then there is no answer."
FULL = "Too many people ask at the moment. Wait a minute; until then there is no answer."
NO_PASS = "Nothing is known of the token now. That is not a pass: send it again later."  # noqa: S105
log = structlog.get_logger(__name__)


async def link_chats(ctx: Context, again_s: float = AGAIN_S, wait_s: int = WAIT_S) -> None:
    """Answers chats until it is cancelled; returns at once when no bot is configured."""
    if ctx.outward.bot is None:
        return
    async with asyncio.TaskGroup() as tasks:
        chats = _Chats(ctx, ctx.outward.bot.telegram, tasks)
        while True:
            try:
                async with ctx.pool.acquire(timeout=again_s) as connection:
                    if await connection.fetchval("SELECT pg_try_advisory_lock($1)", LOCK):
                        await chats.listen(connection, wait_s)
            except Exception as error:
                if is_cancelled():
                    raise asyncio.CancelledError from error
                # Any error: nothing else would restart this loop.
                log.warning("listening to the Telegram bot failed", error=describe_error(error))
            await asyncio.sleep(again_s)


async def run_deep_check(ctx: Context, address: str) -> UseCaseAnswer[Check]:
    """Runs and stores a deep check of the token. Raises RoundtripError."""
    return await check_and_store(ctx, CheckParams(address, deep="1"))


class Refusals:
    """The chats that were refused recently, for an invalid code or for too many messages: each is told so
    once a minute."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._refused_s: dict[int, float] = {}

    def may_answer(self, chat_id: int) -> bool:
        """Whether to answer the chat now; if so, the answer is recorded."""
        now_s = self._now_s()
        self._refused_s = {
            chat: at_s for chat, at_s in self._refused_s.items() if now_s - at_s < REFUSED_AGAIN_S
        }
        if chat_id in self._refused_s or len(self._refused_s) >= MAX_REFUSED:
            return False
        self._refused_s[chat_id] = now_s
        return True


class ChatTurns:
    """Counts by the minute: the messages of each chat, and the checks of all. Whoever sends more is told so
    once a minute. A chat's first message of a minute has a turn even where all is full, so that a few chats
    silence nobody."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._taken: list[tuple[float, int, bool]] = []
        self._told = Refusals(now_s)

    def take(self, chat_id: int, is_check: bool) -> Literal["answer", "silent"] | str:
        """``answer``: answer the message; ``silent``: do not; else the text that says why not. ``is_check``:
        a check has to be made for it."""
        now_s = self._now_s()
        self._taken = [taken for taken in self._taken if 0 <= now_s - taken[0] < _MINUTE_S]
        its_own = sum(chat == chat_id for _, chat, _ in self._taken)
        is_full = is_check and its_own > 0 and sum(check for *_, check in self._taken) >= MAX_OF_ALL
        if not is_full and its_own < MAX_OF_A_CHAT:
            self._taken.append((now_s, chat_id, is_check))
            return "answer"
        if not self._told.may_answer(chat_id):
            return "silent"
        return FULL if is_full else TOO_MANY


class _Chats:
    """Answers the bot's chats. ``tasks``: runs checks, so that they delay nobody's link."""

    def __init__(self, ctx: Context, telegram: ChatUpdates, tasks: asyncio.TaskGroup) -> None:
        self._ctx, self._telegram, self._tasks = ctx, telegram, tasks
        self._turns = ChatTurns(ctx.now_s)
        self._checks = ChatChecks(ctx, partial(check_for_chat, run_deep_check=run_deep_check))

    async def listen(self, connection: Connection, wait_s: int) -> None:
        """Listens as long as this connection holds the lock. Starts at the first update that Telegram still
        has: a code is valid once, and a check may be answered twice, so that reading an update again does no
        harm."""
        after = 0
        refusals = Refusals(self._ctx.now_s)
        while True:
            # Fails if the connection is lost, and with it the lock.
            await connection.fetchval("SELECT 1")
            messages, newest = await self._telegram.read_messages(after, wait_s)
            for message in messages:
                if isinstance(message, StartedChat):
                    await self._link(message, refusals)
                else:
                    await self._answer(message)
            after = newest

    async def _link(self, started: StartedChat, refusals: Refusals) -> None:
        try:
            text = await link(self._ctx, started)
        except (RoundtripError, *DATABASE_FAULTS) as error:
            log.warning("linking a chat failed", error=describe_error(error))
            text = "That did not work. Open the link again."
        if text == NO_CODE and not refusals.may_answer(started.chat_id):
            return
        await self._send(self._telegram.send_rows(started.chat_id, [text]))

    async def _answer(self, message: ChatMessage) -> None:
        address = message.address if isinstance(message, ChatCheck) else None
        is_check = address is not None and not self._checks.is_shared(address)
        turn = self._turns.take(message.chat_id, is_check)
        if turn == "silent":
            return
        if turn == "answer" and isinstance(message, ChatCheck):
            if address is not None:
                self._tasks.create_task(self._check(message.chat_id, address))
                return
            turn = NO_ADDRESS
        await self._send(self._telegram.send_rows(message.chat_id, [HELP if turn == "answer" else turn]))

    async def _check(self, chat_id: int, address: str) -> None:
        """Answers one check. The chat is told of a failure, which stops nothing else."""
        try:
            answer = await self._checks.answer(chat_id, address)
        except RoundtripError as error:
            await self._send(self._telegram.send_rows(chat_id, [error.message, NO_PASS]))
            return
        except Exception as error:
            log.exception("a check for a chat failed", error=describe_error(error))
            await self._send(self._telegram.send_rows(chat_id, [NO_PASS]))
            return
        if answer.picture is not None:
            caption = "\n".join(answer.lines)
            if await self._send(self._telegram.send_photo(chat_id, answer.picture, caption)):
                return
        await self._send(self._telegram.send_rows(chat_id, answer.lines))

    async def _send(self, sending: Coroutine[None, None, PostReply]) -> bool:
        """Awaits ``sending``; returns whether the chat got the message."""
        try:
            reply = await sending
        except PostNotTried as error:
            log.warning("answering a chat failed", error=describe_error(error))
            return False
        if not reply.ok:
            log.info("answering a chat failed", error=reply.error, status=reply.status)
        return reply.ok
