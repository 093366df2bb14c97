"""docs/limits.md as a newcomer follows it: every command of the page, in order, against a real service."""

import json
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from roundtrip.config.settings import Settings
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built, describe
from roundtrip.services.runtime.context import Context
from support.documents import blocks, run, text_of
from support.serving import service

PAGE = "docs/limits.md"
PAY_TO = "0xa0ee7a142d267c1f36714e4a8f75612f20a79720"


@pytest.fixture
async def base_url(ctx: Context) -> AsyncIterator[str]:
    shop = replace(ctx, entropy=lambda: secrets.token_bytes(32), now_s=time.time)
    async with service(shop, Settings(anon_per_minute=10_000, pay_to=PAY_TO)) as url:
        yield url


async def test_the_page_pays_and_is_credited(
    base_url: str, tmp_path: Path, rpc: SyncRpc, built: Built
) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "devnet.json").write_text(json.dumps(describe(built, rpc.url)))
    assert PAY_TO in describe(built, rpc.url)["accounts"][9]["address"]
    assert f"ROUNDTRIP_PAY_TO={PAY_TO} make run" in text_of(PAGE)
    reply = await run(tmp_path, [block.text for block in blocks(PAGE, "bash")], base_url)
    _, status, _, early, _, counted, again = reply
    assert json.loads(status)["pay"]["payTo"] == PAY_TO
    refused = json.loads(early)["error"]
    assert (refused["code"], "not final yet" in refused["message"]) == ("no_such_tx", True)
    answer = json.loads(counted)
    assert (answer["credited"], answer["usdg"]) == (5_000, "5")
    assert answer["balance"] == json.loads(status)["balance"] + 5_000
    assert json.loads(again)["error"]["code"] == "already_used"
