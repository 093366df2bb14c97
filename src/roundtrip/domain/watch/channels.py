"""States of channels and deliveries, as tables; waits between tries; the order of deliveries."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from roundtrip.domain.base.errors import IllegalMove
from roundtrip.domain.base.job_turns import Lane

State = Literal["live", "failing", "off", "removed"]
Event = Literal["delivered", "failed", "failed_long", "gone", "removed"]
"""``failed_long``: a try failed, like all others of three days. ``gone``: the target answered 410.
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
        # Its owner set it up again, and the test arrived.
        ("off", "delivered"): "live",
        ("off", "removed"): "removed",
    }
)
ACTIVE: tuple[State, ...] = ("live", "failing")
"""Channels that get deliveries."""

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
"""Waits after the first failed try, the second, and so on."""
MAX_TRIES = len(WAITS_S) + 1
IN_ORDER_TRIES = 2
"""A delivery that failed more often goes behind the others, so that a permanent failure does not block
them."""
OFF_AFTER_S = 3 * 86_400
"""A channel is switched off after this time with nothing but failures."""
QUIET = timedelta(days=1)
"""Where the next try is overdue by more than this, as no try was possible, the failures before no longer
count."""

URGENT = ("bag_guard", "service")
"""Kinds of messages that are sent before others."""
SLOW_MS = 1000
"""Targets with slower answers have slots of their own."""
PLACE_S = 0.5
"""How long a run holds its slot, and starts further messages."""
LANES = (
    Lane("urgent", places=16, max_per_owner=2, max_per_host=4, hold_s=PLACE_S),
    Lane("normal", places=64, max_per_owner=1, max_per_host=16, hold_s=PLACE_S),
    Lane("unproven", places=8, max_per_owner=2, max_per_host=2, hold_s=PLACE_S),
    Lane("slow", places=16, max_per_owner=1, max_per_host=4),
)
"""Where channels wait for their turn: with a message of ``URGENT``; proven, as the receiver has shown that it
wants the messages; not proven; and slow, whatever else they are."""
MAX_AT_ONCE = 256
"""Runs of one worker, those that continue without a slot included."""
HOST_ROWS, HOST_WINDOW = 60, timedelta(seconds=60)
"""Rows a minute to one host, over all webhooks that are not proven."""
TURN_ROWS = 20
"""Rows of one run, so that several accounts share a minute."""


def next_state(state: State, event: Event) -> State:
    """The state of a channel after the event. Raises IllegalMove."""
    new_state = LIFE.get((state, event))
    if new_state is None:
        raise IllegalMove(f"a channel that is {state} cannot be {event}")
    return new_state


def next_delivery_state(state: DeliveryState, event: DeliveryEvent) -> DeliveryState:
    """The state of a delivery after the event. Raises IllegalMove."""
    new_state = DELIVERY_LIFE.get((state, event))
    if new_state is None:
        raise IllegalMove(f"a delivery that is {state} cannot be {event}")
    return new_state


def failure(state: State, failing_s: float) -> Event:
    """The event that a failed try is for its channel. ``failing_s``: seconds since the first of the failures
    in a row."""
    return "failed_long" if state == "failing" and failing_s >= OFF_AFTER_S else "failed"


def failing_since(since: datetime | None, rests_until: datetime | None, now: datetime) -> datetime:
    """The start of the failures in a row, for a channel that failed now. ``since``: the stored start;
    ``rests_until``: when the next try was due."""
    if since is None or (rests_until is not None and now - rests_until > QUIET):
        return now
    return since


def wait_s(failures: int, drawn: float, retry_after_s: float | None = None) -> float:
    """The wait after a number of failures in a row; after the last of ``WAITS_S`` it stays the same.
    ``drawn``, 0 to 1, varies it by a quarter either way. ``retry_after_s``: what the target asked for; the
    wait is at least that, but at most the longest wait."""
    wait = WAITS_S[min(failures, len(WAITS_S)) - 1] * (0.75 + drawn / 2)
    return wait if retry_after_s is None else max(wait, min(retry_after_s, float(WAITS_S[-1])))


def split_messages(count: int, max_rows: int) -> list[range]:
    """Ranges of ``count`` rows, for messages of at most ``max_rows`` rows."""
    return [range(first, min(first + max_rows, count)) for first in range(0, count, max_rows)]


def smooth_answer_ms(before: int, took_ms: int) -> int:
    """A target's usual answer time, after one answer: a longer one counts at once, a shorter one by a
    quarter."""
    return max(took_ms, (3 * before + took_ms) // 4)


def host_of(shown: str) -> str:
    """The host that a target's row limit applies to, from the shown form of the target. Each Discord webhook
    has its own limit, because all of them share one host."""
    return urlsplit(shown).netloc or shown


def rows_that_fit(sizes: Sequence[int], room: int) -> int:
    """How many of these messages, from the first on, one run may send with room for ``room`` rows: none, one,
    or as many as ``TURN_ROWS`` rows allow."""
    count = rows = 0
    for size in sizes:
        if rows + size > room or (count and rows + size > TURN_ROWS):
            break
        count, rows = count + 1, rows + size
    return count
