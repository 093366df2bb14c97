"""Every story, animal and number token on nodes of every kind: prints the table of their verdicts.

``python -m truth.run_dialects [--write]``; best called by ``make long NAME=dialects``. Exits with 1 where a
verdict differs that should not, or more than one in a hundred is unproven.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from roundtrip.devnet import world
from roundtrip.devnet.node import NodeOptions
from roundtrip.devnet.sync_rpc import SyncRpc
from support.fixtures import PROJECT, no_database
from truth.dialect_table import (
    KINDS,
    DialectRow,
    animal_rows,
    bar_is_met,
    line,
    number_rows,
    story_rows,
    sums,
    write_table,
)


def main() -> int:
    """Runs, prints, and gives 1 where the bar is missed."""
    parser = argparse.ArgumentParser(prog="truth.run_dialects", description=__doc__)
    parser.add_argument("--write", action="store_true", help="also into docs/decisions/0010-dialects.md")
    asked = parser.parse_args()
    print(f"{'token':44}{''.join(kind.ljust(22) for kind in KINDS)}why it is unproven", flush=True)
    rows = asyncio.run(_run())
    print("\n" + "\n".join(sums(rows)))
    if asked.write:
        write_table(rows, datetime.now(UTC).strftime("%Y-%m-%d"))
    return 0 if bar_is_met(rows) else 1


async def _run() -> list[DialectRow]:
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    with world.start_world(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as rpc:
        parts = (make(rpc, built, no_database()) for make in (story_rows, animal_rows, number_rows))
        return [row for part in parts async for row in _shown(part)]


async def _shown(rows: AsyncIterator[DialectRow]) -> AsyncIterator[DialectRow]:
    async for row in rows:
        print(line(row), flush=True)
        if row.fault():
            print(f"  wrong: {row.fault()}", flush=True)
        yield row


if __name__ == "__main__":
    sys.exit(main())
