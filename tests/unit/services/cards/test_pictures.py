"""Pictures are drawn one at a time, once each, and never awaited by too many."""

import asyncio
import struct
from pathlib import Path

import pytest

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.services.cards import pictures
from roundtrip.services.cards.pictures import Pictures

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><rect width="9" height="9"/></svg>'


async def test_svg_becomes_png_of_its_size() -> None:
    png = await Pictures(Path("no-fonts")).draw(SVG)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", png[16:24]) == (40, 20)


async def test_who_draws_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    program = r'import os, sys; sys.stdout.buffer.write(b"\x89PNG\r\n\x1a\n" + repr(os.environ).encode())'
    monkeypatch.setenv("ROUNDTRIP_SECRET_KEY", "a secret")
    monkeypatch.setattr(pictures, "_PROGRAM", program)
    environment = await Pictures(Path("no-fonts")).draw(SVG)
    assert b"environ(" in environment
    assert b"ROUNDTRIP" not in environment


@pytest.mark.parametrize("svg", ["", "<svg", "<svg xmlns='http://www.w3.org/2000/svg' width='0'/>"])
async def test_what_cannot_be_drawn_is_an_error(svg: str) -> None:
    with pytest.raises(ServiceFull, match="could not be drawn"):
        await Pictures(Path("no-fonts")).draw(svg)


async def test_one_picture_is_drawn_once() -> None:
    drawn: list[str] = []

    def draw(svg: str, fonts: tuple[str, ...]) -> bytes:
        drawn.append(svg)
        return svg.encode()

    found = Pictures(Path("no-fonts"), draw)
    assert await asyncio.gather(*(found.draw("a") for _ in range(9)), found.draw("b")) == [b"a"] * 9 + [b"b"]
    assert drawn == ["a", "b"]


async def test_more_than_may_wait_are_refused() -> None:
    found = Pictures(Path("no-fonts"), lambda svg, fonts: svg.encode())
    answers = await asyncio.gather(*(found.draw(str(number)) for number in range(20)), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, ServiceFull)]
    assert [answer.retry_after_s for answer in refused] == [2] * 4
    assert await found.draw("21") == b"21"
