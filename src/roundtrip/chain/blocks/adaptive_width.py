"""How many blocks to request at once: more while answers are fast, fewer when they are slow."""

FIRST_BLOCKS = 32
"""Small enough for any node; three good answers widen it to the most."""
FEWEST_BLOCKS = 1
MAX_BLOCKS = 256
"""Above it the latency of a trip matters little, and the reader is idle while a wide span is under way: a
busy chain of 4,400 blocks took 2.7 s with 256, and 3.6 s with 2,000."""
TARGET_S = 0.5
"""A faster answer doubles the width; one that takes twice as long halves it."""
MAX_LOGS = 4_000
"""Reading and checking a log takes 5 µs where most topics repeat, 13 µs where each is new (bench/spans.py):
an answer with more logs blocks the event loop for longer than 20 to 50 ms."""
TAKEN_TO_FORGET = 64
"""How many answers after a refusal raise the ceiling again: at most one trip in this many is refused."""


class Width:
    """The width that suits one node, or several behind one url. Pure: times are passed in."""

    def __init__(self, first: int = FIRST_BLOCKS, most: int = MAX_BLOCKS) -> None:
        self._most = max(FEWEST_BLOCKS, most)
        self._ceiling = self._most
        self._taken = 0
        self.blocks = max(FEWEST_BLOCKS, min(first, self._most))

    def note_answer(self, blocks: int, seconds: float, logs: int) -> None:
        """Notes an answer of ``blocks`` blocks. Doubling starts from ``blocks``, not from the current width:
        of several requests under way, each reports on the width that it was sent with."""
        self._forget_refusal()
        if seconds > 2 * TARGET_S or logs > MAX_LOGS:
            self._narrow(blocks)
        elif seconds < TARGET_S and 2 * logs <= MAX_LOGS:
            self.blocks = max(self.blocks, min(2 * blocks, self._ceiling))

    def note_refusal(self, blocks: int) -> None:
        """Notes that the node refused this many blocks; they are not tried again soon."""
        self._narrow(blocks)
        self._ceiling = min(self._ceiling, max(FEWEST_BLOCKS, blocks // 2))
        self._taken = 0

    def note_failure(self, blocks: int) -> None:
        """Notes that no answer came, perhaps because of its size."""
        self._narrow(blocks)

    def _narrow(self, blocks: int) -> None:
        """Narrows to half of the requested width, not of the current one: requests that were sent together
        and fail together narrow it once."""
        self.blocks = max(FEWEST_BLOCKS, min(self.blocks, blocks // 2))

    def _forget_refusal(self) -> None:
        self._taken += 1
        if self._taken >= TAKEN_TO_FORGET:
            self._taken = 0
            self._ceiling = min(self._most, 2 * self._ceiling)
