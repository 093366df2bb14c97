"""Which wallets are on a winners board, their biggest wins, and which wallets buy several launches of a
deployer."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from roundtrip.domain.base.types import Address, Numeric
from roundtrip.domain.market.fairness import FAIRNESS, Fairness
from roundtrip.domain.market.winners import SPANS, Window
from roundtrip.store.boards.fair_tokens import is_kin, pays_many
from roundtrip.store.index.deployers import MAX_LAUNCHES
from roundtrip.store.index.tokens import id_of, ids_of
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_values

MAX_CLOSINGS = 4000
"""How many of a wallet's closings are searched, the newest: a bot has half a million."""
MAX_WINS_LOOKED_AT = 20
"""How many of those are tried, the most profitable: if none of them counts, no win is reported."""


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A wallet's rank by profit on the board of a span, and what it closed there. ``won``: closings with a
    profit."""

    wallet: Address
    span: Window
    rank: int
    profit_wei: Numeric
    closed: int
    won: int


@dataclass(frozen=True, slots=True)
class WinningClose:
    """A closing with a profit: what the wallet spent on the token since the position was opened, and what it
    got. ``symbol``: as strangers wrote it; None: not read, or the token has none. ``at_s``: seconds since
    1970."""

    token: Address
    symbol: str | None
    spent_wei: Numeric
    got_wei: Numeric
    at_s: int

    @property
    def profit_wei(self) -> int:
        """Above zero."""
        return self.got_wei - self.spent_wei


@dataclass(frozen=True, slots=True)
class SmartCrowd:
    """``deployer_launches``: how many tokens the deployer launched onto curves, at most 200, as in
    ``DeployerLaunches``. ``launches_by_wallet``: how many of those, except the token itself, each wallet
    bought; wallets that bought none are missing."""

    deployer_launches: int = 0
    launches_by_wallet: Mapping[Address, int] = field(default_factory=dict)


async def load_winners(connection: Connection) -> dict[Address, BoardRow]:
    """Every wallet on a board, at most four hundred, with its row on the nearest one: the shortest span in
    which it ranks. A ranked wallet is in profit."""
    rows = await fetch(
        connection,
        BoardRow,
        "SELECT DISTINCT ON (winner.wallet_id) address.address AS wallet, winner.span, winner.rank,"
        " winner.profit_wei, winner.closed, winner.won FROM facts.winner AS winner"
        " JOIN facts.address AS address ON address.id = winner.wallet_id WHERE winner.profit_wei > 0"
        " ORDER BY winner.wallet_id, array_position($1::text[], winner.span)",
        list(SPANS),
    )
    return {row.wallet: row for row in rows}


async def load_own_buyers(
    connection: Connection, token: Address, wallets: Collection[Address], min_raw: int
) -> frozenset[Address]:
    """Those of the wallets that bought at least ``min_raw`` of the token in trades of their own. By its logs
    a token is bought by whoever it is sent to: anybody may buy some for a famous wallet."""
    buyers = await fetch_values(
        connection,
        Address,
        "SELECT wallet.address FROM facts.address AS token CROSS JOIN facts.address AS wallet"
        " CROSS JOIN LATERAL facts.position_of(wallet.id, token.id) AS own"
        " WHERE token.address = $1 AND wallet.address = ANY($2::bytea[]) AND own.bought_raw >= $3::numeric",
        as_bytes(token),
        [as_bytes(wallet) for wallet in wallets],
        min_raw,
    )
    return frozenset(buyers)


# $1 wallets, $2 number of newest closings, $3 number of best ones of these, $4 young_s, $5 most_funded
_KIN = is_kin("best.wallet_id", "origin", "makers", by_exchange="makers.by_exchange", young_s="$4")
_WINS = f"""
WITH best AS MATERIALIZED (
    -- The best win of a span on a board counted there.
    SELECT wallet_id, best_token_id AS token_id, best_spent_wei AS spent_wei, best_got_wei AS got_wei,
        best_s AS at_s, 0 AS block_number, 0 AS log_index, true AS counted
    FROM facts.winner WHERE wallet_id = ANY($1::int[])
    UNION ALL
    SELECT given.wallet_id, won.token_id, won.spent_wei, won.got_wei, won.at_s, won.block_number,
        won.log_index, false
    FROM unnest($1::int[]) AS given (wallet_id)
    CROSS JOIN LATERAL (
        SELECT newest.* FROM facts.newest_closings(given.wallet_id, $2::int) AS newest
        WHERE newest.got_wei > newest.spent_wei
        ORDER BY newest.got_wei - newest.spent_wei DESC LIMIT $3
    ) AS won
), makers AS MATERIALIZED (
    SELECT tokens.token_id, launch.deployer_id, deployer_origin.funder_id AS paid_by,
        deployer_origin.funded_s AS paid_s,
        {pays_many("deployer_origin.funder_id", "$5")} AS by_exchange
    FROM (
        SELECT token_id FROM best INTERSECT SELECT token_id FROM facts.fair_token
    ) AS tokens
    LEFT JOIN facts.launch AS launch ON launch.token_id = tokens.token_id
    LEFT JOIN facts.origin AS deployer_origin ON deployer_origin.wallet_id = launch.deployer_id
)
SELECT DISTINCT ON (best.wallet_id) best.wallet_id, address.address AS token, token.symbol, best.spent_wei,
    best.got_wei, best.at_s
FROM best
LEFT JOIN makers ON makers.token_id = best.token_id
LEFT JOIN facts.origin AS origin ON origin.wallet_id = best.wallet_id
JOIN facts.address AS address ON address.id = best.token_id
LEFT JOIN facts.token AS token ON token.token = address.address
WHERE best.got_wei > best.spent_wei AND (best.counted OR (makers.token_id IS NOT NULL
    AND NOT {_KIN}))
ORDER BY best.wallet_id, best.got_wei - best.spent_wei DESC, best.block_number, best.log_index
"""  # noqa: S608


async def load_biggest_wins(
    connection: Connection, wallets: Collection[Address], fairness: Fairness = FAIRNESS
) -> dict[Address, WinningClose]:
    """The most profitable closing of each wallet, of those that count for boards
    (``domain/market/winners.py``): tokens that a crowd bought and whose deployer is unrelated to the
    wallet. Other wins can be faked by making a token and buying it oneself. Searches each wallet's newest
    ``MAX_CLOSINGS`` and the boards; wallets without a win are missing. For a few hundred wallets at
    most."""
    ids = await ids_of(connection, wallets)
    wallet_by_id = {number: wallet for wallet, number in ids.items()}
    rows = await fetch(
        connection,
        tuple[int, WinningClose],
        _WINS,
        list(wallet_by_id),
        MAX_CLOSINGS,
        MAX_WINS_LOOKED_AT,
        fairness.young_s,
        fairness.most_funded,
    )
    return {wallet_by_id[wallet_id]: win for wallet_id, win in rows}


_LAUNCHED = """
SELECT token_id FROM facts.launch WHERE deployer_id = $1 AND generation <> 1
ORDER BY block_number DESC, log_index DESC LIMIT $2
"""
_BOUGHT = """
SELECT address.address, count(*) AS launches
FROM facts.address AS address
CROSS JOIN unnest($2::int[]) AS launched (token_id)
JOIN facts.position AS position
    ON position.wallet_id = address.id AND position.token_id = launched.token_id AND position.buys > 0
WHERE address.address = ANY($1::bytea[])
GROUP BY address.address
"""


async def load_repeat_buyers(
    connection: Connection, deployer: Address, token: Address, wallets: Collection[Address]
) -> SmartCrowd:
    """How many other launches of the deployer, of its newest ``MAX_LAUNCHES``, each of these wallets bought.
    The deployer is left out. For some dozens of wallets."""
    deployer_id = await id_of(connection, deployer)
    if deployer_id is None:
        return SmartCrowd()
    token_id = await id_of(connection, token)
    launches = await fetch_values(connection, int, _LAUNCHED, deployer_id, MAX_LAUNCHES + 1)
    other_launches = [launch_id for launch_id in launches if launch_id != token_id][:MAX_LAUNCHES]
    buyers = [as_bytes(wallet) for wallet in set(wallets) if wallet != deployer]
    rows = await fetch(connection, tuple[Address, int], _BOUGHT, buyers, other_launches)
    return SmartCrowd(min(len(launches), MAX_LAUNCHES), dict(rows))
