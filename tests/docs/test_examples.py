"""The examples of README.md, docs/verify.md and docs/practice.md, run as they are against a real service.
Their answers are compared with those on the pages."""

import json
import re
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from roundtrip.devnet.stories import STORIES
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built, describe
from roundtrip.services.runtime.context import Context
from support.documents import blocks, differs, run, text_of
from support.serving import service

SHOWN = "blacklist_after_buy"
"""The token of the README: one of the five that ``make run`` prints."""
CALLING = ("docs/boards.md", "docs/bag.md", "docs/marks.md")
"""Pages with one call of a tool, and without its answer."""


@pytest.fixture
async def url(indexed: Context) -> AsyncIterator[str]:
    async with service(replace(indexed, entropy=lambda: secrets.token_bytes(32), now_s=time.time)) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path, rpc: SyncRpc, built: Built) -> Path:
    """The checkout, as far as the pages need it: what the local chain is."""
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "devnet.json").write_text(json.dumps(describe(built, rpc.url)))
    return tmp_path


async def test_the_readmes_calls_answer_what_it_shows(url: str, folder: Path, built: Built) -> None:
    _, _, *calls = (block.text for block in blocks("README.md", "bash"))
    shown, config = (json.loads(block.text) for block in blocks("README.md", "json"))
    # What the client is told to call is what the second call below it calls.
    assert config["mcpServers"]["roundtrip"]["url"] in calls[1].split()
    check, tool = map(json.loads, await run(folder, calls, url))
    assert differs(shown, check) == []
    assert tool["result"]["structuredContent"]["verdict"] == check["verdict"]
    addresses = set(re.findall("0x[0-9a-f]{40}", text_of("README.md")))
    assert addresses == {built.tokens[SHOWN]}
    assert [story.sample for story in STORIES if story.key == SHOWN] == [True]


async def test_a_trade_is_proven_from_the_shell_and_in_python(url: str, folder: Path) -> None:
    _, buy, verify = (block.text for block in blocks("docs/verify.md", "bash"))
    (script,) = (block.text for block in blocks("docs/verify.md", "python"))
    file = script.splitlines()[0].removeprefix("# ")
    (folder / file).write_text(script)
    again = f'.venv/bin/python {file} "$WALLET" "$TOKEN"'
    other = f'.venv/bin/python {file} "$TOKEN" "$TOKEN"'
    _, text, proven, refused = await run(folder, [buy, verify, again, other], url)
    assert text.startswith("OK: ")
    is_ok, findings, report, _ = proven.splitlines()
    assert (is_ok, findings) == ("True", "()")
    assert report != "()"
    assert refused.startswith("False\n(")
    assert "you asked for" in refused


async def test_many_checks_and_a_history_are_answered(url: str, folder: Path, built: Built) -> None:
    has_key = [block.text for block in blocks("docs/keys.md", "bash")]
    texts = [block.text for block in blocks("docs/checks.md", "bash")]
    *_, lines, history, stream = await run(folder, [*has_key, *texts], url)
    assert stream.startswith("retry: ")
    found = {line["address"]: line for line in map(json.loads, lines.splitlines())}
    assert found.keys() == {built.tokens["plain"], built.tokens[SHOWN], "0x12"}
    assert found[built.tokens[SHOWN]]["check"]["verdict"]["code"] == "cannot_sell"
    assert json.loads(history)["changes"][0]["code"] == "ok"


async def test_a_proof_holds_at_a_node_of_ones_own(url: str, folder: Path, rpc: SyncRpc) -> None:
    text, *_ = (block.text for block in blocks("docs/verify.md", "bash"))
    (shown,) = (block.text for block in blocks("docs/verify.md", "text"))
    (answer,) = await run(folder, [text], url, rpc.url)
    assert answer == shown.strip()


async def test_who_holds_a_token_is_told_as_the_page_shows(url: str, folder: Path) -> None:
    (text,), (shown,) = (blocks("docs/holders.md", language) for language in ("bash", "json"))
    (answer,) = await run(folder, [text.text], url)
    assert differs(json.loads(shown.text), json.loads(answer)) == []


async def test_who_can_withdraw_the_liquidity_is_answered(url: str, folder: Path) -> None:
    (text,) = (block.text for block in blocks("docs/liquidity.md", "bash"))
    (answer,) = await run(folder, [text], url)
    found = json.loads(answer)
    assert found["text"].startswith("One wallet, ")
    assert found["totals"]["freeBps"] == sum(found["totals"].values())


async def test_the_calls_of_pages_that_show_no_answer_are_answered(url: str, folder: Path) -> None:
    """The key is made as docs/keys.md makes it, in the same shell."""
    has_key = [block.text for block in blocks("docs/keys.md", "bash")]
    calls = [block.text for page in CALLING for block in blocks(page, "bash")]
    assert len(calls) == len(CALLING)
    rows = await run(folder, [*has_key, *calls], url)
    results = [json.loads(one)["result"] for one in rows[len(has_key) :]]
    assert [result.get("isError", False) for result in results] == [False] * len(CALLING)
    assert all(result["structuredContent"]["text"] for result in results)


async def test_what_needs_a_key_answers_what_the_pages_show(url: str, folder: Path) -> None:
    """The key is made as docs/keys.md makes it, in the same shell."""
    pages = ("docs/practice.md", "docs/rules.md")
    has_key = [block.text for block in blocks("docs/keys.md", "bash")]
    texts = [block.text for page in pages for block in blocks(page, "bash")]
    shown = [json.loads(block.text) for page in pages for block in blocks(page, "json")]
    rows = await run(folder, [*has_key, *texts], url)
    answers = [json.loads(one) for one in rows[len(has_key) :]]
    assert [differs(*pair) for pair in zip(shown, answers, strict=True)] == [[]] * len(shown)
