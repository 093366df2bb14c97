"""One POST: what is sent, what is understood of the answer, and that it can be stopped."""

import asyncio
import socket
import threading

import pytest

from roundtrip.channels.connect import MAX_ADDRESSES, MAX_THREADS, MAX_THREADS_OF_ONE, Lookups, NoTurn
from roundtrip.channels.post import Poster, PostNotTried, PostReply
from roundtrip.channels.targets import parse_target
from support.receiver import PATIENCE_S, answer, receiver, then_silent

NOW_S = 1_700_000_000.0


async def test_the_message_goes_out_as_it_is() -> None:
    async with receiver() as there, Poster(frozenset({there.at})) as poster:
        to = parse_target(there.url + "?a=%41&b=c+d", frozenset({there.at}))
        there.behave = answer(204)
        reply = await poster.post(to, b'{"a": 1}', {"content-type": "application/json", "webhook-id": "x"})
        got = there.got[0]
        assert reply.ok
        assert (reply.status, reply.error, reply.read, reply.retry_after_s) == (204, None, b"", None)
        assert reply.took_ms >= 0
        assert (got.line, got.body) == ("POST /hook?a=%41&b=c+d HTTP/1.1", b'{"a": 1}')
        assert got.headers == {
            "host": there.at,
            "content-type": "application/json",
            "webhook-id": "x",
            "content-length": "8",
            "accept": "*/*",
            "accept-encoding": "identity",
            "user-agent": "roundtrip",
            "connection": "close",
            "": "",
        }


@pytest.mark.parametrize(
    ("status", "good"), [(200, True), (201, True), (299, True), (300, False), (404, False)]
)
async def test_only_2xx_is_success_and_the_beginning_of_the_answer_is_kept(status: int, good: bool) -> None:
    async with receiver() as there, Poster(frozenset({there.at})) as poster:
        there.behave = answer(status, b"as you wish")
        reply = await poster.post(parse_target(there.url, frozenset({there.at})), b"", {})
        assert (reply.status, reply.ok, reply.read) == (status, good, b"as you wish")


@pytest.mark.parametrize(
    ("expected", "wished_s"),
    [
        ("120", 120.0),
        ("0", 0.0),
        (" 7 ", 7.0),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tue, 14 Nov 2023 22:13:19 GMT", 0.0),
        ("Tue, 14 Nov 2023 22:14:20 -0000", 60.0),
        ("soon", None),
        ("", None),
        ("-5", None),
        ("1e9", None),
        ("١٢", None),
        ("9999999999", None),
        ("Tue, 99 Nov 2023 99:99:99 GMT", None),
        ("Tue, 14 Nov 99999 22:14:20 GMT", None),
    ],
)
async def test_a_wish_to_be_asked_later_is_understood_or_left_aside(
    expected: str, wished_s: float | None
) -> None:
    async with receiver() as there, Poster(frozenset({there.at}), now_s=lambda: NOW_S) as poster:
        head = b"HTTP/1.1 503 Later\r\ncontent-length: 0\r\nretry-after: " + expected.encode() + b"\r\n\r\n"
        there.behave = then_silent(head)
        reply = await poster.post(parse_target(there.url, frozenset({there.at})), b"", {})
        assert (reply.status, reply.retry_after_s) == (503, wished_s)


async def test_cookies_are_not_given_back_and_every_post_connects_anew() -> None:
    async with receiver() as there, Poster(frozenset({there.at})) as poster:
        there.behave = answer(200, b"", {"set-cookie": "id=1; path=/", "connection": "keep-alive"})
        to = parse_target(there.url, frozenset({there.at}))
        for _ in range(3):
            await poster.post(to, b"", {})
        assert there.connections == 3
        assert all("cookie" not in got.headers for got in there.got)


async def test_who_stops_it_stops_it_and_nothing_stays_open() -> None:
    async with receiver() as there, Poster(frozenset({there.at})) as poster:
        there.behave = then_silent(b"")
        posting = asyncio.ensure_future(poster.post(parse_target(there.url, frozenset({there.at})), b"", {}))
        await there.until(lambda: len(there.got) == 1)
        posting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await posting
        await there.left()


async def test_stopped_within_the_body_it_is_stopped_all_the_same() -> None:
    async with receiver() as there, Poster(frozenset({there.at})) as poster:
        there.behave = then_silent(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello")
        to = parse_target(there.url, frozenset({there.at}))
        posting = asyncio.ensure_future(poster.post(to, b"", {}))
        await there.until(lambda: len(there.got) == 1)
        posting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await posting
        await there.left()


async def test_as_many_as_wish_to_may_post_at_once() -> None:
    """Two hundred servers that say nothing keep nobody else from being told."""
    async with receiver() as silent, receiver() as there:
        named = frozenset({silent.at, there.at})
        async with Poster(named) as poster:
            silent.behave = then_silent(b"")
            held = [
                asyncio.ensure_future(poster.post(parse_target(silent.url, named), b"", {}))
                for _ in range(200)
            ]
            await silent.until(lambda: len(silent.got) == 200)
            reply = await poster.post(parse_target(there.url, named), b"", {})
            assert reply.status == 200
            for posting in held:
                posting.cancel()
            assert all(
                isinstance(found, asyncio.CancelledError)
                for found in await asyncio.gather(*held, return_exceptions=True)
            )


async def test_a_poster_that_was_not_entered_says_so() -> None:
    with pytest.raises(RuntimeError, match="entered"):
        await Poster().post(parse_target("https://hook.example/"), b"", {})


class SlowResolver:
    """A system resolver that answers nothing until it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.asked: list[str] = []
        self.found: list[tuple[int, str]] = [(socket.AF_INET, "127.0.0.1")]
        self._each = threading.Semaphore(0)

    async def reached(self, times: int) -> None:
        """Waits until it was asked so often."""
        for _ in range(times):
            assert await asyncio.to_thread(self._each.acquire, timeout=PATIENCE_S)

    def __call__(self, host: str, port: int) -> list[tuple[int, str]]:
        self.asked.append(host)
        self._each.release()
        assert self.may.wait(PATIENCE_S)
        return self.found


async def test_slow_names_of_one_owner_take_only_so_many_threads_and_others_get_theirs() -> None:
    slow = SlowResolver()
    lookups = Lookups(PATIENCE_S, slow)
    evil = [asyncio.ensure_future(lookups.resolve(f"h{number}.evil.example", 1)) for number in range(50)]
    good = asyncio.ensure_future(lookups.resolve("hook.good.example", 1))
    await slow.reached(MAX_THREADS_OF_ONE + 1)
    assert sorted(slow.asked) == sorted(
        [*(f"h{number}.evil.example" for number in range(MAX_THREADS_OF_ONE)), "hook.good.example"]
    )
    slow.may.set()
    assert (await good)[0]["host"] == "127.0.0.1"
    assert len(await asyncio.gather(*evil)) == 50


async def test_no_more_threads_than_there_may_be_look_names_up() -> None:
    slow = SlowResolver()
    lookups = Lookups(PATIENCE_S, slow)
    many = [asyncio.ensure_future(lookups.resolve(f"hook.owner{number}.example", 1)) for number in range(60)]
    await slow.reached(MAX_THREADS)
    assert len(slow.asked) == MAX_THREADS
    slow.may.set()
    assert len(await asyncio.gather(*many)) == 60


async def test_a_name_that_takes_too_long_is_given_up_and_its_thread_counts_until_it_ends() -> None:
    slow = SlowResolver()
    # Long enough for an answer that waits for nothing, on a busy machine.
    lookups = Lookups(1, slow)
    try:
        for number in range(MAX_THREADS_OF_ONE):
            with pytest.raises(OSError, match="too long"):
                await lookups.resolve(f"h{number}.evil.example", 1)
        for number in range(3):
            with pytest.raises(NoTurn):
                await lookups.resolve(f"h{number}.evil.example", 1)
        assert len(slow.asked) == MAX_THREADS_OF_ONE
    finally:
        slow.may.set()
    patient = Lookups(PATIENCE_S, slow)
    assert await patient.resolve("h9.evil.example", 1)


async def test_where_there_is_no_turn_to_look_a_name_up_nothing_was_tried() -> None:
    slow = SlowResolver()
    lookups = Lookups(0.2, slow)
    async with Poster(resolver=lookups) as poster:
        replies = await asyncio.gather(
            *(
                poster.post(parse_target(f"https://h{n}.evil.example/"), b"", {})
                for n in range(MAX_THREADS_OF_ONE)
            ),
            return_exceptions=True,
        )
        assert [reply.error for reply in replies if isinstance(reply, PostReply)] == [
            "the host name has no address"
        ] * MAX_THREADS_OF_ONE
        with pytest.raises(PostNotTried, match="too many name lookups"):
            await poster.post(parse_target("https://late.evil.example/"), b"", {})
    slow.may.set()


async def test_good_addresses_are_kept_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowResolver()
    slow.may.set()
    clock = [1000.0]
    monkeypatch.setattr("aiohttp.connector.monotonic", lambda: clock[0])
    async with Poster(resolver=Lookups(PATIENCE_S, slow)) as poster:
        for clock[0], asked in ((1000.0, 1), (1059.0, 1), (1061.0, 2)):
            reply = await poster.post(parse_target("https://hook.example/"), b"", {})
            assert reply.error == "the host's address is not on the public internet"
            assert len(slow.asked) == asked


async def test_of_a_name_with_many_addresses_the_first_few_are_tried() -> None:
    slow = SlowResolver()
    slow.may.set()
    slow.found = [(socket.AF_INET, f"10.0.0.{number}") for number in range(200)]
    assert len(await Lookups(PATIENCE_S, slow).resolve("hook.example", 1)) == MAX_ADDRESSES


async def test_a_name_that_leads_nowhere_and_one_that_is_none() -> None:
    def nowhere(host: str, port: int) -> list[tuple[int, str]]:
        if host.startswith("bad"):
            raise UnicodeError("label too long")
        raise socket.gaierror(socket.EAI_NONAME, "a stranger's text")

    for host in ("hook.example", "bad.example"):
        async with Poster(resolver=Lookups(PATIENCE_S, nowhere)) as poster:
            reply = await poster.post(parse_target(f"https://{host}/"), b"", {})
        assert (reply.status, reply.error) == (None, "the host name has no address")


async def test_a_name_that_is_never_answered_holds_nobody() -> None:
    slow = SlowResolver()
    async with Poster(timeout_s=0.1, resolver=Lookups(PATIENCE_S, slow)) as poster:
        reply = await poster.post(parse_target("https://hook.example/"), b"", {})
    assert (reply.status, reply.error) == (None, "no answer within 0.1 s")
    slow.may.set()
