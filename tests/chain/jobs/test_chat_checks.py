"""/check in a private chat: the bot's answers, over the real chain and a scripted Telegram."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from roundtrip.chain.rpc.background import run_in_background
from roundtrip.channels.post import Poster
from roundtrip.channels.telegram import Telegram
from roundtrip.config.resources import LIBRARIES
from roundtrip.devnet.world import Built
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.jobs.kinds import telegram as chats
from roundtrip.jobs.kinds.telegram import (
    FULL,
    HELP,
    MOST_OF_A_CHAT,
    MOST_OF_ALL,
    NO_ADDRESS,
    NO_PASS,
    TOO_MANY,
    ChatTurns,
    link_chats,
)
from roundtrip.services.cards import chat_check
from roundtrip.services.cards.newest_check import FRESH_S, OLD_S, newest_check
from roundtrip.services.cards.pictures import Pictures
from roundtrip.services.check.handler import run_check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.notifiers import CLOSED, Bot, DrawsPictures
from roundtrip.services.verdicts.history import HistoryParams
from support.telegram import TOKEN, TelegramApi, telegram_api


@dataclass
class NoPictures:
    async def draw(self, svg: str) -> bytes:
        raise ServiceFull("busy", "Too many pictures are being drawn; retry in 2 s.", 2)


@asynccontextmanager
async def bot(ctx: Context, pictures: DrawsPictures | None = None) -> AsyncIterator[TelegramApi]:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        outward = replace(
            CLOSED,
            poster=poster,
            bot=Bot(Telegram(poster, TOKEN, api.url)),
            public_url="https://roundtrip.example",
            pictures=pictures,
        )
        async with run_in_background(link_chats(replace(ctx, outward=outward), again_s=0.01), "telegram"):
            yield api


async def test_a_check_is_answered_with_the_cards_text_and_picture(indexed: Context, built: Built) -> None:
    token = built.tokens["owner_only_sell"].lower()
    async with bot(indexed, Pictures(LIBRARIES)) as api:
        await api.says(5, f"/check {built.tokens['owner_only_sell']}")
        (told,) = await api.told_to(1)
    assert told["chat_id"] == 5
    assert told["photo"].startswith(b"\x89PNG")
    verdict, address, *sentence, as_of, link = told["caption"].split("\n")
    assert verdict.startswith('Trap: "')
    assert (address, link) == (token, f"https://roundtrip.example/t/{token}")
    assert as_of.startswith("As of block ")
    assert sentence


@pytest.mark.parametrize("pictures", [None, NoPictures()])
async def test_without_a_picture_the_text_is_sent(
    indexed: Context, built: Built, pictures: DrawsPictures | None
) -> None:
    async with bot(indexed, pictures) as api:
        await api.says(5, f"/check {built.tokens['plain']}")
        (told,) = await api.told_to(1)
    lines = told["text"].split("\n")
    assert lines[0].startswith('Sells: "')
    assert lines[2].startswith("A round trip costs 0.60 %")


async def test_a_picture_that_telegram_refuses_is_replaced_by_the_text(
    indexed: Context, built: Built
) -> None:
    async with bot(indexed, Pictures(LIBRARIES)) as api:
        api.wait_s = 1
        await api.says(5, f"/check {built.tokens['plain']}")
        (told,) = await api.told_to(1)
    assert "photo" not in told
    assert told["text"].startswith('Sells: "')


async def test_a_check_is_old_after_a_day(indexed: Context, built: Built) -> None:
    params = HistoryParams(built.tokens["plain"])
    await run_check(indexed, CheckParams(built.tokens["plain"]))
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
        told = await api.told_to(2)
    assert [(one["chat_id"], one["text"]) for one in told] == [(5, HELP), (6, NO_ADDRESS)]


async def test_who_asks_too_often_is_told_once(indexed: Context) -> None:
    async with bot(indexed) as api:
        for _ in range(MOST_OF_A_CHAT + 3):
            await api.says(5, "hello")
        await api.says(6, "hello")
        told = await api.told_to(MOST_OF_A_CHAT + 2)
    texts = [(one["chat_id"], one["text"]) for one in told]
    assert texts == [(5, HELP)] * MOST_OF_A_CHAT + [(5, TOO_MANY), (6, HELP)]


def test_all_chats_together_are_bounded_and_a_minute_ends() -> None:
    at_s = 0.0
    turns = ChatTurns(lambda: at_s)
    assert [turns.take(chat) for chat in range(MOST_OF_ALL)] == ["answer"] * MOST_OF_ALL
    assert [turns.take(99), turns.take(99), turns.take(98)] == [FULL, "silent", FULL]
    at_s = 60.0
    assert [turns.take(99) for _ in range(MOST_OF_A_CHAT + 2)] == [
        *["answer"] * MOST_OF_A_CHAT,
        TOO_MANY,
        "silent",
    ]


@pytest.mark.parametrize(("key", "tries"), [("curve", True), ("six_decimals", False)])
async def test_a_check_tries_real_holders_or_says_that_it_did_not(
    indexed: Context, built: Built, key: str, tries: bool
) -> None:
    text = "\n".join((await chat_check.check_for_chat(indexed, 5, built.tokens[key])).lines)
    assert ("real holders can sell it as" in text) == tries
    assert (chat_check.NO_HOLDERS in text) != tries


async def test_a_check_is_not_mixed_with_one_made_since(
    indexed: Context, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another check of the token is stored, as of another chain, before the first is read."""

    async def run_both(ctx: Context, params: CheckParams) -> Any:
        answer = await run_check(ctx, params)
        await run_check(replace(ctx, now_s=lambda: indexed.now_s() + 1), CheckParams(trap))
        await ctx.pool.execute(
            "UPDATE facts.evidence SET token = $1 WHERE id = (SELECT max(id) FROM facts.evidence)",
            bytes.fromhex(params.token()[2:]),
        )
        return answer

    trap = built.tokens["owner_only_sell"]
    monkeypatch.setattr(chat_check, "run_check", run_both)
    answer = await chat_check.check_for_chat(indexed, 5, built.tokens["six_decimals"])
    await indexed.pool.execute("DELETE FROM facts.evidence WHERE id = (SELECT max(id) FROM facts.evidence)")
    assert answer.lines[0].startswith('Sells: "')


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            NodeFault("the node sent no block 5"),
            ["The chain did not answer: the node sent no block 5.", NO_PASS],
        ),
        (RuntimeError("secret"), [NO_PASS]),
    ],
)
async def test_a_fault_is_told_and_ends_nothing(
    indexed: Context, monkeypatch: pytest.MonkeyPatch, error: Exception, said: list[str]
) -> None:
    async def fail(*arguments: Any) -> Any:
        raise error

    monkeypatch.setattr(chats, "check_for_chat", fail)
    async with bot(indexed) as api:
        await api.says(5, "/check 0x" + "1" * 40)
        await api.told_to(1)
        await api.says(6, "hello")
        told = await api.told_to(2)
    assert [one["text"].split("\n") for one in told] == [said, [HELP]]
