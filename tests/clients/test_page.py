"""The bots of docs/clients.md, against a live service: in python, and in javascript."""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount

from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.store.check import evidence
from roundtrip.store.check.evidence import KeptEvidence
from roundtrip_client import Client
from roundtrip_development.devnet.deploy import calldata
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built, describe
from support.documents import PROJECT, blocks, text_of
from support.live_service import Live
from support.typescript_client import CLIENT, build

PAGE = "docs/clients.md"
PYTHON = PROJECT / "clients" / "python"
BOTS: Mapping[str, tuple[str, str, Path]] = {
    "python": (sys.executable, "bot.py", PYTHON / "README.md"),
    "javascript": ("node", "bot.mjs", CLIENT / "README.md"),
}
"""By the language of the fence: the program that runs it, its file, and the other page that has it."""


async def change_verdict(ctx: Context, token: str, code: str, level: str) -> None:
    kept = KeptEvidence(datetime.now(UTC), 7, "p", code, level, b"{}", loss_bps=None)
    async with ctx.pool.acquire() as connection:
        await evidence.keep(connection, Address(token), kept)


@pytest.mark.parametrize("language", BOTS)
async def test_a_bot_of_ten_lines_checks_what_became_ok(
    live: Live, indexed: Context, tmp_path: Path, language: str
) -> None:
    program, name, readme = BOTS[language]
    bot = [block.text for block in blocks(PAGE, language)][-1]
    assert bot in readme.read_text()
    assert len(bot.splitlines()) <= 11
    (tmp_path / name).write_text(bot)
    await build()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "roundtrip-client").symlink_to(CLIENT)
    process = await asyncio.create_subprocess_exec(
        shutil.which(program) or program, name, cwd=tmp_path, stdout=asyncio.subprocess.PIPE,
        env={
            "PATH": os.environ["PATH"], "PYTHONPATH": str(PYTHON / "src"),
            "ROUNDTRIP_URL": live.url, "ROUNDTRIP_KEY": live.key,
        },
    )  # fmt: skip
    assert process.stdout is not None
    reading = asyncio.create_task(process.stdout.readline())
    try:
        async with asyncio.timeout(60):
            # Nothing says when the bot listens, so the verdict changes until it does.
            for code, level in cycle([("ok", "ok"), ("no_pool", "unknown")]):
                await change_verdict(indexed, live.plain, code, level)
                done, _ = await asyncio.wait([reading], timeout=0.5)
                if done:
                    break
    finally:
        process.kill()
        await process.wait()
    assert (await reading).decode().startswith(f"ok {live.plain} It was bought and sold straight back")


async def run_bot(
    program: Sequence[str], folder: Path, live: Live, rpc: SyncRpc, wallet: LocalAccount
) -> tuple[int | None, str, str]:
    """The bot's exit code, what it printed, and its errors."""
    process = await asyncio.create_subprocess_exec(
        *program, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{PYTHON / 'src'}:{PROJECT / 'verify' / 'src'}",
            "ROUNDTRIP_URL": live.url, "NODE_URL": rpc.url, "WALLET_KEY": "0x" + bytes(wallet.key).hex(),
            "CONTRACTS": str(folder / "devnet.json"),
        },
    )  # fmt: skip
    async with asyncio.timeout(60):
        shown, wrong = await process.communicate()
    return process.returncode, shown.decode(), wrong.decode()


@pytest.mark.parametrize("language", ["python", "typescript"])
async def test_a_bot_buys_and_sells(
    live: Live, built: Built, rpc: SyncRpc, tmp_path: Path, language: str
) -> None:
    """The one in TypeScript stands in the client's tests, where it is compiled, strictly."""
    bot = next(block.text for block in blocks(PAGE, language))
    wallet = Account.create()
    rpc.call("anvil_setBalance", wallet.address, hex(10**18))
    (tmp_path / "devnet.json").write_text(json.dumps(describe(built, rpc.url)))
    if language == "python":
        (tmp_path / "bot.py").write_text(bot)
        program = [sys.executable, "bot.py"]
    else:
        assert (CLIENT / "test" / "bot.ts").read_text() == bot
        program = [shutil.which("node") or "node", str(await build() / "test" / "bot.js")]
    for token, code, printed in ((live.plain, 0, ["bought", "sold"]), (live.trap, 1, [])):
        ended, shown, wrong = await run_bot([*program, token, "0.05", "0"], tmp_path, live, rpc, wallet)
        assert ended == code, wrong
        assert shown.split() == [word for done in printed for word in (done, token)]
    held = rpc.call(
        "eth_call", {"to": live.plain, "data": calldata("balanceOf(address)", wallet.address)}, "latest"
    )
    assert int(held, 16) == 0
    left = int(rpc.call("eth_getBalance", wallet.address, "latest"), 16)
    assert 10**18 - 10**15 < left < 10**18


async def test_a_bot_does_not_wait_for_ever_for_a_receipt(
    live: Live, built: Built, rpc: SyncRpc, tmp_path: Path
) -> None:
    bot, count = re.subn(r"time\(\) \+ 120", "time()", next(b.text for b in blocks(PAGE, "python")))
    assert count == 1
    (tmp_path / "bot.py").write_text(bot)
    (tmp_path / "devnet.json").write_text(json.dumps(describe(built, rpc.url)))
    wallet = Account.create()
    rpc.call("anvil_setBalance", wallet.address, hex(10**18))
    was_mining = rpc.call("anvil_getAutomine")
    rpc.call("evm_setAutomine", False)
    try:
        program = [sys.executable, "bot.py", live.plain, "0.05", "0"]
        code, shown, wrong = await run_bot(program, tmp_path, live, rpc, wallet)
    finally:
        rpc.call("anvil_dropAllTransactions")
        rpc.call("evm_setAutomine", was_mining)
    assert (code, shown) == (1, ""), wrong
    assert wrong.startswith("not in a block after 120 s, and may still get there: 0x")


def test_every_method_is_on_the_page() -> None:
    named = set(re.findall(r"`(\w+)[(`]", text_of(PAGE).partition("## Methods")[2].partition("##")[0]))
    methods = {name for name, value in vars(Client).items() if name[0] != "_" and callable(value)}
    assert methods - {"send", "open", "close"} <= named
    written = set(re.findall(r"(?m)^  (?:async \*)?(\w+)\(", (CLIENT / "src" / "client.ts").read_text()))
    assert written - {"constructor"} <= named
