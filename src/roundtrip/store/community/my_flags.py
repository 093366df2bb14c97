"""An account's own flags. Each function uses the caller's connection and does not end the transaction."""

from dataclasses import dataclass
from datetime import datetime

from roundtrip.domain.base.types import Address, Numeric, TxHash
from roundtrip.domain.community.flag_calls import By, Kind, State
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection, fetch, fetch_value


@dataclass(frozen=True, slots=True)
class OwnFlag:
    """A flag as its account sees it. ``symbol``, ``name``: untrusted text of the token. ``at_s``, ``ends_s``
    and ``settled_s`` are of the chain's clock. ``by``, ``tx_hash``, ``wei``: the proof, as in
    ``flags.FlagProof``."""

    id: int
    token: Address
    symbol: str | None
    name: str | None
    kind: Kind
    state: State
    at_s: int
    ends_s: int
    settled_s: int | None
    by: By | None
    tx_hash: TxHash | None
    wei: Numeric | None


_OWN = """
SELECT flag.id, flag.token, token.symbol, token.name, flag.kind, flag.state, flag.at_s, flag.ends_s,
    flag.settled_s, flag.settled_by AS by, flag.settled_tx AS tx_hash, flag.settled_wei AS wei
FROM accounts.flag AS flag LEFT JOIN facts.token AS token ON token.token = flag.token
WHERE flag.account_id = $1
"""


async def waiting(connection: Connection, account_id: int) -> list[OwnFlag]:
    """Flags that are not settled, the latest first: an account has few."""
    return await fetch(
        connection,
        OwnFlag,
        f"{_OWN} AND flag.state IN ('open', 'seen') ORDER BY flag.made_at DESC, flag.id DESC",
        account_id,
    )


async def list_settled(
    connection: Connection, account_id: int, token: Address | None, limit: int
) -> list[OwnFlag]:
    """Settled flags, of a token or (None) of all, the last settled first."""
    return await fetch(
        connection,
        OwnFlag,
        f"{_OWN} AND ($2::bytea IS NULL OR flag.token = $2) AND flag.state IN ('proved', 'failed', 'void')"
        " ORDER BY flag.settled_at DESC, flag.id DESC LIMIT $3",
        account_id,
        None if token is None else as_bytes(token),
        limit,
    )


async def made_since(connection: Connection, account_id: int, day: datetime) -> int:
    """How many flags the account has made since ``day``."""
    return await fetch_value(
        connection,
        int,
        "SELECT count(*) FROM accounts.flag WHERE account_id = $1 AND made_at >= $2",
        account_id,
        day,
    )
