"""SQL for which tokens are fair and which wallets are kin, as ``domain/market/fairness.py`` defines them."""

from typing import NamedTuple

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.fairness import FAIRNESS, Fairness
from roundtrip.store.server.rows import Connection, as_bytes, fetch_row, read

LOOKED_AT = 60
"""Buyers of a token that are read first: three times as many as a fair token needs."""


def began_sql(token_id: str) -> str:
    """The time when a token began, NULL where it is not known; the launch is joined as ``launch``."""
    return f"""
    coalesce(launch.at_s, (
        SELECT min(pool.at_s) FROM facts.pool AS pool
        -- One of its two sides is money, whatever it holds.
        WHERE pool.token_id = {token_id} AND pool.in_money_from IS NOT NULL
    ))
"""  # noqa: S608


def pays_many(funder_id: str, most_funded: str) -> str:
    """Whether a funder, possibly NULL, is an exchange: the first to pay more than ``most_funded`` wallets."""
    return f"""
    (SELECT count(*) FROM (
         SELECT FROM facts.origin AS paid WHERE paid.funder_id = {funder_id} LIMIT {most_funded}::int + 1
     ) AS few) > {most_funded}::int
"""  # noqa: S608


def is_kin(wallet_id: str, own: str, his: str, *, by_exchange: str, young_s: str) -> str:
    """``WalletOrigins.is_kin``. ``own``: the wallet's row of facts.origin, or an alias with the
    same columns; ``his``: a row with deployer_id, the deployer's funder paid_by, and the time paid_s; each
    may be NULL. ``by_exchange``: whether paid_by is an exchange."""
    return f"""
    (({wallet_id} = {his}.deployer_id OR {own}.funder_id = {his}.deployer_id OR {wallet_id} = {his}.paid_by
      OR ({own}.funder_id = {his}.paid_by AND (NOT {by_exchange}
          OR abs({own}.funded_s - {his}.paid_s) <= {young_s}::int))) IS TRUE)
"""


def _fair_sql(among: str) -> str:
    """The tokens of ``among`` (token_id) that are fair. $1 at_s, $2 young_s, $3 least_buyers, $4 most_funded,
    $5 buyers to read (NULL: all), $6 least positions of a token."""
    kin = is_kin(
        "buyer.wallet_id", "buyer", "buyer", by_exchange="(exchange.funder_id IS NOT NULL)", young_s="$2"
    )
    return f"""
WITH token AS MATERIALIZED ({among}
), old AS MATERIALIZED (
    SELECT * FROM (
        SELECT token.token_id, {began_sql("token.token_id")} AS at_s, launch.deployer_id
        FROM token LEFT JOIN facts.launch AS launch ON launch.token_id = token.token_id
    ) AS begun WHERE at_s <= $1::int - $2::int
), candidate AS MATERIALIZED (
    SELECT old.*, his.funder_id AS paid_by, his.funded_s AS paid_s
    FROM old LEFT JOIN facts.origin AS his ON his.wallet_id = old.deployer_id
    -- By an index-only scan: most tokens never have that many positions.
    WHERE (SELECT count(*) FROM facts.positions_in(old.token_id, $6::int)) >= $6::int
), buyer AS MATERIALIZED (
    SELECT candidate.*, bought.wallet_id, own.funder_id, own.first_s, own.funded_s,
        giver.first_s AS funder_first_s
    FROM candidate CROSS JOIN LATERAL facts.buyers_in(candidate.token_id, $5::int) AS bought
    LEFT JOIN facts.origin AS own ON own.wallet_id = bought.wallet_id
    LEFT JOIN facts.origin AS giver ON giver.wallet_id = own.funder_id
), exchange AS MATERIALIZED (
    SELECT funder_id FROM (SELECT DISTINCT funder_id FROM buyer WHERE funder_id IS NOT NULL) AS funder
    WHERE {pays_many("funder.funder_id", "$4")}
)
SELECT buyer.token_id FROM buyer LEFT JOIN exchange ON exchange.funder_id = buyer.funder_id
WHERE NOT {kin}
GROUP BY buyer.token_id
-- 0 is no wallet's number: it stands for all wallets that may be one person.
HAVING count(DISTINCT CASE
    WHEN buyer.first_s <= buyer.at_s - $2::int
        AND (buyer.funder_id IS NULL OR exchange.funder_id IS NOT NULL) THEN buyer.wallet_id
    WHEN buyer.funder_first_s <= buyer.at_s - $2::int THEN buyer.funder_id
    ELSE 0 END) >= $3::int
"""  # noqa: S608


# $7 from_s, $8 tokens found already
_FOUND_CLOSED = _fair_sql("""
    SELECT token_id FROM facts.closing WHERE at_s > $7 EXCEPT (
        SELECT token_id FROM facts.fair_token UNION ALL SELECT unnest($8::int[])
    )""")
# $7 the token
_FOUND_ONE = _fair_sql("SELECT $7::int AS token_id")


async def find_fair_sold_out_of(
    connection: Connection,
    from_s: int,
    at_s: int,
    fairness: Fairness,
    looked_at: int = LOOKED_AT,
    timeout_s: float | None = None,
) -> list[int]:
    """Tokens that some wallet bought and sold out of after ``from_s``, that are fair at ``at_s`` and not kept
    as fair. ``looked_at``: buyers of a token that are read first; the result does not depend on it.
    ``timeout_s``: of each of two statements."""
    token_ids: list[int] = []
    # A few buyers are enough for most tokens; all are read only where they are not.
    for limit, least_positions in _rounds(fairness, looked_at):
        arguments = *_fairness_arguments(at_s, fairness), limit, least_positions, from_s, token_ids
        records = await connection.fetch(_FOUND_CLOSED, *arguments, timeout=timeout_s)
        token_ids += [token_id for (token_id,) in read(records, tuple[int])]
    return token_ids


async def is_fair(
    connection: Connection,
    token_id: int,
    at_s: int,
    fairness: Fairness = FAIRNESS,
    looked_at: int = LOOKED_AT,
    timeout_s: float | None = None,
) -> bool:
    """Whether one token is fair, by what the index knows now, whether or not it is kept as fair.
    ``timeout_s``: of each of two statements."""
    for limit, least_positions in _rounds(fairness, looked_at):
        arguments = *_fairness_arguments(at_s, fairness), limit, least_positions, token_id
        if await connection.fetch(_FOUND_ONE, *arguments, timeout=timeout_s):
            return True
    return False


def _rounds(fairness: Fairness, looked_at: int) -> tuple[tuple[int | None, int], ...]:
    """Rounds of a search: how many buyers to read, of tokens with at least how many positions."""
    return (looked_at, fairness.least_buyers), (None, looked_at + 1)


def _fairness_arguments(at_s: int, fairness: Fairness) -> tuple[int, int, int, int]:
    return at_s, fairness.young_s, fairness.least_buyers, fairness.most_funded


async def store_fair(connection: Connection, token_ids: list[int], block_number: int) -> None:
    """Stores tokens as fair as of a block that is known to be on the chain."""
    await connection.execute(
        "INSERT INTO facts.fair_token (token_id, block_number) SELECT token_id, $2 FROM unnest($1::int[])"
        " AS found (token_id) ON CONFLICT DO NOTHING",
        token_ids,
        block_number,
    )


# --- one token and one wallet ----------------------------------------------------------------------


class TokenFairness(NamedTuple):
    """A token, and whether a wallet is independent of it. ``begun_s``: the time of its launch, or of its
    first pool against money; None: not known. ``fair_from``: the block as of which it is stored as fair;
    None: it is not. ``is_kin``: the wallet is kin of the token's deployer, as far as is known."""

    token_id: int
    begun_s: int | None
    fair_from: int | None
    is_kin: bool


# $1 the token, $2 the wallet, $3 most_funded, $4 young_s
_SEEN = f"""
SELECT his.token_id, his.begun_s, kept.block_number AS fair_from,
    {is_kin("me.id", "own", "his", by_exchange=pays_many("his.paid_by", "$3"), young_s="$4")} AS is_kin
FROM (
    SELECT token.id AS token_id, {began_sql("token.id")} AS begun_s, launch.deployer_id,
        origin.funder_id AS paid_by, origin.funded_s AS paid_s
    FROM facts.address AS token
    LEFT JOIN facts.launch AS launch ON launch.token_id = token.id
    LEFT JOIN facts.origin AS origin ON origin.wallet_id = launch.deployer_id
    WHERE token.address = $1
) AS his
LEFT JOIN facts.fair_token AS kept ON kept.token_id = his.token_id
LEFT JOIN facts.address AS me ON me.address = $2
LEFT JOIN facts.origin AS own ON own.wallet_id = me.id
"""  # noqa: S608


async def read_fairness(
    connection: Connection, token: Address, wallet: Address, fairness: Fairness = FAIRNESS
) -> TokenFairness | None:
    """What the index knows of a token and a wallet; None: the token occurs in no fact."""
    return await fetch_row(
        connection,
        TokenFairness,
        _SEEN,
        as_bytes(token),
        as_bytes(wallet),
        fairness.most_funded,
        fairness.young_s,
    )
