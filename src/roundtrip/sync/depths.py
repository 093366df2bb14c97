"""The tick and the active liquidity of the pools of money, log by log."""

from roundtrip.domain.base.events import ActiveDepth, LiquidityMoved


class DepthFold:
    """Updates ``states``, by pool, and records each pool's state at the end of each block in ``changed``. A
    pool that is missing, or None, is not known: its next swap says it."""

    def __init__(
        self, states: dict[str, ActiveDepth | None], changed: dict[tuple[str, int], ActiveDepth | None]
    ) -> None:
        self._states = states
        self._changed = changed

    def note(self, at: str, block_number: int, state: ActiveDepth | None) -> None:
        """Notes what a log says of the pool ``at``."""
        self._states[at] = self._changed[at, block_number] = state

    def note_move(self, event: LiquidityMoved, block_number: int) -> int | None:
        """Notes a change of liquidity. Returns the active liquidity just before it; 0 where the change lies
        out of range; None: not known."""
        state = self._states.get(event.at)
        if state is None:
            return None
        if not event.tick_lower <= state.tick < event.tick_upper:
            return 0
        liquidity = state.liquidity + event.liquidity_delta
        if liquidity < 0:
            # No pool has less than nothing: what was known of it is wrong.
            self.note(event.at, block_number, None)
            return None
        self.note(event.at, block_number, ActiveDepth(state.tick, liquidity))
        return state.liquidity
