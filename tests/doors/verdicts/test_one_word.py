"""Every sample token has the same code, level, word and colour at every door."""

import re
from collections.abc import AsyncIterator
from xml.etree import ElementTree

import aiohttp
import pytest

from roundtrip.cli.check_card import draw_card
from roundtrip.console.pages.account_sections.inbox import tell_alert
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.verdicts.deciding import deciding_figure
from roundtrip.domain.verdicts.words import is_tradable, level_word
from roundtrip.services.boards.newest_verdicts import NewestParams, newest_verdicts
from roundtrip.services.check.card import read_card
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.alert_rows import AlertRow
from roundtrip.services.support.check_answer import present
from roundtrip.services.support.shown_verdict import read_states
from roundtrip.store.check import evidence as evidence_store
from roundtrip_development.devnet.hook_tokens import HOOKED
from roundtrip_development.devnet.launch_samples import LAUNCHES
from roundtrip_development.devnet.launchpad_v1 import FIRST
from roundtrip_development.devnet.stories import STORIES
from roundtrip_development.devnet.world import Built
from support.answers import build_answer
from support.serving import service
from support.signing import prepared
from support.terminal import printed

pytestmark = pytest.mark.slow
KEYS = [
    *(story.key for story in (*STORIES, *HOOKED)),
    *(launch.key for launch in LAUNCHES),
    *(launch.key for launch in FIRST),
]
WALLET = "0x" + "c3" * 20


@pytest.fixture
async def browser(indexed: Context) -> AsyncIterator[aiohttp.ClientSession]:
    async with service(indexed) as url, aiohttp.ClientSession(url, headers={"accept": "text/html"}) as found:
        yield found


async def read(browser: aiohttp.ClientSession, path: str) -> str:
    async with browser.get(path) as response:
        assert response.status == 200, path
        return await response.text()


def drawn(svg: str) -> list[str]:
    return [text for text in ElementTree.fromstring(svg).itertext() if text]  # noqa: S314


async def newest_evidence(ctx: Context, token: Address) -> Evidence:
    async with ctx.pool.acquire() as connection:
        stored = await evidence_store.latest(connection, token)
    assert stored is not None
    return canonical_json.load(Evidence, stored.document)


@pytest.mark.parametrize("key", KEYS)
async def test_a_token_has_one_word_and_one_colour(
    browser: aiohttp.ClientSession, indexed: Context, built: Built, key: str
) -> None:
    token = Address(built.tokens[key])
    page = await read(browser, f"/token/{token}")
    async with browser.get(f"/v1/check/{token}") as response:
        verdict = (await response.json())["verdict"]
    code, level = verdict["code"], verdict["level"]
    word = level_word(level, code)
    hero = re.search(r'class="hero t-(\w+)".*?<strong>(.*?)</strong>', page, re.DOTALL)
    found = {"token page": hero.groups() if hero else None}
    async with indexed.pool.acquire() as connection:
        state = (await read_states(connection, [token], indexed.now_s()))[token].verdict
    assert state is not None
    found["lists"] = (state.level, level_word(state.level, state.code))
    (row,) = [
        row
        for row in (await newest_verdicts(indexed, NewestParams())).answer.rows
        if row.token.address == token
    ]
    found["boards"] = (row.verdict.level, level_word(row.verdict.level, row.verdict.code))
    evidence, policy = await newest_evidence(indexed, token), indexed.policy
    judgement = judge(evidence, policy)
    figure = deciding_figure(judgement, policy)
    shown = figure.short if figure is not None and level in ("ok", "warn") else ""
    card = drawn(await read(browser, f"/t/{token}/card.svg"))
    found["card"] = (level, card[2])
    assert shown in " ".join(card), "the figure that decided"
    if is_tradable(code):
        badge = drawn(await read(browser, f"/t/{token}/badge.svg"))[-1]
        assert badge.startswith(word.lower()), badge
        assert shown in badge
    text = f"The verdict of {token} went from ok (ok) to {level} ({code})."
    alert = build_answer(AlertRow, {"text": text, "token": token, "verb": "verdict"})
    rows = re.findall(r'<strong class="t-(\w+)">(.*?)</strong>', tell_alert(alert, None))
    found["alert"] = rows[-1]
    terminal = printed(
        draw_card(present(evidence, judgement, policy, 0), read_card(evidence, judgement, False, policy))
    )
    found["terminal"] = (level, terminal.strip().split("\n")[0].strip().removeprefix(f"{level.upper()}  "))
    async with browser.get(f"/v1/check/{token}/history") as response:
        change = (await response.json())["changes"][0]
    found["history"] = (change["level"], level_word(change["level"], change["code"]))
    assert found == dict.fromkeys(found, (level, word))
    try:
        trade = await prepared(indexed, "buy", token, WALLET, amount="0.1", fund=True)
    except CallerFault:
        return
    checked = trade.answer["check"]["verdict"]
    assert (checked["code"], checked["level"]) == (code, level)
    assert trade.answer["refused"] == (level == "danger")
