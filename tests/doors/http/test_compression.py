"""What is compressed, for whom, and what never is."""

import gzip
import zlib
from collections.abc import AsyncIterator

import aiohttp
import pytest

from roundtrip.console.support.page_request import COOKIE
from roundtrip_development.devnet.world import Built
from support.console_house import ConsoleHouse
from support.keys import Person

ACCEPTS = "accept-encoding"
_MIN_BYTES = 1024


@pytest.fixture
async def raw() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(
        auto_decompress=False, headers={"accept": "text/html"}, cookie_jar=aiohttp.DummyCookieJar()
    ) as found:
        yield found


@pytest.mark.parametrize(
    "path",
    ["/token/TOKEN", "/status", "/nowhere", "/t/TOKEN/card.svg", "/v1/check/TOKEN/proof", "/v1/openapi.json"],
)
async def test_what_is_long_is_sent_as_the_client_reads_it(
    house: ConsoleHouse, raw: aiohttp.ClientSession, built: Built, path: str
) -> None:
    url = house.url + path.replace("TOKEN", built.tokens["no_pool"])
    sizes = {}
    for accepted in ("gzip", "identity"):
        async with raw.get(url, headers={ACCEPTS: accepted}) as response:
            body = await response.read()
            assert response.headers.get("content-encoding") == (None if accepted == "identity" else "gzip")
            assert "accept-encoding" in response.headers["vary"]
            assert response.headers["content-length"] == str(len(body))
            sizes[accepted] = len(body)
            plain = body if accepted == "identity" else gzip.decompress(body)
            assert plain.lstrip()[:1] in (b"<", b"{")
    assert sizes["gzip"] < 0.6 * sizes["identity"]


async def test_short_answers_and_pictures_of_pixels_stay_as_they_are(
    house: ConsoleHouse, raw: aiohttp.ClientSession, built: Built
) -> None:
    for path in (f"/t/{built.tokens['plain']}/card.png", f"/v1/check/{built.tokens['plain']}"):
        async with raw.get(house.url + path, headers={ACCEPTS: "gzip"}) as response:
            body = await response.read()
            assert "content-encoding" not in response.headers
            assert len(body) <= _MIN_BYTES or response.content_type == "image/png"


async def test_what_a_session_saw_is_not_compressed(house: ConsoleHouse, raw: aiohttp.ClientSession) -> None:
    """It holds the forms' token, and a length may tell of it."""
    session = await house.signed_in(Person())
    for path in ("/account/watch", "/status", "/nowhere"):
        headers = {ACCEPTS: "gzip", "cookie": f"{COOKIE}={session}"}
        async with raw.get(house.url + path, headers=headers) as response:
            assert "content-encoding" not in response.headers
            assert len(await response.read()) > _MIN_BYTES


async def test_a_stream_is_not_held_back(house: ConsoleHouse, raw: aiohttp.ClientSession) -> None:
    """Its first bytes can be read before its end, in either form."""
    url = house.url + "/boards/newest_verdicts/live"
    async with raw.get(url, headers={ACCEPTS: "identity"}) as response:
        assert "content-encoding" not in response.headers
        assert (await response.content.readline()).startswith(b"retry: ")
    async with raw.get(url, headers={ACCEPTS: "gzip"}) as response:
        assert response.headers["content-encoding"] == "gzip"
        unpacked, unpack = b"", zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        while b"\n" not in unpacked:
            unpacked += unpack.decompress(await response.content.readany())
        assert unpacked.startswith(b"retry: ")


async def test_a_picture_is_known_again_in_either_form(
    house: ConsoleHouse, raw: aiohttp.ClientSession, built: Built
) -> None:
    """Its tag is weak: it names two sequences of bytes."""
    url = f"{house.url}/t/{built.tokens['plain']}/card.svg"
    async with raw.get(url, headers={ACCEPTS: "gzip"}) as response:
        etag = response.headers["etag"]
    assert etag.startswith('W/"')
    async with raw.get(url, headers={ACCEPTS: "identity", "if-none-match": etag}) as response:
        assert (response.status, response.headers["etag"]) == (304, etag)


async def test_a_piece_does_not_stand_in_for_its_page(
    house: ConsoleHouse, raw: aiohttp.ClientSession, built: Built
) -> None:
    """A browser keeps one answer for each address: it must not show the piece on *Back*."""
    async with raw.get(f"{house.url}/token/{built.tokens['plain']}") as response:
        assert "hx-request" in response.headers["vary"]
