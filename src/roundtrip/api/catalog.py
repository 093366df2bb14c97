"""THE TABLE: every operation once. Routes, tools, documentation and tests loop over it."""

from .operation import Operation
from .tables.accounts import ACCOUNTS
from .tables.bag import BAG
from .tables.boards import BOARDS
from .tables.channels import CHANNELS
from .tables.league import LEAGUE
from .tables.lookups import LOOKUPS
from .tables.marks import MARKS
from .tables.practice import PRACTICE
from .tables.system import SYSTEM
from .tables.tokens import TOKENS
from .tables.trades import TRADES
from .tables.wallets import WALLETS
from .tables.watch import WATCH

OPERATIONS: tuple[Operation, ...] = (
    *TOKENS, *WALLETS, *LOOKUPS, *BOARDS, *TRADES, *ACCOUNTS, *WATCH, *CHANNELS, *PRACTICE, *LEAGUE,
    *MARKS, *BAG, *SYSTEM,
)  # fmt: skip


def tools() -> tuple[Operation, ...]:
    """The operations that are tools, in the table's order."""
    return tuple(operation for operation in OPERATIONS if operation.on_mcp)
