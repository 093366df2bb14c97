"""The parts of an account's page: rooms and their forms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from roundtrip.api.operations.operation import AnyOperation

Answers = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Room:
    """One room: its name, title and purpose (``about``), and the operations whose answers it shows, by their
    names in its template.

    An operation that is not a tool is an AnyOperation of the pages. ``extra_values``: computes the template's
    other values from those answers and the query string.
    """

    name: str
    title: str
    about: str
    operations: Mapping[str, str | AnyOperation]
    extra_values: Callable[[Answers, Mapping[str, str]], Answers] | None = None

    @property
    def template(self) -> str:
        """The path of the room's template."""
        return f"account/{self.name}.html"


@dataclass(frozen=True, slots=True)
class AccountForm:
    """A form: the operation that it calls, its room, its fields, and which of them are numbers. ``parse``:
    combines form fields that are parts of one parameter. A form of a ``once`` operation carries an
    idempotency key in its field ``once``, so that a reload does nothing more. ``fingerprint``: for operations
    that are harmful when repeated, a tool and the fingerprint of its answer; the form carries the one that
    the visitor saw. ``piece``: a template that shows the answer, or its error, to the page's script."""

    operation: str | AnyOperation
    room: str
    fields: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()
    parse: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None
    fingerprint: tuple[str, Callable[[Answers], str]] | None = None
    piece: str | None = None

    @property
    def name(self) -> str:
        """The operation's name."""
        return self.operation if isinstance(self.operation, str) else self.operation.name
