"""The life of one token's reading: how much of its transfers is in the book that is kept.

A book is begun, goes on in pieces, and is whole once it reaches the newest block. It falls behind as blocks
pass, and goes on from where it stands. What it was made of may turn out to be wrong (its block is on no chain
any more, or it did not know of a place where the token trades): then it is thrown away, whole, and begun
anew: a book cannot be unfolded.
"""

from types import MappingProxyType
from typing import Literal

State = Literal["unread", "reading", "whole", "capped"]
"""unread: no book is kept. reading: there is more between its block and the newest one. whole: there was
nothing more when it was read. capped: there is more than is ever read; it stays where it stands."""

Event = Literal["begun", "advanced", "caught_up", "capped", "forked", "grown_venues"]
"""begun: a book was made, with nothing in it yet. advanced: it goes further, and not to the newest block.
caught_up: it goes to the newest block. capped: it may not go further. forked: its block is not on the chain.
grown_venues: the token trades at a place that the book did not know of when it was there already."""

ReadStatus = Literal["complete", "reading", "partial"]
"""As callers are told: every transfer is in it; it is being read; counts are a floor."""


class IllegalStep(ValueError):
    """Such a thing cannot happen to a reading in that state."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"a reading that is {state} cannot be {event}")
        self.state, self.event = state, event


STEPS: MappingProxyType[State, MappingProxyType[Event, State]] = MappingProxyType(
    {
        "unread": MappingProxyType({"begun": "reading"}),
        "reading": MappingProxyType(
            {
                "advanced": "reading",
                "caught_up": "whole",
                "capped": "capped",
                "forked": "unread",
                "grown_venues": "unread",
            }
        ),
        "whole": MappingProxyType(
            {
                "advanced": "reading",
                "caught_up": "whole",
                "capped": "capped",
                "forked": "unread",
                "grown_venues": "unread",
            }
        ),
        "capped": MappingProxyType({"forked": "unread", "grown_venues": "unread"}),
    }
)
"""THE TABLE: what each event makes of each state. What does not stand here cannot happen."""


def step(state: State, event: Event) -> State:
    """The state after it. Raises IllegalStep."""
    after = STEPS[state].get(event)
    if after is None:
        raise IllegalStep(state, event)
    return after


def read_status(state: State, pruned: bool) -> ReadStatus:
    """What callers are told of a book. ``pruned``: logs before its first block are gone at the node, so not
    even a whole one has every transfer."""
    if state == "capped":
        return "partial"
    if state == "whole":
        return "partial" if pruned else "complete"
    return "reading"
