"""Stored checks of a token, in short. Nothing here makes a check. A node is asked only whether a token that
looks like another one is its issuer's. Draws a token's card and badge as SVG, without scripts, styles or
anything loaded from elsewhere. A check that somebody asks for in a chat: the card's text and picture."""

import asyncio
import contextlib
import unicodedata
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.channels import message_lines
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.market.exposure import TokenExposure
from roundtrip.domain.verdicts.deciding import DecidingFigure, deciding_figure
from roundtrip.domain.verdicts.risks import Risk, list_risks, worst_risk
from roundtrip.domain.verdicts.words import is_tradable, level_word
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import AnswerText, Symbol, TokenParams, at
from roundtrip.services.support.check_answer import Check, present
from roundtrip.services.support.index_reader import looking
from roundtrip.services.support.look_alikes import find_look_alike
from roundtrip.store.boards.moving import read_exposures
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.check.evidence import KeptEvidence
from roundtrip.store.index import tokens
from roundtrip.store.index.tokens import Label
from roundtrip.store.server.connections import DATABASE_FAULTS

OLD_S = 86_400
"""Age from which a check that went well proves nothing any more."""
FRESH_S = 3_600
"""Age up to which a badge shows that a check went well: sites show it long after it was drawn."""
_LEVELS = ("ok", "warn", "unknown", "danger")
"""Each worse than those before it."""
_READ_S = 5.0
_ABSENT_TTL_MS = 2_000


class CheckSummary(msgspec.Struct, frozen=True, rename="camel"):
    """A check in short. ``is_old``: it was made more than a day ago. ``is_fresh``: within the last
    hour. ``holders``: real holders whose simulated sale gave a result. ``risks``: those of ``list_risks``.
    ``figure``: the one that decided; None: none did."""

    level: str
    code: str
    text: AnswerText
    symbol: Symbol
    figure: DecidingFigure | None
    block: int
    block_at: datetime
    is_old: bool
    is_fresh: bool
    holders: int
    risks: list[Risk]


class TokenCard(msgspec.Struct, frozen=True):
    """``check`` None: no check of the token is stored, or it is of another release. ``look_alike``: the
    sentence about the token that it looks like; empty: none was found, or it could not be read."""

    address: str
    check: CheckSummary | None
    look_alike: str = ""


@dataclass(frozen=True, slots=True)
class StoredChecks:
    """``made``: one check. ``of_holders``: the newest of the last day that tried real holders' sells. Each is
    None where it is not stored, or is of another release."""

    made: CheckSummary | None
    of_holders: CheckSummary | None

    def worse(self) -> CheckSummary | None:
        """``of_holders`` where it is worse, else ``made``: a check that tried no holder does not refute one
        that did."""
        if self.of_holders is None:
            return self.made
        level = "unknown" if self.made is None else self.made.level
        is_worse = _LEVELS.index(self.of_holders.level) > _LEVELS.index(level)
        return self.of_holders if is_worse else self.made


async def newest_check(ctx: Context, params: TokenParams) -> UseCaseAnswer[TokenCard]:
    """The token's card, of its newest check, or of a worse one of the last day that tried real holders'
    sells. Raises CallerFault (bad_address), ServiceFull (busy)."""
    token, meter = params.token(), Meter()
    check = (await read_checks(ctx, token)).worse()
    if check is None:
        return UseCaseAnswer(TokenCard(token, None), ttl_ms=_ABSENT_TTL_MS)
    looks_like = await describe_look_alike(ctx, await _read_label(ctx, token, check), meter)
    return UseCaseAnswer(TokenCard(token, check, looks_like), ttl_ms=ctx.policy.answer_ttl_ms, meter=meter)


async def describe_look_alike(ctx: Context, label: Label, meter: Meter) -> str:
    """The sentence about the token that this one looks like; empty: none was found, or it cannot be read."""
    with contextlib.suppress(ServiceFull, NodeFault):
        found = await find_look_alike(ctx, label, meter)
        return "" if found is None else found.text
    return ""


async def _read_label(ctx: Context, token: Address, check: CheckSummary) -> Label:
    """The symbol of the check, and the name that the index knows."""
    name = None
    with contextlib.suppress(ServiceFull):
        async with looking(ctx) as (connection, _):
            name = (await tokens.labels_of(connection, {token}))[token].name
    return Label(token, check.symbol, name, None, None)


async def read_checks(ctx: Context, token: Address, checked_at: datetime | None = None) -> StoredChecks:
    """The check that was made at ``checked_at``, None: the newest one; and the newest that tried holders.
    Raises ServiceFull (busy)."""
    now_s = ctx.now_s()
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            if checked_at is None:
                made = await evidence_store.latest(connection, token)
            else:
                made = await evidence_store.made_at(connection, token, checked_at)
            of_holders = await evidence_store.latest_of_holders(connection, token, at(now_s - OLD_S))
            exposed = (await read_exposures(connection, [token]))[token]
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Stored checks are unavailable; retry in 5 s.", 5) from error
    if made == of_holders:
        of_holders = None
    # Decoding is slow for a token with many pools, and must not block the event loop.
    return await asyncio.to_thread(_summarize_both, made, of_holders, exposed, ctx.policy, now_s)


def _summarize_both(
    made: KeptEvidence | None,
    of_holders: KeptEvidence | None,
    exposed: TokenExposure,
    policy: Policy,
    now_s: float,
) -> StoredChecks:
    if of_holders is not None and _has_ended(of_holders, now_s):
        of_holders = None
    return StoredChecks(*(_summarize(stored, exposed, policy, now_s) for stored in (made, of_holders)))


def _has_ended(stored: KeptEvidence, now_s: float) -> bool:
    return stored.ends_at is not None and stored.ends_at.timestamp() <= now_s


def _summarize(
    stored: KeptEvidence | None, exposed: TokenExposure, policy: Policy, now_s: float
) -> CheckSummary | None:
    """The check in short; None where the evidence has the shape of another release."""
    if stored is None:
        return None
    with contextlib.suppress(ValueError):
        evidence = canonical_json.load(Evidence, stored.document)
        judgement = judge(evidence, policy)
        answer = present(evidence, judgement, policy, stored.checked_at.timestamp())
        age_s = now_s - stored.checked_at.timestamp()
        return CheckSummary(
            level=answer.verdict.level,
            code=answer.verdict.code,
            text=answer.verdict.text,
            symbol=answer.token.symbol,
            figure=deciding_figure(judgement, policy),
            block=evidence.block.number,
            block_at=at(evidence.block.timestamp_s),
            is_old=age_s > OLD_S,
            is_fresh=age_s <= FRESH_S and not _has_ended(stored, now_s),
            holders=stored.holders,
            risks=list(
                list_risks(evidence, judgement, policy, exposed.insiders(now_s), exposed.liquidity(now_s))
            ),
        )
    return None


WIDTH, HEIGHT = 1200, 630
FAMILY = "DejaVu Sans"
_FAMILIES = f"{FAMILY}, Verdana, sans-serif"
_LEFT, _INNER = 64, WIDTH - 2 * 64
_WORD_LEFT = 244
"""Pixels, as all sizes here: the margin, the width between the margins, and where the verdict begins."""
_TEXT_LENGTH = 400
_BADGE_SIZE = 11

_COLOURS = {"ok": "#56d364", "warn": "#f2cc60", "danger": "#ff8a80", "unknown": "#b6c2cf"}
"""Light, for a dark ground."""
_BADGE_COLOURS = {"ok": "#116329", "warn": "#7d4e00", "danger": "#a40e26", "unknown": "#424a53"}
"""Dark, for white text."""
_STROKE = 'fill="none" stroke-width="12" stroke-linecap="round" stroke-linejoin="round"'
_ICONS = {
    "ok": '<circle cx="72" cy="72" r="64"/><path d="M42 74l22 24 40-48"/>',
    "warn": '<path d="M72 10l64 118H8z"/><path d="M72 54v34M72 107v1"/>',
    "danger": '<path d="M46 8h52l38 38v52l-38 38H46L8 98V46z"/><path d="M50 50l44 44M94 50l-44 44"/>',
    "unknown": '<circle cx="72" cy="72" r="64"/><path d="M52 56c2-30 44-26 40 2c-2 14-20 16-20 30m0 20v1"/>',
}
"""A shape for each level, as colour alone is not accessible."""


@dataclass(frozen=True, slots=True)
class CardText:
    """What a card says. ``word``: the verdict in a word or three. ``level``: chooses colour and icon. The
    other lines may be empty. ``symbol``: in quotes, as a stranger wrote it."""

    word: str
    level: str
    symbol: str
    loss: str
    sentence: str
    as_of: str


def describe_card(card: TokenCard) -> CardText:
    """The card's text. A check that went well is no proof after a day; a danger stays one until a check says
    otherwise."""
    check = card.check
    if check is None:
        sentence = "No check of this token is stored. Open its page to check it."
        return CardText("Not checked yet", "unknown", "", "", sentence, "")
    symbol = f'"{names.reason(check.symbol)}"' if check.symbol else "no symbol"
    as_of = f"As of block {check.block:,}, {check.block_at:%Y-%m-%d %H:%M:%S} UTC"
    is_good = check.level in ("ok", "warn")
    if check.is_old and is_good:
        sentence = "This check is more than a day old and proves nothing now. Open the page to check again."
        return CardText("Old check", "unknown", symbol, "", sentence, as_of)
    # Where real holders cannot sell, a new wallet's loss would mislead.
    loss = "" if check.figure is None or not is_good else f"{check.figure.text}{_beside(check.figure, check)}"
    sentence = message_lines.cut_text(names.clean(check.text, 2 * _TEXT_LENGTH), _TEXT_LENGTH)
    word = level_word(check.level, check.code)
    return CardText(word, check.level, symbol, loss, sentence, as_of)


def _beside(figure: DecidingFigure, check: CheckSummary) -> str:
    """The worst risk, after the figure; empty where there is none, or the figure says it."""
    risk = worst_risk(tuple(risk for risk in check.risks if figure.short not in risk.text))
    return "" if risk is None else f"; {risk.text}"


def draw_card(card: TokenCard) -> str:
    """The card: 1200 x 630, light on dark. Unchecked addresses have one and the same: strangers can name any
    number of them, and each picture that differs takes the place of another."""
    text = describe_card(card)
    address = "" if card.check is None else card.address
    colour = _COLOURS[text.level]
    # A token that looks like another one says so above its costs, which make room.
    is_look_alike = bool(address and card.look_alike)
    loss_y, sentence_y = (478, 520) if is_look_alike else (458, 508)
    loss_size = max(24, min(36, int(_INNER / (_ems(text.loss) or 1))))
    word_size = min(120, int((WIDTH - _LEFT - _WORD_LEFT) / _ems(text.word)))
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="{_FAMILIES}">',
            f"<title>{escape(f'{text.word}: {address}. {text.as_of}'.rstrip('.: '))}</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#0d1117"/>',
            f'<rect width="{WIDTH}" height="16" fill="{colour}"/>',
            _line("roundtrip", 88, 34, "#e6edf3", bold=True),
            f'<g transform="translate({_LEFT} 132)" stroke="{colour}" {_STROKE}>{_ICONS[text.level]}</g>',
            _line(text.word, 246, word_size, colour, bold=True, left=_WORD_LEFT),
            _line(text.symbol, 352, 52, "#ffffff", bold=True),
            _line(address, 400, 27, "#b6c2cf"),
            *([_line(card.look_alike, 436, 25, _COLOURS["warn"], bold=True)] if is_look_alike else []),
            _line(text.loss, loss_y, loss_size, "#ffffff", bold=True),
            *(
                _line(line, sentence_y + 38 * index, 27, "#d5dde5")
                for index, line in enumerate(wrap_text(text.sentence, 27, _INNER, 2))
            ),
            _line(text.as_of, 604, 24, "#b6c2cf"),
            "</svg>",
        ]
    )


def _line(text: str, y: int, size: int, colour: str, *, bold: bool = False, left: int = _LEFT) -> str:
    """One line of text with its baseline at ``y``. A frame clips it, whatever strangers' characters are."""
    width = WIDTH - _LEFT - left
    shown = escape(cut_text(text, size, width))
    weight = ' font-weight="700"' if bold else ""
    return (
        f'<svg x="{left}" y="{y - size}" width="{width}" height="{size * 13 // 10}">'
        f'<text y="{size}" font-size="{size}" fill="{colour}"{weight}>{shown}</text></svg>'
    )


def draw_badge(card: TokenCard) -> str:
    """A badge, 20 pixels high: the verdict in a word; and if it can be sold, the cost of a round trip and the
    block's time. After an hour the time is all that is said of a check that went well."""
    text = describe_card(card)
    name, verdict, level, check = "roundtrip", text.word.lower(), text.level, card.check
    is_good = check is not None and not check.is_old and check.level in ("ok", "warn") and level != "danger"
    if check is not None and is_good and is_tradable(check.code):
        # A time and not an age: caches of other sites keep a badge for longer than a minute.
        moment = f"{check.block_at:%Y-%m-%d %H:%M} UTC"
        if check.is_fresh:
            cost = "" if check.figure is None else f"{check.figure.short}{_beside(check.figure, check)}"
            verdict = ", ".join(filter(None, (verdict, cost.replace("; ", ", "), moment)))
        else:
            verdict, level = f"checked {moment}", "unknown"
    left, right = (int(_ems(part) * _BADGE_SIZE * 0.9) + 14 for part in (name, verdict))
    title = escape(f"{name}: {verdict}. {text.as_of}".strip(". "))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{title}" font-family="Verdana, {FAMILY}, sans-serif" font-size="{_BADGE_SIZE}" '
        f'fill="#fff"><title>{title}</title>'
        f'<rect width="{left + right}" height="20" rx="3" fill="{_BADGE_COLOURS[level]}"/>'
        f'<path d="M3 0h{left - 3}v20h-{left - 3}a3 3 0 0 1-3-3v-14a3 3 0 0 1 3-3z" fill="#30363d"/>'
        f'<text x="7" y="14" textLength="{left - 14}">{name}</text>'
        f'<text x="{left + 7}" y="14" textLength="{right - 14}">{escape(verdict)}</text></svg>'
    )


def wrap_text(text: str, size: int, width: int, most_lines: int) -> list[str]:
    """``text`` cleaned and broken into at most ``most_lines``; the last is cut with an ellipsis."""
    words = names.clean(text, _TEXT_LENGTH).split()
    lines: list[str] = []
    while words and len(lines) < most_lines - 1:
        count = 1
        while count < len(words) and _ems(" ".join(words[: count + 1])) * size <= width:
            count += 1
        lines.append(cut_text(" ".join(words[:count]), size, width))
        words = words[count:]
    return [*lines, cut_text(" ".join(words), size, width)] if words else lines


def cut_text(text: str, size: int, width: int) -> str:
    """``text`` cleaned; its beginning and an ellipsis where it is wider than ``width`` at this font size."""
    text = names.clean(text, _TEXT_LENGTH)
    if _ems(text) * size <= width:
        return text
    while text and (_ems(text) + 1) * size > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _ems(text: str) -> float:
    """About how wide the text is in its font's bold, in ems; rather too wide."""
    return sum(_em(character) for character in text)


def _em(character: str) -> float:
    if unicodedata.category(character)[0] == "M":
        return 0.0
    if character > "\u2fff" or unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in " .,:;'!|ijlI()[]/":
        return 0.42
    return 1.0 if character in "MWmw@%…—&" else 0.7


DEADLINE_S = 30.0
"""As long as a check through the other doors may take. The wait for one of the ``AT_ONCE`` places is part of
it."""
AT_ONCE, MAX_WAITING = 4, 16
"""Checks that run at a time, and how many more may wait for a place."""
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

    def __init__(self, ctx: Context, make: "MakeChatAnswer") -> None:
        self._ctx, self._make = ctx, make
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
    run_deep_check: Callable[[Context, str], Awaitable[UseCaseAnswer[Check]]],
    deadline_s: float = DEADLINE_S,
) -> ChatAnswer:
    """Waits for one of the places, makes a deep check of the token and describes it. Raises
    RoundtripError."""
    ctx = ctx.for_caller(f"chat:{chat_id}", "checks", address.lower())
    deadline = asyncio.timeout(deadline_s)
    try:
        async with deadline, places:
            await ctx.heads.wake()
            run = await run_deep_check(ctx, address)
    except TimeoutError:
        if not deadline.expired():
            raise
        raise NodeFault("the check took too long") from None
    check = run.answer
    # The next block may launch what is absent.
    shared_ms = 0 if run.is_absence else min(run.ttl_ms, ctx.policy.answer_ttl_ms)
    # This very check: another may have been stored since.
    token = Address(check.address)
    stored = await read_checks(ctx, token, check.checked_at)
    if stored.made is None:
        raise ServiceFull("busy", "The check was made and cannot be read; retry in 5 s.", 5)
    shown = stored.worse() or stored.made
    # The answer's text ends with sentences that are not stored with the check, such as those on marks that
    # people gave its owner and deployer. They come first, where no cut removes them.
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
    if ctx.outward.draw is not None:
        with contextlib.suppress(ServiceFull):
            picture = await ctx.outward.draw(draw_card(card))
    until_s = check.checked_at.timestamp() + shared_ms / 1000
    return ChatAnswer([line for line in lines if line], picture, until_s)
