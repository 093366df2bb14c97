"""The table of all operations. Routes, tools, documents and tests loop over it."""

from .accounts import ACCOUNTS
from .bag import BAG
from .boards import BOARDS
from .channels import CHANNELS
from .league import LEAGUE
from .lookups import LOOKUPS
from .marks import MARKS
from .operation import AnyOperation
from .practice import PRACTICE
from .system import SYSTEM
from .tokens import TOKENS
from .trades import TRADES
from .wallets import WALLETS
from .watch import WATCH

OPERATIONS: tuple[AnyOperation, ...] = (
    *TOKENS, *WALLETS, *LOOKUPS, *BOARDS, *TRADES, *ACCOUNTS, *WATCH, *CHANNELS, *PRACTICE, *LEAGUE,
    *MARKS, *BAG, *SYSTEM,
)  # fmt: skip


def tools() -> tuple[AnyOperation, ...]:
    """The operations that are tools, in the table's order."""
    return tuple(operation for operation in OPERATIONS if operation.on_mcp)
