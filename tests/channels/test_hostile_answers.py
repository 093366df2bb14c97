"""Whatever a stranger's server answers, a POST to it ends, reads what it may, and leaves nothing open.

Where an answer ends by a limit on its size the time it may take is long; where only time ends it, short."""

import asyncio
import gzip
import socket
import ssl
from pathlib import Path

import pytest

from roundtrip.channels.post import MAX_READ, Poster, PostReply
from roundtrip.channels.targets import parse_target
from support.certificates import authority, self_signed
from support.receiver import Behaviour, Receiver, answer, dripping, endless, raw, receiver, then_silent

LONG_S, SHORT_S = 100.0, 0.3
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
NOT_HTTP, NO_ANSWER = "the answer is not HTTP", f"no answer within {SHORT_S:g} s"
TOO_MUCH, HUNG_UP = "the answer is too large", "the host closed the connection without an answer"

BY_SIZE: dict[str, tuple[Behaviour, int | None, str | None, int]] = {
    "a huge body": (answer(200, b"x" * 10_000_000), 200, None, MAX_READ),
    "an endless body": (endless(OK + b"\r\n", b"x" * 65_536), 200, None, MAX_READ),
    "an endless body in chunks": (endless(CHUNKED, b"1000\r\n" + b"x" * 4096 + b"\r\n"), 200, None, MAX_READ),
    "a chunk without end": (endless(CHUNKED + b"fffffffff\r\n", b"x" * 65_536), 200, None, MAX_READ),
    "a gzip bomb": (
        answer(200, gzip.compress(b"\0" * 50_000_000), {"content-encoding": "gzip"}),
        200,
        None,
        MAX_READ,
    ),
    "endless headers": (endless(OK, b"x-more: y\r\n" * 1000), None, NOT_HTTP, 0),
    "a header without end": (endless(OK + b"x-long: ", b"y" * 65_536), None, NOT_HTTP, 0),
    "a header's name without end": (endless(OK, b"x" * 65_536), None, NOT_HTTP, 0),
    "a first line without end": (endless(b"HTTP/1.1 200 ", b"y" * 65_536), None, NOT_HTTP, 0),
    "a huge header": (answer(200, b"", {"x-huge": "y" * 100_000}), None, NOT_HTTP, 0),
    "too many headers": (answer(200, b"", {f"x-{number}": "y" for number in range(500)}), None, NOT_HTTP, 0),
    "a flood of continues": (endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000), None, TOO_MUCH, 0),
    "a flood of processings": (endless(b"", b"HTTP/1.1 102 On\r\n\r\n" * 2000), None, TOO_MUCH, 0),
    "no HTTP at all": (raw(b"SSH-2.0-OpenSSH_9.6\r\n"), None, NOT_HTTP, 0),
    "noise": (raw(bytes(range(256)) * 8), None, NOT_HTTP, 0),
    "HTTP 0.9": (raw(b"<html>hello</html>"), None, NOT_HTTP, 0),
    "a status that is none": (raw(b"HTTP/1.1 abc OK\r\n\r\n"), None, NOT_HTTP, 0),
    "a negative status": (raw(b"HTTP/1.1 -20 OK\r\n\r\n"), None, NOT_HTTP, 0),
    "a negative length": (raw(OK + b"content-length: -1\r\n\r\n"), None, NOT_HTTP, 0),
    "two lengths": (raw(OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\nxx"), None, NOT_HTTP, 0),
    "a header with a line break inside": (raw(OK + b"x: a\rb\r\n\r\n"), None, NOT_HTTP, 0),
    "nothing": (raw(b""), None, HUNG_UP, 0),
    "half a first line": (raw(b"HTTP/1.1 2"), None, HUNG_UP, 0),
    "half the headers": (raw(OK + b"x-a: b\r\n"), None, HUNG_UP, 0),
    "fewer bytes than it said": (raw(OK + b"content-length: 1000\r\n\r\nshort"), 200, None, 5),
    "more bytes than it said": (
        raw(OK + b"content-length: 2\r\n\r\nokHTTP/1.1 500 No\r\n\r\n"),
        200,
        None,
        2,
    ),
    "a chunk's size that is none": (raw(CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n"), None, NOT_HTTP, 0),
    "a body of 204": (raw(b"HTTP/1.1 204 No\r\ncontent-length: 5\r\n\r\nhello"), None, NOT_HTTP, 0),
    "cookies": (answer(200, b"", {"set-cookie": "a=b; domain=.example; path=/"}), 200, None, 0),
    "another protocol": (
        raw(b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n\x81\x00"),
        101,
        None,
        0,
    ),
    "a redirect that leads round": (answer(302, b"", {"location": "/hook"}), 302, None, 0),
    "a redirect to here": (answer(307, b"", {"location": "http://127.0.0.1:1/"}), 307, None, 0),
    "a redirect to metadata": (
        answer(301, b"", {"location": "http://169.254.169.254/latest/"}),
        301,
        None,
        0,
    ),
    "a redirect to a file": (answer(303, b"", {"location": "file:///etc/passwd"}), 303, None, 0),
    "a redirect to nowhere": (answer(308, b"", {"location": "\\\\ %%"}), 308, None, 0),
    "a refresh": (answer(200, b"", {"refresh": "0; url=http://127.0.0.1:1/"}), 200, None, 0),
    "a wish for a password": (answer(401, b"", {"www-authenticate": 'Basic realm="x"'}), 401, None, 0),
    "a proxy's wish": (answer(407, b"", {"proxy-authenticate": "Basic"}), 407, None, 0),
    "a status of its own": (answer(799, b""), 799, None, 0),
}

EITHER: dict[str, Behaviour] = {
    "a flood of trailers": endless(CHUNKED + b"0\r\n", b"x: y\r\n" * 2000),
    "a chunk's extension without end": endless(CHUNKED + b"5;x=", b"y" * 65_536),
    "a chunk's size without end": endless(CHUNKED, b"0" * 65_536),
    "a length without end": endless(OK + b"content-length: ", b"1" * 65_536),
}
"""The answer fails before or after its headers were read: which, depends on how its packets arrive."""

BY_TIME: dict[str, tuple[Behaviour, int | None, str | None]] = {
    "silence": (then_silent(b""), None, NO_ANSWER),
    "silence within the first line": (then_silent(b"HTTP/1.1 200"), None, NO_ANSWER),
    "silence within the headers": (then_silent(OK + b"x-a: b\r\n"), None, NO_ANSWER),
    "silence within the body": (then_silent(OK + b"content-length: 100\r\n\r\nhello"), 200, None),
    "silence within a chunk": (then_silent(CHUNKED + b"5\r\nhello\r\n"), 200, None),
    "a drip of first line": (dripping(b"HTTP/1.1 200 ", b"O"), None, NO_ANSWER),
    "a drip of header": (dripping(OK + b"x-slow: ", b"y"), None, NO_ANSWER),
    "a drip of body": (dripping(OK + b"\r\n", b"y"), 200, None),
    "a drip of continues": (dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), None, NO_ANSWER),
    "a drip of early hints": (dripping(b"", b"HTTP/1.1 103 Early\r\nlink: </x>\r\n\r\n"), None, NO_ANSWER),
    "trailers without end": (dripping(CHUNKED + b"0\r\n", b"x: y\r\n"), 200, None),
}


async def post_to(there: Receiver, timeout_s: float, body: bytes = b"{}") -> PostReply:
    """The reply to a POST to ``there``, once no connection is open any more."""
    named = frozenset({there.at})
    async with Poster(named, timeout_s=timeout_s) as poster:
        reply = await poster.post(parse_target(there.url, named), body, {"content-type": "application/json"})
        await there.left()
    return reply


@pytest.mark.parametrize("case", BY_SIZE)
async def test_an_answer_is_read_no_further_than_it_may_be(case: str) -> None:
    behave, status, error, read = BY_SIZE[case]
    async with receiver() as there:
        there.behave = behave
        reply = await post_to(there, LONG_S)
        assert (reply.status, reply.error, len(reply.read)) == (status, error, read)
        assert there.connections == 1, "no redirect, no challenge and no broken answer makes it come back"
        assert len(there.got) == 1


async def test_what_is_packed_stays_packed() -> None:
    async with receiver() as there:
        there.behave = answer(200, gzip.compress(b"hello"), {"content-encoding": "gzip"})
        reply = await post_to(there, LONG_S)
    assert gzip.decompress(reply.read) == b"hello"


@pytest.mark.parametrize("case", EITHER)
async def test_an_answer_that_goes_wrong_somewhere_ends_there(case: str) -> None:
    async with receiver() as there:
        there.behave = EITHER[case]
        reply = await post_to(there, LONG_S)
    assert (reply.status, reply.error) in ((200, None), (None, NOT_HTTP), (None, TOO_MUCH))
    assert len(reply.read) < MAX_READ


@pytest.mark.parametrize("case", BY_TIME)
async def test_an_answer_is_waited_for_no_longer_than_it_may_be(case: str) -> None:
    behave, status, error = BY_TIME[case]
    async with receiver() as there:
        there.behave = behave
        reply = await post_to(there, SHORT_S)
    assert (reply.status, reply.error) == (status, error)
    assert len(reply.read) < MAX_READ


async def test_a_server_that_reads_nothing_of_a_long_message_is_left() -> None:
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        at = f"127.0.0.1:{listening.getsockname()[1]}"
        async with Poster(frozenset({at}), timeout_s=SHORT_S) as poster:
            reply = await poster.post(parse_target(f"http://{at}/", frozenset({at})), b"x" * 200_000, {})
        assert (reply.status, reply.error) == (None, NO_ANSWER)
        taken, _ = listening.accept()
        with taken:
            taken.settimeout(LONG_S)
            while taken.recv(65_536):
                pass  # all that was on its way is here, and then the end: nothing is still being written


async def test_where_nobody_listens_there_is_no_answer() -> None:
    async with receiver() as there:
        at = there.at
    async with Poster(frozenset({at}), timeout_s=LONG_S) as poster:
        reply = await poster.post(parse_target(f"http://{at}/", frozenset({at})), b"{}", {})
    assert (reply.status, reply.error) == (None, "the connection failed")


async def test_who_hangs_up_at_once_gave_no_answer() -> None:
    async with receiver() as there:

        async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.abort()

        there.behave = reset
        reply = await post_to(there, LONG_S)
    assert reply.status is None
    assert reply.error in (HUNG_UP, "the connection broke before an answer")


async def test_a_certificate_that_nobody_vouches_for_gets_nothing(tmp_path: Path) -> None:
    async with receiver(self_signed(tmp_path, "127.0.0.1")) as there:
        reply = await post_to(there, LONG_S)
        assert (reply.status, reply.error) == (None, "the TLS certificate is not valid for this host")
        assert there.got == []


async def test_a_certificate_for_another_host_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted = authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted.path))
    async with receiver(trusted.serving(tmp_path, "127.0.0.2", "hook.example")) as there:
        reply = await post_to(there, LONG_S)
        assert (reply.status, reply.error) == (None, "the TLS certificate is not valid for this host")
        assert there.got == []


async def test_a_certificate_of_an_authority_is_good_and_the_host_is_asked_for_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted = authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted.path))
    serving = trusted.serving(tmp_path, "localhost")
    asked: list[str | None] = []

    def named(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
        asked.append(name)

    serving.sni_callback = named
    async with receiver(serving) as there:
        named_at = frozenset({f"localhost:{there.port}"})
        async with Poster(named_at, timeout_s=LONG_S) as poster:
            reply = await poster.post(parse_target(f"https://LOCALHOST.:{there.port}/x", named_at), b"{}", {})
        assert (reply.status, asked) == (200, ["localhost"])
        assert there.got[0].headers["host"] == f"localhost:{there.port}"


@pytest.mark.parametrize("expected", [b"", b"hello\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"])
async def test_where_there_is_no_tls_nothing_is_sent(expected: bytes) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(5))
        writer.write(expected)
        writer.close()

    heard: list[bytes] = []
    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    at = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, Poster(frozenset({at}), timeout_s=LONG_S) as poster:
        reply = await poster.post(parse_target(f"https://{at}/", frozenset({at})), b"a secret", {})
    assert reply.status is None
    assert reply.error in ("the TLS handshake failed", "the connection failed")
    assert heard[0][:1] == b"\x16", "the first it hears is TLS"


async def test_a_tls_handshake_that_never_ends_is_given_up() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        left.set()

    left = asyncio.Event()
    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    at = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, Poster(frozenset({at}), timeout_s=SHORT_S) as poster:
        reply = await poster.post(parse_target(f"https://{at}/", frozenset({at})), b"{}", {})
        async with asyncio.timeout(LONG_S):
            await left.wait()
    assert (reply.status, reply.error) == (None, NO_ANSWER)
