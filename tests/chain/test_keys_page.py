"""docs/keys.md as a newcomer follows it: every command of the page, in order, against a real service."""

import asyncio
import json
import re
import secrets
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roundtrip.domain.keys import is_key
from roundtrip.services.context import Context
from support.serving import service

PAGE = Path(__file__).resolve().parents[2] / "docs" / "keys.md"
BEGINS = "--- a block begins ---"
WAIT_S = 60


def blocks() -> list[str]:
    """What is to be run, in order."""
    return re.findall(r"^```bash\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
async def base_url(ctx: Context) -> AsyncIterator[str]:
    shop = replace(ctx, entropy=lambda: secrets.token_bytes(32), now_s=time.time)
    async with service(shop) as url:
        yield url


async def run(base_url: str, folder: Path, texts: list[str]) -> list[str]:
    """What each block printed, in one shell, where the page's addresses and paths mean the test's own."""
    (folder / "var").mkdir(exist_ok=True)
    script = "".join(f"echo '{BEGINS}'\n{text}\necho\n" for text in texts)
    script = script.replace("http://127.0.0.1:8463", base_url)
    script = script.replace(".venv/bin/", f"{Path(sys.executable).parent}/")
    shell = await asyncio.create_subprocess_exec(
        "bash", "-eu", "-o", "pipefail", "-c", script,
        cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(WAIT_S):
        printed, _ = await shell.communicate()
    told = printed.decode()
    assert shell.returncode == 0, told
    return [one.strip() for one in told.split(BEGINS)[1:]]


def test_the_page_has_five_steps() -> None:
    assert len(blocks()) == 5


async def test_the_page_makes_a_key(base_url: str, tmp_path: Path) -> None:
    _, text, _, made = await run(base_url, tmp_path, blocks()[:-1])
    wallet = text.splitlines()[1]
    assert text.startswith("127.0.0.1:8463 wants you to sign in with your Ethereum account:\n0x")
    assert "\nChain ID: 4663\n" in text
    answer = json.loads(made)
    assert is_key(answer["key"])
    assert answer["mite"]["wallet"] == wallet.lower()
    assert answer["limits"] == {"perMinute": 60, "perDay": 20_000}


async def test_the_pages_key_is_used(base_url: str, tmp_path: Path) -> None:
    *_, made, used = await run(base_url, tmp_path, blocks())
    key, result = json.loads(made), json.loads(used)["result"]
    told: dict[str, Any] = result["structuredContent"]
    assert told["wallet"] == key["mite"]["wallet"]
    assert [(one["start"], one["label"]) for one in told["keys"]] == [(key["key"][:8], "my first key")]
