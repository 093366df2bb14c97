"""What a room of an account is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from roundtrip.api.operations.operation import AnyOperation

Answers = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Room:
    """One room: what it is called, and the use cases whose answers it shows, as its template names them.

    A use case that no tool has is an AnyOperation of the pages' own. ``also``: what its template needs
    besides, made of those answers and of what the address asks for (its query).
    """

    name: str
    title: str
    shows: Mapping[str, str | AnyOperation]
    also: Callable[[Answers, Mapping[str, str]], Answers] | None = None

    @property
    def template(self) -> str:
        """Where it is written."""
        return f"account/{self.name}.html"


@dataclass(frozen=True, slots=True)
class AccountForm:
    """A form: the use case that it calls, the room that it stands in, its fields, and those of them that are
    numbers. ``reads``: the form as it is meant, where it has parts that are one field. A form of what is done
    once carries a name of its own (``once``), by which a reload of it does nothing more. ``seen``: of what is
    harmful a second time, the tool by whose answer that is told, and how: the form carries what was seen."""

    operation: str | AnyOperation
    room: str
    fields: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()
    reads: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None
    seen: tuple[str, Callable[[Answers], str]] | None = None

    @property
    def name(self) -> str:
        """By what its form calls it."""
        return self.operation if isinstance(self.operation, str) else self.operation.name
