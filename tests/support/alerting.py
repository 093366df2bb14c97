"""Alerts made over again from the facts alone, one by one, to hold beside those that were told; and plain
parts to tell them with."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

import asyncpg

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.watch.alerts import MAX_A_MINUTE, MINUTE_S, Alert
from roundtrip.domain.watch.rule_index import AlertSource, RuleIndex
from roundtrip.domain.watch.rules import Happening, Rule, Watch
from roundtrip.jobs.alerts.loop import AlertParts
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import watches
from roundtrip.store.watch.happenings import IndexedBlock
from roundtrip.store.watch.watches import WatchChange
from roundtrip.venues.base import Contracts
from support.hex_columns import as_address, as_text

MADE_AT = datetime.fromisoformat("2026-01-01T00:00:00Z")


# --- parts -----------------------------------------------------------------------------------------


class OneByOne(RuleIndex):
    """Looks at every rule and follow."""

    def __init__(self) -> None:
        self._each_rule: dict[int, tuple[AlertSource, Rule, Address | None]] = {}
        self._each_follow: dict[int, tuple[AlertSource, Address]] = {}

    def add_rule(self, source: AlertSource, rule: Rule, wallet: Address | None) -> None:
        self._each_rule[source.id] = source, rule, wallet

    def add_follow(self, source: AlertSource, wallet: Address) -> None:
        self._each_follow[source.id] = source, wallet

    def remove(self, kind: Literal["rule", "follow", "bag_guard"], source_id: int) -> None:
        (self._each_rule if kind == "rule" else self._each_follow).pop(source_id, None)

    def matching(self, happening: Happening) -> list[AlertSource]:
        number = happening.spot.block_number
        following = [one for one in self._each_follow.values() if one[0].from_number < number]
        found = []
        for source, rule, wallet in self._each_rule.values():
            own = {who for follow, who in following if follow.account_id == source.account_id}
            wallets = {"follow": own, "any": None}.get(rule.who.kind, {wallet} - {None})
            if source.from_number < number and Watch(rule, wallets).matches(happening):  # type: ignore[arg-type]
                found.append(source)
        found.sort(key=lambda source: source.id)
        if happening.alerts_followers():
            found += sorted(
                (source for source, wallet in following if wallet == happening.wallet),
                key=lambda source: source.id,
            )
        return found


_TRADES = """
SELECT trade.*, trader.address AS trader, token.address AS token, quote.address AS quote
FROM facts.trade AS trade JOIN facts.pool AS pool ON pool.id = trade.pool_id
JOIN facts.address AS trader ON trader.id = trade.trader_id
JOIN facts.address AS token ON token.id = pool.token_id
JOIN facts.address AS quote ON quote.id = pool.quote_id
WHERE trade.at_s >= $1 AND trade.block_number > $2 AND trade.at_s <= $3 AND trade.block_number <= $4
ORDER BY trade.block_number, trade.log_index
"""


async def trades_happened(
    connection: Connection, contracts: Contracts, after: IndexedBlock, to: IndexedBlock
) -> list[Happening]:
    """Of all that may happen the trades."""
    rows = await connection.fetch(_TRADES, after.at_s, after.number, to.at_s, to.number)
    return [
        Happening(
            "buying" if row["buys"] else "selling",
            Spot(row["block_number"], row["log_index"], row["at_s"], TxHash(as_text(row["tx_hash"]))),
            as_address(row["trader"]),
            as_address(row["token"]),
            int(row["quote_raw"] if row["eth_wei"] is None else row["eth_wei"]),
            row["micro_usd"],
            None,
            None,
        )
        for row in rows
    ]


async def wished(
    connection: Connection, alerts: Sequence[Alert], now: datetime, retracted: bool = False
) -> None:
    """A delivery of each to every channel of its account."""
    await connection.execute(
        "INSERT INTO accounts.delivery (channel_id, webhook_id, kind, alert_ids, retracted, next_at, made_at)"
        " SELECT channel.id, gen_random_uuid()::text, given.kind, ARRAY[given.id], $4, $5, $5"
        " FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS given (id, account_id, kind)"
        " JOIN accounts.channel AS channel ON channel.account_id = given.account_id",
        [alert.id for alert in alerts],
        [alert.draft.account_id for alert in alerts],
        [alert.draft.kind for alert in alerts],
        retracted,
        now,
    )


PLAIN = AlertParts(OneByOne, trades_happened, wished)


# --- accounts -----------------------------------------------------------------------------------------


async def accounts(connection: Connection, count: int, wallets: Sequence[str] = ()) -> list[int]:
    """So many new ones, each with a channel. ``wallets``: of the first of them; the others' hold nothing."""
    made = []
    for number in range(count):
        account_id = await connection.fetchval(
            "INSERT INTO accounts.account (wallet, designation, made_at) SELECT"
            " decode(lpad(to_hex(seen + $1), 40, '0'), 'hex'), 'mite-' || seen, $2"
            " FROM (SELECT coalesce(max(id), 0) + 1 AS seen FROM accounts.account) AS so_far RETURNING id",
            0xFEED00 + number,
            MADE_AT,
        )
        if number < len(wallets):
            wallet = bytes.fromhex(wallets[number][2:])
            await connection.execute(
                "UPDATE accounts.account SET wallet = $2 WHERE id = $1", account_id, wallet
            )
        await connection.execute(
            "INSERT INTO accounts.channel (account_id, kind, target, shown, state, made_at)"
            " VALUES ($1, 'telegram', '', '', 'live', $2)",
            account_id,
            MADE_AT,
        )
        made.append(account_id)
    return made


# --- what should have been told --------------------------------------------------------------------


class ExpectedAlert(NamedTuple):
    """What an alert is of."""

    account_id: int
    kind: str
    source_id: int
    block_number: int
    log_index: int
    verb: str
    tx_hash: str


@dataclass
class Expected:
    """What the facts and the rules of the moment come to. ``beyond``: of a minute, of which no rows were
    made; ``hits``: of rules."""

    rows: list[ExpectedAlert] = field(default_factory=list)
    beyond: Counter[tuple[str, int, int, int]] = field(default_factory=Counter)
    hits: Counter[int] = field(default_factory=Counter)
    everything: set[ExpectedAlert] = field(default_factory=set)
    """Those beyond and those of what was ended meanwhile among them."""
    last_s: int = 0


async def expected(connection: Connection, contracts: Contracts, parts: AlertParts = PLAIN) -> Expected:
    """Without a cursor, an index or a cache."""
    [known] = await connection.fetch("SELECT number, at_s FROM facts.cursor")
    last = IndexedBlock(known["number"], known["at_s"])
    found, counts = Expected(last_s=last.at_s), Counter[tuple[str, int, int, int]]()
    live, ever = OneByOne(), OneByOne()
    for change in await _all_changes(connection):
        for index in (live, ever) if change.live else (ever,):
            if change.rule is not None:
                index.add_rule(change.source, change.rule, change.wallet)
            elif change.wallet is not None:
                index.add_follow(change.source, change.wallet)
    bags = await _bags(connection)
    for happening in await parts.read_happenings(connection, contracts, IndexedBlock(-1, 0), last):
        found.everything |= {_row(source, happening) for source in ever.matching(happening)}
        guarding = bags.of(happening)
        found.everything |= {_row(source, happening) for source in guarding}
        for source in (*live.matching(happening), *guarding):
            key = (source.kind, source.id, source.account_id, happening.spot.at_s // MINUTE_S)
            counts[key] += 1
            if counts[key] <= MAX_A_MINUTE:
                found.rows.append(_row(source, happening))
            else:
                found.beyond[key] += 1
            if source.kind == "rule":
                found.hits[source.id] += 1
    return found


@dataclass
class Bags:
    """Which accounts hold what: every trade there was, in order. ``sold``: what a deployer had sold by
    then."""

    accounts: dict[str, tuple[int, int]]
    deployers: dict[str, str]
    trades: Sequence[asyncpg.Record]
    numbers: dict[str, int]

    def of(self, happening: Happening) -> list[AlertSource]:
        """Who is told of it for holding the token."""
        token, by, at = happening.token, happening.wallet, happening.spot[:2]
        if happening.verb == "draining":
            share = happening.share_ppm()
            if not (share >= 50_000 if share is not None else (happening.eth_wei or 0) >= 10**18):
                return []
        elif happening.verb != "selling" or self.deployers.get(token) != by:
            return []
        elif happening.part_raw is not None:
            sold = self._sold(by, token, at)
            if (sold + happening.part_raw) // 10**24 == sold // 10**24:
                return []
        number = self.numbers[token] * (-1 if happening.verb == "draining" else 1)
        found = [
            account
            for wallet, (account, guarded_from) in self.accounts.items()
            if wallet != by and guarded_from < at[0] and self._held(wallet, token, at)
        ]
        return [AlertSource("bag_guard", number, account, "bag guard", -1) for account in sorted(found)]

    def _before(self, wallet: str, token: str, at: tuple[int, int]) -> list[asyncpg.Record]:
        own = bytes.fromhex(wallet[2:]), bytes.fromhex(token[2:])
        return [
            row for row in self.trades
            if (row["trader"], row["token"]) == own and (row["block_number"], row["log_index"]) < at
        ]  # fmt: skip

    def _sold(self, wallet: str, token: str, at: tuple[int, int]) -> int:
        return sum(int(row["token_raw"]) for row in self._before(wallet, token, at) if not row["buys"])

    def _held(self, wallet: str, token: str, at: tuple[int, int]) -> int:
        held = most = 0
        for row in self._before(wallet, token, at):
            held = held + int(row["token_raw"]) if row["buys"] else max(0, held - int(row["token_raw"]))
            most = max(most, held)
            if held * 1000 <= most:
                held = most = 0
        return held


async def _bags(connection: Connection) -> Bags:
    accounts_of = await connection.fetch("SELECT id, wallet, guarded_from FROM accounts.account")
    launches = await connection.fetch(
        "SELECT token.address AS token, deployer.address AS deployer FROM facts.launch AS launch"
        " JOIN facts.address AS token ON token.id = launch.token_id"
        " JOIN facts.address AS deployer ON deployer.id = launch.deployer_id"
    )
    return Bags(
        {as_text(row["wallet"]): (row["id"], row["guarded_from"]) for row in accounts_of},
        {as_text(row["token"]): as_text(row["deployer"]) for row in launches},
        await connection.fetch(_TRADES, 0, -1, 2**31 - 1, 2**31 - 1),
        {as_text(row["address"]): row["id"] for row in await connection.fetch("SELECT * FROM facts.address")},
    )


async def _all_changes(connection: Connection) -> list[WatchChange]:
    """Ended ones, too: an end is never the first change."""
    found = [*await watches.changes_since(connection, 0), *await watches.changes_since(connection, 1)]
    numbers = {change.number: change for change in found}
    return [numbers[number] for number in sorted(numbers)]


def _row(source: AlertSource, happening: Happening) -> ExpectedAlert:
    spot = happening.spot
    return ExpectedAlert(
        source.account_id,
        source.kind,
        source.id,
        spot.block_number,
        spot.log_index,
        happening.verb,
        spot.tx_hash,
    )


_ALERTS = "SELECT * FROM accounts.alert ORDER BY id"
_SENT = "SELECT unnest(alert_ids) AS id, retracted, count(*) AS times FROM accounts.delivery GROUP BY 1, 2"


async def amiss(
    connection: Connection,
    contracts: Contracts,
    given_up: Sequence[tuple[int, int]],
    parts: AlertParts = PLAIN,
) -> list[str]:
    """What the alerts of a database are other than they should be, for a person; nothing: all is well. All
    facts have been read. ``given_up``: of each fork the last block that stayed and the last that was taken
    away, as who made the chain knows them: the service forgets its own notes of forks."""
    should = await expected(connection, contracts, parts)
    ended = await connection.fetch(
        "SELECT 'rule' AS kind, id FROM accounts.rule WHERE ended_at IS NOT NULL"
        " UNION ALL SELECT 'follow', id FROM accounts.follow WHERE ended_at IS NOT NULL"
    )
    over = {(row["kind"], row["id"]) for row in ended}
    entries = await connection.fetch(_ALERTS)
    rows = [(_told(row), row) for row in entries if row["more"] == 0]
    live = [one for one, row in rows if row["retracted_at"] is None]
    messages = [f"told twice: {one}" for one, times in Counter(live).items() if times > 1]
    messages += [f"not told: {one}" for one in should.rows if one not in set(live)]
    right = set(should.rows)
    for one in live:
        if one not in (should.everything if one[1:3] in over else right):
            messages.append(f"told, and should not be: {one}")
    for one, row in rows:
        was_there = not any(stayed < one.block_number <= gone for stayed, gone in given_up)
        if row["retracted_at"] is not None and was_there:
            messages.append(f"taken back, and was always there: {one}")
    a_minute = Counter(
        (row["kind"], row["source_id"], row["account_id"], row["at_s"] // MINUTE_S)
        for _, row in rows
        if row["retracted_at"] is None
    )
    messages += [f"{times} in a minute: {key}" for key, times in a_minute.items() if times > MAX_A_MINUTE]
    messages += await _counts_amiss(connection, should, over)
    return messages + await _sent_amiss(connection, entries)


async def _counts_amiss(connection: Connection, should: Expected, over: set[tuple[str, int]]) -> list[str]:
    messages = [
        f"rule {row['id']}: {row['hits']} hits, and should be {should.hits[row['id']]}"
        for row in await connection.fetch("SELECT id, hits FROM accounts.rule WHERE ended_at IS NULL")
        if row["hits"] != should.hits[row["id"]]
    ]
    answer = Counter[tuple[str, int, int, int]]()
    for row in await connection.fetch("SELECT * FROM accounts.alert WHERE more > 0 AND retracted_at IS NULL"):
        answer[row["kind"], row["source_id"], row["account_id"], row["at_s"] // MINUTE_S] += row["more"]
    past = {key: more for key, more in should.beyond.items() if key[3] < should.last_s // MINUTE_S}
    mine = {key: more for key, more in answer.items() if key[:2] not in over}
    if mine != past:
        messages.append(f"and so many more: {mine}, and should be {past}")
    return messages


async def _sent_amiss(connection: Connection, told: Sequence[asyncpg.Record]) -> list[str]:
    sent = {(row["id"], row["retracted"]): row["times"] for row in await connection.fetch(_SENT)}
    wanted = {(row["id"], False): 1 for row in told}
    wanted |= {(row["id"], True): 1 for row in told if row["retracted_at"] is not None}
    return [
        f"alert {number}{' taken back' if retracted else ''}: sent {sent.get((number, retracted), 0)} times,"
        f" and should be {wanted.get((number, retracted), 0)}"
        for number, retracted in sorted(sent.keys() | wanted.keys())
        if sent.get((number, retracted), 0) != wanted.get((number, retracted), 0)
    ]


def _told(row: asyncpg.Record) -> ExpectedAlert:
    spot = row["block_number"], row["log_index"], row["verb"]
    return ExpectedAlert(row["account_id"], row["kind"], row["source_id"], *spot, as_text(row["tx_hash"]))


def without(parts: AlertParts, **others: object) -> AlertParts:
    """The same with some of them changed."""
    return dataclasses.replace(parts, **others)  # type: ignore[arg-type]
