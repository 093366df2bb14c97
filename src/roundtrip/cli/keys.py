"""The commands of keys: list them, revoke one. Keys are stored as hashes, so a key itself cannot be shown."""

import time
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from roundtrip.app import build
from roundtrip.config.settings import Settings
from roundtrip.domain.accounts import keys
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.store.accounts import accounts
from roundtrip.store.accounts.accounts import Key
from roundtrip.store.server.rows import Connection

from .terminal import console, run

app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, help="API keys: list them, revoke one."
)

_NO, _UNKNOWN = 1, 2
"""Exit codes."""


@app.command("list")
def list_keys(
    wallet: Annotated[str | None, typer.Option(help="Only keys of this wallet address.")] = None,
) -> None:
    """Lists every key by its first eight characters, revoked ones too. A session is the key of a browser that
    is signed in; it ends by itself."""
    try:
        address = None if wallet is None else parse_address(wallet)
    except ValueError as error:
        print(f"roundtrip: {error}")
        raise SystemExit(_UNKNOWN) from None
    run(_list(Settings(), address))


async def _list(settings: Settings, wallet: Address | None) -> None:
    async with build.connect_command(settings) as connection:
        rows = await accounts.every_key(connection, wallet)
    table = Table("id", "kind", "mite", "wallet", "start", "label", "made", "revoked")
    for row in rows:
        # A label is a stranger's text: its markup must not be interpreted.
        table.add_row(
            str(row.id), _format_kind(row), row.designation, row.wallet, row.start, Text(row.label),
            _format_time(row.made_at), "" if row.revoked_at is None else _format_time(row.revoked_at),
        )  # fmt: skip
    console.print(table)


@app.command()
def revoke(
    which: Annotated[
        str,
        typer.Argument(
            metavar="START_OR_ID", help="The key's first eight characters, its id, or the whole key."
        ),
    ],
) -> None:
    """Revokes a key: from now on it is refused; exit 1: no key matches, or several do."""
    run(_revoke(Settings(), which))


async def _revoke(settings: Settings, which: str) -> None:
    async with build.connect_command(settings) as connection:
        matches = await _find_keys(connection, which)
        if len(matches) != 1:
            # The argument may be a key, so it is not printed.
            print("roundtrip: no key matches" if not matches else _describe_ambiguous(matches))
            raise SystemExit(_NO)
        (key,) = matches
        revoked = await accounts.revoke(connection, key.id, datetime.fromtimestamp(time.time(), UTC))
    description = f"key {key.id} ({key.start}) of {key.designation}, {key.wallet}"
    print(f"revoked: {description}" if revoked else f"nothing to do: {description} is already revoked")


async def _find_keys(connection: Connection, which: str) -> list[Key]:
    """The keys that match a start, an id or a whole key; of several with the same start, the live ones if
    any."""
    if keys.is_key_or_session(which):
        return await accounts.keys_like(connection, None, keys.hash_of(which), None)
    if which.isascii() and which.isdigit():
        return await accounts.keys_like(connection, None, None, min(int(which[:19]), 2**63 - 1))
    matches = await accounts.keys_like(connection, which, None, None)
    return [key for key in matches if key.revoked_at is None] or matches


def _describe_ambiguous(matches: list[Key]) -> str:
    candidates = "; ".join(f"{key.id} of {key.designation}, {key.wallet}" for key in matches)
    return f"roundtrip: several keys match; give the id of one: {candidates}"


def _format_kind(key: Key) -> str:
    return key.kind if key.expires_at is None else f"{key.kind} to {_format_time(key.expires_at)}"


def _format_time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
