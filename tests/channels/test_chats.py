"""Telegram and Discord, against stand-ins of their APIs."""

import asyncio
import json
import traceback
from typing import Any

import pytest
from aiohttp import web

from roundtrip.channels import discord
from roundtrip.channels.post import Poster, PostReply
from roundtrip.channels.targets import BadTarget, Target, parse_target
from roundtrip.channels.telegram import ChatCheck, ChatMessage, ChatText, StartedChat, Telegram
from support.discord import PATH, discord_api
from support.telegram import TOKEN, TelegramApi, telegram_api

SCAM = "[free eth](https://scam.example) @everyone <@1> **x** https://scam.example `y` ||z||"


def reach(api: TelegramApi, poster: Poster) -> Telegram:
    return Telegram(poster, TOKEN, api.url)


def started(messages: list[ChatMessage]) -> list[StartedChat]:
    return [message for message in messages if isinstance(message, StartedChat)]


async def test_telegram_is_told_in_plain_text() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        api.chats.add(5)
        reply = await reach(api, poster).send_rows(5, ["one", "<b>two</b>\n_three_"])
        assert reply.ok
        assert api.taken == [
            {"chat_id": 5, "text": "one\n<b>two</b> _three_", "link_preview_options": {"is_disabled": True}}
        ]


async def test_telegram_takes_what_is_long_and_many() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        api.chats.add(5)
        assert (await reach(api, poster).send_rows(5, ["😀" * 3000] * 30)).ok
        assert api.taken[0]["text"].splitlines()[-1] == "and 20 more"


async def test_a_person_who_blocked_the_bot_is_gone() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        api.chats.add(5)
        api.blocked.add(5)
        assert (await reach(api, poster).send_rows(5, ["one"])).status == 410


async def test_telegram_says_how_long_to_wait() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        api.chats.add(5)
        api.wait_s = 33
        reply = await reach(api, poster).send_rows(5, ["one"])
        assert (reply.status, reply.retry_after_s) == (429, 33.0)
        assert (await reach(api, poster).send_rows(5, ["one"])).ok


async def test_a_chat_that_is_not_there_is_an_error_of_ours() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        assert (await reach(api, poster).send_rows(6, ["one"])).status == 400


@pytest.mark.parametrize("body", ["", "{}", '{"ok": false}', "[]", "<html>", '{"ok": "yes"}', "\udcff"])
async def test_an_answer_that_is_not_telegrams_is_none(body: str) -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        telegram = reach(api, poster)
        text = body.encode("utf-8", "surrogateescape")
        api.broken = web.Response(body=text)
        reply = await telegram.send_rows(5, ["one"])
        assert (reply.ok, reply.status, reply.error) == (False, None, "the answer is not from Telegram")
        api.broken = web.Response(body=text)
        assert await telegram.name() is None
        api.broken = web.Response(body=text)
        with pytest.raises(OSError, match="the request to Telegram failed"):
            await telegram.read_messages(0, 0)


async def test_what_the_bot_is_called() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        assert await reach(api, poster).name() == "stand_in_bot"
        api.bot_name = "evil/../name"
        assert await reach(api, poster).name() is None
        api.token = "1:other"
        assert await reach(api, poster).name() is None


async def test_who_sent_a_code_is_found_among_the_rest() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        telegram = reach(api, poster)
        await api.says(1, "hello")
        first = await api.says(2, "/start code-1_A")
        await api.says(3, "/start code-2", kind="group")
        await api.says(4, "/start")
        messages, newest = await telegram.read_messages(0, 0)
        assert started(messages) == [StartedChat(first, 2, "code-1_A", "Ann Lee")]
        await api.says(5, "/start two words")
        await api.happens({"edited_message": {"text": "/start code-3"}})
        second = await api.says(6, "/start@stand_in_bot code-4")
        messages, newest = await telegram.read_messages(newest, 0)
        assert (started(messages), newest) == ([StartedChat(second, 6, "code-4", "Ann Lee")], second)
        assert await telegram.read_messages(newest, 0) == ([], newest)


async def test_what_people_write_in_private_is_told_apart() -> None:
    token = "0x" + "Ab" * 20
    texts = {
        f"/check {token}": token,
        f"  /check@stand_in_bot \n {token} ": token,
        "/check": None,
        "/check 0x12": None,
        f"/check {token} {token}": None,
        f"/check {token[:-1]}\u0661": None,
    }
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        telegram, messages, newest = reach(api, poster), list[ChatMessage](), 0
        for text in texts:
            await api.says(5, text)
        for text in (f"/checks {token}", token, "/start", "hello"):
            await api.says(6, text)
        await api.says(7, f"/check {token}", kind="group")
        await api.says(8, "")
        last = await api.happens({"edited_message": {"text": f"/check {token}"}})
        while newest < last:
            some, newest = await telegram.read_messages(newest, 0)
            messages += some
    assert [message.address for message in messages if isinstance(message, ChatCheck)] == [*texts.values()]
    assert [message.chat_id for message in messages if isinstance(message, ChatText)] == [6] * 4
    assert len(messages) == len(texts) + 4


async def test_a_picture_is_sent_with_its_text() -> None:
    picture = b"\x89PNG\r\n\x1a\n--\r\n\r\n" + bytes(range(256)) * 200
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        api.chats.add(5)
        assert (await reach(api, poster).send_photo(5, picture, 'Trap: "<b>\n😀"')).ok
        assert api.taken == [
            {
                "chat_id": 5,
                "caption": 'Trap: "<b>\n😀"',
                "caption_entities": '[{"type":"code","offset":6,"length":4}]',
                "photo": picture,
            }
        ]
        assert (await reach(api, poster).send_photo(5, picture, "😀" * 3000)).ok
        assert api.taken[1]["caption"].endswith("😀…")
        api.blocked.add(5)
        assert (await reach(api, poster).send_photo(5, picture, "x")).status == 410
        assert (await reach(api, poster).send_photo(6, picture, "x")).status == 400


def read_marked(text: str, entities: list[dict[str, Any]]) -> list[str]:
    """The parts of the text that are shown as code: Telegram makes no links of them."""
    units = text.encode("utf-16-le")
    assert all(entity["type"] == "code" for entity in entities)
    spans = [(entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2) for entity in entities]
    return [units[start:end].decode("utf-16-le") for start, end in spans]


async def test_what_strangers_wrote_makes_no_links() -> None:
    lines = ['Sells: "😀 claim.example @fox /start"', 'It says "evil.example" and "t.me/x".', "It costs 1 %"]
    quoted = ['"😀 claim.example @fox /start"', '"evil.example"', '"t.me/x"']
    cut = f'It says "{"evil.example " * 400}"'
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        api.chats.add(5)
        telegram = reach(api, poster)
        assert (await telegram.send_rows(5, lines)).ok
        assert (await telegram.send_photo(5, b"\x89PNG", "\n".join(lines))).ok
        assert (await telegram.send_rows(5, lines[:2], [None, "https://roundtrip.example/t/0x1"])).ok
        assert (await telegram.send_rows(5, [cut])).ok
    text, photo, linked, long = api.taken
    assert read_marked(text["text"], text["entities"]) == quoted
    assert read_marked(photo["caption"], json.loads(photo["caption_entities"])) == quoted
    assert read_marked(linked["text"], linked["entities"]) == quoted
    assert read_marked(long["text"], long["entities"]) == [long["text"].removeprefix("It says ")]


async def test_an_update_of_another_shape_is_got_past() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        telegram = reach(api, poster)
        await api.happens({"message": "what is this"})
        await api.happens({"message": {"chat": {"id": "x"}, "text": 5}})
        third = await api.says(2, "/start code")
        messages, newest = await telegram.read_messages(0, 0)
        assert (messages, newest) == ([StartedChat(third, 2, "code", "Ann Lee")], third)


async def test_updates_that_are_huge_are_got_past() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        telegram, after, messages = reach(api, poster), 0, list[ChatMessage]()
        for number in range(9):
            await api.says(number, "\u202e" * 4096, reply_to_message={"text": "\u202e" * 4096})
        last = await api.says(9, "/start code")
        while after < last:
            some, newest = await telegram.read_messages(after, 0)
            assert newest > after
            messages, after = messages + some, newest
        assert [chat.code for chat in started(messages)] == ["code"]


async def test_an_update_is_waited_for() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        waiting = asyncio.ensure_future(reach(api, poster).read_messages(0, 25))
        await api.polled()
        number = await api.says(2, "/start code")
        assert await waiting == ([StartedChat(number, 2, "code", "Ann Lee")], number)


async def test_a_longer_wait_than_a_posts_is_a_wait_all_the_same() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at}), timeout_s=0.01) as poster:
        waiting = asyncio.ensure_future(reach(api, poster).read_messages(0, 25))
        await api.polled()
        ended, _ = await asyncio.wait({waiting}, timeout=0.1)
        assert not ended
        await api.says(2, "/start code")
        assert [chat.code for chat in started((await waiting)[0])] == ["code"]


async def test_what_was_not_written_down_comes_again() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        telegram = reach(api, poster)
        await api.says(2, "/start code")
        first = await telegram.read_messages(0, 0)
        assert await telegram.read_messages(0, 0) == first
        assert await reach(api, poster).read_messages(0, 0) == first


async def test_numbers_that_begin_again_lower_after_a_quiet_week_are_seen() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        telegram = reach(api, poster)
        await api.says(2, "/start code-1")
        _, newest = await telegram.read_messages(0, 0)
        assert await telegram.read_messages(newest, 0) == ([], newest)
        api.next_update_id = 12
        await api.says(3, "/start code-2")
        messages, newest = await telegram.read_messages(newest, 0)
        assert ([chat.code for chat in started(messages)], newest) == (["code-2"], 12)
        assert await telegram.read_messages(newest, 0) == ([], 12)


async def test_nothing_that_goes_wrong_tells_the_token(caplog: pytest.LogCaptureFixture) -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        telegram = reach(api, poster)
        api.token = "1:other"
        with pytest.raises(OSError, match="status 401") as failed:
            await telegram.read_messages(0, 0)
        assert TOKEN not in "".join(traceback.format_exception(failed.value))
        reply = await telegram.send_rows(5, ["one"])
        assert reply.status == 401
        assert TOKEN not in f"{reply!r}{telegram!r}{caplog.text}"
    async with Poster(frozenset({api.at})) as poster:
        with pytest.raises(OSError, match="the connection failed") as failed:
            await Telegram(poster, TOKEN, api.url).read_messages(0, 0)
        assert TOKEN not in "".join(traceback.format_exception(failed.value))


@pytest.mark.parametrize("token", ["", "12345", "12345:", "12345:a/../b", "12345:a\r\nb", "x:abc", "1:a b"])
def test_a_token_that_is_none_is_refused_without_being_told(token: str) -> None:
    with pytest.raises(ValueError, match="a Telegram token must be") as refused:
        Telegram(Poster(), token, "https://api.telegram.org")
    assert not token or token not in str(refused.value)


def test_telegram_itself_is_reached_by_tls() -> None:
    Telegram(Poster(), TOKEN, "https://api.telegram.org/")
    with pytest.raises(BadTarget):
        Telegram(Poster(), TOKEN, "http://api.telegram.org")


async def test_discord_is_told_in_plain_text_that_pings_nobody() -> None:
    async with discord_api() as api, Poster(frozenset({api.at})) as poster:
        reply = await poster.post(
            parse_target(api.url, poster.loopback), *discord.build_message(["one", SCAM])
        )
        assert (discord.read_discord_reply(reply), reply.status, reply.ok) == (reply, 204, True)
        answer = api.taken[0]
        assert (answer["allowed_mentions"], answer["flags"]) == ({"parse": []}, 4)
        assert answer["content"] == (
            "one\n\\[free eth\\]\\(https\\://scam.example\\) \\@everyone \\<\\@1\\> \\*\\*x\\*\\* "
            "https\\://scam.example \\`y\\` \\|\\|z\\|\\|"
        )


@pytest.mark.parametrize("text", ["*" * 3000, "x" * 3000, "😀" * 1500, "a*" * 1200, "\\" * 2100])
@pytest.mark.parametrize("rows", [1, 9, 30])
async def test_discord_takes_what_is_long_and_many(text: str, rows: int) -> None:
    async with discord_api() as api, Poster(frozenset({api.at})) as poster:
        reply = await poster.post(
            parse_target(api.url, poster.loopback), *discord.build_message([text] * rows)
        )
        assert reply.ok
        content = api.taken[0]["content"]
        assert content.count("\n") == min(rows, 11 if rows > 10 else rows) - 1
        assert "…" in content


async def test_discord_says_how_long_to_wait_and_that_a_webhook_is_gone() -> None:
    async with discord_api() as api, Poster(frozenset({api.at})) as poster:
        to = parse_target(api.url, poster.loopback)
        api.wait_s = 1.337
        reply = discord.read_discord_reply(await poster.post(to, *discord.build_message(["one"])))
        assert (reply.status, reply.retry_after_s) == (429, 1.337)
        api.deleted = True
        assert (
            discord.read_discord_reply(await poster.post(to, *discord.build_message(["one"]))).status == 410
        )


@pytest.mark.parametrize(
    ("status", "read", "expected", "wait_s"),
    [
        (429, b'{"retry_after": true}', 429, 9.0),
        (429, b'{"retry_after": -1}', 429, 9.0),
        (429, b'{"retry_after": 1e300}', 429, 9.0),
        (429, b'{"retry_after": "5"}', 429, 9.0),
        (429, b'{"retry_after": 5}', 429, 5.0),
        (429, b"<html>", 429, 9.0),
        (429, b"\xff", 429, 9.0),
        (429, b"[1]", 429, 9.0),
        (404, b'{"code": 10015}', 410, 9.0),
        (401, b'{"code": 50027}', 410, 9.0),
        (404, b'{"code": [10015]}', 404, 9.0),
        (404, b'{"code": 0}', 404, 9.0),
        (404, b"", 404, 9.0),
        (500, b'{"code": 10015}', 500, 9.0),
        (200, b'{"code": 10015}', 200, 9.0),
    ],
)
def test_what_discord_answers(status: int, read: bytes, expected: int, wait_s: float) -> None:
    reply = discord.read_discord_reply(PostReply(status, None, 9.0, 1, read))
    assert (reply.status, reply.retry_after_s) == (expected, wait_s)


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        (f"https://discord.com{PATH}", True),
        (f"https://DISCORD.com.:443{PATH}?thread_id=5", True),
        (f"https://discordapp.com{PATH}", True),
        ("https://discord.com/api/v10/webhooks/1/abc_-", True),
        (f"https://canary.discord.com{PATH}", True),
        (f"https://ptb.discord.com{PATH}?thread_id=1", True),
        (f"https://ptb.canary.discord.com{PATH}", False),
        (f"https://evil.discord.com{PATH}", False),
        (f"https://discord.com:8443{PATH}", False),
        (f"https://discord.com.evil.example{PATH}", False),
        (f"https://evil.example/discord.com{PATH}", False),
        (f"https://evildiscord.com{PATH}", False),
        (f"https://dіscord.com{PATH}", False),
        ("https://discord.com/api/webhooks/x/abc", False),
        ("https://discord.com/api/webhooks/1/abc/../../users", False),
        ("https://discord.com/oauth2/authorize", False),
        ("https://discord.com/?/api/webhooks/1/abc", False),
    ],
)
def test_what_is_a_webhook_of_discords(url: str, is_one: bool) -> None:
    assert discord.is_discord(parse_target(url)) is is_one


def test_a_stand_in_of_discord_is_one_where_it_is_named() -> None:
    there = Target(f"http://127.0.0.1:9000{PATH}", "127.0.0.1", 9000)
    assert not discord.is_discord(there)
    assert discord.is_discord(there, frozenset({"127.0.0.1:9000"}))


# --- links -----------------------------------------------------------------------------------------

LINK = "https://a_b.example/token/0x" + "ab" * 20


async def test_telegram_gives_each_row_its_link() -> None:
    async with telegram_api() as api, Poster(frozenset({api.at})) as poster:
        api.chats.add(5)
        await reach(api, poster).send_rows(5, ["one", "two"], [LINK, None])
        assert api.taken[0]["text"] == f"one {LINK}\ntwo"


async def test_discord_escapes_the_text_and_not_the_link() -> None:
    async with discord_api() as api, Poster(frozenset({api.at})) as poster:
        to = parse_target(api.url, poster.loopback)
        await poster.post(to, *discord.build_message(["a_b", *["x"] * 11], [LINK] * 12))
        shown = api.taken[0]["content"].splitlines()
        assert shown[0] == f"a\\_b {LINK}"
        assert (len(shown), shown[-1]) == (11, "and 2 more")


async def test_where_links_do_not_fit_the_rows_go_before_them() -> None:
    whole = f"0x{'ab' * 20} removed liquidity worth 1.234 eth from a pool of 0x{'cd' * 20}, which you hold."
    async with discord_api() as api, Poster(frozenset({api.at})) as poster:
        to = parse_target(api.url, poster.loopback)
        await poster.post(to, *discord.build_message([whole] * 10, [LINK] * 10))
        assert api.taken[0]["content"] == "\n".join([whole] * 10)
