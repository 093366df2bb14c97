"""Times of one question, and the line that tells them."""

import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

WARM_UPS = 5


@dataclass(frozen=True, slots=True)
class Times:
    """Of one question, in milliseconds."""

    times_ms: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.times_ms)

    @property
    def p95(self) -> float:
        return sorted(self.times_ms)[int(len(self.times_ms) * 0.95)]


async def timed(ask: Callable[[], Awaitable[object]], runs: int) -> Times:
    """Asked again and again. The first few do not count."""
    times = []
    for number in range(WARM_UPS + runs):
        began = time.perf_counter()
        await ask()
        if number >= WARM_UPS:
            times.append((time.perf_counter() - began) * 1000)
    return Times(times)


def tell(name: str, found: Times, beside: Times, what: str, aim_ms: float | None = None) -> None:
    """One line; whether it misses its aim stands first. ``what``: the question ``beside`` is of."""
    missed = "SLOW" if aim_ms is not None and found.p95 >= aim_ms else ""
    ratio = found.median / beside.median
    print(
        f"{missed:5}{name:52} median {found.median:7.2f} ms   p95 {found.p95:7.2f} ms"
        f"   worst {max(found.times_ms):7.2f} ms   {ratio:6.1f} times {what}",
        flush=True,
    )
