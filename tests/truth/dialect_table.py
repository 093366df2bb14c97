"""The table of dialects: the verdict on every story, animal and number token, on every kind of node."""

import contextlib
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import asyncpg

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.rpc.dialect import ANVIL, GETH, NITRO, Dialect
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.dialects import DialectNode, Kind
from support.fixtures import PROJECT, context_for
from support.gathering import gather_evidence
from truth.animals import ANIMALS, BY_MANNER, Animal, put
from truth.gas_tokens import GAS_TOKENS
from truth.number_tokens import NUMBER_TOKENS

KINDS: dict[Kind, Dialect] = {"anvil": ANVIL, "geth": GETH, "nitro": NITRO}
UNPROVEN = frozenset({"zoo/transfer_callback"})
"""What nodes other than anvil leave unproven, and should not: it calls whoever receives, and Vyper's code
does not show that this is an argument."""
BY_THE_CHAIN = frozenset({"detect_prevrandao", "zoo/detect_prevrandao"})
"""They really sell on nitro: there PREVRANDAO is 1 in every block."""
MAX_UNPROVEN = 0.01
PAGE = PROJECT / "tests/truth/dialects.md"
"""The table that tests compare verdicts with; docs/decisions/0010 sums it up."""
_SECTION = re.compile(r"(<!-- table: begin -->\n).*(<!-- table: end -->)", re.DOTALL)

Said = tuple[str, str, str]
"""Code, level and text."""


@contextlib.asynccontextmanager
async def speaking(
    node: DialectNode, built: Built, pool: asyncpg.Pool, dialect: Dialect
) -> AsyncIterator[Context]:
    async with context_for(node.url, built, pool, dialect=dialect) as ctx:
        await ctx.heads.refresh()
        # The deadline stands in the calldata, whose bytes cost gas.
        yield replace(ctx, now_s=lambda: 2_000_000_000.5)


async def check_on(
    kind: Kind,
    rpc: SyncRpc,
    built: Built,
    pool: asyncpg.Pool,
    token: str,
    lists: bool = True,
    deep: bool = False,
) -> tuple[Evidence, Said]:
    """A check of the token over a node of this kind."""
    node = DialectNode(rpc.url, kind)
    node.lists_with_overrides = lists
    async with node.running(), speaking(node, built, pool, KINDS[kind]) as ctx:
        evidence = await gather_evidence(ctx, Address(token), Meter(), deep=deep)
        verdict = judge(evidence, ctx.policy).verdict
    return evidence, (verdict.code, verdict.level, verdict.text)


@dataclass(frozen=True)
class DialectRow:
    """One token, and the verdict on it by each kind of node. ``hides``: it is made so that nodes whose NUMBER
    does not pass have to leave it unproven."""

    name: str
    said: Mapping[Kind, Said]
    hides: bool = False

    def cells(self) -> tuple[str, ...]:
        """Code and level, by kind."""
        return tuple("/".join(self.said[kind][:2]) for kind in KINDS)

    def unproven(self) -> bool:
        """Whether any kind of node proves nothing."""
        return any(code == "unproven" for code, _, _ in self.said.values())

    def reason(self) -> str:
        """Why it is unproven, in the words of the first kind of node that says so."""
        text = next((text for code, _, text in self.said.values() if code == "unproven"), "")
        return text.partition(": ")[2].removesuffix(" This is not a pass.")

    def fault(self) -> str:
        """What is wrong with it; empty: nothing."""
        anvil, geth, nitro = self.cells()
        source = self.name.partition(" ")[0]
        if self.said["anvil"][0] == "unproven":
            return "unproven on anvil"
        if self.hides or source in UNPROVEN:
            known = geth == nitro == "unproven/unknown"
            return "" if known else f"{geth} and {nitro}, and not unproven"
        if source in BY_THE_CHAIN:
            return "" if geth == anvil != nitro and not self.unproven() else f"{anvil}, {geth}, {nitro}"
        return "" if anvil == geth == nitro else f"{anvil}, {geth}, {nitro}"


async def said_on_all(rpc: SyncRpc, built: Built, pool: asyncpg.Pool, token: str) -> dict[Kind, Said]:
    """The verdict on one token, by kind of node."""
    return {kind: (await check_on(kind, rpc, built, pool, token))[1] for kind in KINDS}


async def story_rows(rpc: SyncRpc, built: Built, pool: asyncpg.Pool) -> AsyncIterator[DialectRow]:
    """Every token of the local chain."""
    for key, token in built.tokens.items():
        yield DialectRow(key, await said_on_all(rpc, built, pool, token))


async def animal_rows(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, part: slice = slice(None)
) -> AsyncIterator[DialectRow]:
    """The zoo, or a part of it, each put on the chain and taken away again."""
    animals: tuple[Animal, ...] = (*ANIMALS, *BY_MANNER)
    for animal in animals[part]:
        with _undone(rpc):
            token = put(rpc, built.contracts, animal)
            yield DialectRow(animal.named(), await said_on_all(rpc, built, pool, token))


async def number_rows(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, names: Iterable[str] = NUMBER_TOKENS
) -> AsyncIterator[DialectRow]:
    """The tokens that count block numbers, or run other code. Each is made for each kind of node, because
    some are made with a number."""
    for name in names:
        rows: dict[Kind, Said] = {}
        for kind in KINDS:
            with _undone(rpc):
                token = NUMBER_TOKENS[name].put(rpc, built, kind)
                _, rows[kind] = await check_on(kind, rpc, built, pool, token)
        yield DialectRow(name, rows, bool(NUMBER_TOKENS[name].hides))


async def gas_rows(rpc: SyncRpc, built: Built, pool: asyncpg.Pool) -> AsyncIterator[DialectRow]:
    """The honest tokens whose transfers use much gas."""
    for name, token in GAS_TOKENS.items():
        with _undone(rpc):
            yield DialectRow(name, await said_on_all(rpc, built, pool, token.put(rpc, built)))


@contextlib.contextmanager
def _undone(rpc: SyncRpc) -> Iterator[None]:
    snapshot = rpc.call("evm_snapshot")
    yield
    assert rpc.call("evm_revert", snapshot)


# --- as text ----------------------------------------------------------------------------------------


def line(row: DialectRow) -> str:
    """A row of what the command prints."""
    cells = "  ".join(cell.ljust(20) for cell in row.cells())
    return f"{row.name:44}{cells}{row.reason()}".rstrip()


def sums(rows: list[DialectRow]) -> list[str]:
    """How many differ and how many are unproven, each named."""
    plain, hiding = [row for row in rows if not row.hides], [row for row in rows if row.hides]
    unproven = [row.name for row in plain if row.unproven()]
    by_chain = [row.name for row in plain if not row.unproven() and len(set(row.cells())) > 1]
    return [
        f"{len(rows)} tokens on {len(KINDS)} kinds of node",
        f"the verdict differs with the chain's own rules: {', '.join(by_chain) or 'none'}",
        f"unproven on geth and nitro: {len(unproven)} of {len(plain)}, {len(unproven) / len(plain):.1%}"
        f" ({', '.join(unproven) or 'none'})",
        f"made to be unproven there: {len(hiding)} ({', '.join(row.name for row in hiding) or 'none'})",
    ]


def bar_is_met(rows: list[DialectRow]) -> bool:
    """Nothing is wrong with a row, and at most one in a hundred is unproven without being made to be."""
    plain = [row for row in rows if not row.hides]
    few = sum(row.unproven() for row in plain) <= MAX_UNPROVEN * len(plain)
    return few and not any(row.fault() for row in rows)


def markdown(rows: list[DialectRow], day: str) -> str:
    """The table of the page: tokens of the same verdicts are in one row."""
    by_cells: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in rows:
        by_cells[row.cells()].append(row.name)
    lines = [f"Written by `make long NAME=dialects FLAGS=--write` on {day}; do not edit by hand.", ""]
    lines += [f"| {' | '.join(KINDS)} | tokens |", "|---|---|---|---|"]
    for cells, names in sorted(by_cells.items()):
        anvil, *others = (f"`{cell}`" for cell in cells)
        shown = [anvil, *("same" if other == anvil else other for other in others)]
        lines.append(f"| {' | '.join(shown)} | {len(names)}: {', '.join(names)} |")
    why = [f"| {row.name} | {row.reason()} |" for row in rows if row.unproven()]
    lines += ["", "| unproven | why |", "|---|---|", *why]
    return "\n".join([*lines, "", *(f"- {text}" for text in sums(rows))]) + "\n"


def write_table(rows: list[DialectRow], day: str) -> None:
    """Puts the table into the page. Raises ValueError: the page has no place for it."""
    written, count = _SECTION.subn(lambda found: found[1] + markdown(rows, day) + found[2], PAGE.read_text())
    if count != 1:
        raise ValueError(f"{PAGE.name} has no table")
    PAGE.write_text(written)


def read_table() -> dict[str, tuple[str, ...]]:
    """The page's verdicts by kind of node, by the tokens' names."""
    found = _SECTION.search(PAGE.read_text())
    assert found
    return parse_table(found[0])


def parse_table(text: str) -> dict[str, tuple[str, ...]]:
    """The rows that ``markdown`` writes, token by token."""
    table: dict[str, tuple[str, ...]] = {}
    for row in re.findall(r"(?m)^\| `(.+)` \| (.+) \| (.+) \| \d+: (.+) \|$", text):
        anvil, *others, names = row
        cells = (anvil, *(anvil if other == "same" else other.strip("`") for other in others))
        table |= dict.fromkeys(names.split(", "), cells)
    return table
