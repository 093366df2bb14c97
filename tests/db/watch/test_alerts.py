"""Alerts over a database and a chain written by hand: each fact once, whatever comes between."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import asyncpg
import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.chain_stats import DAY_S
from roundtrip.domain.watch import alerts as alert_text
from roundtrip.domain.watch.alerts import Draft
from roundtrip.domain.watch.rule_index import AlertSource
from roundtrip.domain.watch.rules import Happening, Over, Rule, Who
from roundtrip.jobs.alerts import drafts
from roundtrip.store.index import vitals
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alert_cursor, alerts, watches
from support.alert_ground import BUYING, NOW, NOW_S, AlertGround, buys
from support.alerting import PLAIN, OneByOne, accounts, without
from support.told_blocks import LoggedTransaction, sent, sold
from unit.sync.telling import ALICE, BOB, CAROL, CURVE, DEV, HIGH


def sells(who: Address = ALICE, wei: int = 300) -> LoggedTransaction:
    return sent(sold(CURVE, who, who, wei, 1), sender=who)


# --- one fact, one row ------------------------------------------------------------------------------


async def test_a_row_says_who_did_what(ground: AlertGround) -> None:
    number = await ground.rule(Rule(Who("wallet", ALICE), "buying", Over("eth", 10**17), HIGH), ALICE)
    follow = await ground.follow(ALICE)
    made = await ground.block(buys(ALICE, 2 * 10**18), buys(BOB, 2 * 10**18), buys(ALICE, 10**17))
    await ground.read()
    rows = await ground.rows()
    assert [(row["kind"], row["source_id"], row["log_index"]) for row in rows] == [
        ("rule", number, 0),
        ("follow", follow, 0),
        ("follow", follow, 2),
    ]
    async with ground.pool.acquire() as connection:
        kept, total = await alerts.newest(connection, ground.account, NOW, 2)
        (same,) = await alerts.alerts(connection, [rows[0]["id"]])
    assert (total, [one.id for one in kept]) == (3, [rows[2]["id"], rows[1]["id"]])
    draft = same.draft
    assert (draft.verb, draft.who, draft.wallet, draft.token) == ("buying", ALICE, ALICE, HIGH)
    assert (draft.eth_wei, draft.block_number, draft.log_index) == (2 * 10**18, made.ref.number, 0)
    assert (draft.at_s, draft.tx_hash) == (made.ref.timestamp_s, made.transactions[0].hash)
    assert draft.rule == f"{ALICE} buying over 0.1 eth on {HIGH}"
    assert (kept[1].draft.who, kept[1].draft.rule) == ("whale", None)
    assert kept[1].draft.said.startswith(f"whale bought {kept[1].draft.token} for 2 eth")
    assert await ground.hits() == [1]
    await ground.is_right()


async def test_nothing_new_changes_nothing(ground: AlertGround) -> None:
    await ground.rule()
    await ground.block(buys())
    await ground.read()
    before = await ground.rows("true")
    await ground.read()
    await ground.read(ground.another())
    assert await ground.rows("true") == before
    await ground.is_right()


async def test_what_is_older_than_the_first_step_raises_nothing(ground: AlertGround) -> None:
    await ground.index.execute("DELETE FROM accounts.alert_cursor")
    await ground.block(buys())
    await ground.read()
    assert await ground.rows() == []
    await ground.rule()
    await ground.block(buys())
    await ground.read()
    assert len(await ground.rows()) == 1


async def test_what_was_set_before_the_first_step_is_told_of_from_there(ground: AlertGround) -> None:
    await ground.index.execute("DELETE FROM accounts.alert_cursor")
    await ground.block(buys())
    await ground.rule()
    await ground.block(buys(BOB))
    await ground.block(buys(CAROL))
    await ground.read()
    assert [row["wallet"] for row in await ground.rows()] == [bytes.fromhex(who[2:]) for who in (BOB, CAROL)]


async def test_a_rule_that_is_set_while_alerts_lag_is_not_told_of_what_was_before(
    ground: AlertGround,
) -> None:
    await ground.block(buys())
    await ground.rule()
    await ground.block(buys(BOB))
    await ground.read()
    assert [row["wallet"] for row in await ground.rows()] == [bytes.fromhex(BOB[2:])]
    await ground.is_right()


async def test_nobody_is_told_of_history_that_is_read_later(ground: AlertGround) -> None:
    """The chain is further than the index when the rule is set."""
    await watches.add_rule(ground.index, ground.account, BUYING, None, ground.head().number + 2, NOW)
    for _ in range(3):
        await ground.block(buys())
    await ground.read()
    assert [row["block_number"] for row in await ground.rows()] == [ground.head().number]


async def test_what_was_ended_is_told_of_no_more(ground: AlertGround) -> None:
    number = await ground.rule()
    await ground.follow(ALICE)
    await ground.block(buys())
    await ground.read()
    assert await watches.end_rule(ground.index, ground.account, number, NOW)
    assert await watches.end_follow(ground.index, ground.account, ALICE, NOW)
    assert not await watches.end_rule(ground.index, ground.account, number, NOW)
    assert not await watches.end_follow(ground.index, ground.account, ALICE, NOW)
    await ground.block(buys())
    await ground.read()
    assert len(await ground.rows()) == 2
    assert (await watches.rules_of(ground.index, ground.account)) == []
    assert (await watches.follows_of(ground.index, ground.account)) == []


async def test_a_rule_about_follows_counts_for_whoever_is_followed_then(ground: AlertGround) -> None:
    number = await ground.rule(Rule(Who("follow"), "selling"))
    await ground.block(buys(), buys(BOB), sells(BOB))
    await ground.follow(BOB)
    await ground.block(sells(BOB))
    await ground.read()
    rules = [row for row in await ground.rows() if row["kind"] == "rule"]
    assert [(row["source_id"], row["block_number"], row["who"]) for row in rows_of(rules)] == [
        (number, ground.head().number, "follow")
    ]
    await ground.is_right()


def rows_of(rows: Sequence[asyncpg.Record]) -> list[dict[str, Any]]:
    return [dict(row) for row in rows]


@pytest.mark.parametrize("amiss_in", ["share_ppm", "eth_wei", "account_id", "said"])
async def test_a_row_that_cannot_be_kept_stops_no_other(
    ground: AlertGround, monkeypatch: pytest.MonkeyPatch, amiss_in: str
) -> None:
    """Whatever it is: too large for its column, no number, nobody's, text that is none."""
    value = {"share_ppm": 2**63, "eth_wei": "much", "account_id": 2**40, "said": "a\0"}[amiss_in]

    def draft_of(source: AlertSource, happening: Happening) -> Draft:
        draft = alert_text.draft_alert(source, happening)
        return replace(draft, **{amiss_in: value}) if happening.wallet == BOB else draft  # type: ignore[arg-type]

    monkeypatch.setattr(drafts, "draft_alert", draft_of)
    await ground.rule()
    await ground.block(buys(ALICE), buys(BOB), buys(CAROL), buys(BOB), buys(DEV))
    await ground.block(buys(ALICE))
    await ground.read()
    assert [row["wallet"] for row in await ground.rows()] == [
        bytes.fromhex(who[2:]) for who in (ALICE, CAROL, DEV, ALICE)
    ]
    read = await ground.index.fetchval("SELECT number FROM accounts.alert_cursor")
    assert read == ground.head().number


async def test_a_token_that_says_it_has_a_supply_of_one_stops_nobody(ground: AlertGround) -> None:
    async def happened(connection: Connection, *given: Any) -> Any:
        found = await PLAIN.read_happenings(connection, *given)
        return [one._replace(part_raw=10**30, whole_raw=1) for one in found]

    answer = ground.another(without(PLAIN, read_happenings=happened))
    await ground.rule()
    await ground.block(buys())
    await ground.read(answer)
    assert [row["share_ppm"] for row in await ground.rows()] == [None]


# --- much at once -----------------------------------------------------------------------------------


async def test_a_thousand_rules_about_one_fact_are_told_in_bounded_pieces(ground: AlertGround) -> None:
    many = await accounts(ground.index, 20)
    await ground.index.execute(
        "INSERT INTO accounts.rule (account_id, said, who, verb, unit, over_raw, from_number, rewound, "
        "made_at,"
        " change) SELECT account_id, 'any buying over ' || number || ' eth', 'any', 'buying', 'eth', number,"
        " 100, 0, $2, nextval('accounts.watch_changes')"
        " FROM unnest($1::bigint[]) AS account_id, generate_series(0, 49) AS number",
        many,
        NOW,
    )
    blocks = [await ground.block(buys(wei=10**18)) for _ in range(4)]
    seen = []
    result = ground.another(most_matches=1_500)
    for _ in range(10):
        more = await result.step()
        seen.append(len(await ground.rows("true")))
        if not more:
            break
    # Blocks are not parted: the second makes it enough.
    assert seen == [2_000, 4_000]
    assert {row["block_number"] for row in await ground.rows()} == {block.ref.number for block in blocks}
    await ground.is_right()


async def test_blocks_of_which_no_time_is_kept_are_read_with_the_next_that_has_one(
    ground: AlertGround,
) -> None:
    await ground.rule()
    for _ in range(12):
        await ground.block(buys())
    await ground.index.execute("DELETE FROM facts.block WHERE number BETWEEN 101 AND 107")
    result, seen = ground.another(most_blocks=3), []
    while await result.step():
        seen.append(await ground.index.fetchval("SELECT number FROM accounts.alert_cursor"))
    assert seen == [108, 111]
    await ground.is_right()


DEEDS = ("block", "block", "block", "busy", "later", "fork", "rule", "follow", "end", "step")


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_comes_in_which_order_each_fact_is_told_once(ground: AlertGround, seed: int) -> None:
    rng, wallets = Random(seed), [ALICE, BOB, CAROL, DEV]
    tellers = [ground.loop, ground.another(most_blocks=2, most_matches=5)]
    made: list[int] = []
    for _ in range(60):
        match rng.choice(DEEDS):
            case "block":
                await ground.block(*(rng.choice([buys, sells])(rng.choice(wallets)) for _ in range(3)))
            case "busy":
                await ground.block(buys(rng.choice(wallets), times=rng.randrange(8, 30)))
            case "later":
                await ground.block(after_s=rng.randrange(10, 70))
            case "fork":
                back = rng.randrange(max(100, ground.head().number - 4), ground.head().number + 1)
                busy = (buys(rng.choice(wallets), times=rng.randrange(25)) for _ in range(rng.randrange(3)))
                await ground.forked(back, *([one] for one in busy), after_s=rng.randrange(1, 40))
            case "rule":
                verb, who = rng.choice(["buying", "selling"]), rng.choice(["any", "follow"])
                over = rng.choice([None, Over("eth", rng.randrange(600))])
                made.append(await ground.rule(Rule(Who(who), verb, over)))  # type: ignore[arg-type]
            case "follow":
                await ground.follow(rng.choice(wallets))
            case "end" if made and rng.randrange(3) == 0:
                await watches.end_rule(ground.index, ground.account, rng.choice(made), NOW)
            case "step":
                for _ in range(rng.randrange(4)):
                    await rng.choice(tellers).step()
    for answer in tellers:
        await ground.read(answer)
    await ground.is_right()


# --- what is old ------------------------------------------------------------------------------------


async def test_what_is_old_goes_and_what_was_undone_goes(ground: AlertGround) -> None:
    number = await ground.rule()
    await ground.rule(Rule(Who("any"), "selling"))
    await ground.block(buys())
    await ground.read()
    await ground.forked(100, [buys()])
    await ground.read()
    later = datetime.fromtimestamp(NOW_S + 1, UTC)
    messages = "SELECT count(*) FROM accounts.delivery"
    assert not await alerts.forget(ground.index, NOW)
    assert (len(await ground.rows("true")), await ground.index.fetchval(messages)) == (2, 3)
    assert not await alerts.forget(ground.index, later)
    assert await ground.rows("true") == []
    assert await ground.index.fetchval(messages) == 0
    await ground.block(after_s=DAY_S + 2)
    await ground.read()
    # The older one is undone; of this one nobody was told yet.
    await ground.forked(100, [buys()])
    await alert_cursor.forget(ground.index)
    assert await ground.index.fetchval("SELECT count(*) FROM facts.rewound") == 1
    await watches.end_rule(ground.index, ground.account, number, NOW)
    await watches.forget_ended(ground.index, NOW + watches.ENDED_KEPT)
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.rule") == 2
    await watches.forget_ended(ground.index, later + watches.ENDED_KEPT)
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.rule") == 1
    await ground.read()
    assert await alert_cursor.last_rewind(ground.index) > 0


async def test_a_fork_that_was_undone_is_kept_for_the_day_that_the_status_tells_of(
    ground: AlertGround,
) -> None:
    """Every worker that starts takes away what is old."""
    await ground.block(buys())
    await ground.forked(100, [buys()])
    await ground.block(after_s=DAY_S - 1)
    await ground.read()
    await alert_cursor.forget(ground.index)
    rows = await vitals.rewound_since(ground.index, ground.head().timestamp_s - DAY_S)
    assert [(one.to_number, one.blocks) for one in rows] == [(100, 1)]
    await ground.block(after_s=2)
    await ground.read()
    await alert_cursor.forget(ground.index)
    assert await ground.index.fetchval("SELECT count(*) FROM facts.rewound") == 0


async def test_what_is_counted_again_begins_with_the_newest_block_before_it(ground: AlertGround) -> None:
    before = ground.head()
    for _ in range(2):
        block = (await ground.block(after_s=30)).ref
        newest = await alert_cursor.block_before(ground.index, block.timestamp_s)
        assert newest == (before.number, before.timestamp_s)
        before = block
    assert await alert_cursor.block_before(ground.index, 0) == alert_cursor.BEFORE_ALL


async def test_all_that_is_watched_is_read_in_pieces(
    ground: AlertGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fails in the middle is begun anew: half of it is not all."""
    monkeypatch.setattr(watches, "MAX_CHANGES", 2)
    real, asked = watches.changes_since, list[int]()

    async def changes_since(connection: Connection, number: int, most: int) -> list[watches.WatchChange]:
        asked.append(number)
        if len(asked) == 2:
            raise ConnectionError
        found = await real(connection, number, most)
        assert len(found) <= 2
        return found

    monkeypatch.setattr(watches, "changes_since", changes_since)
    rules = [await ground.rule(Rule(Who("any"), "buying", Over("eth", number))) for number in range(5)]
    follows = [await ground.follow(who) for who in (ALICE, BOB, CAROL)]
    await watches.end_rule(ground.index, ground.account, rules.pop(1), NOW)
    result = ground.another()
    with pytest.raises(ConnectionError):
        await result.step()
    await ground.read(result)
    await watches.end_rule(ground.index, ground.account, rules.pop(1), NOW)
    await ground.index.execute("DELETE FROM accounts.rule WHERE ended_at IS NOT NULL")
    ground.at_s += watches.ENDED_KEPT.total_seconds() / 2 + 1
    asked.clear()
    with pytest.raises(ConnectionError):
        await result.step()
    await ground.block(buys(ALICE), buys(BOB), buys(CAROL))
    await ground.read(result)
    monkeypatch.undo()
    assert asked[:3] == [0, asked[1], 0]
    assert len(asked) > 5
    raised = [(row["kind"], row["source_id"]) for row in await ground.rows()]
    assert sorted(raised) == sorted(
        [("rule", each) for each in rules] * 3 + [("follow", one) for one in follows]
    )
    await ground.is_right()


async def test_a_reorganisation_has_only_that_read_again_which_it_turned_back(
    ground: AlertGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[OneByOne]()

    def empty() -> OneByOne:
        made.append(OneByOne())
        return made[-1]

    result = ground.another(without(PLAIN, index=empty))
    at = ground.head().number
    before = await ground.rule()
    for _ in range(3):
        await ground.block()
    after = await ground.rule(Rule(Who("any"), "buying", Over("eth", 1)))
    follow = await ground.follow(ALICE)
    await ground.read(result)
    await ground.forked(at + 1, [buys()])
    await ground.read(result)
    assert len(made) == 1
    assert [(row["kind"], row["source_id"]) for row in await ground.rows()] == [
        ("rule", before),
        ("rule", after),
        ("follow", follow),
    ]
    await ground.is_right()
    # What a step that was not kept had turned back is as it was.
    await ground.forked(at, [buys()])
    monkeypatch.setattr(alert_cursor, "update", _fails)
    with pytest.raises(ConnectionError):
        await result.step()
    monkeypatch.undo()
    await ground.read(result)
    assert len(made) == 2
    await ground.is_right()


async def _fails(*_: Any) -> None:
    raise ConnectionError


async def test_after_half_a_day_everything_is_read_again(ground: AlertGround) -> None:
    """What was ended is forgotten after a day, and who did not look meanwhile would never know."""
    number = await ground.rule()
    await ground.block(buys())
    await ground.read()
    await watches.end_rule(ground.index, ground.account, number, NOW)
    await ground.index.execute("DELETE FROM accounts.rule")
    ground.at_s += watches.ENDED_KEPT.total_seconds() / 2 + 1
    await ground.block(buys())
    await ground.read()
    assert len(await ground.rows()) == 1
