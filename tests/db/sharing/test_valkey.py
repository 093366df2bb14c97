"""The store that processes share: never waited for beyond its bound, and never a fault of it let through."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import redis
from structlog.testing import capture_logs

from roundtrip.api.sharing.valkey import BadUrl, Script, StoreUnavailable, Valkey
from support.clocks import Clock
from support.valkeys import FAULTS, Store, pretending

SUM = Script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
PATIENT_S = 10.0
"""For tests of what is not the bound."""


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


@pytest.fixture
async def valkey(valkey_url: str, clock: Clock) -> AsyncIterator[Valkey]:
    found = Valkey(valkey_url, clock, PATIENT_S)
    yield found
    await found.close()


async def test_everybody_has_the_reply_to_what_he_asked(valkey: Valkey) -> None:
    text = await asyncio.gather(*(valkey.ask("ECHO", f"{number}") for number in range(1_000)))
    assert text == [b"%d" % number for number in range(1_000)]


async def test_a_script_runs_also_where_it_was_forgotten(valkey: Valkey, valkey_url: str) -> None:
    assert await valkey.run(SUM, ("k",), (2,)) == 2
    with redis.Redis.from_url(valkey_url) as client:
        client.script_flush()
    assert await asyncio.gather(*(valkey.run(SUM, ("k",), (1,)) for _ in range(3))) == [3, 4, 5]
    assert not valkey.is_gone()


async def test_what_was_told_is_done_before_it_closes(valkey: Valkey, valkey_url: str) -> None:
    valkey.send_script(SUM, ("k",), (7,))
    await valkey.close()
    with redis.Redis.from_url(valkey_url) as client:
        assert client.get("k") == b"7"
    with pytest.raises(StoreUnavailable):
        await valkey.ask("PING")
    valkey.send_script(SUM, ("k",), (7,))


async def test_whoever_goes_away_takes_no_reply_from_others(valkey: Valkey) -> None:
    asking = [asyncio.create_task(valkey.ask("ECHO", f"{number}")) for number in range(3)]
    await asyncio.sleep(0)
    asking[1].cancel()
    assert [await asking[0], await asking[2]] == [b"0", b"2"]
    assert await valkey.ask("ECHO", "later") == b"later"


async def test_after_a_fault_nobody_asks_for_a_second(clock: Clock) -> None:
    async with pretending(b"") as pretender:
        valkey = Valkey(pretender.url, clock, PATIENT_S)
        for second in range(1, 4):
            came = await asyncio.gather(*(valkey.ask("PING") for _ in range(50)), return_exceptions=True)
            assert [type(one) for one in came] == [StoreUnavailable] * 50
            for _ in range(5):
                assert valkey.is_gone()
                with pytest.raises(StoreUnavailable):
                    await valkey.ask("PING")
            assert pretender.connections == second
            clock.now_s += 0.999
            assert valkey.is_gone()
            clock.now_s += 0.001
        await valkey.close()


async def test_one_who_asks_tries_again_and_nobody_else_waits_for_it(own_valkey: Store, clock: Clock) -> None:
    valkey = Valkey(own_valkey.url, clock, 0.05)
    with own_valkey.hanging():
        came = await asyncio.gather(*(valkey.ask("PING") for _ in range(50)), return_exceptions=True)
        assert [type(one) for one in came] == [StoreUnavailable] * 50
        clock.now_s += 1.0
        trying = asyncio.create_task(valkey.ask("PING"))
        await asyncio.sleep(0)
        # Not even a turn of the loop.
        with pytest.raises(StoreUnavailable):
            valkey.ask("PING").send(None)
        with pytest.raises(StoreUnavailable):
            await trying
    await valkey.close()


async def test_a_reply_that_came_too_late_is_nobody_elses(own_valkey: Store, clock: Clock) -> None:
    valkey = Valkey(own_valkey.url, clock, PATIENT_S)
    assert await valkey.ask("ECHO", "before") == b"before"
    valkey.bound_s = 0.05
    with own_valkey.hanging(), pytest.raises(StoreUnavailable):
        await valkey.ask("ECHO", "late")
    valkey.bound_s = PATIENT_S
    clock.now_s += 1.0
    assert [await valkey.ask("ECHO", one) for one in "ab"] == [b"a", b"b"]
    await valkey.close()


async def test_a_loop_that_is_late_itself_does_not_blame_the_store(valkey_url: str, clock: Clock) -> None:
    valkey = Valkey(valkey_url, clock, 0.5)
    assert await valkey.ask("PING") is not None
    asking = asyncio.create_task(valkey.ask("ECHO", "here"))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(time.sleep, 0.6)
    assert await asking == b"here"
    await valkey.close()


@pytest.mark.parametrize("what", FAULTS)
async def test_whatever_it_answers_is_gone_at_worst(what: str, clock: Clock) -> None:
    async with pretending(FAULTS[what]) as pretender:
        valkey = Valkey(pretender.url, clock, 0.1)
        for _ in range(3):
            clock.now_s += 1.0
            try:
                came = await valkey.run(SUM, ("k",), (1,))
            except StoreUnavailable:
                assert valkey.is_gone()
            else:
                assert what in ("a word", "nothing", "a list")
                assert came in (b"OK", None, [1, b"abc"])
        await valkey.close()


@pytest.mark.parametrize(
    ("what", "word"),
    [
        ("out of memory", "OOM"),
        ("read only", "READONLY"),
        ("loading", "LOADING"),
        ("wants a password", "NOAUTH"),
        ("cannot save", "MISCONF"),
        ("busy", "BUSY"),
        ("hangs up", "ConnectionError"),
    ],
)
async def test_what_is_logged_is_the_word_that_the_server_has_for_it(what: str, word: str) -> None:
    async with pretending(FAULTS[what]) as pretender:
        with capture_logs() as rows:
            valkey = Valkey(pretender.url, bound_s=PATIENT_S)
            with pytest.raises(StoreUnavailable):
                await valkey.ask("PING")
            await valkey.close()
    assert [one["fault"] for one in rows] == [word]


async def test_an_error_within_a_script_is_logged_by_its_word_and_nothing_of_what_was_asked(
    valkey: Valkey,
) -> None:
    with capture_logs() as rows, pytest.raises(StoreUnavailable):
        await valkey.run(Script("return redis.error_reply('a strangers words')"), ("k",), ("secret",))
    assert [one["fault"] for one in rows] == ["ResponseError"]


async def test_it_is_told_once_that_it_went_and_once_that_it_is_back(own_valkey: Store, clock: Clock) -> None:
    valkey = Valkey(own_valkey.url, clock, PATIENT_S)
    with capture_logs() as rows:
        await valkey.ask("PING")
        own_valkey.kill()
        for _ in range(3):
            clock.now_s += 1.0
            with pytest.raises(StoreUnavailable):
                await valkey.ask("PING")
        own_valkey.start()
        clock.now_s += 1.0
        for _ in range(3):
            assert await valkey.ask("PING") is not None
    assert [(one["log_level"], one["event"].partition(":")[0]) for one in rows] == [
        ("warning", "valkey failed; limits and answers are per process"),
        ("info", "valkey works again"),
    ]
    await valkey.close()


async def test_what_is_no_answer_makes_it_gone(valkey: Valkey, clock: Clock) -> None:
    valkey.mark_unavailable("made up")
    assert valkey.is_gone()
    clock.now_s += 1.0
    assert await valkey.ask("PING") is not None


@pytest.mark.parametrize(
    "url",
    [
        "redis://:secret@host:port",
        "redis://:secret@host?nosuch=1",
        "redis://:secret@host?protocol=9",
        "redis://:secret@host?retry=1",
        "redis://:secret@host?encoding=nosuch",
        "redis://:secret@host?decode_responses=1",
        "redis://:secret@host?maint_notifications_config=1",
        "rediss://:secret@host?ssl_cert_reqs=nonsense",
        "rediss://:secret@host?ssl_ca_certs=/no/such/file",
        "unix://:secret@/socket?port=1",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_at_once_and_not_shown(url: str) -> None:
    with pytest.raises(BadUrl) as caught:
        Valkey(url)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "url", ["redis://host", "redis://:secret@host:1/2?client_name=us", "rediss://host?ssl_cert_reqs=none"]
)
def test_a_url_that_can_be_used_asks_nobody_yet(url: str) -> None:
    assert not Valkey(url).is_gone()
