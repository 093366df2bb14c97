"""The state machine of reading one token: how much of its transfers is in the stored book.

A book is begun, is read on in pieces, and is whole once it reaches the newest block. It falls behind as
blocks pass, and is read on from its block. If its basis turns out to be wrong (its block was reorged out, or
it did not know a venue of the token), ``book_reader`` drops it and begins another: a book cannot be unfolded.
That is no event here."""

from types import MappingProxyType
from typing import Literal

State = Literal["unread", "reading", "whole", "capped"]
"""unread: no book is stored. reading: there are more transfers between its block and the newest one. whole:
it had reached the newest block when it was last read. capped: there are more transfers than are ever read; it
stays at its block."""

Event = Literal["begun", "advanced", "caught_up", "capped"]
"""begun: an empty book was made. advanced: it was read further, but not to the newest block. caught_up: it
reached the newest block. capped: it reached the size limit."""

ReadStatus = Literal["complete", "reading", "partial"]
"""The status that callers see. complete: every transfer was read. reading: not yet. partial: counts are a
floor."""


class IllegalStep(ValueError):
    """The event cannot happen in that state."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"a reading that is {state} cannot be {event}")
        self.state, self.event = state, event


STEPS: MappingProxyType[State, MappingProxyType[Event, State]] = MappingProxyType(
    {
        "unread": MappingProxyType({"begun": "reading"}),
        "reading": MappingProxyType({"advanced": "reading", "caught_up": "whole", "capped": "capped"}),
        "whole": MappingProxyType({"advanced": "reading", "caught_up": "whole", "capped": "capped"}),
        "capped": MappingProxyType({}),
    }
)
"""The state after each event, by state. An event that is missing cannot happen."""


def step(state: State, event: Event) -> State:
    """The state after the event. Raises IllegalStep."""
    after = STEPS[state].get(event)
    if after is None:
        raise IllegalStep(state, event)
    return after


def read_status(state: State, pruned: bool) -> ReadStatus:
    """The status that callers see. ``pruned``: the node no longer has logs before the book's first block, so
    even a whole book lacks transfers."""
    if state == "capped":
        return "partial"
    if state == "whole":
        return "partial" if pruned else "complete"
    return "reading"
