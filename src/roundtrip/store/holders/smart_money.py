"""Which wallets are known for winning, what they won at most, and who comes back to a deployer's launches."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.fairness import FAIRNESS, Fairness
from roundtrip.domain.market.winners import SPANS
from roundtrip.store.boards.fair_tokens import is_kin, pays_many
from roundtrip.store.index.addresses import id_of, ids_of
from roundtrip.store.index.deployers import MOST_LAUNCHES
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection

MOST_CLOSINGS = 4000
"""So many closings of one wallet are looked at, the newest: a bot has half a million."""
MOST_WINS_LOOKED_AT = 20
"""Of those the most profitable so many: where none of them counts, none is told."""


@dataclass(frozen=True, slots=True)
class BoardRow:
    """Where a wallet ranks on the board of a span, in profit, and what it closed there. ``won``: closings
    with a profit."""

    wallet: Address
    span: str
    rank: int
    profit_wei: int
    closed: int
    won: int


@dataclass(frozen=True, slots=True)
class WinningClose:
    """One closing with a profit: what the wallet paid for the token since it began, and what it got. The
    symbol as a stranger wrote it; None: not read, or it has none. ``at_s``: seconds since 1970."""

    token: Address
    symbol: str | None
    spent_wei: int
    got_wei: int
    at_s: int

    @property
    def profit_wei(self) -> int:
        """Above zero."""
        return self.got_wei - self.spent_wei


@dataclass(frozen=True, slots=True)
class SmartCrowd:
    """``deployer_launches``: how many tokens the deployer launched onto curves, of his newest 200, as
    ``deployers.Record`` has it. ``launches_by_wallet``: how many of those, but for the token itself, each
    wallet bought; who bought none is not among them."""

    deployer_launches: int = 0
    launches_by_wallet: Mapping[Address, int] = field(default_factory=dict)


async def winners(connection: Connection) -> dict[Address, BoardRow]:
    """Every wallet on a board, at most four hundred: its row on the nearest one, the shortest span that it
    ranks in. Whoever ranks is in profit."""
    rows = await connection.fetch(
        "SELECT DISTINCT ON (winner.wallet_id) address.address, winner.span, winner.rank, winner.profit_wei,"
        " winner.closed, winner.won FROM facts.winner AS winner"
        " JOIN facts.address AS address ON address.id = winner.wallet_id WHERE winner.profit_wei > 0"
        " ORDER BY winner.wallet_id, array_position($1::text[], winner.span)",
        list(SPANS),
    )
    return {
        (wallet := as_address(row["address"])): BoardRow(
            wallet, row["span"], row["rank"], int(row["profit_wei"]), row["closed"], row["won"]
        )
        for row in rows
    }


# $1 wallets, $2 newest so many closings, $3 of them so many, $4 young_s, $5 most_funded
_KIN = is_kin("best.wallet_id", "own", "behind", by_exchange="behind.by_exchange", young_s="$4")
_WINS = f"""
WITH best AS MATERIALIZED (
    -- What a board says was the best of a span counted there.
    SELECT wallet_id, best_token_id AS token_id, best_spent_wei AS spent_wei, best_got_wei AS got_wei,
        best_s AS at_s, 0 AS block_number, 0 AS log_index, true AS counted
    FROM facts.winner WHERE wallet_id = ANY($1::int[])
    UNION ALL
    SELECT given.wallet_id, won.token_id, won.spent_wei, won.got_wei, won.at_s, won.block_number,
        won.log_index, false
    FROM unnest($1::int[]) AS given (wallet_id)
    CROSS JOIN LATERAL (
        SELECT newest.* FROM (
            SELECT token_id, spent_wei, got_wei, at_s, block_number, log_index FROM facts.closing
            WHERE wallet_id = given.wallet_id ORDER BY at_s DESC LIMIT $2
        ) AS newest
        WHERE newest.got_wei > newest.spent_wei
        ORDER BY newest.got_wei - newest.spent_wei DESC LIMIT $3
    ) AS won
), behind AS MATERIALIZED (
    SELECT tokens.token_id, launch.deployer_id, his.funder_id AS paid_by, his.funded_s AS paid_s,
        {pays_many("his.funder_id", "$5")} AS by_exchange
    FROM (
        SELECT token_id FROM best INTERSECT SELECT token_id FROM facts.fair_token
    ) AS tokens
    LEFT JOIN facts.launch AS launch ON launch.token_id = tokens.token_id
    LEFT JOIN facts.origin AS his ON his.wallet_id = launch.deployer_id
)
SELECT DISTINCT ON (best.wallet_id) best.wallet_id, address.address AS token, token.symbol, best.spent_wei,
    best.got_wei, best.at_s
FROM best
LEFT JOIN behind ON behind.token_id = best.token_id
LEFT JOIN facts.origin AS own ON own.wallet_id = best.wallet_id
JOIN facts.address AS address ON address.id = best.token_id
LEFT JOIN facts.token AS token ON token.token = address.address
WHERE best.got_wei > best.spent_wei AND (best.counted OR (behind.token_id IS NOT NULL
    AND NOT {_KIN}))
ORDER BY best.wallet_id, best.got_wei - best.spent_wei DESC, best.block_number, best.log_index
"""  # noqa: S608


async def biggest_wins(
    connection: Connection, wallets: Collection[Address], fairness: Fairness = FAIRNESS
) -> dict[Address, WinningClose]:
    """The closing with the most profit of each wallet, of those that count for boards
    (``domain/market/winners.py``): of tokens that a crowd bought, whose deployer the wallet stands apart
    from. Any other win can be made up, by whoever makes a token and buys it from himself. Of each wallet's
    newest ``MOST_CLOSINGS`` and of what boards remember; who never won is not among them. For a few hundred
    wallets at most."""
    ids = await ids_of(connection, wallets)
    whose = {number: wallet for wallet, number in ids.items()}
    rows = await connection.fetch(
        _WINS, list(whose), MOST_CLOSINGS, MOST_WINS_LOOKED_AT, fairness.young_s, fairness.most_funded
    )
    return {
        whose[row["wallet_id"]]: WinningClose(
            as_address(row["token"]),
            row["symbol"],
            int(row["spent_wei"]),
            int(row["got_wei"]),
            row["at_s"],
        )
        for row in rows
    }


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


async def repeat_buyers(
    connection: Connection, deployer: Address, token: Address, wallets: Collection[Address]
) -> SmartCrowd:
    """Who of these wallets bought other launches of the deployer, of his newest ``MOST_LAUNCHES``. The
    deployer himself is no crowd and is left out. For some dozens of wallets."""
    deployer_id = await id_of(connection, deployer)
    if deployer_id is None:
        return SmartCrowd()
    own_id = await id_of(connection, token)
    launched = [row["token_id"] for row in await connection.fetch(_LAUNCHED, deployer_id, MOST_LAUNCHES + 1)]
    others = [token_id for token_id in launched if token_id != own_id][:MOST_LAUNCHES]
    given = [as_bytes(wallet) for wallet in set(wallets) if wallet != deployer]
    rows = await connection.fetch(_BOUGHT, given, others)
    return SmartCrowd(
        min(len(launched), MOST_LAUNCHES), {as_address(row["address"]): row["launches"] for row in rows}
    )
