"""What a launch's insiders did with its token, and burns of it by anybody."""

from collections.abc import Sequence

from roundtrip.domain.base.events import Deed
from roundtrip.domain.market.fairness import FAIRNESS
from roundtrip.store.server.rows import Connection, array_of, as_bytes, fetch

from .cursor import Ids

_PUT = """
INSERT INTO facts.inside
    (block_number, log_index, at_s, what, token_id, wallet_id, other_id, token_raw, eth_wei, tx_hash)
SELECT given.block, given.log, given.at_s, given.what, given.token, given.wallet, given.other,
    given.token_raw::numeric, given.eth_wei::numeric, given.tx
FROM unnest($1::int[], $2::int[], $3::int[], $4::text[], $5::int[], $6::int[], $7::int[], $8::text[],
    $9::text[], $10::bytea[], $11::boolean[])
    AS given (block, log, at_s, what, token, wallet, other, token_raw, eth_wei, tx, own)
JOIN facts.launch AS launch ON launch.token_id = given.token AND launch.block_number <= given.block
LEFT JOIN facts.origin AS origin ON origin.wallet_id = given.wallet AND origin.funded_number <= given.block
WHERE given.what = 'burned' OR (
    (launch.deployer_id = given.wallet OR (
        given.own AND launch.deployer_id = origin.funder_id AND (SELECT count(*) FROM (
            SELECT FROM facts.origin AS paid
            WHERE paid.funder_id = launch.deployer_id AND paid.funded_number <= given.block LIMIT $12::int + 1
        ) AS few) <= $12::int
    ))
    AND NOT EXISTS (
        SELECT FROM facts.address AS other JOIN facts.pool AS pool ON pool.at = other.address
        WHERE other.id = given.other AND pool.block_number <= given.block
    )
)
"""
"""Judges each deed by the facts up to its block, so the result does not depend on the batch. A contract, too,
has a first sender of eth (a curve: its first buyer), so of a wallet that the deployer funded only its own
actions count."""


_INSIDERS = """
SELECT given.token, given.wallet FROM unnest($1::text::int[], $2::text::int[]) AS given (token, wallet)
JOIN facts.launch AS launch ON launch.token_id = given.token
LEFT JOIN facts.origin AS origin ON origin.wallet_id = given.wallet
WHERE launch.deployer_id IN (given.wallet, origin.funder_id)
"""
"""Who may be an insider of which token, at any block: nearly nobody, so few deeds have to be judged."""


async def put(connection: Connection, deeds: Sequence[Deed], ids: Ids) -> None:
    """Inserts the deeds that count: burns, and sales and moves by a launch's deployer or by a wallet whose
    first eth the deployer sent. A deployer that funded more wallets than ``most_funded`` is taken for an
    exchange, and its wallets do not count. A transfer into a pool or a curve is not a move."""
    known = ids.addresses
    pairs = {(known[deed.token], known[deed.wallet]) for deed in deeds if deed.what != "burned"}
    insiders: set[tuple[int, int]] = set()
    if pairs:
        given = map(array_of, zip(*pairs, strict=True))
        insiders.update(await fetch(connection, tuple[int, int], _INSIDERS, *given))
    deeds = [
        deed for deed in deeds if deed.what == "burned" or (known[deed.token], known[deed.wallet]) in insiders
    ]
    if not deeds:
        return
    await connection.execute(
        _PUT,
        [deed.spot.block_number for deed in deeds],
        [deed.spot.log_index for deed in deeds],
        [deed.spot.at_s for deed in deeds],
        [deed.what for deed in deeds],
        [known[deed.token] for deed in deeds],
        [known[deed.wallet] for deed in deeds],
        [None if deed.other is None else known[deed.other] for deed in deeds],
        [str(deed.token_raw) for deed in deeds],
        [None if deed.eth_wei is None else str(deed.eth_wei) for deed in deeds],
        [as_bytes(deed.spot.tx_hash) for deed in deeds],
        [deed.own for deed in deeds],
        FAIRNESS.most_funded,
    )


async def forget(connection: Connection, before_s: int) -> None:
    """Deletes deeds before ``before_s``."""
    await connection.execute("DELETE FROM facts.inside WHERE at_s < $1", before_s)
