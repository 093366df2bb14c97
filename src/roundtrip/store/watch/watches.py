"""What accounts watch: standing rules, followed wallets, and tokens that they do not hold. Each function uses
the caller's connection and does not end the transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import MAX_FOLLOWS, MAX_RULES, MAX_WATCHED
from roundtrip.domain.watch.bag_guard import BagHolding, initial_standing
from roundtrip.domain.watch.rule_index import AlertSource
from roundtrip.domain.watch.rules import Rule
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_value

from .bags import checks_after, put_standings, read_standings

_CHANGES_LOCK = 4663_0010
"""Advisory lock: changes become visible in the order of their numbers, and none while alerts are made. Taken
before any row lock on a rule or a follow."""
ENDED_KEPT = timedelta(days=1)
"""By then every process that holds watches in memory has read the change, or reads all watches again."""


class TooManyWatches(Exception):
    """The account has as many rules or follows as it may have."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the limit is {most}")
        self.most = most


@dataclass(frozen=True, slots=True)
class KeptRule:
    """A live rule. ``wallet``: the wallet that ``wallet``, ``deployer`` or ``creator`` refers to. ``hits``:
    how often it matched, without retracted matches. ``from_number``: it matches in later blocks. ``paused``:
    it matches nothing for now."""

    id: int
    rule: Rule
    wallet: Address | None
    hits: int
    from_number: int
    made_at: datetime
    paused: bool


@dataclass(frozen=True, slots=True)
class KeptFollow:
    """A followed wallet, with the name that the account gave it. ``from_number``: as of a rule."""

    id: int
    wallet: Address
    name: str
    from_number: int
    made_at: datetime


@dataclass(frozen=True, slots=True)
class WatchChange:
    """A rule or a follow after its last change. ``rule``: None of a follow; ``wallet``: as in the index of
    rules. Not ``live``: it has ended, or is paused."""

    number: int
    source: AlertSource
    rule: Rule | None
    wallet: Address | None
    live: bool


_RULE = "who AS kind, who_address AS address, verb, unit, over_raw AS raw, token"
_INDEX_NUMBER = "coalesce((SELECT number FROM facts.cursor), -1)"
_LAST_REWIND = "coalesce((SELECT max(id) FROM facts.rewound), 0)"
"""Reorganisations that are no longer kept were handled long ago."""


async def lock_account(connection: Connection, account_id: int) -> None:
    """No other transaction changes what the account watches until this one ends. Alerts to the account do not
    wait for that."""
    await connection.execute("SELECT FROM accounts.account WHERE id = $1 FOR NO KEY UPDATE", account_id)


async def _next_change(connection: Connection) -> int:
    """The number of a change. Takes the lock before drawing the number, and keeps it until the transaction
    ends."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _CHANGES_LOCK)
    return await fetch_value(connection, int, "SELECT nextval('accounts.watch_changes')")


# --- rules -----------------------------------------------------------------------------------------


async def add_rule(
    connection: Connection, account_id: int, rule: Rule, wallet: Address | None, head: int, now: datetime
) -> int:
    """Adds a rule and returns its id, or the id of the same rule where the account has it: if that is paused,
    it goes on. The rule applies to blocks later than the index's last and later than ``head``, the node's
    newest block: an index that is still far from ``head`` reads history. Raises TooManyWatches."""
    await lock_account(connection, account_id)
    live = await fetch(
        connection,
        tuple[int, str, bool],
        "SELECT id, said, paused FROM accounts.rule WHERE account_id = $1 AND ended_at IS NULL",
        account_id,
    )
    for rule_id, text, is_paused in live:
        if text == rule.text():
            if is_paused:
                await resume_rule(connection, account_id, rule_id, head)
            return rule_id
    if len(live) >= MAX_RULES:
        raise TooManyWatches(MAX_RULES)
    who_address = rule.who.address
    return await fetch_value(
        connection,
        int,
        "INSERT INTO accounts.rule (account_id, said, who, who_address, wallet, verb, unit, over_raw, token,"  # noqa: S608
        " from_number, rewound, made_at, change) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, greatest($10, "
        f"{_INDEX_NUMBER}), {_LAST_REWIND}, $11, $12) RETURNING id",
        account_id,
        rule.text(),
        rule.who.kind,
        None if who_address is None else as_bytes(who_address),
        None if wallet is None else as_bytes(wallet),
        rule.verb,
        None if rule.over is None else rule.over.unit,
        None if rule.over is None else rule.over.raw,
        None if rule.token is None else as_bytes(rule.token),
        head,
        now,
        # Evaluated before the index position is read: no alert step passes it before this is visible.
        await _next_change(connection),
    )


async def rules_of(connection: Connection, account_id: int) -> list[KeptRule]:
    """An account's live rules, the oldest first."""
    return await fetch(
        connection,
        KeptRule,
        f"SELECT id, {_RULE}, wallet, hits, from_number, made_at, paused"  # noqa: S608
        " FROM accounts.rule WHERE account_id = $1 AND ended_at IS NULL ORDER BY id",
        account_id,
    )


async def pause_rule(connection: Connection, account_id: int, rule_id: int) -> bool:
    """Pauses a rule: from now on it matches nothing. False: the account has no such rule that goes on."""
    status = await connection.execute(
        "UPDATE accounts.rule SET paused = true, change = $3"
        " WHERE id = $1 AND account_id = $2 AND ended_at IS NULL AND NOT paused",
        rule_id,
        account_id,
        await _next_change(connection),
    )
    return status != "UPDATE 0"


async def resume_rule(connection: Connection, account_id: int, rule_id: int, head: int) -> bool:
    """Lets a paused rule go on: it applies to the blocks to which a new one would (``add_rule``). False: the
    account has no such paused rule."""
    status = await connection.execute(
        f"UPDATE accounts.rule SET paused = false, from_number = greatest($3, {_INDEX_NUMBER}),"  # noqa: S608
        f" rewound = {_LAST_REWIND}, change = $4"
        " WHERE id = $1 AND account_id = $2 AND ended_at IS NULL AND paused",
        rule_id,
        account_id,
        head,
        # Evaluated before the index position is read: no alert step passes it before this is visible.
        await _next_change(connection),
    )
    return status != "UPDATE 0"


async def end_rule(connection: Connection, account_id: int, rule_id: int, now: datetime) -> bool:
    """Ends a rule. False: the account has no such rule."""
    status = await connection.execute(
        "UPDATE accounts.rule SET ended_at = $3, change = $4"
        " WHERE id = $1 AND account_id = $2 AND ended_at IS NULL",
        rule_id,
        account_id,
        now,
        await _next_change(connection),
    )
    return status != "UPDATE 0"


# --- follows ---------------------------------------------------------------------------------------


_FOLLOWS = (
    "SELECT id, wallet, name, from_number, made_at FROM accounts.follow"
    " WHERE account_id = $1 AND ended_at IS NULL ORDER BY id"
)


async def add_follow(
    connection: Connection, account_id: int, wallet: Address, name: str, head: int, now: datetime
) -> int:
    """Adds a follow and returns its id, or the id of the existing one, which gets the new name. ``head``: as
    of a rule. Raises TooManyWatches."""
    await lock_account(connection, account_id)
    live = await fetch(connection, KeptFollow, _FOLLOWS, account_id)
    for follow in live:
        if follow.wallet == wallet:
            if follow.name != name:
                await connection.execute(
                    "UPDATE accounts.follow SET name = $2, change = $3 WHERE id = $1",
                    follow.id,
                    name,
                    await _next_change(connection),
                )
            return follow.id
    if len(live) >= MAX_FOLLOWS:
        raise TooManyWatches(MAX_FOLLOWS)
    return await fetch_value(
        connection,
        int,
        "INSERT INTO accounts.follow (account_id, wallet, name, from_number, rewound, made_at, change)"  # noqa: S608
        f" VALUES ($1, $2, $3, greatest($4, {_INDEX_NUMBER}), {_LAST_REWIND}, $5, $6) RETURNING id",
        account_id,
        as_bytes(wallet),
        name,
        head,
        now,
        # Evaluated before the index position is read: no alert step passes it before this is visible.
        await _next_change(connection),
    )


async def follows_of(connection: Connection, account_id: int) -> list[KeptFollow]:
    """The wallets that an account follows, the oldest first."""
    return await fetch(connection, KeptFollow, _FOLLOWS, account_id)


async def end_follow(connection: Connection, account_id: int, wallet: Address, now: datetime) -> bool:
    """Ends a follow. False: the account does not follow the wallet."""
    status = await connection.execute(
        "UPDATE accounts.follow SET ended_at = $3, change = $4"
        " WHERE wallet = $1 AND account_id = $2 AND ended_at IS NULL",
        as_bytes(wallet),
        account_id,
        now,
        await _next_change(connection),
    )
    return status != "UPDATE 0"


# --- for the alert loop ----------------------------------------------------------------------------


async def lock_shared(connection: Connection) -> None:
    """Keeps what is watched unchanged until the transaction ends; several transactions may do so at once."""
    await connection.execute("SELECT pg_advisory_xact_lock_shared($1)", _CHANGES_LOCK)


_RULE_FIELDS = (
    "change AS number, 'rule' AS kind, id, account_id, said AS name, from_number,"
    f" {_RULE}, wallet, ended_at IS NULL AND NOT paused AS live"
)
_FOLLOW_FIELDS = (
    "change AS number, 'follow' AS kind, id, account_id, name, from_number, NULL::text AS kind,"
    " NULL::bytea AS address, NULL::text AS verb, NULL::text AS unit, NULL::numeric AS raw,"
    " NULL::bytea AS token, wallet, ended_at IS NULL AS live"
)
# One statement: its rules and its follows are of one moment.
_CHANGES = f"""
(SELECT {_RULE_FIELDS} FROM accounts.rule
WHERE change > $1 AND ($1 > 0 OR ended_at IS NULL AND NOT paused) ORDER BY change LIMIT $2)
UNION ALL
(SELECT {_FOLLOW_FIELDS} FROM accounts.follow
WHERE change > $1 AND ($1 > 0 OR ended_at IS NULL) ORDER BY change LIMIT $2)
ORDER BY number LIMIT $2
"""  # noqa: S608
MAX_CHANGES = 5_000


async def changes_since(connection: Connection, number: int, limit: int = MAX_CHANGES) -> list[WatchChange]:
    """The first ``limit`` changes after the change of this number, in order; after 0: all live watches. No
    change up to the last of them is missing: of two changes the one with the lower number becomes visible
    first."""
    return await fetch(connection, WatchChange, _CHANGES, number, limit)


async def rewind_watches(connection: Connection, undone: int, last: int) -> list[WatchChange]:
    """Lowers ``from_number`` of watches that were set before a reorganisation after ``undone`` up to
    ``last``, to the block that it went back to: the blocks that came instead are news. Returns these watches
    as they are now, under the numbers of their last changes: a process that has them in memory under those
    numbers, and did not call this, reads all watches again."""
    changes: list[WatchChange] = []
    for table, fields in (("rule", _RULE_FIELDS), ("follow", _FOLLOW_FIELDS)):
        changes += await fetch(
            connection,
            WatchChange,
            f"UPDATE accounts.{table} AS watched SET from_number = ("  # noqa: S608
            "SELECT min(to_number) FROM facts.rewound WHERE id > greatest($1, watched.rewound) AND id <= $2) "
            "WHERE ended_at IS NULL AND EXISTS (SELECT FROM facts.rewound WHERE id > greatest($1, "
            f"watched.rewound) AND id <= $2 AND to_number < watched.from_number) RETURNING {fields}",
            undone,
            last,
        )
    return changes


async def count_hits(connection: Connection, hits: Sequence[tuple[int, int]]) -> None:
    """Adds to the hits of rules, given as id and count; a negative count subtracts."""
    if hits:
        # In order of ids, so that two transactions cannot deadlock.
        ordered = sorted(hits)
        await connection.execute(
            "UPDATE accounts.rule AS rule SET hits = greatest(0, rule.hits + given.hits)"
            " FROM unnest($1::bigint[], $2::bigint[]) AS given (id, hits) WHERE rule.id = given.id",
            [rule_id for rule_id, _ in ordered],
            [count for _, count in ordered],
        )


async def forget_ended(connection: Connection, now: datetime) -> None:
    """Deletes rules and follows that ended a day ago."""
    for table in ("rule", "follow"):
        await connection.execute(
            f"DELETE FROM accounts.{table} WHERE ended_at < $1",  # noqa: S608
            now - ENDED_KEPT,
        )


# --- tokens ----------------------------------------------------------------------------------------


async def add_token(connection: Connection, account_id: int, token: Address, now: datetime) -> None:
    """The account watches the token; does nothing where it does. Changes from the newest check on are
    reported, however soon they come. Raises TooManyWatches."""
    await connection.execute("SELECT FROM accounts.account WHERE id = $1 FOR NO KEY UPDATE", account_id)
    watched = await list_tokens(connection, account_id)
    if token in watched:
        return
    if len(watched) >= MAX_WATCHED:
        raise TooManyWatches(MAX_WATCHED)
    await connection.execute(
        "INSERT INTO accounts.token_watch (account_id, token, made_at) VALUES ($1, $2, $3)",
        account_id,
        as_bytes(token),
        now,
    )
    if not await read_standings(connection, [token]):
        newest = (await checks_after(connection, {token: 0}, {token: now})).get(token, [])
        first = initial_standing(newest[0]) if newest else None
        if first is not None:
            await put_standings(connection, {token: first})


async def remove_token(connection: Connection, account_id: int, token: Address) -> None:
    """The account no longer watches the token; does nothing where it does not."""
    await connection.execute(
        "DELETE FROM accounts.token_watch WHERE account_id = $1 AND token = $2", account_id, as_bytes(token)
    )


async def list_tokens(connection: Connection, account_id: int) -> dict[Address, datetime]:
    """The tokens that an account watches, and since when, the newest first."""
    rows = await fetch(
        connection,
        tuple[Address, datetime],
        "SELECT token, made_at FROM accounts.token_watch WHERE account_id = $1 ORDER BY made_at DESC, token",
        account_id,
    )
    return dict(rows)


async def watched_by_accounts(connection: Connection) -> list[BagHolding]:
    """All tokens that accounts watch, by token. ``is_given``, so that they are checked after tokens that
    accounts bought: watching costs nothing."""
    return await fetch(
        connection,
        BagHolding,
        "SELECT account_id, token, true AS is_given, made_at AS since"
        " FROM accounts.token_watch"
        " ORDER BY token, account_id",
    )


async def watchers(connection: Connection, tokens: Collection[Address]) -> dict[Address, set[int]]:
    """The accounts that watch each of these tokens; a token that nobody watches is missing."""
    rows = await fetch(
        connection,
        tuple[Address, int],
        "SELECT token, account_id FROM accounts.token_watch WHERE token = ANY($1::bytea[])",
        [as_bytes(token) for token in tokens],
    )
    account_ids: dict[Address, set[int]] = {}
    for token, account_id in rows:
        account_ids.setdefault(token, set()).add(account_id)
    return account_ids
