"""A proof with any one value changed: found out or refused, never passed, and never a traceback."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from roundtrip.chain.rpc.client import Node
from roundtrip.services.check.proof_file import UnreadableProof, read_claim
from roundtrip.services.check.proof_replay import TrustedSetting, verify_claim
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.nodes import node_of
from support.serving import service

SEED = 20_261_121
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**64, 1.5, "1" + "0" * 90, "", "0x", "0x" + "77" * 20, "0x" + "77" * 32,
    "node", "ok", "\0\x1b[31m", [], {},
)  # fmt: skip
Path = tuple[str | int, ...]


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place of a JSON document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from paths(below, (*path, key))
    if path:
        yield path


def changed(document: dict[str, Any], path: Path, value: Any) -> bytes | None:
    """The document with another value there; None where it is that already."""
    found = json.loads(json.dumps(document))
    at: Any = found
    for key in path[:-1]:
        at = at[key]
    if json.dumps(at[path[-1]]) == json.dumps(value):
        return None
    at[path[-1]] = value
    return json.dumps(found).encode()


@pytest.mark.parametrize("story", ["curve_other", "hook_takes_tenth"])
async def test_no_changed_value_passes(ctx: Context, built: Built, story: str) -> None:
    async with service(ctx) as base_url, aiohttp.ClientSession() as session:
        async with session.get(f"{base_url}/v1/check/{built.tokens[story]}/proof") as response:
            proof = await response.json()
        chance, came = random.Random(SEED), Counter[str]()
        node = Node(node_of(ctx).url, session, 20.0)
        trusted = TrustedSetting(ctx.chain_id, ctx.contracts, ctx.policy, node)
        for path in paths(proof):
            # Of the requests, which are most of it, a few.
            if path[0] == "trips" and chance.random() > 0.02:
                continue
            # How old the prices were is the service's word; they have to be near all the same.
            if path == ("evidence", "market", "block_number"):
                continue
            document = changed(proof, path, chance.choice(VALUES))
            if document is None:
                continue
            try:
                found = await verify_claim(read_claim(document), trusted)
            except UnreadableProof:
                came["unreadable"] += 1
                continue
            assert all(one.seen.isprintable() for one in found)
            assert not all(one.holds for one in found), path
            came["found out"] += 1
    assert came["unreadable"] > 100
    assert came["found out"] > 50
