"""A check that somebody asks for in a chat: the card's text and picture."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.services.check.handler import check_and_store
from roundtrip.services.check.schema import Check, CheckParams
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.store.index.tokens import Label

from .drawing import describe_card, draw_card
from .newest_check import TokenCard, describe_look_alike, read_checks

DEADLINE_S = 30.0
"""As long as a check through the other doors may take. The wait for a place is part of it."""
AT_ONCE, MAX_WAITING = 4, 16
NO_HOLDERS = "It is not known whether real holders can sell it."


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """``lines``: the text. ``picture``: a PNG; None: it could not be drawn. ``until_s``: until when it may be
    shared, in seconds since 1970."""

    lines: list[str]
    picture: bytes | None
    until_s: float = 0.0


class ChatChecks:
    """Makes the checks that chats ask for: ``AT_ONCE`` at a time, and one of a token, whose answer is shared
    for the policy's ``answer_ttl_ms``."""

    def __init__(self, ctx: Context, make: "MakeChatAnswer | None" = None) -> None:
        self._ctx = ctx
        self._make = make or check_for_chat
        self._places = asyncio.Semaphore(AT_ONCE)
        self._running: dict[str, asyncio.Task[ChatAnswer]] = {}
        self._made: dict[str, ChatAnswer] = {}

    def is_shared(self, address: str) -> bool:
        """Whether a check of the token runs, or its answer is still shared."""
        return address.lower() in self._running or self._find(address.lower()) is not None

    async def answer(self, chat_id: int, address: str) -> ChatAnswer:
        """The answer for a chat. Raises RoundtripError: also ServiceFull (busy) where too many wait."""
        token = address.lower()
        if (made := self._find(token)) is not None:
            return made
        if token in self._running:
            return await asyncio.shield(self._running[token])
        if len(self._running) >= AT_ONCE + MAX_WAITING:
            raise ServiceFull("busy", "Too many checks wait at the moment. Wait a minute.", 60)
        task = asyncio.create_task(self._make(self._ctx, chat_id, address, self._places))
        self._running[token] = task
        try:
            self._made[token] = await task
        finally:
            del self._running[token]
        return self._made[token]

    def _find(self, token: str) -> ChatAnswer | None:
        now_s = self._ctx.now_s()
        self._made = {key: made for key, made in self._made.items() if now_s < made.until_s}
        return self._made.get(token)


MakeChatAnswer = Callable[[Context, int, str, asyncio.Semaphore], Coroutine[Any, Any, ChatAnswer]]


async def check_for_chat(
    ctx: Context,
    chat_id: int,
    address: str,
    places: asyncio.Semaphore,
    deadline_s: float = DEADLINE_S,
    run_check: Callable[[Context, CheckParams], Awaitable[UseCaseAnswer[Check]]] = check_and_store,
) -> ChatAnswer:
    """Makes a deep check of the token in one of the places, and describes it. Raises RoundtripError."""
    params = CheckParams(address, deep="1")
    ctx = ctx.for_caller(f"chat:{chat_id}", "checks", address.lower())
    deadline = asyncio.timeout(deadline_s)
    try:
        async with deadline, places:
            await ctx.heads.wake()
            run = await run_check(ctx, params)
    except TimeoutError:
        if not deadline.expired():
            raise
        raise NodeFault("the check took too long") from None
    check = run.answer
    # The next block may launch what is absent.
    shared_ms = 0 if run.is_absence else min(run.ttl_ms, ctx.policy.answer_ttl_ms)
    # This very check: another may have been stored since.
    token = params.token()
    stored = await read_checks(ctx, token, check.checked_at)
    if stored.made is None:
        raise ServiceFull("busy", "The check was made and cannot be read; retry in 5 s.", 5)
    shown = stored.worse() or stored.made
    # A stored check has no marks of its owner and deployer. They come first, where no cut removes them.
    marks = check.verdict.text.removeprefix(stored.made.text).strip()
    shown = msgspec.structs.replace(shown, text=f"{marks} {shown.text}".strip())
    label = Label(token, check.token.symbol, check.token.name, None, None)
    card = TokenCard(token, shown, await describe_look_alike(ctx, label, Meter()))
    text = describe_card(card)
    untried = NO_HOLDERS if shown.level in ("ok", "warn") and not stored.made.holders else ""
    lines = [f"{text.word}: {text.symbol}", card.address, text.loss, text.sentence, card.look_alike]
    lines += [untried, text.as_of]
    if ctx.outward.public_url is not None:
        lines.append(f"{ctx.outward.public_url}/t/{card.address}")
    picture = None
    if ctx.outward.pictures is not None:
        with contextlib.suppress(ServiceFull):
            picture = await ctx.outward.pictures.draw(draw_card(card))
    until_s = check.checked_at.timestamp() + shared_ms / 1000
    return ChatAnswer([line for line in lines if line], picture, until_s)
