"""Days on which something is missing: each page says what it cannot show, and keeps the rest."""

import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from roundtrip.config.settings import Settings
from roundtrip.console.pages import trade
from roundtrip.console.pages.account import ROOMS
from roundtrip.console.pages.boards import BOARDS
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.console_house import ConsoleHouse, house_of
from support.fixtures import closed_database
from support.keys import Person, random_context
from support.nodes import over

FREE = Settings(anon_per_minute=10**5, views_per_minute=10**5)
DEAD_NODE = "http://127.0.0.1:1"
BEHIND_S = 5400
"""Well over an hour: the index may end some seconds later than the chain, where its node started slowly."""
GREEN = re.compile(r"\bt-ok\b")
# An hour more than it was behind already: other tests move the chain's clock ahead.
BEHIND = re.compile(r"The index is \d+ (hour|day)s? behind the chain")
CALL = {"from": "0x" + "2" * 40, "to": "0x" + "1" * 40, "data": "0x"}
_NODE = re.compile("The chain did not answer")
_DATABASE = re.compile("unavailable|could not be stored")
_FORM = re.compile('<form method="(?:get|post)" action="/(?:trade|simulate)"')
_ROOMS = re.compile('aria-label="Account"')
_REPEATS = re.compile("data-comes-back=")
_LINKS = re.compile('href="/token/0x[0-9a-f]{40}/chart"')
_STORED = re.compile("Earlier verdicts")
_BOARDS = tuple(f"/boards/{board.tool}" for board in BOARDS)
_INDEXED = ("/token/TOKEN/chart", "/token/TOKEN/trades", "/wallet/WALLET")
TRADE, SIMULATE = "/trade?token=TOKEN&amount=0.1&from=WALLET", "POST /simulate"
PLACES = (
    "/", *_BOARDS, "/token/TOKEN", "/token/TOKEN?deep=1", "/token/TRAP", "/token/TOKEN/holders",
    "/token/TOKEN/liquidity", "/token/TOKEN/flags", *_INDEXED, "/wallet/WALLET/linked",
    "/transaction/HASH", TRADE, "/trade", "/simulate", SIMULATE, "/search?q=plain", "/search?q=TOKEN",
    "/league", "/scorecard", "/status", "/docs", "/sign-in", *(f"/account/{room.name}" for room in ROOMS),
)  # fmt: skip
"""Where people go."""


@dataclass(frozen=True, slots=True)
class BadDayPage:
    """``missing``: takes it from a context. ``says``: by place, what the page must say.
    ``proves``: whether a verdict can still be had."""

    name: str
    missing: Callable[[Context], Context]
    says: dict[str, tuple[re.Pattern[str], ...]]
    proves: bool
    settings: Settings = FREE


DAYS = (
    BadDayPage(
        "the node is gone",
        lambda ctx: over(ctx, DEAD_NODE),
        {
            "/token/TOKEN?deep=1": (_NODE, _REPEATS, _LINKS),
            "/token/TOKEN": (_NODE, _REPEATS, _LINKS, _STORED),
            "/token/TRAP": (_NODE, _REPEATS, _LINKS),
            "/token/TOKEN/holders": (_NODE,),
            "/transaction/HASH": (_NODE,),
            TRADE: (_NODE, _FORM),
            "/account/practice": (_NODE, _ROOMS),
        },
        proves=False,
    ),
    BadDayPage(
        "the database is gone",
        lambda ctx: replace(ctx, pool=closed_database()),
        {
            "/": (re.compile("The board cannot be shown now"), re.compile('id="find"')),
            **dict.fromkeys(_BOARDS, (_DATABASE, _REPEATS)),
            "/token/TOKEN": (_DATABASE, _REPEATS, _LINKS),
            "/token/TOKEN/chart": (_DATABASE, _REPEATS),
            "/wallet/WALLET": (_DATABASE, _REPEATS),
            "/account/inbox": (_DATABASE, _ROOMS),
        },
        proves=False,
    ),
    BadDayPage(
        "the index is behind",
        lambda ctx: ctx,
        dict.fromkeys(("/", *_BOARDS, *_INDEXED), (BEHIND,)),
        proves=True,
    ),
    BadDayPage(
        "too many pages were opened",
        lambda ctx: ctx,
        dict.fromkeys(
            ("/boards/winners", "/token/TOKEN/holders", "/wallet/WALLET"), (re.compile("Too fast"), _REPEATS)
        ),
        proves=True,
        settings=Settings(anon_per_minute=10**5, views_per_minute=1),
    ),
)


@pytest.fixture
async def session(indexed: Context) -> str:
    async with house_of(random_context(indexed, Clock()), Clock(), FREE) as house:
        return await house.signed_in(Person())


@pytest.fixture
def addresses(rpc: SyncRpc, built: Built) -> dict[str, str]:
    """The address of each place."""
    number = int(rpc.call("eth_blockNumber"), 16)
    while not (found := rpc.call("eth_getBlockByNumber", hex(number), False)["transactions"]):
        number -= 1
    values = {
        "TOKEN": built.tokens["plain"], "TRAP": built.tokens["owner_only_sell"],
        "WALLET": built.accounts[7], "HASH": str(found[0]),
    }  # fmt: skip
    return {place: re.sub("TOKEN|TRAP|WALLET|HASH", lambda name: values[name[0]], place) for place in PLACES}


@contextlib.asynccontextmanager
async def house_on(
    day: BadDayPage, indexed: Context, rpc: SyncRpc, built: Built
) -> AsyncIterator[ConsoleHouse]:
    """The pages on that day; the token was checked before."""
    async with house_of(random_context(indexed, Clock()), Clock(), FREE) as house:
        assert (await house.get(f"/token/{built.tokens['plain']}"))[0] == 200
    if day.name == "the index is behind":
        newest = rpc.call("eth_getBlockByNumber", "latest", False)
        rpc.call("evm_setNextBlockTimestamp", hex(int(newest["timestamp"], 16) + BEHIND_S))
        rpc.call("evm_mine")
        await indexed.heads.refresh()
    async with house_of(random_context(day.missing(indexed), Clock()), Clock(), day.settings) as house:
        yield house


@pytest.mark.parametrize("day", DAYS, ids=lambda day: day.name)
async def test_each_page_says_what_is_missing_and_keeps_the_rest(
    indexed: Context, rpc: SyncRpc, built: Built, session: str, addresses: dict[str, str], day: BadDayPage
) -> None:
    faults = []
    async with house_on(day, indexed, rpc, built) as house:
        for place, path in addresses.items():
            if place == SIMULATE:
                came = await house.post("/simulate", CALL)
            else:
                came = await house.get(path, session if path.startswith("/account") else None)
            faults += [f"{place}: {fault}" for fault in list_faults(day, place, *came)]
    assert not faults, "\n".join(faults)


def list_faults(
    day: BadDayPage, place: str, status: int, page: str, headers: Mapping[str, str]
) -> Iterator[str]:
    """What is wrong with the page that came."""
    if status == 303:
        return
    if status not in (200, 429, 502, 503) or not headers["content-type"].startswith("text/html"):
        yield f"{status} {headers['content-type']}"
    if "<h1" not in page or "</html>" not in page:
        yield "no whole page"
    if status != 200 and not day.proves and GREEN.search(page):
        yield f"green without a verdict ({status})"
    for text in day.says.get(place, ()):
        if not text.search(page):
            yield f"{text.pattern!r} is not said ({status})"


async def test_without_the_verifier_a_trade_is_not_to_be_signed(
    indexed: Context, addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house_of(random_context(indexed, Clock()), Clock(), FREE) as house:
        _, proven, _ = await house.get(addresses[TRADE])
        monkeypatch.setattr(trade, "verify", None)
        status, page, _ = await house.get(addresses[TRADE])
    assert 'id="senders"' in proven
    assert "Do not sign" not in proven
    assert (status, 'id="senders"' in page) == (200, False)
    assert "do not sign this trade.</strong> This service has no verifier" in page
