"""Proofs of real checks, fetched over HTTP and verified by the command line against the same chain, later."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from typer.testing import CliRunner, Result

from roundtrip.cli import app
from roundtrip.devnet import world
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.services.context import Context
from support.serving import service

TEN = {
    "plain": "ok",
    "blacklist_after_buy": "cannot_sell",
    "paused": "cannot_buy",
    "usdg_pool": "ok",
    "both_versions": "ok",
    "no_pool": "no_pool",
    "hook_takes_tenth": "toll_pool",
    "curve_taxed": "high_fees",
    "curve_other": "ok",
    "graduated_other": "ok",
}
"""Stories and their verdicts: every venue, every money, one trip, two, and those with rates of their own."""

Json = dict[str, Any]


@pytest.fixture
def network_file(built: Built, tmp_path: Path) -> Path:
    path = tmp_path / "devnet.json"
    path.write_text(json.dumps(world.describe(built, "http://127.0.0.1:1")))
    return path


async def fetched(ctx: Context, tokens: list[str]) -> list[Json]:
    async with service(ctx) as base_url, aiohttp.ClientSession() as session:
        found = []
        for token in tokens:
            async with session.get(f"{base_url}/v1/check/{token}/proof") as response:
                assert response.status == 200, await response.text()
                found.append(await response.json())
    return found


async def verified(proof: Json | bytes, folder: Path, network: Path, url: str | None) -> Result:
    """What ``roundtrip verify`` does with it."""
    file = folder / "proof.json"
    file.write_bytes(proof if isinstance(proof, bytes) else json.dumps(proof).encode())
    asked = ["verify", str(file), "--network", str(network), *(["--rpc", url] if url else [])]
    result = await asyncio.to_thread(CliRunner().invoke, app, asked, env={"COLUMNS": "400"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


async def test_ten_proofs_reproduce_at_a_later_block(
    ctx: Context, rpc: SyncRpc, built: Built, tmp_path: Path, network_file: Path
) -> None:
    proofs = await fetched(ctx, [built.tokens[key] for key in TEN])
    for _ in range(5):
        rpc.call("evm_mine")
    for (key, code), proof in zip(TEN.items(), proofs, strict=True):
        assert (key, proof["verdict"]["code"]) == (key, code)
        result = await verified(proof, tmp_path, network_file, rpc.url)
        assert result.exit_code == 0, (key, result.output)
        assert result.output.count("yes") == 3
