"""Where each page of the table is found on the ground: THE MAPPING that the tests and the screenshots loop
over. Who adds a page with a parameter that is not known here meets a test that says so."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import aiohttp

from e2e.ground import BrowserGround
from roundtrip.console.pages.account import ROOMS
from roundtrip.console.pages.boards import BOARDS
from roundtrip.console.routes import PAGES

_ASKED: Mapping[str, tuple[str, ...]] = {
    "/search": ("?q=plain", "?q=0x12", "?q=nothing+bears+this"),
    "/league": ("", "?who=agents"),
}
"""What follows a path, where that makes another page."""
PIECES = frozenset(
    {
        "/token/{address}/own",
        "/trade/quote",
        "/boards/{board}/rows",
        "/boards/{board}/live",
        "/token/{address}/steps",
        "/suggest",
    }
)
"""No pages by themselves: pages load them, and they are looked at there."""
WHOLE = tuple(sorted({page.path for page in PAGES if page.method == "GET"} - PIECES))


@dataclass(frozen=True, slots=True)
class Example:
    """One address of a page. ``pattern``: its row of the table."""

    pattern: str
    path: str
    signed_in: bool

    @property
    def name(self) -> str:
        """As a file may be called."""
        return (
            re.sub(r"[^a-z0-9]+", "-", re.sub("0x([0-9a-f]{6})[0-9a-f]*", r"\1", self.path)).strip("-")
            or "front"
        )


class NoExample(Exception):
    """A page of the table has a parameter for which no value is known here."""


def examples(ground: BrowserGround) -> list[Example]:
    """Of every page that is got, by its row. Raises NoExample."""
    rows = {page.path: page.signed_in for page in PAGES if page.method == "GET"}
    return [Example(row, path, signed_in) for row, signed_in in rows.items() for path in _paths(row, ground)]


def _paths(row: str, ground: BrowserGround) -> Iterator[str]:
    parameters = re.findall(r"\{.*?\}", row)
    if not parameters:
        yield from (row + more for more in _ASKED.get(row, ("",)))
        return
    known = _values(ground)
    found = next((known[start] for start in known if row.startswith(start)), None)
    if found is None or len(parameters) > 1:
        raise NoExample(f"{row} has no example: say one in {__name__}")
    yield from (row.replace(parameters[0], value) for value in found)


def _values(ground: BrowserGround) -> dict[str, list[str]]:
    """By how a row begins."""
    tokens = [ground.fair, ground.trap, *(one.token for one in ground.strange.values())]
    return {
        "/token/{address}": [*tokens, ground.built.tokens["paused"]],
        "/wallet/{address}": [ground.buyer, ground.built.accounts[0], ground.fair],
        "/transaction/{hash}": [ground.transaction],
        "/tools/{tool}": ["check-token", "smart-money"],
        "/docs/decisions/{page}": ["0010-dialects.md"],
        "/docs/{page}": ["keys.md", "verdicts.md"],
        "/boards/{board}": [board.tool for board in BOARDS],
        "/account/{room}": [room.name for room in ROOMS],
    }


async def is_whole(url: str, example: Example, cookie: str) -> bool:
    """Whether it is a page by itself, and no piece or stream that other pages load."""
    headers = {"accept": "text/html", "cookie": cookie}
    async with aiohttp.ClientSession(url) as session, session.get(example.path, headers=headers) as response:
        if response.content_type != "text/html":
            return False
        return (await response.content.read(15)).lower() == b"<!doctype html>"
