"""How many blocks are asked for at once: more while answers come fast, fewer when they do not."""

FIRST_BLOCKS = 32
"""Small enough for any node; three good answers later it is the most."""
FEWEST_BLOCKS = 1
MOST_BLOCKS = 256
"""A trip's own time weighs little beyond it, and nobody works while a wide span is on its way: a busy chain
of 4,400 blocks took 2.7 s with it, and 3.6 s with 2,000."""
TARGET_S = 0.5
"""An answer that took less leads to more blocks; one that took twice as long, to half as many."""
MOST_LOGS = 4_000
"""Reading and checking a log takes 5 µs of this process where most topics come again, 13 µs where each is new
(bench/spans.py): an answer that has more holds up the event loop for longer than 20 to 50 ms."""
TAKEN_TO_FORGET = 64
"""After a refusal so many answers come before more is tried again: one trip in so many is in vain."""


class Width:
    """What was learned of one node, or of several behind one name. Pure: times come in."""

    def __init__(self, first: int = FIRST_BLOCKS, most: int = MOST_BLOCKS) -> None:
        self._most = max(FEWEST_BLOCKS, most)
        self._ceiling = self._most
        self._taken = 0
        self.blocks = max(FEWEST_BLOCKS, min(first, self._most))

    def took(self, blocks: int, seconds: float, logs: int) -> None:
        """An answer of ``blocks`` blocks came. One of fewer than are asked for now makes nothing wider: with
        several under way each tells of the width that it was sent with."""
        self._forget()
        if seconds > 2 * TARGET_S or logs > MOST_LOGS:
            self._narrow(blocks)
        elif seconds < TARGET_S and 2 * logs <= MOST_LOGS:
            self.blocks = max(self.blocks, min(2 * blocks, self._ceiling))

    def note_refusal(self, blocks: int) -> None:
        """The node says that so many are too much. It is not tried again soon."""
        self._narrow(blocks)
        self._ceiling = min(self._ceiling, max(FEWEST_BLOCKS, blocks // 2))
        self._taken = 0

    def note_failure(self, blocks: int) -> None:
        """No answer came, which may have been for its size."""
        self._narrow(blocks)

    def _narrow(self, blocks: int) -> None:
        """To half of what was asked for, not of what is asked for now: several that were sent together and
        fail together narrow once."""
        self.blocks = max(FEWEST_BLOCKS, min(self.blocks, blocks // 2))

    def _forget(self) -> None:
        self._taken += 1
        if self._taken >= TAKEN_TO_FORGET:
            self._taken = 0
            self._ceiling = min(self._most, 2 * self._ceiling)
