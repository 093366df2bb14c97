"""The life of a channel and of what is delivered to it, as tables; how long is waited between tries, and who
goes before whom."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from roundtrip.domain.base.job_turns import Lane

State = Literal["live", "failing", "off", "removed"]
Event = Literal["delivered", "failed", "failed_long", "gone", "removed"]
"""``failed_long``: a try failed, as did all others of three days. ``gone``: it was answered 410.
``removed``: by its owner."""

LIFE: MappingProxyType[tuple[State, Event], State] = MappingProxyType(
    {
        ("live", "delivered"): "live",
        ("live", "failed"): "failing",
        ("live", "gone"): "removed",
        ("live", "removed"): "removed",
        ("failing", "delivered"): "live",
        ("failing", "failed"): "failing",
        ("failing", "failed_long"): "off",
        ("failing", "gone"): "removed",
        ("failing", "removed"): "removed",
        # Its owner set it again, and the test arrived.
        ("off", "delivered"): "live",
        ("off", "removed"): "removed",
    }
)
TOLD: tuple[State, ...] = ("live", "failing")
"""Channels that are told of what happens."""

DeliveryState = Literal["waiting", "delivered", "failed", "dropped"]
DeliveryEvent = Literal["delivered", "failed", "failed_last", "dropped", "resent"]
"""``failed_last``: after its last wait. ``dropped``: its channel is off or removed, or its rows are no longer
kept. ``resent``: by command."""

DELIVERY_LIFE: MappingProxyType[tuple[DeliveryState, DeliveryEvent], DeliveryState] = MappingProxyType(
    {
        ("waiting", "delivered"): "delivered",
        ("waiting", "failed"): "waiting",
        ("waiting", "failed_last"): "failed",
        ("waiting", "dropped"): "dropped",
        ("delivered", "resent"): "waiting",
        ("failed", "resent"): "waiting",
        ("dropped", "resent"): "waiting",
    }
)

WAITS_S = (5, 60, 300, 1800, 7200, 21_600, 43_200)
"""After the first try that failed, the second and so on."""
MOST_TRIES = len(WAITS_S) + 1
IN_ORDER_TRIES = 2
"""One that failed more often goes behind the others: what is refused for ever does not hold them up."""
OFF_AFTER_S = 3 * 86_400
"""So long nothing but failures switches a channel off."""
QUIET = timedelta(days=1)
"""Where nothing was tried for so long after it could have been, failures before that count no more."""

URGENT = ("bag_guard", "service")
"""Kinds of messages that go before others."""
SLOW_MS = 1000
"""Whose answers take longer is sent to from places of its own."""
PLACE_S = 0.5
"""So long a run keeps its place from others, and begins further messages."""
LANES = (
    Lane("urgent", places=16, max_per_owner=2, max_per_host=4, hold_s=PLACE_S),
    Lane("normal", places=64, max_per_owner=1, max_per_host=16, hold_s=PLACE_S),
    Lane("unproven", places=8, max_per_owner=2, max_per_host=2, hold_s=PLACE_S),
    Lane("slow", places=16, max_per_owner=1, max_per_host=4),
)
"""Where channels wait for their turn: with a message of ``URGENT``; proven; not proven; and slow, whatever
else."""
MOST_AT_ONCE = 256
"""Runs of one worker, with those that went on without a place."""
HOST_ROWS, HOST_WINDOW = 60, timedelta(seconds=60)
"""So many rows go to a host in a minute, of webhooks that are not proven."""
TURN_ROWS = 20
"""So many of them in one run, so that several accounts have their share of a minute."""


class IllegalChannelMove(Exception):
    """Nothing of the kind can happen to it as it stands; nothing was changed."""


def after(state: State, event: Event) -> State:
    """What a channel is then. Raises Illegal."""
    found = LIFE.get((state, event))
    if found is None:
        raise IllegalChannelMove(f"a channel that is {state} cannot be {event}")
    return found


def delivery_after(state: DeliveryState, event: DeliveryEvent) -> DeliveryState:
    """What a delivery is then. Raises Illegal."""
    found = DELIVERY_LIFE.get((state, event))
    if found is None:
        raise IllegalChannelMove(f"a delivery that is {state} cannot be {event}")
    return found


def failure(state: State, failing_s: float) -> Event:
    """What a try that failed is to its channel. ``failing_s``: since the first failure of those without a
    success between them."""
    return "failed_long" if state == "failing" and failing_s >= OFF_AFTER_S else "failed"


def failing_since(since: datetime | None, rests_until: datetime | None, now: datetime) -> datetime:
    """Since when a channel fails that failed now. ``since``: as it stood; ``rests_until``: when something
    could have been tried again."""
    if since is None or (rests_until is not None and now - rests_until > QUIET):
        return now
    return since


def wait_s(failures: int, drawn: float, retry_after_s: float | None = None) -> float:
    """How long to wait after so many failures on end; after more than there are waits the last again.
    ``drawn``, 0 to 1, spreads it by a quarter to both sides. ``retry_after_s``: what the answer wished; it is
    waited for where that is longer, the longest wait at most."""
    wait = WAITS_S[min(failures, len(WAITS_S)) - 1] * (0.75 + drawn / 2)
    return wait if retry_after_s is None else max(wait, min(retry_after_s, float(WAITS_S[-1])))


def messages_of(count: int, most: int) -> list[range]:
    """Places of so many rows in messages of ``most`` rows at most."""
    return [range(first, min(first + most, count)) for first in range(0, count, most)]


def answers_ms(before: int, took_ms: int) -> int:
    """How long a target's answers take, after one that took so long: longer at once, shorter bit by bit."""
    return max(took_ms, (3 * before + took_ms) // 4)


def host_of(shown: str) -> str:
    """Whose limits a target counts against, by how it is shown. Of Discord's own host each webhook's:
    everybody's are there."""
    return urlsplit(shown).netloc or shown


def rows_that_fit(sizes: Sequence[int], room: int) -> int:
    """How many of these messages, from the first on, may be sent in one run where so many rows have room:
    none, one, or as many as come to ``TURN_ROWS`` rows."""
    fit = rows = 0
    for size in sizes:
        if rows + size > room or (fit and rows + size > TURN_ROWS):
            break
        fit, rows = fit + 1, rows + size
    return fit
