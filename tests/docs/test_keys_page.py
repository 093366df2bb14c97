"""docs/keys.md as a newcomer follows it: every command of the page, in order, against a real service."""

import json
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roundtrip.domain.accounts.keys import is_key
from roundtrip.services.runtime.context import Context
from support.documents import blocks, run
from support.serving import service

STEPS = [block.text for block in blocks("docs/keys.md", "bash")]


@pytest.fixture
async def base_url(ctx: Context) -> AsyncIterator[str]:
    shop = replace(ctx, entropy=lambda: secrets.token_bytes(32), now_s=time.time)
    async with service(shop) as url:
        yield url


def test_the_page_has_six_steps() -> None:
    assert len(STEPS) == 6


async def test_the_page_makes_a_key_and_uses_it(base_url: str, tmp_path: Path) -> None:
    _, text, _, made, used, made_by_claim = await run(tmp_path, STEPS, base_url)
    wallet = text.splitlines()[1]
    assert text.startswith("127.0.0.1:8463 wants you to sign in with your Ethereum account:\n0x")
    assert "\nChain ID: 4663\n" in text
    answer = json.loads(made)
    assert is_key(answer["key"])
    assert answer["mite"]["wallet"] == wallet.lower()
    assert answer["limits"] == {"perMinute": 60, "perDay": 20_000}
    reply: dict[str, Any] = json.loads(used)["result"]["structuredContent"]
    assert reply["wallet"] == answer["mite"]["wallet"]
    assert [(one["start"], one["label"]) for one in reply["keys"]] == [(answer["key"][:8], "my first key")]
    second = json.loads(made_by_claim)
    assert second["mite"] == answer["mite"]
    assert second["key"] != answer["key"]
