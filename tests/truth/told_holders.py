"""What is said of a token's holders, row by row."""

from typing import Any

from support.actors import ETH
from support.made_index import MadeIndex


def tagged(found: dict[str, Any]) -> dict[str, list[str]]:
    return {one["address"]: one["tags"] for one in found["top"]}


async def rank(
    index: MadeIndex, span: str, place: int, wallet: str, profit_wei: int, best: str, won: int = 3
) -> None:
    """A place on a winners board, of four closed tokens; the best of them cost an eth and gave two."""
    row = (span, place, await index.id_of(wallet), profit_wei, ETH, 4, won, await index.id_of(best))
    await index.connection.execute(
        "INSERT INTO facts.winner VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        *row, ETH, 2 * ETH, 1_750_000_000,
    )  # fmt: skip
