"""What a room of an account is made of."""

from collections.abc import Mapping
from dataclasses import dataclass

from roundtrip.api.operation import Operation


@dataclass(frozen=True, slots=True)
class Room:
    """One room: what it is called, and the use cases whose answers it shows, as its template names them.

    A use case that no tool has is an Operation of the pages' own.
    """

    name: str
    title: str
    shows: Mapping[str, str | Operation]

    @property
    def template(self) -> str:
        """Where it is written."""
        return f"account/{self.name}.html"


@dataclass(frozen=True, slots=True)
class Act:
    """A form: the use case that it calls, the room that it stands in, its fields, and those of them that are
    numbers."""

    operation: str | Operation
    room: str
    fields: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """By what its form calls it."""
        return self.operation if isinstance(self.operation, str) else self.operation.name
