"""The table of all operations. Routes, tools, documents and tests loop over it."""

from collections.abc import Mapping
from types import MappingProxyType

from roundtrip.api.operations.accounts import ACCOUNTS, BAG, CHANNELS, MARKS, SYSTEM
from roundtrip.api.operations.practice import LEAGUE, PRACTICE
from roundtrip.api.operations.tokens import LOOKUPS, TOKENS, TRADES, WALLETS

from .boards import BOARDS
from .operation import A, AnyOperation, Operation, P
from .watch import WATCH

GROUPS: Mapping[str, tuple[AnyOperation, ...]] = MappingProxyType(
    {
        "tokens": TOKENS,
        "wallets": WALLETS,
        "lookups": LOOKUPS,
        "boards": BOARDS,
        "trades": TRADES,
        "accounts": ACCOUNTS,
        "watch": WATCH,
        "channels": CHANNELS,
        "practice": PRACTICE,
        "league": LEAGUE,
        "marks": MARKS,
        "bag": BAG,
        "system": SYSTEM,
    }
)
"""The operations by what they are about."""

OPERATIONS: tuple[AnyOperation, ...] = tuple(
    operation for operations in GROUPS.values() for operation in operations
)


def tools() -> tuple[AnyOperation, ...]:
    """The operations that are tools, in the table's order."""
    return tuple(operation for operation in OPERATIONS if operation.on_mcp)


def find_operation(name: str, params: type[P], answer: type[A]) -> Operation[P, A]:
    """The row of this name, with the types that its callers in this process rely on. Raises ValueError where
    the row has other types."""
    row = next(row for row in OPERATIONS if row.name == name)
    if (row.params, row.answer) != (params, answer):
        raise ValueError(f"{name} has other types than {params.__name__} and {answer.__name__}")
    return row
