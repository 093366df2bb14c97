"""The rooms of what is watched and told: trying a rule, putting one together, the inbox."""

import re
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import aiohttp
import pytest

from roundtrip.console.pages.account import ROOMS
from roundtrip.console.pages.account_sections.inbox import PAGE, tell_alert
from roundtrip.console.pages.account_sections.watch import compose_rule
from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.liquidity.unlocks import Unlock
from roundtrip.domain.watch.alerts import MAX_WATCHED, Draft, Kind
from roundtrip.domain.watch.rules import Happening, Watch
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.alert_rows import AlertRow
from roundtrip.services.watch.rule_backtest import MAX_BARS, bars_of, step_of
from roundtrip.store.liquidity.positions import put_unlocks
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alerts, happenings
from roundtrip.store.watch.happenings import IndexedBlock, ReplayResult
from roundtrip.venues.base import Contracts
from support.answers import build_answer
from support.clocks import Clock
from support.console_account import Account, signed_in
from support.keys import NOW_S, random_context
from support.serving import service
from support.watching import SETTINGS, STRANGER

TX = TxHash("0x" + "cd" * 32)


@pytest.fixture
async def me(indexed: Context) -> AsyncIterator[Account]:
    ctx = random_context(indexed, Clock())
    async with service(ctx, SETTINGS) as url:
        yield await signed_in(ctx, url)


def hit(at_s: int) -> Happening:
    token, wallet = Address("0x" + "7e" * 20), Address(STRANGER)
    return Happening("buying", Spot(9, 0, at_s, TX), wallet, token, 10**18, None, None, None)


# --- what each room is ----------------------------------------------------------------------------


async def weight(me: Account, page: str) -> int:
    """Of a page with all that it loads, as it goes over the wire, but for the page itself."""
    found = len(page)
    for path in set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page)):
        async with (
            aiohttp.ClientSession(auto_decompress=False) as raw,
            raw.get(me.url + path, headers={"accept-encoding": "gzip"}) as response,
        ):
            assert response.status == 200
            found += len(await response.read())
    return found


@pytest.mark.parametrize("room", [one.name for one in ROOMS])
async def test_a_room_has_no_word_of_script_or_style(me: Account, room: str) -> None:
    page = await me.get(f"/account/{room}")
    assert re.findall(r"<script(?![^>]* src=\"/static/)", page) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=|javascript:", page) == []
    levels = [int(one) for one in re.findall("<h([1-6])", page)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    named = set(re.findall('<label[^>]* for="([^"]+)"', page))
    fields = re.findall(r"<(?:input|select)(?![^>]*type=\"hidden\")[^>]* id=\"([^\"]+)\"", page)
    assert set(fields) <= named
    assert (
        len(fields) == len(set(fields)) == len(re.findall(r"<(?:input|select)(?![^>]*type=\"hidden\")", page))
    )
    assert await weight(me, page) < 150_000


# --- hits by time ----------------------------------------------------------------------------------


def test_bars_have_every_step_and_every_hit() -> None:
    bars = bars_of([7300, 7201, 3599], 0, 10_800, 3600)
    assert [(int(one.at.timestamp()), one.hits) for one in bars] == [
        (0, 1), (3600, 0), (7200, 2), (10_800, 0)
    ]  # fmt: skip
    # The first and the last step are those that the ends are in.
    assert [int(one.at.timestamp()) for one in bars_of([], 5000, 7199, 3600)] == [3600]


@pytest.mark.parametrize(("span_s", "step_s"), [(0, 300), (14_400, 300), (14_401, 3600), (604_800, 21_600)])
def test_a_step_is_as_fine_as_fits(span_s: int, step_s: int) -> None:
    assert step_of(span_s) == step_s
    assert len(bars_of([], 0, span_s, step_s)) <= MAX_BARS + 1


class Replay:
    """Stands for the replay, and counts how often it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, hits_s: Sequence[int], at_least: bool) -> None:
        self.hits_s, self.at_least, self.asked = hits_s, at_least, 0
        monkeypatch.setattr(happenings, "replay_rule", self.replayed)

    async def replayed(
        self, connection: Connection, contracts: Contracts, watch: Watch, after_s: int, to: IndexedBlock
    ) -> ReplayResult:
        self.asked += 1
        # Backwards from the head: the newest first.
        found = [to.at_s - one for one in self.hits_s]
        return ReplayResult(len(found), self.at_least, [hit(one) for one in found[:10]], found)


def drawn(page: str) -> list[int]:
    (figure,) = re.findall('<figure class="profit">(.*?)</figure>', page, re.DOTALL)
    return [int(one) for one in re.findall(r"</time></th><td>([\d,]+)</td>", figure)]


async def test_a_tried_rule_is_drawn_by_time_of_one_replay(
    me: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = Replay(monkeypatch, [0, 1, 90_000], at_least=False)
    status, page = await me.do("test_rule", rule="any buying over 1 eth")
    assert (status, replay.asked) == (200, 1)
    assert "This rule would have sent 3 alerts" in page
    assert sum(drawn(page)) == 3
    assert len(drawn(page)) > 3
    assert page.count("<rect ") == sum(one > 0 for one in drawn(page))
    assert 'value="any buying over 1 eth"' in page
    assert "<code>any buying over 1 eth</code> <span" not in page
    assert "You have no rule." in page
    assert await weight(me, page) < 150_000


async def test_steps_that_were_not_counted_to_the_end_are_not_drawn(
    me: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    Replay(monkeypatch, [0, 86_400], at_least=True)
    _, page = await me.do("test_rule", rule="any buying")
    assert "at least 2 alerts" in page
    assert "older alerts are not counted" in page
    assert sum(drawn(page)) == 1
    assert len(drawn(page)) <= 5


async def test_the_preview_comes_as_a_piece_while_the_form_changes(
    me: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    Replay(monkeypatch, [0, 90_000], at_least=False)
    status, piece = await me.piece("test_rule", who="any", verb="buying", over="1", unit="eth")
    assert (status, "<html" in piece) == (200, False)
    assert "This rule would have sent 2 alerts" in piece
    assert "<code>any buying over 1 eth</code>" in piece
    status, piece = await me.piece("test_rule", rule="any bying <b>")
    assert status == 200
    assert "No preview: At character 5: found &#34;bying&#34;" in piece
    assert "<figure" not in piece


async def test_a_rule_without_hits_has_no_chart(me: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    Replay(monkeypatch, [], at_least=False)
    _, page = await me.do("test_rule", rule="any buying")
    assert "This rule would have sent no alert" in page
    assert "<figure" not in page


async def test_the_real_replay_tells_when_each_hit_was(me: Account) -> None:
    """What the local chain has: as many in the bars as in the count."""
    _, page = await me.do("test_rule", rule="any buying")
    found = re.search(r"This rule would have sent ([\d,]+) alert", page)
    assert found is not None
    assert sum(drawn(page)) == int(found.group(1).replace(",", "")) > 0


# --- changing a rule, watching a token -------------------------------------------------------------


async def test_a_changed_rule_takes_the_place_of_the_old_one(me: Account) -> None:
    await me.do("create_rule", rule="any buying over 1 eth")
    page = await me.get("/account/watch")
    (number,) = re.findall(r'href="/account/watch\?edit=(\d+)', page)
    page = await me.get(f"/account/watch?edit={number}")
    assert 'value="any buying over 1 eth"' in page
    assert 'action="/account/do/edit_rule"' in page
    status, page = await me.do("edit_rule", id=number, rule="any bying")
    assert (status, 'action="/account/do/edit_rule"' in page) == (400, True)
    status, page = await me.do("edit_rule", id=number, rule="any buying over 2 eth")
    assert status == 200
    assert "<code>any buying over 2 eth</code><br>" in page
    assert "<code>any buying over 1 eth</code><br>" not in page
    status, page = await me.do("edit_rule", id=number, rule="any buying over 3 eth")
    assert (status, "You have no rule with this id any more." in page) == (400, True)
    other = await signed_in(me.ctx, me.url)
    (mine,) = re.findall(r'href="/account/watch\?edit=(\d+)', await me.get("/account/watch"))
    assert (await other.do("edit_rule", id=mine, rule="any buying over 3 eth"))[0] == 400
    assert "<code>any buying over 2 eth</code><br>" in await me.get("/account/watch")


async def test_a_rule_is_paused_and_goes_on(me: Account) -> None:
    await me.do("create_rule", rule="any buying over 1 eth")
    (number,) = re.findall(r'href="/account/watch\?edit=(\d+)', await me.get("/account/watch"))
    other = await signed_in(me.ctx, me.url)
    assert (await other.do("pause_rule", id=number))[0] == 400
    for tool, is_paused in (("pause_rule", True), ("resume_rule", False)):
        status, page = await me.do(tool, id=number)
        assert (status, '<span class="chip t-unknown">paused</span>' in page) == (200, is_paused)
        assert (await me.do(tool, id=number))[0] == 400


async def test_a_watched_token_stands_in_the_room_until_it_is_watched_no_more(me: Account) -> None:
    token = "0x" + "7e" * 20
    for _ in range(2):
        assert (await me.do("watch_token", address=token))[0] == 200
    page = await me.get("/account/watch")
    assert page.count(f'<a class="shown" href="/token/{token}">') == 1
    assert "not checked yet" in page
    assert (await me.do("watch_token", address="0x12"))[0] == 400
    await me.do("unwatch_token", address=token)
    assert "You watch no token." in await me.get("/account/watch")


async def test_there_is_a_most_of_watched_tokens(me: Account) -> None:
    await me.ctx.pool.executemany(
        "INSERT INTO accounts.token_watch VALUES ($1, $2, now())",
        [(me.account_id, number.to_bytes(20)) for number in range(MAX_WATCHED)],
    )
    status, page = await me.do("watch_token", address="0x" + "7e" * 20)
    assert (status, f"You watch {MAX_WATCHED} tokens, the maximum." in page) == (400, True)


# --- unlocks ---------------------------------------------------------------------------------------


async def test_coming_unlocks_stand_by_day(me: Account, indexed: Context) -> None:
    token, holder = Address("0x" + "7e" * 20), Address(STRANGER)
    await me.do("create_rule", rule=f"any buying on {token}")
    assert "We know of no unlock within 30 days" in await me.get("/account/unlocks")
    at = (int(NOW_S) + 5 * 86_400, int(NOW_S) + 6 * 86_400)
    locked = [Unlock(token, holder, number, holder, at_s, 3_000) for number, at_s in enumerate(at)]
    async with indexed.pool.acquire() as connection:
        await put_unlocks(connection, token, [locked[0], locked[1]._replace(share_bps=None)], 1)
        page = await me.get("/account/unlocks")
        # Other tests read this index.
        await put_unlocks(connection, token, [], 2)
    days = [f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d}" for at_s in at]
    assert re.findall("<h2>(.*?)</h2>", page) == days
    assert "30.00\xa0% of the liquidity" in page
    assert "A share that we do not know" in page
    assert f"/token/{token}/liquidity" in page


# --- rules -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "rule"),
    [
        ({"who": "any", "verb": "buying", "over": "1", "unit": "eth"}, "any buying over 1 eth"),
        ({"who": "any", "whose": STRANGER, "verb": "launching", "unit": "eth"}, "any launching"),
        ({"who": "wallet", "whose": f" {STRANGER} ", "verb": "moving"}, f"{STRANGER} moving"),
        (
            {"who": "deployer", "whose": STRANGER, "verb": "selling", "over": "5", "unit": "%", "token": "x"},
            f"deployer:{STRANGER} selling over 5 % on x",
        ),
        ({"who": "creator", "verb": "selling"}, "creator: selling"),
        ({"who": "wallet", "verb": "selling"}, "selling"),
        ({"who": "any", "verb": "buying", "rule": "any selling"}, "any selling"),
    ],
)  # fmt: skip
def test_a_rule_is_put_together_of_its_parts(form: dict[str, str], rule: str) -> None:
    assert compose_rule(form)["rule"] == rule


async def test_parts_become_a_rule_that_stands_and_is_said_in_words(me: Account) -> None:
    form = {"who": "wallet", "whose": STRANGER, "verb": "selling", "over": "2.5", "unit": "usd"}
    status, page = await me.do("create_rule", **form)
    assert status == 200
    assert f"<code>{STRANGER} selling over 2.5 usd</code>" in page
    assert "no alert yet" in page
    assert re.search("Alerts you when <a href=.*</a> sells a token for more than 2.5 usd", page)


async def test_what_was_chosen_is_kept_beside_the_fault(me: Account) -> None:
    form = {"who": "wallet", "whose": "0x12", "verb": "moving", "over": "many", "unit": "%", "token": '"><b>'}
    status, page = await me.do("create_rule", **form)
    assert status == 400
    assert 'aria-describedby="rule-fault"' in page
    assert page.count('role="alert"') == 1
    assert '<option value="wallet" selected>' in page
    assert '<option value="moving" selected>' in page
    assert 'value="0x12 moving over many % on &#34;&gt;&lt;b&gt;"' in page
    assert '<option value="%" selected>' in page


async def test_a_follow_that_does_not_fit_is_told_there(me: Account) -> None:
    status, page = await me.do("follow_wallet", address="0x12", name="Whale")
    assert status == 400
    assert 'aria-describedby="follow-fault"' in page
    assert 'aria-describedby="rule-fault"' not in page
    assert 'value="0x12"' in page
    assert 'value="Whale"' in page


async def test_a_busy_replay_is_told_in_the_room(me: Account) -> None:
    with me.ctx.replays.hold_slot(me.account_id):
        status, page = await me.do("test_rule", rule="any buying over 3 eth")
    assert status == 503
    assert 'value="any buying over 3 eth"' in page
    assert "Another rule of yours is being tested" in page


async def test_examples_are_rules_of_a_token_that_exists(me: Account) -> None:
    page = await me.get("/account/watch")
    examples = re.findall(r'href="(/account/watch\?rule=[^"]+)"', page)
    assert len(examples) == 5
    token = await me.ctx.pool.fetchval(
        "SELECT '0x' || encode(address, 'hex') FROM facts.address JOIN facts.launch ON token_id = id"
        " ORDER BY block_number DESC LIMIT 1"
    )
    assert sum(token in one for one in examples) == 2
    for path in examples:
        page = await me.get(path)
        typed = re.search('<input id="rule"[^>]* value="([^"]+)"', page)
        assert typed is not None
        assert (await me.do("create_rule", rule=typed.group(1)))[0] == 200
    page = await me.get("/account/watch?rule=%22%3E%3Cscript%3E&address=" + "x" * 5000)
    assert "<script>" not in page
    assert "x" * 201 not in page


# --- the inbox -------------------------------------------------------------------------------------


async def write_alerts(me: Account, count: int, kind: Kind = "rule") -> None:
    """Rows an hour apart, the last an hour ago."""
    rule = "any buying" if kind == "rule" else None
    drafts = [
        Draft(
            me.account_id, kind, 1, int(NOW_S) - 3600 * (count - one), f"Said {one}.", "buying", "any",
            Address(STRANGER), tx_hash=TX, rule=rule,
        )
        for one in range(count)
    ]  # fmt: skip
    async with me.ctx.pool.acquire() as connection, connection.transaction():
        await alerts.put(connection, drafts, datetime.fromtimestamp(NOW_S, UTC))


def shown_numbers(page: str) -> list[int]:
    return [int(one) for one in re.findall(r"Said (\d+)\.", page)]


async def test_the_inbox_is_read_page_by_page_and_by_day(me: Account) -> None:
    count = 2 * PAGE + 5
    await write_alerts(me, count)
    path, seen, pages = "/account/inbox", list[int](), 0
    while True:
        page = await me.get(path)
        shown = shown_numbers(page)
        assert len(shown) <= PAGE
        seen, pages = seen + shown, pages + 1
        older = re.search('<a href="([^"]+)">Older</a>', page)
        if older is None:
            break
        path = older.group(1).replace("&amp;", "&")
    assert seen == list(range(count - 1, -1, -1))
    assert pages == 3
    page = await me.get("/account/inbox")
    days = re.findall(r"<h2>(\d{4}-\d\d-\d\d)</h2>", page)
    assert days == sorted(set(days), reverse=True)
    assert len(days) >= 2
    assert f'href="/transaction/{TX}"' in page
    assert f'href="/wallet/{STRANGER}"' in page


async def test_the_inbox_is_read_by_kind_and_by_rule(me: Account) -> None:
    await write_alerts(me, 2)
    await write_alerts(me, 1, kind="follow")
    for query, count, words in (
        ("", 3, "3 alerts in"),
        ("?kind=follow", 1, "1 matching alert in"),
        ("?rule=any+buying", 2, "2 matching alerts in"),
        ("?rule=any+selling", 0, "0 matching alerts in"),
    ):
        page = await me.get(f"/account/inbox{query}")
        assert len(shown_numbers(page)) == count
        assert words in page
    assert "No alert of this kind." in await me.get("/account/inbox?rule=any+selling")
    for bad in ("kind=x", "before=-1", "before=%E0%A5%AA", "before=1e9", "before=" + "9" * 30):
        assert len(shown_numbers(await me.get(f"/account/inbox?{bad}"))) == 3


@pytest.mark.parametrize(
    ("text", "verb", "words"),
    [
        ("0xab bought TOKEN for 1 eth.", "buying", ">FOX</bdi></a> for 1\xa0eth."),
        ("1 more alert in that minute, not listed: any buying.", None, "1 more alert in that minute"),
        (
            "You watch TOKEN: its verdict changed from ok (ok) to danger (cannot_sell)."
            ' It says "from ok to ok".',
            "verdict",
            'changed from <strong class="t-ok">Can sell</strong> to <strong class="t-danger">'
            'Honeypot: you cannot sell</strong>. It says "<bdi',
        ),
        ("You hold TOKEN: its verdict changed from ok (ok) to warn.", "verdict", ">Careful</strong>."),
    ],
)
def test_an_alert_is_told_with_names_and_words(text: str, verb: str | None, words: str) -> None:
    token = "0x" + "7e" * 20
    message = str(tell_alert(alert(text.replace("TOKEN", token), token, verb), "FOX"))
    assert words in message
    assert ("from ok to ok" in message) == ("from ok to ok" in text)


def alert(text: str, token: str, verb: str | None) -> AlertRow:
    return build_answer(AlertRow, {"text": text, "token": token, "verb": verb})


def test_a_strangers_symbol_stays_text() -> None:
    token = "0x" + "7e" * 20
    row = alert(f"0xab bought {token}.", token, "buying")
    assert "<b>" not in str(tell_alert(row, "<b>"))


async def test_the_inbox_is_read_by_token_and_says_how_it_stands_now(me: Account) -> None:
    token = Address("0x" + "7e" * 20)
    draft = Draft(
        me.account_id,
        "rule",
        1,
        int(NOW_S),
        f"0xab bought {token}.",
        "buying",
        "any",
        token=token,
        tx_hash=TX,
    )
    async with me.ctx.pool.acquire() as connection, connection.transaction():
        await alerts.put(connection, [draft], datetime.fromtimestamp(NOW_S, UTC))
    await write_alerts(me, 1)
    page = await me.get(f"/account/inbox?token={token}")
    assert "1 matching alert in" in page
    assert shown_numbers(page) == []
    assert "not checked yet" in page
    assert f'<option value="{token}" selected>' in page


async def test_nobody_reads_anothers_inbox(me: Account) -> None:
    await write_alerts(me, 1)
    other = await signed_in(me.ctx, me.url)
    page = await other.get("/account/inbox")
    assert shown_numbers(page) == []
    assert "You got no alert" in page
