"""/check in a private chat: the bot's answers, over the real chain and a scripted Telegram."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest

from roundtrip.chain.rpc.background import run_in_background
from roundtrip.channels.post import Poster
from roundtrip.channels.telegram import Telegram
from roundtrip.config.settings import LIBRARIES
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.market.look_alikes import ListedToken
from roundtrip.jobs.kinds import telegram
from roundtrip.jobs.kinds.telegram import (
    FULL,
    HELP,
    MAX_OF_A_CHAT,
    MAX_OF_ALL,
    NO_ADDRESS,
    NO_PASS,
    TOO_MANY,
    ChatTurns,
    link_chats,
    run_deep_check,
)
from roundtrip.services.cards import newest_check as chat_check
from roundtrip.services.cards.newest_check import (
    AT_ONCE,
    FRESH_S,
    MAX_WAITING,
    OLD_S,
    ChatAnswer,
    ChatChecks,
    newest_check,
)
from roundtrip.services.cards.pictures import Pictures
from roundtrip.services.check.handler import check_and_store
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.notifiers import CLOSED, Bot
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip_development.devnet.world import Built
from support.telegram import TOKEN, TelegramApi, telegram_api

DrawPicture = Callable[[str], Awaitable[bytes]]


async def draw_nothing(svg: str) -> bytes:
    raise ServiceFull("busy", "Too many pictures are being drawn; retry in 2 s.", 2)


@asynccontextmanager
async def bot(ctx: Context, draw: DrawPicture | None = None) -> AsyncIterator[TelegramApi]:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        outward = replace(
            CLOSED,
            post=poster.post,
            bot=Bot(Telegram(poster, TOKEN, api.url)),
            public_url="https://roundtrip.example",
            draw=draw,
        )
        async with run_in_background(link_chats(replace(ctx, outward=outward), again_s=0.01), "telegram"):
            yield api


@pytest.fixture(autouse=True)
async def insiders_not_read(indexed: Context) -> None:
    """Other tests of this index read holders."""
    await indexed.pool.execute("DELETE FROM facts.exposure")


async def test_a_check_is_answered_with_the_cards_text_and_picture(indexed: Context, built: Built) -> None:
    token = built.tokens["owner_only_sell"].lower()
    async with bot(indexed, Pictures(LIBRARIES).draw) as api:
        await api.says(5, f"/check {built.tokens['owner_only_sell']}")
        (reply,) = await api.told_to(1)
    assert reply["chat_id"] == 5
    assert reply["photo"].startswith(b"\x89PNG")
    verdict, address, *sentence, as_of, link = reply["caption"].split("\n")
    assert verdict.startswith('Honeypot: you cannot sell: "')
    assert (address, link) == (token, f"https://roundtrip.example/t/{token}")
    assert as_of.startswith("As of block ")
    assert sentence


@pytest.mark.parametrize("draw", [None, draw_nothing])
async def test_without_a_picture_the_text_is_sent(
    indexed: Context, built: Built, draw: DrawPicture | None
) -> None:
    async with bot(indexed, draw) as api:
        await api.says(5, f"/check {built.tokens['plain']}")
        (reply,) = await api.told_to(1)
    lines = reply["text"].split("\n")
    assert lines[0].startswith('Can sell: "')
    assert lines[2].startswith("A round trip costs 0.60 %")


async def test_the_text_names_the_token_that_another_looks_like(indexed: Context, built: Built) -> None:
    stock = ListedToken("PLAlN", Address("0x" + "d0" * 20))
    async with bot(replace(indexed, stock_tokens=(stock,))) as api:
        await api.says(5, f"/check {built.tokens['plain']}")
        (reply,) = await api.told_to(1)
    assert f'looks like that of "PLAlN" ({stock.address}), a listed stock token.' in reply["text"]


async def test_a_picture_that_telegram_refuses_is_replaced_by_the_text(
    indexed: Context, built: Built
) -> None:
    async with bot(indexed, Pictures(LIBRARIES).draw) as api:
        api.wait_s = 1
        await api.says(5, f"/check {built.tokens['plain']}")
        (reply,) = await api.told_to(1)
    assert "photo" not in reply
    assert reply["text"].startswith('Can sell: "')


async def test_a_check_is_old_after_a_day(indexed: Context, built: Built) -> None:
    params = TokenParams(built.tokens["plain"])
    await check_and_store(indexed, CheckParams(built.tokens["plain"]))
    made_s = indexed.now_s()
    old = []
    for age_s in (FRESH_S - 60, FRESH_S + 60, OLD_S - 60, OLD_S + 60):
        later = replace(indexed, now_s=lambda age_s=age_s: made_s + age_s)  # type: ignore[misc]
        card = (await newest_check(later, params)).answer
        assert card.check is not None
        old.append((card.check.is_fresh, card.check.is_old))
    assert old == [(True, False), (False, False), (False, False), (False, True)]


async def test_other_texts_get_help_and_groups_nothing(indexed: Context) -> None:
    async with bot(indexed) as api:
        await api.says(7, "/check " + "0x" + "1" * 40, kind="group")
        await api.says(5, "hello")
        await api.says(6, "/check FOX")
        rows = await api.told_to(2)
    assert [(one["chat_id"], one["text"]) for one in rows] == [(5, HELP), (6, NO_ADDRESS)]


async def test_who_asks_too_often_is_told_once(indexed: Context) -> None:
    async with bot(indexed) as api:
        for _ in range(MAX_OF_A_CHAT + 3):
            await api.says(5, "hello")
        await api.says(6, "hello")
        rows = await api.told_to(MAX_OF_A_CHAT + 2)
    texts = [(one["chat_id"], one["text"]) for one in rows]
    assert texts == [(5, HELP)] * MAX_OF_A_CHAT + [(5, TOO_MANY), (6, HELP)]


def test_all_chats_together_are_bounded_and_a_minute_ends() -> None:
    at_s = 0.0
    turns = ChatTurns(lambda: at_s)
    assert [turns.take(chat % 15, True) for chat in range(MAX_OF_ALL)] == ["answer"] * MAX_OF_ALL
    assert [turns.take(1, True), turns.take(1, True), turns.take(2, True)] == [FULL, "silent", FULL]
    at_s = 60.0
    assert [turns.take(1, True) for _ in range(MAX_OF_A_CHAT + 2)] == [
        *["answer"] * MAX_OF_A_CHAT,
        TOO_MANY,
        "silent",
    ]


def test_a_few_chats_silence_nobody() -> None:
    turns = ChatTurns(lambda: 0.0)
    texts = [turns.take(chat, False) for chat in range(MAX_OF_ALL) for _ in range(MAX_OF_A_CHAT)]
    assert set(texts) == {"answer"}
    assert [turns.take(99, True), turns.take(99, True)] == ["answer", "answer"]
    for chat in range(MAX_OF_ALL):
        turns.take(100 + chat, True)
    assert [turns.take(99, True), turns.take(98, True), turns.take(98, False)] == [FULL, "answer", "answer"]


async def test_a_tokens_answer_is_shared_for_a_moment(indexed: Context) -> None:
    at_s, asked = 100.0, list[str]()

    async def answer(ctx: Context, chat_id: int, address: str, places: asyncio.Semaphore) -> ChatAnswer:
        asked.append(address)
        await asyncio.sleep(0)
        return ChatAnswer([str(len(asked))], None, until_s=ctx.now_s() + 15)

    checks = ChatChecks(replace(indexed, now_s=lambda: at_s), answer)
    assert not checks.is_shared("0xA")
    answers = await asyncio.gather(
        *(checks.answer(chat, "0xA") for chat in range(3)), checks.answer(5, "0xb")
    )
    assert len({id(one) for one in answers[:3]}) == 1
    assert asked == ["0xA", "0xb"]
    at_s = 114.0
    assert checks.is_shared("0xa")
    assert await checks.answer(6, "0xa") == answers[0]
    at_s = 115.0
    assert not checks.is_shared("0xa")
    await checks.answer(6, "0xA")
    assert asked == ["0xA", "0xb", "0xA"]


async def test_a_check_is_shared_as_long_as_the_policy_says(indexed: Context, built: Built) -> None:
    now_s = indexed.now_s()
    ctx = replace(indexed, now_s=lambda: now_s)
    places = asyncio.Semaphore(1)
    made = await chat_check.check_for_chat(ctx, 5, built.tokens["plain"], places, run_deep_check)
    assert made.until_s == pytest.approx(now_s + ctx.policy.answer_ttl_ms / 1000, abs=0.01)
    absent = await chat_check.check_for_chat(ctx, 5, "0x" + "1" * 40, places, run_deep_check)
    assert absent.until_s <= now_s


async def test_more_than_may_wait_are_told_so(indexed: Context) -> None:
    go = asyncio.Event()

    async def wait(*arguments: Any) -> ChatAnswer:
        await go.wait()
        return ChatAnswer(["done"], None)

    checks, most = ChatChecks(indexed, wait), AT_ONCE + MAX_WAITING
    waiting = [asyncio.ensure_future(checks.answer(1, f"0x{number:040x}")) for number in range(most)]
    await asyncio.sleep(0)
    with pytest.raises(ServiceFull, match="Too many checks wait"):
        await checks.answer(1, f"0x{most:040x}")
    same = asyncio.ensure_future(checks.answer(2, f"0x{0:040x}"))
    await asyncio.sleep(0)
    go.set()
    assert {tuple(one.lines) for one in await asyncio.gather(same, *waiting)} == {("done",)}
    assert (await checks.answer(1, f"0x{most:040x}")).lines == ["done"]


async def test_the_wait_for_a_place_is_part_of_the_deadline(indexed: Context, built: Built) -> None:
    with pytest.raises(NodeFault, match="took too long"):
        await chat_check.check_for_chat(
            indexed, 5, built.tokens["plain"], asyncio.Semaphore(0), run_deep_check, 0.01
        )


@pytest.mark.parametrize(("key", "tries"), [("curve", True), ("six_decimals", False)])
async def test_a_check_tries_real_holders_or_says_that_it_did_not(
    indexed: Context, built: Built, key: str, tries: bool
) -> None:
    make = partial(chat_check.check_for_chat, run_deep_check=run_deep_check)
    text = "\n".join((await ChatChecks(indexed, make).answer(5, built.tokens[key])).lines)
    assert ("real holders can sell it as" in text) == tries
    assert (chat_check.NO_HOLDERS in text) != tries


async def test_a_check_is_not_mixed_with_one_made_since(indexed: Context, built: Built) -> None:
    """Another check of the token is stored, as of another chain, before the first is read."""

    async def run_both(ctx: Context, address: str) -> Any:
        answer = await run_deep_check(ctx, address)
        await check_and_store(replace(ctx, now_s=lambda: indexed.now_s() + 1), CheckParams(trap))
        await ctx.pool.execute(
            "UPDATE facts.evidence SET token = $1 WHERE id = (SELECT max(id) FROM facts.evidence)",
            bytes.fromhex(address[2:]),
        )
        return answer

    trap = built.tokens["owner_only_sell"]
    make = partial(chat_check.check_for_chat, run_deep_check=run_both)
    answer = await ChatChecks(indexed, make).answer(5, built.tokens["six_decimals"])
    await indexed.pool.execute("DELETE FROM facts.evidence WHERE id = (SELECT max(id) FROM facts.evidence)")
    assert answer.lines[0].startswith('Can sell: "')


@pytest.mark.parametrize("key", ["plain", "owner_only_sell"])
async def test_scam_marks_come_before_what_may_be_cut(indexed: Context, built: Built, key: str) -> None:
    marks = f"Its owner 0x{'a1' * 20} is marked as a scam by 12 people: that is their word, not proof."

    async def run_marked(ctx: Context, address: str) -> Any:
        made = await run_deep_check(ctx, address)
        text = f"{made.answer.verdict.text} {marks}"
        verdict = msgspec.structs.replace(made.answer.verdict, text=text)
        return replace(made, answer=msgspec.structs.replace(made.answer, verdict=verdict))

    make = partial(chat_check.check_for_chat, run_deep_check=run_marked)
    answer = await ChatChecks(indexed, make).answer(5, built.tokens[key])
    (sentence,) = (line for line in answer.lines if marks in line)
    assert sentence.startswith(f"{marks} ")
    assert sentence.count(marks) == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            NodeFault("the node sent no block 5"),
            ["The chain did not answer: the node sent no block 5.", NO_PASS],
        ),
        (RuntimeError("secret"), [NO_PASS]),
    ],
)
async def test_a_fault_is_told_and_ends_nothing(
    indexed: Context, monkeypatch: pytest.MonkeyPatch, error: Exception, expected: list[str]
) -> None:
    async def fail(*arguments: Any, **named: Any) -> Any:
        raise error

    monkeypatch.setattr(telegram, "check_for_chat", fail)
    async with bot(indexed) as api:
        await api.says(5, "/check 0x" + "1" * 40)
        await api.told_to(1)
        await api.says(6, "hello")
        rows = await api.told_to(2)
    assert [one["text"].split("\n") for one in rows] == [expected, [HELP]]
