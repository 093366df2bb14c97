"""Every token of the stories and tests on nodes of every kind: prints the table of their verdicts. Then the
stories on a real geth, where there is one: prints which fields of which answers differ from anvil's.

``python -m truth.run_dialects [--write | --real]``; best called by ``make long NAME=dialects``. Exits with 1
where a verdict differs that should not, more than one in a hundred is unproven, or an answer of the real geth
differs.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.fixtures import PROJECT, no_database
from truth.dialect_table import (
    KINDS,
    DialectRow,
    animal_rows,
    bar_is_met,
    gas_rows,
    line,
    number_rows,
    story_rows,
    sums,
    write_table,
)
from truth.gas_tokens import GAS_TOKENS
from truth.geth_table import compare_on_geth


def main() -> int:
    """Runs, prints, and gives 1 where the bar is missed."""
    parser = argparse.ArgumentParser(prog="truth.run_dialects", description=__doc__)
    parser.add_argument("--write", action="store_true", help="also into tests/truth/dialects.md")
    parser.add_argument("--real", action="store_true", help="only the real geth")
    asked = parser.parse_args()
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    with world.start_world(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as rpc:
        scripted_ok = asked.real or asyncio.run(_run_scripted(rpc, built, asked.write))
        real_ok = asyncio.run(_run_real(rpc, built))
    return 0 if scripted_ok and real_ok else 1


async def _run_scripted(rpc: SyncRpc, built: world.Built, write: bool) -> bool:
    """The table of the scripted nodes. Returns whether the bar is met."""
    print(f"{'token':44}{''.join(kind.ljust(22) for kind in KINDS)}why it is unproven", flush=True)
    parts = (make(rpc, built, no_database()) for make in (story_rows, animal_rows, number_rows, gas_rows))
    rows = [row for part in parts async for row in _shown(part)]
    print("\n" + "\n".join(sums(rows)))
    if write:
        write_table(rows, datetime.now(UTC).strftime("%Y-%m-%d"))
    return bar_is_met(rows)


async def _shown(rows: AsyncIterator[DialectRow]) -> AsyncIterator[DialectRow]:
    async for row in rows:
        print(line(row), flush=True)
        if row.fault():
            print(f"  wrong: {row.fault()}", flush=True)
        yield row


async def _run_real(rpc: SyncRpc, built: world.Built) -> bool:
    """Every story and every token with dear transfers on a real geth."""
    dear = {name: token.put(rpc, built) for name, token in GAS_TOKENS.items()}
    return await compare_on_geth(rpc, built, built.tokens | dear)


if __name__ == "__main__":
    sys.exit(main())
