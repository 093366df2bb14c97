"""Chats that start the Telegram bot, over a real database."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import asyncpg
import pytest

from roundtrip.chain.rpc.background import run_in_background
from roundtrip.channels.telegram import ChatMessage, StartedChat
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.watch.alerts import MAX_CHANNELS
from roundtrip.jobs.kinds.telegram import LOCK, MAX_REFUSED, REFUSED_AGAIN_S, Refusals, link_chats
from roundtrip.services.delivery.channels import WINDOW_S
from roundtrip.services.runtime.notifiers import SILENT_S, Bot
from roundtrip.store.server import connections
from support.channels import NOW_S, WAIT_S, ChannelStreet, Chats, answered
from support.paying import answer_of


@pytest.fixture
async def street(url: str) -> AsyncIterator[ChannelStreet]:
    async with connections.create_pool(url, min_size=1, max_size=8, command_timeout=5) as pool:
        await pool.execute("TRUNCATE jobs.job")
        yield ChannelStreet(pool)


async def listed(street: ChannelStreet, account: Account) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await answer_of(street.ctx, "list_channels", account))["channels"]
    return found


async def code_for(street: ChannelStreet, account: Account) -> str:
    answer = (await answer_of(street.ctx, "list_channels", account))["telegram"]
    assert answer["bot"] == "some_bot"
    start, _, code = answer["link"].partition("?start=")
    assert start == "https://t.me/some_bot"
    return str(code)


async def start(street: ChannelStreet, *started: ChatMessage) -> list[str]:
    """What the bot tells whoever starts it so."""
    before = len(street.chats.taken)
    street.chats.updates = [[one] for one in started]
    street.chats.idle.clear()
    async with run_in_background(link_chats(street.ctx, again_s=0.01), "telegram"), asyncio.timeout(WAIT_S):
        await street.chats.idle.wait()
    return [texts[0] for _, texts in street.chats.taken[before:]]


async def test_a_chat_is_linked_once_by_the_code(street: ChannelStreet) -> None:
    account = await street.account()
    code = await code_for(street, account)
    assert len(code) <= 64
    came = [StartedChat(1, 77, code, "Ann \u202e<b>"), StartedChat(2, 78, code, "Eve")]
    linked, late = await start(street, *came)
    assert account.designation in linked
    assert "wrong or has expired" in late
    (row,) = await listed(street, account)
    assert (row["kind"], row["target"], row["state"]) == ("telegram", "Ann <b>", "live")
    await street.alert(account, "it buys")
    await street.run()
    assert street.chats.taken[-1] == (77, ["it buys"])
    # The next update is asked for, and none twice.
    assert street.chats.asked_after == [0, 1, 2]


async def test_a_code_is_good_for_ten_minutes_at_least_and_twenty_at_most(street: ChannelStreet) -> None:
    account = await street.account()
    street.at_s = NOW_S - NOW_S % WINDOW_S
    code = await code_for(street, account)
    street.at_s += 2 * WINDOW_S
    assert "wrong or has expired" in (await start(street, StartedChat(1, 77, code, "Ann")))[0]
    assert await listed(street, account) == []
    street.at_s -= 1
    assert account.designation in (await start(street, StartedChat(2, 77, code, "Ann")))[0]


async def test_a_code_that_was_made_up_links_nothing(street: ChannelStreet) -> None:
    account, other = await street.account(), await street.account()
    code = await code_for(street, account)
    forged = code.replace(f"{account.id}-", f"{other.id}-")
    changed = code[:-1] + ("0" if code[-1] != "0" else "1")
    wrong = ["", "x", forged, changed, f"{10**17}-{'0' * 32}", "0-" + "0" * 32, code + "0"]
    rows = await start(street, *(StartedChat(n, 77 + n, one, "Eve") for n, one in enumerate(wrong, 1)))
    assert ["wrong or has expired" in one for one in rows] == [True] * len(wrong)
    assert await listed(street, account) == await listed(street, other) == []


async def test_the_same_chat_again_is_the_same_channel(street: ChannelStreet) -> None:
    account = await street.account()
    await start(street, StartedChat(1, 77, await code_for(street, account), "Ann"))
    (row,) = await listed(street, account)
    await street.pool.execute("UPDATE accounts.channel SET state = 'off' WHERE id = $1", row["id"])
    code = await code_for(street, account)
    rows = await start(street, StartedChat(2, 77, code, "Ann"), StartedChat(3, 78, code, "Eve"))
    assert ["wrong or has expired" in one for one in rows] == [False, True]
    assert [(one["id"], one["state"]) for one in await listed(street, account)] == [(row["id"], "live")]


async def test_a_stranger_with_bad_codes_is_answered_once_a_minute(street: ChannelStreet) -> None:
    account = await street.account()
    code = await code_for(street, account)
    came = [StartedChat(1, 77, "x", "Eve"), StartedChat(2, 77, "y", "Eve"), StartedChat(3, 78, "x", "Eve")]
    assert len(await start(street, *came)) == 2
    # A good one of the same chat is answered at once.
    rows = await start(street, StartedChat(4, 77, "x", "Eve"), StartedChat(5, 77, code, "Eve"))
    assert [account.designation in one for one in rows] == [False, True]


def test_refusals_end_and_are_bounded() -> None:
    at_s = 0.0
    refusals = Refusals(lambda: at_s)
    assert [refusals.may_answer(n) for n in range(MAX_REFUSED + 1)] == [True] * MAX_REFUSED + [False]
    at_s = REFUSED_AGAIN_S - 1
    assert not refusals.may_answer(0)
    at_s = REFUSED_AGAIN_S
    assert refusals.may_answer(0)


async def test_there_is_no_sixth_chat(street: ChannelStreet) -> None:
    account = await street.account()
    for n in range(MAX_CHANNELS):
        await street.webhook(account, f"n{n}.example")
    rows = await start(street, StartedChat(1, 77, await code_for(street, account), "Ann"))
    assert "already have 5 channels" in rows[0]
    assert len(await listed(street, account)) == MAX_CHANNELS


async def test_who_blocked_the_bot_is_gone(street: ChannelStreet) -> None:
    account = await street.account()
    await start(street, StartedChat(1, 77, await code_for(street, account), "Ann"))
    street.chats.reply = answered(410)
    await street.alert(account, "it buys")
    await street.run()
    assert await listed(street, account) == []


class CountedPool:
    """A pool that tells when it was asked for a connection for the third time."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool, self._left = pool, 3
        self.thrice = asyncio.Event()

    def acquire(self, **how: Any) -> Any:
        self._left -= 1
        if not self._left:
            self.thrice.set()
        return self._pool.acquire(**how)


async def test_one_process_listens_and_another_takes_over(street: ChannelStreet) -> None:
    counted = CountedPool(street.pool)
    ctx = replace(street, pool=cast(asyncpg.Pool, counted)).ctx
    async with street.pool.acquire() as holder:
        assert await holder.fetchval("SELECT pg_try_advisory_lock($1)", LOCK)
        async with run_in_background(link_chats(ctx, again_s=0.01), "telegram"), asyncio.timeout(WAIT_S):
            # Twice it was in vain.
            await counted.thrice.wait()
            assert street.chats.asked_after == []
            await holder.execute("SELECT pg_advisory_unlock($1)", LOCK)
            await street.chats.idle.wait()
    assert street.chats.asked_after == [0]


async def test_a_telegram_that_fails_is_asked_again(street: ChannelStreet) -> None:
    account = await street.account()
    code = await code_for(street, account)
    asked = street.chats.read_messages
    failures = [OSError("away"), OSError("away")]

    async def read_messages(after: int, wait_s: int) -> tuple[list[ChatMessage], int]:
        if failures:
            raise failures.pop()
        return await asked(after, wait_s)

    street.chats.read_messages = read_messages  # type: ignore[method-assign]
    assert account.designation in (await start(street, StartedChat(1, 77, code, "Ann")))[0]
    assert failures == []
    # Its connections went back to the pool, without the lock.
    held = (
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        " AND (classid::int8 << 32) | objid::int8 = $1"
    )
    assert await street.pool.fetchval(held, LOCK) == 0


async def test_without_a_bot_that_says_its_name_there_is_no_link(street: ChannelStreet) -> None:
    account = await street.account()
    street.chats.called = None
    assert (await answer_of(street.ctx, "list_channels", account))["telegram"] is None


async def test_a_bot_that_did_not_say_its_name_is_not_asked_for_a_minute() -> None:
    chats = Chats(called=None)
    bot = Bot(chats)
    assert await bot.name(NOW_S) is None
    chats.called = "some_bot"
    assert await bot.name(NOW_S + SILENT_S - 1) is None
    assert await bot.name(NOW_S + SILENT_S) == "some_bot"
    chats.called = None
    assert await bot.name(NOW_S + 10 * SILENT_S) == "some_bot"


def test_a_window_is_as_long_as_the_texts_say() -> None:
    assert timedelta(seconds=WINDOW_S) == timedelta(minutes=10)
