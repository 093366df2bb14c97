"""One POST: what is sent, what is read of the answer, and that it can be cancelled."""

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
            "": "",  # The receiver's reading of the blank line after the headers.
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
    ("retry_after", "expected_s"),
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
async def test_retry_after_is_read_or_ignored(retry_after: str, expected_s: float | None) -> None:
    async with receiver() as there, Poster(frozenset({there.at}), now_s=lambda: NOW_S) as poster:
        head = f"HTTP/1.1 503 Later\r\ncontent-length: 0\r\nretry-after: {retry_after}\r\n\r\n"
        there.behave = then_silent(head.encode())
        reply = await poster.post(parse_target(there.url, frozenset({there.at})), b"", {})
        assert (reply.status, reply.retry_after_s) == (503, expected_s)


async def test_cookies_are_not_given_back_and_every_post_connects_anew() -> None:
    async with receiver() as there, Poster(frozenset({there.at})) as poster:
        there.behave = answer(200, b"", {"set-cookie": "id=1; path=/", "connection": "keep-alive"})
        to = parse_target(there.url, frozenset({there.at}))
        for _ in range(3):
            await poster.post(to, b"", {})
        assert there.connections == 3
        assert all("cookie" not in got.headers for got in there.got)


async def test_cancelling_a_post_closes_its_connection() -> None:
    async with receiver() as there, Poster(frozenset({there.at})) as poster:
        there.behave = then_silent(b"")
        posting = asyncio.ensure_future(poster.post(parse_target(there.url, frozenset({there.at})), b"", {}))
        await there.until(lambda: len(there.got) == 1)
        posting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await posting
        await there.left()


async def test_cancelling_a_post_within_its_answer_closes_its_connection() -> None:
    async with receiver() as there, Poster(frozenset({there.at})) as poster:
        there.behave = then_silent(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello")
        to = parse_target(there.url, frozenset({there.at}))
        posting = asyncio.ensure_future(poster.post(to, b"", {}))
        await there.until(lambda: len(there.got) == 1)
        posting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await posting
        await there.left()


async def test_posts_do_not_limit_each_other() -> None:
    """Two hundred posts to a server that does not answer delay no other post."""
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
                isinstance(outcome, asyncio.CancelledError)
                for outcome in await asyncio.gather(*held, return_exceptions=True)
            )


async def test_a_poster_that_was_not_entered_says_so() -> None:
    with pytest.raises(RuntimeError, match="entered"):
        await Poster().post(parse_target("https://hook.example/"), b"", {})


class SlowResolver:
    """A system resolver that does not answer before ``may`` is set. ``asked``: the names; ``found``: what it
    answers."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.asked: list[str] = []
        self.found: list[tuple[int, str]] = [(socket.AF_INET, "127.0.0.1")]
        self._each = threading.Semaphore(0)

    async def reached(self, times: int) -> None:
        """Waits until it was asked so many times more."""
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


async def test_names_are_looked_up_in_at_most_max_threads() -> None:
    slow = SlowResolver()
    lookups = Lookups(PATIENCE_S, slow)
    many = [asyncio.ensure_future(lookups.resolve(f"hook.owner{number}.example", 1)) for number in range(60)]
    await slow.reached(MAX_THREADS)
    assert len(slow.asked) == MAX_THREADS
    slow.may.set()
    assert len(await asyncio.gather(*many)) == 60


async def test_a_name_that_takes_too_long_is_given_up_and_its_thread_counts_until_it_ends() -> None:
    slow = SlowResolver()
    # Each of the first lookups takes the whole second; a lookup without a thread waits half of it for one.
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


async def test_a_post_whose_name_gets_no_thread_was_not_tried() -> None:
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


async def test_a_resolved_name_is_cached_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowResolver()
    slow.may.set()
    clock = [1000.0]
    monkeypatch.setattr("aiohttp.connector.monotonic", lambda: clock[0])
    async with Poster(resolver=Lookups(PATIENCE_S, slow)) as poster:
        for clock[0], asked in ((1000.0, 1), (1059.0, 1), (1061.0, 2)):
            reply = await poster.post(parse_target("https://hook.example/"), b"", {})
            assert reply.error == "the host's address is not on the public internet"
            assert len(slow.asked) == asked


async def test_only_the_first_addresses_of_a_name_are_tried() -> None:
    slow = SlowResolver()
    slow.may.set()
    slow.found = [(socket.AF_INET, f"10.0.0.{number}") for number in range(200)]
    assert len(await Lookups(PATIENCE_S, slow).resolve("hook.example", 1)) == MAX_ADDRESSES


async def test_an_unknown_name_and_an_invalid_one() -> None:
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
