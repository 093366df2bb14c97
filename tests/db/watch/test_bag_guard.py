"""The bag guard over a database and a chain written by hand: holders are told once, and nobody else."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.watch.alerts import MAX_A_MINUTE, MINUTE_S
from roundtrip.domain.watch.bag_guard import GUARD
from roundtrip.domain.watch.rules import Happening, Rule, Who
from roundtrip.jobs.alerts.drafts import enqueue_checks
from roundtrip.jobs.alerts.loop import AlertLoop, AlertParts
from roundtrip.store.server import connections, partitions
from roundtrip.store.server.rows import Connection, as_bytes
from roundtrip.store.watch import bags
from support.alert_ground import AlertGround
from support.alerting import accounts, amiss, wished
from support.databases import connected
from support.tables import begin_index
from support.told_blocks import (
    WETH,
    Chain,
    LoggedTransaction,
    bought,
    launched,
    moved,
    sent,
    sold,
    v3_at,
    v3_burnt,
    v3_minted,
    v3_opened,
    v3_swap,
)  # fmt: skip
from unit.sync.telling import ALICE, BOB, CAROL, CURVE, DEV, HIGH
from unit.venues.logs import NETWORK
from unit.venues.network import address

SUPPLY = 10**27
PART = SUPPLY // 1000
"""A thousandth of the supply: a holder is told of the deployer's sales from this much on."""
WORTH = 5 * 10**16
"""In wei. Nobody is told of less money that leaves a pool, whatever its share."""
PARTS = AlertParts(enqueue=wished)


def buys(who: Address, raw: int = PART) -> LoggedTransaction:
    return sent(bought(CURVE, who, who, 10**15, raw), sender=who)


def sells(who: Address, raw: int = PART) -> LoggedTransaction:
    return sent(sold(CURVE, who, who, 10**15, raw), sender=who)


def gives(who: Address, to: Address, raw: int) -> LoggedTransaction:
    return sent(moved(HIGH, who, to, raw), sender=who)


@pytest.fixture
async def ground(url: str) -> AsyncIterator[AlertGround]:
    """A launch whose deployer has a tenth; alice and bob are accounts, and carol is none."""
    made = Chain()
    async with connected(url) as index, connections.create_pool(url, min_size=1, max_size=6) as pool:
        await index.execute("TRUNCATE accounts.alert_cursor, accounts.alert_minute, accounts.account CASCADE")
        await index.execute("TRUNCATE jobs.job, facts.evidence CASCADE")
        writer = await begin_index(index, made.parent)
        alice, _ = await accounts(index, 2, [ALICE, BOB])
        guarded = Guarded(pool, index, made, writer, alice)
        await guarded.block(sent(launched(HIGH, CURVE, DEV), sender=DEV), buys(DEV, 100 * PART))
        await guarded.read()
        yield guarded


class Guarded(AlertGround):
    def another(self, parts: Any = PARTS, **how: Any) -> AlertLoop:
        return super().another(parts, **how)

    async def is_right(self) -> None:
        assert await amiss(self.index, NETWORK, self.given_up, PARTS) == []


async def read_alerts(ground: AlertGround, where: str = "retracted_at IS NULL") -> list[tuple[str, str, int]]:
    """Of each alert: the account's wallet, the verb, and the block."""
    rows = await ground.index.fetch(
        "SELECT account.wallet, alert.* FROM accounts.alert AS alert JOIN accounts.account AS account"  # noqa: S608
        f" ON account.id = alert.account_id WHERE kind = 'bag_guard' AND {where} ORDER BY alert.id"
    )
    return [("0x" + row[0].hex(), row["verb"], row["block_number"]) for row in rows]


async def test_a_holder_is_told_once_that_the_deployer_sells_and_nobody_else_is(ground: AlertGround) -> None:
    await ground.block(buys(ALICE), buys(CAROL))
    sale = await ground.block(sells(DEV, 2 * PART))
    await ground.read()
    await ground.read(ground.another())
    assert await read_alerts(ground) == [(ALICE, "selling", sale.ref.number)]
    (row,) = await ground.rows()
    assert (row["who"], row["rule"], row["share_ppm"], row["source_id"]) == (
        "deployer",
        None,
        2000,
        await ground.index.fetchval("SELECT id FROM facts.address WHERE address = $1", as_bytes(HIGH)),
    )
    assert row["said"] == (f"The deployer of {HIGH}, which you hold, sold 0.2 % of the supply for 0.001 eth.")
    waiting = await ground.index.fetch("SELECT key, payload FROM jobs.job WHERE kind = 'recheck'")
    assert [tuple(row) for row in waiting] == [(HIGH, '{"deep": true, "event": true}')]
    await ground.is_right()


async def test_who_held_just_then_is_told_however_late_it_is_read(ground: AlertGround) -> None:
    """Alice sells out after the sale, bob buys after it; both in blocks that are read together with it."""
    await ground.block(buys(ALICE))
    sale = await ground.block(sells(DEV))
    await ground.block(sells(ALICE), buys(BOB))
    await ground.read()
    assert await read_alerts(ground) == [(ALICE, "selling", sale.ref.number)]
    later = await ground.block(sells(DEV))
    await ground.read()
    assert await read_alerts(ground) == [
        (ALICE, "selling", sale.ref.number),
        (BOB, "selling", later.ref.number),
    ]
    await ground.is_right()


async def test_who_sold_out_is_told_no_more_and_whoever_sells_is_no_deployer(ground: AlertGround) -> None:
    await ground.block(buys(ALICE), buys(BOB), buys(CAROL, 9 * PART))
    await ground.block(sells(ALICE))
    await ground.block(sells(CAROL, 9 * PART))
    await ground.read()
    assert await read_alerts(ground) == []
    sale = await ground.block(sells(DEV))
    await ground.read()
    assert await read_alerts(ground) == [(BOB, "selling", sale.ref.number)]
    await ground.is_right()


async def test_ones_own_doing_is_not_told(ground: AlertGround) -> None:
    await accounts(ground.index, 1, [DEV])
    await ground.block(buys(ALICE))
    await ground.block(sells(DEV))
    await ground.read()
    assert [who for who, _, _ in await read_alerts(ground)] == [ALICE]
    await ground.is_right()


async def test_small_parts_are_told_when_they_come_to_a_thousandth_and_dust_is_not(
    ground: AlertGround,
) -> None:
    await ground.block(buys(ALICE))
    blocks = [await ground.block(sells(DEV, PART * 3 // 10)) for _ in range(8)]
    await ground.read()
    # 0.3, 0.6, 0.9, 1.2 | 1.5, 1.8, 2.1 | 2.4 thousandths.
    numbers = [blocks[place].ref.number for place in (3, 6)]
    assert await read_alerts(ground) == [(ALICE, "selling", number) for number in numbers]
    await ground.is_right()


async def test_a_reorganisation_takes_it_back_and_what_comes_instead_is_told(ground: AlertGround) -> None:
    kept = await ground.block(buys(ALICE))
    await ground.block(sells(DEV))
    await ground.read()
    await ground.forked(kept.ref.number, [buys(BOB)], [sells(DEV, 3 * PART)])
    await ground.read()
    assert await read_alerts(ground, "retracted_at IS NOT NULL") == [(ALICE, "selling", kept.ref.number + 1)]
    assert await read_alerts(ground) == [
        (ALICE, "selling", kept.ref.number + 2),
        (BOB, "selling", kept.ref.number + 2),
    ]
    await ground.is_right()


@pytest.mark.parametrize("kept", [5, 22])
async def test_twenty_a_minute_are_told_and_then_how_many_more(ground: AlertGround, kept: int) -> None:
    await ground.block(buys(ALICE))
    start_s = ground.head().timestamp_s // MINUTE_S * MINUTE_S + MINUTE_S
    first = await ground.block(
        *(sells(DEV) for _ in range(kept)), after_s=start_s - ground.head().timestamp_s
    )
    await ground.block(*(sells(DEV) for _ in range(25)))
    await ground.block(after_s=MINUTE_S)
    await ground.read()
    rows = await ground.rows()
    assert [row["more"] for row in rows if row["more"]] == [kept + 25 - MAX_A_MINUTE]
    assert rows[-1]["said"] == (
        f"{kept + 25 - MAX_A_MINUTE} more alerts in that minute, not listed: bag guard."
    )
    assert len(rows) == MAX_A_MINUTE + 1
    await ground.is_right()
    await ground.forked(first.ref.number, [], after_s=MINUTE_S)
    await ground.read()
    assert len(await ground.rows("retracted_at IS NULL AND more = 0")) == min(kept, MAX_A_MINUTE)
    await ground.is_right()


async def test_rules_are_told_beside_it(ground: AlertGround) -> None:
    await ground.rule(Rule(Who("any"), "selling"))
    await ground.block(buys(ALICE))
    await ground.block(sells(DEV), sells(ALICE, PART // 2))
    await ground.read()
    assert [row["kind"] for row in await ground.rows()] == ["rule", "bag_guard", "rule"]
    await ground.is_right()


async def test_what_happened_before_the_account_was_made_is_not_told(ground: AlertGround) -> None:
    await ground.block(buys(ALICE))
    await ground.block(sells(DEV))
    await ground.index.execute("UPDATE accounts.account SET guarded_from = $1", ground.head().number)
    sale = await ground.block(sells(DEV))
    await ground.read()
    assert await read_alerts(ground) == [(ALICE, "selling", sale.ref.number)]
    await ground.forked(101, [sells(DEV)])
    await ground.read()
    assert await read_alerts(ground) == [(ALICE, "selling", 102)]


async def test_what_was_given_counts_from_a_thousandth_on(ground: AlertGround) -> None:
    """Anybody can send anybody a little."""
    await ground.block(gives(DEV, ALICE, PART), gives(DEV, BOB, PART - 1))
    first = await ground.block(sells(DEV))
    await ground.block(gives(ALICE, CAROL, PART))
    await ground.block(sells(DEV))
    await ground.read()
    assert await read_alerts(ground) == [(ALICE, "selling", first.ref.number)]


def drained(ground: AlertGround, who: Address, part: int | None, wei: int | None, log: int = 0) -> Happening:
    head = ground.head()
    spot = Spot(head.number, log, head.timestamp_s, TxHash("0x" + "dd" * 32))
    whole = None if part is None else 100
    return Happening("draining", spot, who, HIGH, wei, None, part, whole)


@pytest.mark.parametrize(
    ("part", "wei", "is_told"),
    [
        (5, WORTH, True),
        (5, WORTH - 1, False),
        (4, 10**21, False),
        (None, 10**18, True),
        (None, 10**18 - 1, False),
        (None, None, False),
    ],
)
async def test_liquidity_that_leaves_is_told_from_a_twentieth_on(
    ground: AlertGround, part: int | None, wei: int | None, is_told: bool
) -> None:
    await ground.block(buys(ALICE), buys(BOB))

    async def happened(*given: Any) -> list[Happening]:
        return [drained(ground, BOB, part, wei)]

    await ground.read(ground.another(AlertParts(read_happenings=happened, enqueue=wished)))
    assert await read_alerts(ground) == [(ALICE, "draining", ground.head().number)] * is_told
    if is_told:
        (row,) = await ground.rows()
        assert row["who"] == BOB
        assert "which you hold" in row["said"]


async def test_checks_for_what_happens_are_a_minute_apart(ground: AlertGround) -> None:
    """Only a deep check delays the next one: a check that tests less does not see what that looks for."""
    await ground.block(buys(ALICE))
    await ground.index.execute(
        "INSERT INTO facts.evidence (checked_at, token, block_number, policy_version, verdict_code,"
        " verdict_level, document, deep) VALUES (to_timestamp($1), $3, 1, '', 'ok', 'ok', '', true),"
        " (to_timestamp($2), $3, 1, '', 'ok', 'ok', '', false)",
        ground.at_s - 20,
        ground.at_s - 5,
        as_bytes(HIGH),
    )
    await ground.block(sells(DEV))
    await ground.read()
    [(run_at,)] = await ground.index.fetch("SELECT run_at FROM jobs.job WHERE kind = 'recheck'")
    assert run_at.timestamp() == ground.at_s + 40


async def test_trades_of_others_look_nobody_up(ground: AlertGround, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    real = bags.holders

    async def holders(connection: Connection, of: Any) -> Any:
        asked.append(len(of))
        return await real(connection, of)

    monkeypatch.setattr(bags, "holders", holders)
    await ground.block(buys(ALICE), buys(CAROL), *(sells(CAROL, 1) for _ in range(20)))
    await ground.read()
    assert asked == [0]


async def held_by(ground: AlertGround, who: Address) -> int:
    """What the wallet bought and has not sold, by the index."""
    bought_raw = await ground.index.fetchval(
        "SELECT held_raw FROM facts.position JOIN facts.address ON id = wallet_id WHERE address = $1",
        as_bytes(who),
    )
    return int(bought_raw or 0)


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_comes_in_which_order_holders_are_told_once(ground: AlertGround, seed: int) -> None:
    rng = Random(seed)
    tellers = [ground.loop, ground.another(most_blocks=2, most_matches=3)]
    for _ in range(50):
        match rng.choice(("block", "block", "block", "busy", "later", "fork", "step", "step")):
            case "block":
                deeds = [sells(DEV, PART * rng.randrange(1, 20) // 10)]
                for who in rng.sample((ALICE, BOB, CAROL), 2):
                    can_sell = await held_by(ground, who) >= PART
                    deeds.append((sells if can_sell and rng.randrange(2) else buys)(who, PART))
                await ground.block(*rng.sample(deeds, 3))
            case "busy":
                await ground.block(*(sells(DEV) for _ in range(rng.randrange(5, 15))))
            case "later":
                await ground.block(after_s=rng.randrange(10, 70))
            case "fork":
                back = rng.randrange(max(100, ground.head().number - 4), ground.head().number + 1)
                instead = ([sells(DEV), buys(rng.choice((ALICE, BOB)))] for _ in range(rng.randrange(3)))
                await ground.forked(back, *instead, after_s=rng.randrange(1, 40))
            case "step":
                for _ in range(rng.randrange(4)):
                    await rng.choice(tellers).step()
    for teller in tellers:
        await ground.read(teller)
    assert await read_alerts(ground)
    await ground.is_right()


# --- which pools matter, and what is counted apart --------------------------------------------------


def of_weth(at: Address, change: int, wei: int) -> LoggedTransaction:
    """Liquidity that bob puts in or, below zero, takes out, with so much weth."""
    amounts = (0, wei) if min(HIGH, WETH) == HIGH else (wei, 0)
    log = v3_minted(at, BOB, change, *amounts) if change > 0 else v3_burnt(at, BOB, -change, *amounts)
    return sent(log, sender=BOB)


@pytest.mark.parametrize("traded_in", [False, True])
async def test_a_strangers_pool_alarms_nobody_and_the_tokens_own_does(
    ground: AlertGround, traded_in: bool
) -> None:
    main, dust = v3_at(HIGH, WETH, 3000), v3_at(HIGH, WETH, 500)
    await ground.block(
        sent(v3_opened(HIGH, WETH, 3000), v3_opened(HIGH, WETH, 500)),
        of_weth(main, 10**12, 10 * 10**18),
        of_weth(dust, 10**18, 10**17),
    )
    await ground.block(buys(ALICE))
    if traded_in:
        amounts = (-PART, 10**17) if min(HIGH, WETH) == HIGH else (10**17, -PART)
        await ground.block(sent(v3_swap(dust, *amounts), sender=CAROL))
    await ground.block(after_s=2 * MINUTE_S)
    strange = await ground.block(of_weth(dust, -(10**18), 10**17))
    own = await ground.block(of_weth(main, -(10**12), 10 * 10**18))
    await ground.read()
    numbers = [strange.ref.number] * traded_in + [own.ref.number]
    assert await read_alerts(ground) == [(ALICE, "draining", number) for number in numbers]


async def test_liquidity_that_costs_nothing_hides_no_removal(ground: AlertGround) -> None:
    main = v3_at(HIGH, WETH, 3000)
    await ground.block(
        sent(v3_opened(HIGH, WETH, 3000)),
        of_weth(main, 10**12, 10 * 10**18),
        sent(v3_minted(main, CAROL, 10**18, 0, 0), sender=CAROL),
    )
    await ground.block(buys(ALICE))
    await ground.block(after_s=2 * MINUTE_S)
    taken = await ground.block(of_weth(main, -(10**12) // 10, 10**18))
    await ground.read()
    assert await read_alerts(ground) == [(ALICE, "draining", taken.ref.number)]


@pytest.mark.parametrize("waits", [False, True], ids=["in its first minute", "before its minute"])
async def test_a_little_of_what_came_in_within_the_minute_alarms_nobody(
    ground: AlertGround, waits: bool
) -> None:
    main = v3_at(HIGH, WETH, 3000)
    await ground.block(sent(v3_opened(HIGH, WETH, 3000)))
    if waits:
        await ground.block(of_weth(main, 10**10, 10**17))
        await ground.block(after_s=2 * MINUTE_S)
    await ground.block(of_weth(main, 10**12, 10 * 10**18), buys(ALICE))
    await ground.block(of_weth(main, -(10**12) // 100, 10**17))
    await ground.read()
    assert await read_alerts(ground) == []


async def test_noise_about_one_token_hides_nothing_of_another_nor_its_deployers_sale(
    ground: AlertGround,
) -> None:
    other = address(0x077E4)
    await ground.block(sent(launched(other, address(0xC04F), CAROL), sender=CAROL), buys(ALICE))
    await ground.block(sent(bought(address(0xC04F), ALICE, ALICE, 10**15, PART), sender=ALICE))
    head = ground.head()

    def happened(number: int, verb: Any, token: Address, who: Address) -> Happening:
        spot = Spot(head.number, 100 + number, head.timestamp_s, TxHash("0x" + "dd" * 32))
        return Happening(verb, spot, who, token, WORTH, None, 5, 100)

    happenings = [happened(number, "draining", HIGH, BOB) for number in range(30)]
    happenings += [happened(30, "selling", HIGH, DEV), happened(31, "selling", other, CAROL)]

    async def all_of(*given: Any) -> list[Happening]:
        return happenings

    teller = ground.another(AlertParts(read_happenings=all_of, enqueue=wished))
    await ground.read(teller)
    rows = await ground.rows("more = 0")
    assert [(row["verb"], row["token"].hex()) for row in rows[MAX_A_MINUTE:]] == [
        ("selling", HIGH[2:]),
        ("selling", other[2:]),
    ]
    assert len(rows) == MAX_A_MINUTE + 2
    happenings.clear()
    await ground.block(after_s=2 * MINUTE_S)
    await ground.read(teller)
    (more,) = await ground.rows("more > 0")
    assert (more["more"], more["token"].hex()) == (10, HIGH[2:])


async def test_checks_for_what_happens_have_a_share_and_no_more(ground: AlertGround) -> None:
    tokens = [address(0xF00 + number) for number in range(7)]
    now = datetime.fromtimestamp(ground.at_s, UTC)
    for some in (tokens[:2], tokens[2:]):
        await enqueue_checks(ground.index, some, now)
    rows = await ground.index.fetch("SELECT key FROM jobs.job WHERE kind = 'recheck'")
    assert len(rows) == GUARD.most_of_events
    assert {*tokens[:2]} < {row["key"] for row in rows}


async def test_a_check_of_a_clock_that_was_ahead_keeps_nothing_from_being_checked(
    ground: AlertGround,
) -> None:
    token, now = address(0xF00), datetime.fromtimestamp(ground.at_s, UTC)
    await ground.index.execute(
        "INSERT INTO facts.evidence (checked_at, token, block_number, policy_version, verdict_code,"
        " verdict_level, document) VALUES ($1, $2, 1, '1', 'ok', 'ok', '')",
        now + timedelta(days=1), as_bytes(token),
    )  # fmt: skip
    await enqueue_checks(ground.index, [token], now)
    rows = await ground.index.fetch("SELECT run_at FROM jobs.job WHERE kind = 'recheck'")
    assert [row["run_at"] for row in rows] == [now]


async def test_of_what_was_given_the_newest_ten_are_guarded(ground: AlertGround) -> None:
    tokens = [address(0x6100 + number) for number in range(GUARD.most_given + 2)]
    for number, token in enumerate(tokens):
        curve = address(0xC100 + number)
        await ground.block(
            sent(launched(token, curve, CAROL), sender=CAROL),
            sent(moved(token, CAROL, ALICE, PART), sender=CAROL),
        )
    await ground.block(buys(ALICE), gives(DEV, ALICE, PART))
    held = await bags.held_by_accounts(ground.index)
    assert {holding.token for holding in held if holding.is_given} == set(tokens[2:])
    assert [holding.token for holding in held if not holding.is_given] == [HIGH]


async def test_what_a_wallet_took_out_of_a_pool_before_counts_for_a_day(ground: AlertGround) -> None:
    """From the most that it had there within the day, by the width of each range; not of others, of other
    pools, out of range, nor of the same transaction."""
    at_s, day_s = ground.head().timestamp_s, bags.DRAINED_WITHIN_S
    async with ground.index.transaction():
        await partitions.ensure(ground.index, "facts.liquidity", at_s - day_s - 1, at_s)
    changes = [
        # seconds before, pool, sender, ticks, delta, active before, transaction
        (day_s + 1, 1, 7, 60, -(10**6), 5, 7),
        (day_s, 1, 7, 60, -1000, 5, 1),
        (day_s - 1, 1, 7, 10, 2, 5, 2),
        (100, 1, 7, 60, 10**6, 5, 3),
        (99, 1, 7, 60, -40, None, 4),
        (98, 1, 7, 60, -(10**6), 0, 5),
        (97, 1, 7, 10, -5, 5, 6),
        (8, 1, 8, 60, -(10**6), 5, 8),
        (8, 2, 7, 60, -(10**6), 5, 9),
        (0, 1, 7, 60, -(10**6), 5, 10),
        (0, 1, 7, 60, -300, 5, 10),
    ]
    for number, (before_s, pool_id, sender_id, ticks, delta, active_raw, tx) in enumerate(changes):
        await ground.index.execute(
            "INSERT INTO facts.liquidity (at_s, block_number, log_index, pool_id, owner_id, sender_id,"
            " tick_lower, tick_upper, liquidity_delta, active_raw, tx_hash)"
            " VALUES ($1, 1, $2, $3, $4, $4, 0, $5, $6, $7, $8)",
            at_s - before_s,
            number,
            pool_id,
            sender_id,
            ticks,
            delta,
            active_raw,
            bytes([tx]) * 32,
        )
    drains = [
        Happening("draining", Spot(1, log, at_s - before_s, TxHash("0x")), BOB, HIGH, None, None, 1, None)
        for log, before_s in ((10, 0), (3, 100), (2, day_s - 1), (1, day_s), (8, 8))
    ]
    expected_raw = [40 * 60 + 5 * 10, 60_060_000 - 20, 60_060_000, 60_000_000, 0]
    assert await bags.read_drained_before(ground.index, drains) == expected_raw


async def test_many_happenings_are_told_as_each_alone(ground: AlertGround) -> None:
    """``holders`` reads each token once, for the first happening of it."""
    rng = Random(7)
    for _ in range(12):
        deeds = [buys(rng.choice((ALICE, BOB)), rng.randrange(1, 4) * PART) for _ in range(2)]
        deeds += [sells(who) for who in (ALICE, BOB) if await held_by(ground, who) >= PART]
        deeds += [gives(DEV, ALICE, PART), gives(DEV, BOB, 2 * PART), gives(ALICE, CAROL, PART)]
        await ground.block(*rng.sample(deeds, 4))
    await ground.block(sells(ALICE, await held_by(ground, ALICE) or 1))
    rows = await ground.index.fetch("SELECT DISTINCT block_number, at_s FROM facts.transfer ORDER BY 1")
    spots = [Spot(row[0], log, row[1], TxHash("0x")) for row in rows for log in (0, 2, 4)]
    of = [Happening("draining", spot, CAROL, HIGH, None, None, None, None) for spot in spots]
    alone = [(await bags.holders(ground.index, [happening]))[0] for happening in of]
    assert await bags.holders(ground.index, of) == alone
    assert len({len(some) for some in alone}) > 1


async def test_a_step_asks_once_a_token(ground: AlertGround, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()
    real = bags._read_ledgers

    async def kept_by(connection: Connection, spans: Any, *statements: str) -> Any:
        asked.append(len(spans))
        return await real(connection, spans, *statements)

    monkeypatch.setattr(bags, "_read_ledgers", kept_by)
    await ground.block(buys(ALICE))
    await ground.block(*(sells(DEV) for _ in range(10)))
    await ground.read()
    assert len(await read_alerts(ground)) == 10
    assert asked == [1, 1]
