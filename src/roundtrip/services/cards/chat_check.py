"""A check that somebody asks for in a chat: the card's text and picture."""

import asyncio
import contextlib
from dataclasses import dataclass, replace

import msgspec

from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.services.check.handler import run_check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context

from .drawing import describe_card, draw_card
from .newest_check import TokenCard, read_checks

DEADLINE_S = 30.0
"""As long as a check through the other doors may take."""
NO_HOLDERS = "It is not known whether real holders can sell it."


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """``lines``: the text. ``picture``: a PNG; None: it could not be drawn."""

    lines: list[str]
    picture: bytes | None


async def check_for_chat(ctx: Context, chat_id: int, address: str) -> ChatAnswer:
    """Makes a deep check of the token and describes it. Raises RoundtripError."""
    params = CheckParams(address, deep="1")
    ctx = ctx.for_caller(f"chat:{chat_id}", "checks", address.lower())
    deadline = asyncio.timeout(DEADLINE_S)
    try:
        async with deadline:
            await ctx.heads.wake()
            check = (await run_check(ctx, params)).answer
    except TimeoutError:
        if not deadline.expired():
            raise
        raise NodeFault("the check took too long") from None
    # This very check: another may have been stored since.
    token = params.token()
    stored = await read_checks(ctx, token, check.checked_at)
    if stored.made is None:
        raise ServiceFull("busy", "The check was made and cannot be read; retry in 5 s.", 5)
    # The answer's own sentences: a stored check has no marks of its owner and deployer.
    made = msgspec.structs.replace(stored.made, text=check.verdict.text)
    card = TokenCard(token, replace(stored, made=made).worse())
    text = describe_card(card)
    untried = "" if stored.made.holders or text.level not in ("ok", "warn") else NO_HOLDERS
    lines = [f"{text.word}: {text.symbol}", card.address, text.loss, text.sentence, untried, text.as_of]
    if ctx.outward.public_url is not None:
        lines.append(f"{ctx.outward.public_url}/t/{card.address}")
    picture = None
    if ctx.outward.pictures is not None:
        with contextlib.suppress(ServiceFull):
            picture = await ctx.outward.pictures.draw(draw_card(card))
    return ChatAnswer([line for line in lines if line], picture)
