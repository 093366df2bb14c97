"""The commands that back up a database to a file, and restore it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from roundtrip.app import build
from roundtrip.app.notifiers import secret_key
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.maintenance.backup import back_up, is_signed
from roundtrip.store.maintenance.backup import restore as restore_from

from .terminal import environment, run

_WRITTEN = (
    "Wrote {file}, {size:.1f} MB. It does not contain the key that encrypts channels' "
    "secrets: keep that, too."
)


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; an existing file is replaced.")],
    small: Annotated[
        bool, typer.Option("--small", help="Leave out what sync can read from the chain again.")
    ] = False,
) -> None:
    """Writes the database into a file, as it is at one moment, while everything goes on."""
    run(_backup(Settings(), file, small))
    print(_WRITTEN.format(file=file, size=file.stat().st_size / 1e6))


async def _backup(settings: Settings, file: Path, small: bool) -> None:
    async with build.open_database(settings, joins=True) as database_url:
        await back_up(database_url, file, _with_password, secret_key(settings), whole=not small)


def restore(
    file: Annotated[Path, typer.Argument(help="The file that backup wrote.")],
    trust: Annotated[
        bool, typer.Option("--trust", help="Also accept a file that this service's key did not sign.")
    ] = False,
) -> None:
    """Restores a backup into an empty database: all of it, or nothing."""
    run(_restore(Settings(), file, trust))


async def _restore(settings: Settings, file: Path, trust: bool) -> None:
    if not trust and not is_signed(file, secret_key(settings)):
        raise CannotRun(
            "the file was changed, or is not signed with this service's key; nothing was restored. Put back "
            "the key that you kept (secret.key, ROUNDTRIP_SECRET_KEY), or add --trust if you know where the "
            "file comes from"
        )
    async with build.open_database(settings) as database_url:
        await restore_from(database_url, file)
    print("Restored. Now start the service.")


def _with_password(password: str | None) -> Mapping[str, str]:
    return environment() if password is None else environment(PGPASSWORD=password)
