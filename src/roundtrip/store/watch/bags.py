"""Who holds what among accounts, and what holders were told of its verdict. Each function takes the caller's
connection and ends no transaction."""

from collections import deque
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from roundtrip.domain.base.clock_age import age_s
from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, TxHash
from roundtrip.domain.watch.bag_guard import GUARD, BagHolding, BagStanding, StoredLevel
from roundtrip.domain.watch.rules import Happening
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection

from .happening_rows import LAUNCHED_RAW, PPM

MOST_CHECKS = 50
"""Of one token in one reading; the others in the next one."""


class BagHolder(NamedTuple):
    """An account whose wallet holds a token. ``from_number``: what happens in later blocks is told to it.
    ``token_number``: the token's in facts.address."""

    account_id: int
    wallet: Address
    from_number: int
    token_number: int


async def deployers(connection: Connection, tokens: Collection[Address]) -> dict[Address, Address]:
    """Who deployed these, of those that a launchpad launched."""
    rows = await connection.fetch(
        "SELECT token.address AS token, deployer.address AS deployer FROM facts.address AS token"
        " JOIN facts.launch AS launch ON launch.token_id = token.id"
        " JOIN facts.address AS deployer ON deployer.id = launch.deployer_id"
        " WHERE token.address = ANY($1::bytea[])",
        [as_bytes(token) for token in tokens],
    )
    return {as_address(row["token"]): as_address(row["deployer"]) for row in rows}


_GIVEN = (
    "unnest($1::bytea[], $2::bytea[], $3::int[], $4::int[], $5::int[]) WITH ORDINALITY"
    " AS given (token, wallet, block_number, log_index, at_s, nth)"
)
_LATER = """
    SELECT coalesce(sum(trade.token_raw) FILTER (WHERE NOT trade.buys), 0) AS sold_raw,
        coalesce(sum(trade.token_raw) FILTER (WHERE trade.buys), 0) AS bought_raw
    FROM facts.trade AS trade JOIN facts.pool AS pool ON pool.id = trade.pool_id
    WHERE held.last_s >= given.at_s AND trade.trader_id = held.wallet_id AND pool.token_id = held.token_id
        AND trade.at_s >= given.at_s
        AND (trade.block_number, trade.log_index) > (given.block_number, given.log_index)
"""
_SOLD = f"""
SELECT given.nth, (held.sold_raw - later.sold_raw)::text AS sold_raw
FROM {_GIVEN}
JOIN facts.address AS token ON token.address = given.token
JOIN facts.address AS wallet ON wallet.address = given.wallet
JOIN facts.position AS held ON held.wallet_id = wallet.id AND held.token_id = token.id
CROSS JOIN LATERAL ({_LATER}) AS later
"""  # noqa: S608


async def sold_up_to(connection: Connection, sales: Sequence[Happening]) -> list[int | None]:
    """How much of the token whoever sold had ever sold when each of these was done, itself in it; None: not
    known."""
    found: list[int | None] = [None] * len(sales)
    for row in await connection.fetch(_SOLD, *_columns_of(sales)):
        found[row["nth"] - 1] = int(row["sold_raw"])
    return found


_LARGE_RAW = LAUNCHED_RAW * GUARD.given_ppm // PPM
"""In one transfer: what index transfer_given has (schema/0016)."""
MOST_GIVEN = 5_000
"""Of one token: of all there is no more than a thousand can have a thousandth at a time. The oldest accounts
first."""
_TOKENS = (
    "unnest($1::bytea[], $2::int[], $3::int[], $4::int[], $5::int[]) WITH ORDINALITY"
    " AS given (token, block_number, log_index, at_s, last_s, nth)"
)
_TRADED = f"""
SELECT given.nth, held.token_id, account.id, account.wallet, account.guarded_from,
    (held.held_raw + later.sold_raw - later.bought_raw)::text AS held_raw
FROM {_TOKENS} JOIN facts.address AS token ON token.address = given.token
JOIN facts.position AS held ON held.token_id = token.id
JOIN facts.address AS wallet ON wallet.id = held.wallet_id
JOIN accounts.account AS account ON account.wallet = wallet.address
CROSS JOIN LATERAL ({_LATER}) AS later
WHERE held.held_raw > 0 OR held.last_s >= given.at_s
"""  # noqa: S608
_WALLETS = f"""
SELECT DISTINCT of.wallet_id FROM {_TOKENS} JOIN facts.address AS token ON token.address = given.token
JOIN facts.launch AS launch ON launch.token_id = token.id
CROSS JOIN LATERAL (
    SELECT large.to_id AS wallet_id FROM (
        SELECT DISTINCT to_id FROM facts.transfer AS transfer
        WHERE transfer.token_id = token.id AND transfer.amount_raw >= {_LARGE_RAW} OFFSET 0
    ) AS large JOIN facts.address AS wallet ON wallet.id = large.to_id
    JOIN accounts.account AS account ON account.wallet = wallet.address ORDER BY account.id LIMIT {MOST_GIVEN}
) AS of
"""  # noqa: S608
_MOVED = f"""
WITH side AS (
    SELECT to_id AS wallet_id, token_id, at_s, block_number, log_index, amount_raw AS raw
    FROM facts.transfer WHERE to_id = ANY($6::int[])
    UNION ALL SELECT from_id, token_id, at_s, block_number, log_index, -amount_raw
    FROM facts.transfer WHERE from_id = ANY($6::int[])
)
SELECT given.nth, token.id AS token_id, account.id, account.wallet, account.guarded_from,
    (coalesce(sum(side.raw) FILTER (WHERE side.at_s <= given.at_s
        AND (side.block_number, side.log_index) < (given.block_number, given.log_index)), 0)
    )::text AS held_raw
FROM {_TOKENS} JOIN facts.address AS token ON token.address = given.token
JOIN facts.launch AS launch ON launch.token_id = token.id
JOIN side ON side.token_id = token.id
JOIN facts.address AS wallet ON wallet.id = side.wallet_id
JOIN accounts.account AS account ON account.wallet = wallet.address
GROUP BY given.nth, token.id, account.id
"""  # noqa: S608


_TRADES_SINCE = f"""
SELECT given.nth, account.id, trade.block_number, trade.log_index,
    (CASE WHEN trade.buys THEN trade.token_raw ELSE -trade.token_raw END)::text AS raw
FROM {_TOKENS} JOIN facts.address AS token ON token.address = given.token
JOIN facts.pool AS pool ON pool.token_id = token.id
JOIN facts.trade AS trade ON trade.pool_id = pool.id
JOIN facts.address AS wallet ON wallet.id = trade.trader_id
JOIN accounts.account AS account ON account.wallet = wallet.address
WHERE trade.at_s BETWEEN $6 AND $7 AND trade.at_s BETWEEN given.at_s AND given.last_s
    AND (trade.block_number, trade.log_index) > (given.block_number, given.log_index)
"""  # noqa: S608
_MOVES_SINCE = f"""
SELECT given.nth, account.id, transfer.block_number, transfer.log_index,
    (CASE WHEN side.gets THEN transfer.amount_raw ELSE -transfer.amount_raw END)::text AS raw
FROM {_TOKENS} JOIN facts.address AS token ON token.address = given.token
JOIN facts.transfer AS transfer ON transfer.token_id = token.id
CROSS JOIN LATERAL (VALUES (transfer.to_id, true), (transfer.from_id, false)) AS side (id, gets)
JOIN facts.address AS wallet ON wallet.id = side.id
JOIN accounts.account AS account ON account.wallet = wallet.address
WHERE transfer.at_s BETWEEN $6 AND $7 AND transfer.at_s BETWEEN given.at_s AND given.last_s
    AND (transfer.block_number, transfer.log_index) >= (given.block_number, given.log_index)
"""  # noqa: S608


async def holders(connection: Connection, of: Sequence[Happening]) -> list[list[BagHolder]]:
    """Which accounts held the token of each of these just then, by account: what they had bought and not
    sold, or enough that they had been given of a launchpad's token, in one transfer at least once, within the
    days of which transfers are kept. Told by what they have now and what they traded since: who later sells
    more than he bought had been given it elsewhere, and held it then, though nobody could know.

    Each token is asked for once, at the first of these; the others are told by what moved between them."""
    found: list[list[BagHolder]] = [[] for _ in of]
    places: dict[Address, list[int]] = {}
    for place in sorted(range(len(of)), key=lambda place: of[place].spot[:2]):
        places.setdefault(of[place].token, []).append(place)
    if not places:
        return found
    spans = [(token, of[some[0]].spot, of[some[-1]].spot) for token, some in places.items()]
    bought = await _kept_by(connection, spans, _TRADED, _TRADES_SINCE)
    moved = await _kept_by(connection, spans, _MOVED, _MOVES_SINCE)
    for nth, some in enumerate(places.values()):
        ledgers = (bought[nth], 1), (moved[nth], _LARGE_RAW)
        held: list[BagHolder] | None = None
        for place in some:
            changed = [ledger.to(of[place].spot[:2]) for ledger, _ in ledgers]
            if held is None or any(changed):
                enough = {
                    account: ledger.who[account]
                    for ledger, least_raw in ledgers
                    for account, raw in ledger.held.items()
                    if raw >= least_raw
                }
                held = [enough[account] for account in sorted(enough)]
            found[place] = held
    return found


class _BagLedger:
    """What accounts have of one token by one kind of fact, as it goes on. ``since``: what changes it, with
    the first place at which it counts."""

    def __init__(self) -> None:
        self.who: dict[int, BagHolder] = {}
        self.held: dict[int, int] = {}
        self.since: deque[tuple[tuple[int, int], int, int]] = deque()

    def to(self, spot: tuple[int, int]) -> bool:
        """Goes on to there; whether anything changed."""
        changed = False
        while self.since and self.since[0][0] <= spot:
            _, account, raw = self.since.popleft()
            if account in self.who:
                self.held[account] += raw
                changed = True
        return changed


async def _kept_by(
    connection: Connection, spans: Sequence[tuple[Address, Spot, Spot]], first: str, since: str
) -> list[_BagLedger]:
    ledgers = [_BagLedger() for _ in spans]
    given = (
        [as_bytes(token) for token, _, _ in spans],
        [spot.block_number for _, spot, _ in spans],
        [spot.log_index for _, spot, _ in spans],
        [spot.at_s for _, spot, _ in spans],
        [last.at_s for _, _, last in spans],
    )
    more: list[list[int]] = []
    if first is _MOVED:
        # Asked for by their numbers: of one that it does not know the planner thinks the worst.
        more = [[row["wallet_id"] for row in await connection.fetch(_WALLETS, *given)]]
    for row in await connection.fetch(first, *given, *more):
        ledger = ledgers[row["nth"] - 1]
        ledger.who[row["id"]] = BagHolder(
            row["id"], as_address(row["wallet"]), row["guarded_from"], row["token_id"]
        )
        ledger.held[row["id"]] = int(row["held_raw"])
    if any(spot[:2] != last[:2] for _, spot, last in spans):
        rows = await connection.fetch(since, *given, min(given[3]), max(given[4]))
        for row in sorted(rows, key=lambda row: (row["block_number"], row["log_index"])):
            # A trade counts in its own place, a transfer only after it.
            log = row["log_index"] + (since is _MOVES_SINCE)
            change = (row["block_number"], log), row["id"], int(row["raw"])
            ledgers[row["nth"] - 1].since.append(change)
    return ledgers


def _columns_of(
    happenings: Sequence[Happening],
) -> tuple[list[bytes], list[bytes], list[int], list[int], list[int]]:
    return (
        [as_bytes(one.token) for one in happenings],
        [as_bytes(one.wallet) for one in happenings],
        [one.spot.block_number for one in happenings],
        [one.spot.log_index for one in happenings],
        [one.spot.at_s for one in happenings],
    )


async def turn_back(connection: Connection, number: int) -> None:
    """A reorganisation went back to that block: what comes instead of the later ones is news to everybody."""
    await connection.execute("UPDATE accounts.account SET guarded_from = $1 WHERE guarded_from > $1", number)


async def holders_now(connection: Connection, tokens: Sequence[Address]) -> dict[Address, list[BagHolder]]:
    """The same of these tokens, as they are held now; those that no account holds are left out."""
    spot = Spot(_LAST, _LAST, _LAST, TxHash("0x"))
    ends = [Happening("draining", spot, ZERO_ADDRESS, token, None, None, None, None) for token in tokens]
    found = await holders(connection, ends)
    return {token: holding for token, holding in zip(tokens, found, strict=True) if holding}


_LAST = 2**31 - 1
"""After all blocks."""


# --- all that is held ------------------------------------------------------------------------------

_HELD = f"""
WITH wallet AS MATERIALIZED (
    SELECT account.id AS account_id, address.id FROM accounts.account AS account
    JOIN facts.address AS address ON address.address = account.wallet
), given AS (
    SELECT got.account_id, got.id, got.token_id FROM (
        SELECT DISTINCT wallet.account_id, wallet.id, transfer.token_id
        FROM wallet JOIN facts.transfer AS transfer ON transfer.to_id = wallet.id
        WHERE transfer.amount_raw >= {_LARGE_RAW}
    ) AS got WHERE NOT EXISTS (
        SELECT FROM facts.position AS bought
        WHERE bought.wallet_id = got.id AND bought.token_id = got.token_id AND bought.held_raw > 0
    ) AND (SELECT coalesce(sum(amount_raw), 0) FROM facts.transfer AS one
        WHERE one.to_id = got.id AND one.token_id = got.token_id)
    - (SELECT coalesce(sum(amount_raw), 0) FROM facts.transfer AS one
        WHERE one.from_id = got.id AND one.token_id = got.token_id) >= {_LARGE_RAW}
), held AS (
    SELECT wallet.account_id, traded.token_id, false AS is_given FROM wallet CROSS JOIN LATERAL (
        SELECT token_id FROM facts.position WHERE wallet_id = wallet.id AND held_raw > 0
        ORDER BY token_id DESC LIMIT $1
    ) AS traded
    UNION ALL SELECT account_id, token_id, true FROM (
        SELECT given.*, row_number() OVER (PARTITION BY account_id ORDER BY token_id DESC) AS place FROM given
    ) AS one WHERE place <= $2
)
SELECT account_id, address, is_given FROM held JOIN facts.address AS address ON address.id = held.token_id
ORDER BY address, account_id
"""  # noqa: S608


async def held_by_accounts(connection: Connection) -> list[BagHolding]:
    """What accounts' wallets hold, of each wallet the newest tokens that it bought and the newest that it was
    given, by token. With many accounts it takes seconds."""
    rows = await connection.fetch(_HELD, GUARD.most_held, GUARD.most_given)
    return [BagHolding(row["account_id"], as_address(row["address"]), row["is_given"]) for row in rows]


# --- verdicts --------------------------------------------------------------------------------------


async def standings(connection: Connection, tokens: Collection[Address]) -> dict[Address, BagStanding]:
    """What holders know of these, of those that were looked at."""
    rows = await connection.fetch(
        "SELECT token, level, code, policy_version, seen_id, next_level, next_at, told_at"
        " FROM accounts.bag_verdict WHERE token = ANY($1::bytea[])",
        [as_bytes(one) for one in tokens],
    )
    return {as_address(token): BagStanding(*known) for token, *known in rows}


async def put_standings(connection: Connection, found: dict[Address, BagStanding]) -> None:
    """Keeps them as they are now."""
    await connection.executemany(
        "INSERT INTO accounts.bag_verdict (token, level, code, policy_version, seen_id, next_level, next_at,"
        " told_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (token) DO UPDATE SET"
        " level = excluded.level, code = excluded.code, policy_version = excluded.policy_version,"
        " seen_id = excluded.seen_id, next_level = excluded.next_level, next_at = excluded.next_at,"
        " told_at = excluded.told_at",
        [
            (as_bytes(token), one.level, one.code, one.policy_version, one.seen_id, one.next_level,
             one.next_at, one.told_at)
            for token, one in sorted(found.items())
        ],
    )  # fmt: skip


async def forget_but(connection: Connection, tokens: Collection[Address]) -> None:
    """Takes away what is known of others: nobody holds them any more."""
    await connection.execute(
        "DELETE FROM accounts.bag_verdict WHERE token <> ALL($1::bytea[])", [as_bytes(one) for one in tokens]
    )


_CHECKS = """
SELECT given.token, one.* FROM unnest($1::bytea[], $2::bigint[]) AS given (token, seen_id)
CROSS JOIN LATERAL (
    (SELECT id, checked_at, verdict_level, verdict_code, policy_version, deep FROM facts.evidence
    WHERE token = given.token AND id > given.seen_id AND given.seen_id > 0 ORDER BY id LIMIT $3)
    UNION ALL
    (SELECT id, checked_at, verdict_level, verdict_code, policy_version, deep FROM facts.evidence
    WHERE token = given.token AND given.seen_id = 0 AND verdict_level <> 'unknown' ORDER BY id DESC LIMIT 1)
) AS one ORDER BY one.id
"""


async def checks_after(
    connection: Connection, seen_ids: dict[Address, int]
) -> dict[Address, list[StoredLevel]]:
    """The checks of each token after the one of that id, the oldest first; 0: the newest that found something
    out."""
    rows = await connection.fetch(
        _CHECKS, [as_bytes(token) for token in seen_ids], list(seen_ids.values()), MOST_CHECKS
    )
    found: dict[Address, list[StoredLevel]] = {}
    for row in rows:
        seen = StoredLevel(
            row["id"], row["checked_at"], row["verdict_level"], row["verdict_code"], row["policy_version"],
            row["deep"],
        )  # fmt: skip
        found.setdefault(as_address(row["token"]), []).append(seen)
    return found


async def checked_at(
    connection: Connection, tokens: Collection[Address], now: datetime
) -> dict[Address, datetime]:
    """When each was checked last, of those that were, whoever wanted to know and whatever came of it. Without
    those of which nobody knows how long that is ago, since our clock was put back."""
    rows = await connection.fetch(
        "SELECT given.token, newest.checked_at FROM unnest($1::bytea[]) AS given (token) CROSS JOIN LATERAL"
        " (SELECT checked_at FROM facts.evidence WHERE evidence.token = given.token"
        " ORDER BY id DESC LIMIT 1) AS newest",
        [as_bytes(token) for token in tokens],
    )
    now_s = now.timestamp()
    return {
        as_address(row["token"]): row["checked_at"]
        for row in rows
        if age_s(row["checked_at"].timestamp(), now_s) is not None
    }


async def document(connection: Connection, evidence_id: int) -> bytes | None:
    """What a check kept."""
    found: bytes | None = await connection.fetchval(
        "SELECT document FROM facts.evidence WHERE id = $1", evidence_id
    )
    return found
