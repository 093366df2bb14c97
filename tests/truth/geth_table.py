"""Checks on the local chain and on a real geth with the same state, field by field."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from roundtrip.chain.simulate.request import GAS_POOL_SPENT
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.real_geth import BINARY, MISSING, GethNode, RealGeth, running_geth
from truth.node_checks import CountedCheck, differences, median_costs, run_check

CheckRunner = Callable[[str, Built, str, int], Awaitable[CountedCheck]]
"""Checks a token over the node at a URL, with a seed for its draws."""


@dataclass(frozen=True)
class GethRow:
    """One token, checked over both nodes."""

    name: str
    anvil: CountedCheck
    geth: CountedCheck

    def differing(self) -> dict[str, tuple[Any, Any]]:
        """The fields that differ, with both values."""
        return differences(self.anvil.answer, self.geth.answer)

    def contradicting(self) -> dict[str, tuple[Any, Any]]:
        """``differing`` without the cells that geth had too little gas for: anvil has no such bound."""
        found = self.differing()
        return {
            path: values
            for path, values in found.items()
            if found.get(f"{path.rpartition('.')[0]}.why", values)[1] != GAS_POOL_SPENT.why
        }

    def text(self) -> str:
        """A line, and one more for every field that differs."""
        verdict = self.anvil.answer["verdict"]
        equal = "different" if self.contradicting() else "less gas" if self.differing() else "equal"
        cells = f"{verdict['code']}/{verdict['level']}"
        lines = [f"{self.name:28} {cells:20} {equal:10}{self.geth.costs.text()}"]
        lines += [
            f"  {path}: {on_anvil!r} on anvil, {on_geth!r} on geth"
            for path, (on_anvil, on_geth) in sorted(self.differing().items())
        ]
        return "\n".join(lines)


async def geth_rows(
    rpc: SyncRpc,
    geth: RealGeth,
    built: Built,
    tokens: Mapping[str, str],
    seed: int = 0,
    check: CheckRunner = run_check,
) -> AsyncIterator[GethRow]:
    """A row for every token, by its name. Both checks have the same head, clock and seed."""
    async with GethNode(geth, rpc.url).running() as proxy:
        for name, token in tokens.items():
            on_anvil = await check(rpc.url, built, token, seed)
            yield GethRow(name, on_anvil, await check(proxy.url, built, token, seed))


async def compare_on_geth(
    rpc: SyncRpc, built: Built, tokens: Mapping[str, str], check: CheckRunner = run_check
) -> bool:
    """Prints a row for each token on a real geth, and their sum. Returns whether no answer contradicts
    anvil's, or there is no geth."""
    if not BINARY.exists():
        print(f"\n{MISSING}")
        return True
    rows = []
    with running_geth(rpc) as geth:
        print(f"\na real geth, with block {geth.number} after {geth.start_s:.1f} s", flush=True)
        async for row in geth_rows(rpc, geth, built, tokens, check=check):
            print(row.text(), flush=True)
            rows.append(row)
    print("\n" + "\n".join(sum_geth_rows(rows)))
    return not any(row.contradicting() for row in rows)


def sum_geth_rows(rows: list[GethRow]) -> list[str]:
    """How many are equal, and the medians of what a check asks of each node."""
    differing = [row.name for row in rows if row.contradicting()]
    short = [row.name for row in rows if row.differing() and not row.contradicting()]
    equal = len(rows) - len(differing) - len(short)
    return [
        f"{equal} of {len(rows)} answers are equal ({', '.join(differing) or 'none'} differ)",
        *(f"geth's gas was too little for a cell of {name}" for name in short),
        f"median on anvil {median_costs(row.anvil.costs for row in rows).text()}",
        f"median on geth  {median_costs(row.geth.costs for row in rows).text()}",
    ]
