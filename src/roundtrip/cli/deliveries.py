"""The commands of deliveries: list a channel's, send one again."""

import time
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from roundtrip.app import build
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import IllegalMove
from roundtrip.store.delivery import deliveries

from .terminal import console, run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Messages to channels: list those of a channel, send one again.",
)

_NO = 1
"""Exit code: nothing was sent again."""
_MAX_LISTED = 100


@app.command("list")
def list_deliveries(
    channel: Annotated[int, typer.Argument(help="The channel's id.", min=1, max=2**63 - 1)],
) -> None:
    """Lists the newest hundred messages of a channel with the result of their last try, the newest first."""
    run(_list(Settings(), channel))


async def _list(settings: Settings, channel_id: int) -> None:
    async with build.connect_command(settings) as connection:
        rows = await deliveries.log(connection, channel_id, _MAX_LISTED)
    table = Table("id", "webhook id", "kind", "rows", "state", "tries", "made", "last status", "last error")
    for row in rows:
        table.add_row(
            str(row.id), row.webhook_id, row.kind, str(len(row.alert_ids)), row.state,
            str(row.tries), f"{row.made_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
            "" if row.status is None else str(row.status), Text(row.error or ""),
        )  # fmt: skip
    console.print(table)


@app.command()
def resend(
    which: Annotated[
        int, typer.Argument(metavar="ID", help="The message's id in the list.", min=1, max=2**63 - 1)
    ],
) -> None:
    """Sends a message again, with the same id; exit 1: there is no such message, its channel is off or
    removed, or it is already waiting."""
    run(_resend(Settings(), which))


async def _resend(settings: Settings, which: int) -> None:
    async with build.connect_command(settings) as connection, connection.transaction():
        try:
            previous_state = await deliveries.resend(
                connection, which, datetime.fromtimestamp(time.time(), UTC)
            )
        except IllegalMove:
            print(f"roundtrip: message {which} is already waiting")
            raise SystemExit(_NO) from None
    if previous_state is None:
        print(f"roundtrip: there is no message {which} of a channel that is on")
        raise SystemExit(_NO)
    print(f"Message {which} was {previous_state} and is sent again.")
