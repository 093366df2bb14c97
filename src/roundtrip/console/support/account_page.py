"""The parts of an account's page: rooms and their forms. Symbols and verdicts of the tokens that a page
names."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.console.support.page_operations import page_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.services.support.shown_verdict import TokenState
from roundtrip.services.watch.inbox import StatesParams, token_states

_ROWS = {row.name: row for row in OPERATIONS}
Values = Mapping[str, object]
"""What a template shows, by the names in it."""


@dataclass(frozen=True, slots=True)
class Room:
    """One room: its name, title and purpose (``about``). ``read``: asks for what its template shows; raises
    RoundtripError."""

    name: str
    title: str
    about: str
    read: Callable[[Visit], Awaitable[Values]]

    @property
    def template(self) -> str:
        """The path of the room's template."""
        return f"account/{self.name}.html"


@dataclass(frozen=True, slots=True)
class AccountForm:
    """A form: the operation that it calls (a tool by its name), its room, its fields, and which of them are
    numbers. ``parse``: combines form fields that are parts of one parameter. A form of a ``once`` operation
    carries an idempotency key in its field ``once``, so that a reload does nothing more. ``fingerprint``: for
    operations that are harmful when repeated: of the state now; the form carries the one that the visitor
    saw. ``piece``: a template that shows the answer, or its error, to the page's script."""

    tool: str | AnyOperation
    room: str
    fields: tuple[str, ...] = ()
    numbers: frozenset[str] = frozenset()
    parse: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None
    fingerprint: Callable[[Visit], Awaitable[str]] | None = None
    piece: str | None = None

    @property
    def operation(self) -> AnyOperation:
        """The operation that it calls."""
        return _ROWS[self.tool] if isinstance(self.tool, str) else self.tool


_STATES = page_operation(token_states, counts="never", errors=("busy",))


async def read_token_states(visit: Visit, addresses: Iterable[str]) -> Mapping[str, TokenState]:
    """The index's symbol and newest check of each token, by address. Empty: the index cannot be read now,
    and a page shows its tokens by their addresses."""
    tokens = sorted(set(addresses))
    try:
        return (await visit.ask(_STATES, StatesParams(tokens))).states if tokens else {}
    except RoundtripError:
        return {}
