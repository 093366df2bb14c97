"""Evidence of the local chain's sample tokens, kept as documents, and what each of them is judged.

make write NAME=evidence    makes the documents anew from the local chain, and judges them
make write NAME=rejudge     judges them again: what a change of the policy does is then a diff of verdicts.md
"""

import argparse
import asyncio
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence, Missing
from roundtrip.domain.check.flags import JudgedCheck, raised_flags
from roundtrip.domain.check.verdict import judge
from roundtrip.services.support.check_answer import present
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT, context_for, no_database
from support.gathering import gather_evidence

FOLDER = Path(__file__).parent
VERDICTS = FOLDER / "verdicts.md"

ALIKE = frozenset(
    {
        "bytes32_symbol", "garbage_text", "malformed_text", "megabyte_name", "no_return_value",
        "loops_on_views", "odd_tier", "odd_key", "v4_weth", "v4_usdg", "detect_prevrandao", "megabyte_revert",
        "hook_slightly_cheaper", "toll_beside_fair", "taxed_v4_hooked", "graduated_usdg", "graduated_other",
        "curve_usdg", "transfer_tax",
    }
)  # fmt: skip
"""Sample tokens whose evidence is nearly another one's."""

HEAD = """# What the kept evidence is judged

Written by `make write NAME=rejudge` from the documents in this folder; do not edit by hand.
`make write NAME=evidence` makes the documents anew. A change of the policy shows here as a diff, in whole.

| evidence | code | level | flags | loss (bps) | text |
|---|---|---|---|---|---|
"""


def documents() -> dict[str, bytes]:
    """Every kept document by its name."""
    return {path.stem: path.read_bytes().rstrip(b"\n") for path in sorted(FOLDER.glob("*.json"))}


def line(name: str, evidence: Evidence) -> str:
    """One row of the table."""
    judgement = judge(evidence, POLICY)
    flags = ", ".join(raised_flags(JudgedCheck(evidence, judgement, POLICY))) or "-"
    trade = present(evidence, judgement, POLICY, 0.0).trade
    loss = "-" if trade is None or trade.round_trip_loss_bps is None else str(trade.round_trip_loss_bps)
    verdict = judgement.verdict
    text = verdict.text.replace("|", "\\|")
    return f"| {name} | {verdict.code} | {verdict.level} | {flags} | {loss} | {text} |\n"


def table() -> str:
    """The whole page as it should be."""
    return HEAD + "".join(
        line(name, canonical_json.load(Evidence, document)) for name, document in documents().items()
    )


def spoiled(plain: Evidence) -> Iterator[tuple[str, Evidence]]:
    """What bad days of a node, and of the service, leave of an ordinary token's evidence."""
    (venue,) = plain.venues
    slow = Missing("node", "it took too long")
    for name, number in (("first_sell", 0), ("day_later", 4)):
        cells = tuple(
            replace(cell, outcome=slow) if n == number else cell for n, cell in enumerate(venue.cells)
        )
        yield f"plain_without_{name}", replace(plain, venues=(replace(venue, cells=cells),))
    yield "plain_without_its_pool", replace(plain, venues=(replace(venue, facts=slow, buys=(), cells=()),))
    yield "plain_with_pools_left_out", replace(plain, left_out=3)


async def made(url: str, built: Built) -> dict[str, Evidence]:
    """Evidence of each sample token at the local chain's first block; its wallets come of its name."""
    found = {}
    for key in sorted(built.tokens.keys() - ALIKE):
        async with context_for(url, built, no_database()) as ctx:
            await ctx.heads.refresh()
            drawing = replace(ctx, entropy=sha256(key.encode()).digest)
            found[key] = await gather_evidence(drawing, Address(built.tokens[key]), Meter())
    return found | dict(spoiled(found["plain"]))


def make() -> None:
    """The documents anew."""
    built = world.build(world.DevnetFolders(PROJECT, PROJECT / "var"), print)
    with world.start_world(
        world.DevnetFolders(PROJECT, PROJECT / "var"), built, NodeOptions(state=built.state)
    ) as node:
        found = asyncio.run(made(node.url, built))
    for path in FOLDER.glob("*.json"):
        path.unlink()
    for name, evidence in found.items():
        (FOLDER / f"{name}.json").write_bytes(canonical_json.dump(evidence) + b"\n")


def main() -> None:
    """Makes the documents where that is asked for; judges them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--make", action="store_true", help="make the documents anew, on the local chain")
    if parser.parse_args().make:
        make()
    VERDICTS.write_text(table())
    print(f"{len(documents())} documents judged: {VERDICTS}")


if __name__ == "__main__":
    main()
