"""The commands of keys: which there are, and the end of one. A key itself is never told: nobody has it."""

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

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Keys of callers: list them, revoke one.")

_NO, _UNKNOWN = 1, 2


@app.command("list")
def list_keys(
    wallet: Annotated[str | None, typer.Option(help="Only those of this address.")] = None,
) -> None:
    """Every key that was made, by its first eight characters; revoked ones, too. A session is what the pages
    of somebody who signed in have in place of a key: it ends by itself."""
    try:
        address = None if wallet is None else parse_address(wallet)
    except ValueError as error:
        print(f"roundtrip: {error}")
        raise SystemExit(_UNKNOWN) from None
    run(_list(Settings(), address))


async def _list(settings: Settings, wallet: Address | None) -> None:
    async with build.connect_command(settings) as connection:
        found = await accounts.every_key(connection, wallet)
    table = Table("id", "kind", "mite", "wallet", "start", "label", "made", "revoked")
    for key in found:
        # A label is a stranger's text: no markup of it counts.
        table.add_row(
            str(key.id), _kind(key), key.designation, key.wallet, key.start, Text(key.label),
            _when(key.made_at), "" if key.revoked_at is None else _when(key.revoked_at),
        )  # fmt: skip
    console.print(table)


@app.command()
def revoke(
    which: Annotated[
        str,
        typer.Argument(metavar="START_OR_ID", help="Its first eight characters, its id, or all of the key."),
    ],
) -> None:
    """From now on the key is refused; exit 1: there is none such, or several."""
    run(_revoke(Settings(), which))


async def _revoke(settings: Settings, which: str) -> None:
    async with build.connect_command(settings) as connection:
        found = await _meant(connection, which)
        if len(found) != 1:
            # What was given may be a key: it is not repeated.
            print("roundtrip: no key is meant by that" if not found else _several(found))
            raise SystemExit(_NO)
        (key,) = found
        revoked = await accounts.revoke(connection, key.id, datetime.fromtimestamp(time.time(), UTC))
    told = f"key {key.id} ({key.start}) of {key.designation}, {key.wallet}"
    print(f"revoked: {told}" if revoked else f"nothing to do: {told} is revoked already")


async def _meant(connection: Connection, which: str) -> list[Key]:
    """Of several with the same start the live ones, where there are any."""
    if keys.is_key_or_session(which):
        return await accounts.keys_like(connection, None, keys.hash_of(which), None)
    if which.isascii() and which.isdigit():
        return await accounts.keys_like(connection, None, None, min(int(which[:19]), 2**63 - 1))
    found = await accounts.keys_like(connection, which, None, None)
    return [key for key in found if key.revoked_at is None] or found


def _several(found: list[Key]) -> str:
    told = "; ".join(f"{key.id} of {key.designation}, {key.wallet}" for key in found)
    return f"roundtrip: several keys begin like that, say which by its id: {told}"


def _kind(key: Key) -> str:
    return key.kind if key.expires_at is None else f"{key.kind} to {_when(key.expires_at)}"


def _when(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
