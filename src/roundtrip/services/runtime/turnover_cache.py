"""Turnovers of tokens over long windows, which cost much to count: each is counted once in a while."""

from collections.abc import Collection
from typing import NamedTuple

from roundtrip.store.boards import market_figures
from roundtrip.store.boards.market_figures import PlacedToken, WindowTurnover
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts

KEPT_PART = 2_000
"""A turnover is kept for this part of its window: the longer that is, the more trades are counted."""


class _Kept(NamedTuple):
    counted_s: float
    turnover: WindowTurnover


class TurnoverCache:
    """The turnovers that this process has counted, of the tokens that each window was last asked for."""

    def __init__(self) -> None:
        self._windows: dict[int, dict[tuple[int, int], _Kept]] = {}

    async def read_turnovers(
        self,
        connection: Connection,
        tokens: Collection[PlacedToken],
        span: tuple[int, int],
        contracts: Contracts,
        now_s: float,
    ) -> dict[int, WindowTurnover]:
        """What was traded of each token after the first and up to the second of ``span``, by token; as it was
        counted up to a two-thousandth of that time ago. ``now_s``: our clock."""
        span_s = span[1] - span[0]
        window = self._windows.get(span_s, {})
        keys = [(token.token_id, token.pool_id) for token in tokens]
        known = {
            key: window[key]
            for key in keys
            if key in window and 0 <= now_s - window[key].counted_s < span_s / KEPT_PART
        }
        missing = [token for token in tokens if (token.token_id, token.pool_id) not in known]
        if missing:
            counted = await market_figures.read_turnovers(connection, missing, span, contracts)
            known |= {
                (token.token_id, token.pool_id): _Kept(now_s, counted[token.token_id]) for token in missing
            }
        self._windows[span_s] = known
        return {token_id: known[token_id, pool_id].turnover for token_id, pool_id in keys}
