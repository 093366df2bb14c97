"""A clock that a test moves."""


class Clock:
    """Seconds, which stand still until they are moved; by default those of October 2025."""

    def __init__(self, now_s: float = 1_760_000_000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s
