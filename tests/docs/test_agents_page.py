"""docs/agents.md: its json, toml, python, bash and markdown blocks. Each names a server that answers, and the
recipe's steps lead to a verified trade, or to none."""

import asyncio
import json
import re
import runpy
import secrets
import sys
import time
import tomllib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client

from roundtrip.api.documents.prompts import PROMPTS
from roundtrip.api.operations.catalog import tools
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built, describe
from roundtrip.services.runtime.context import Context
from roundtrip.verify import Network, Request, parse, verify
from support.documents import blocks, run, text_of
from support.serving import service

PAGE = "docs/agents.md"
ADDRESS = "http://127.0.0.1:8463/mcp"
FORMS = (
    ("mcpServers", {"type": "http", "url": ADDRESS}),
    ("mcpServers", {"url": ADDRESS}),
    ("servers", {"type": "http", "url": ADDRESS}),
    ("mcpServers", {"httpUrl": ADDRESS}),
)
"""Of Claude Code, Cursor, VS Code and the Gemini CLI, as their documentation has them."""
(RECIPE,) = (block.text for block in blocks(PAGE, "markdown"))


@pytest.fixture
async def url(indexed: Context) -> AsyncIterator[str]:
    async with service(replace(indexed, entropy=lambda: secrets.token_bytes(32), now_s=time.time)) as found:
        yield found


def test_each_clients_file_names_the_server() -> None:
    files = [json.loads(block.text) for block in blocks(PAGE, "json")]
    assert files == [{group: {"roundtrip": entry}} for group, entry in FORMS]
    (codex,) = (tomllib.loads(block.text) for block in blocks(PAGE, "toml"))
    assert codex == {"mcp_servers": {"roundtrip": {"url": ADDRESS}}}


def test_what_a_key_adds_can_be_read() -> None:
    rows = dict(re.findall(r"^\| ([A-Z][\w ]+) \| `(.+?)`(?:,.*)? \|$", text_of(PAGE), re.MULTILINE))
    codex = tomllib.loads(rows.pop("Codex"))
    assert codex == {"bearer_token_env_var": "RT_KEY"}
    assert rows.keys() == {"Claude Code", "Cursor", "VS Code", "Gemini CLI"}
    for row in rows.values():
        assert json.loads(f"{{{row}}}")["headers"]["Authorization"].startswith("Bearer $")
    (inputs,) = re.findall(r'`("inputs": .+?)`', text_of(PAGE))
    assert json.loads(f"{{{inputs}}}")["inputs"][0]["id"] == "roundtrip-key"


def test_the_page_has_every_prompt_with_its_arguments() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", text_of(PAGE), re.MULTILINE)
    text = {
        name: [word for word in re.findall(r"`(\w+)`", row) if word not in ("buy", "sell")]
        for name, row in rows
    }
    assert text == {prompt.name: [param.name for param in prompt.params] for prompt in PROMPTS}


async def test_the_program_prints_the_level(
    url: str,
    tmp_path: Path,
    built: Built,
    indexed: Context,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (script,) = (block.text for block in blocks(PAGE, "python"))
    file = tmp_path / "agent.py"
    file.write_text(script.replace(ADDRESS, f"{url}/mcp"))
    monkeypatch.setattr(sys, "argv", [str(file), built.tokens["owner_only_sell"]])
    await indexed.heads.refresh()
    await asyncio.to_thread(runpy.run_path, str(file))
    assert capsys.readouterr().out.splitlines()[-1] == "danger"


async def test_a_prompt_is_read_without_a_client(url: str, tmp_path: Path) -> None:
    (call,) = (block.text for block in blocks(PAGE, "bash"))
    (reply,) = await run(tmp_path, [call], url)
    text = json.loads(reply)["result"]["messages"][0]["content"]["text"]
    assert "Call check_token with address 0xd84379ceae14aa33c123af12424a37803f885889." in text


def test_the_recipe_names_tools_that_there_are() -> None:
    named = re.findall(r"Call `(\w+)`", RECIPE)
    assert named == ["check_token", "token_holders", "prepare_buy", "explain_transaction"]
    assert set(named) <= {tool.name for tool in tools()}


async def test_the_recipe_leads_to_a_verified_trade_or_to_none(url: str, built: Built, rpc: SyncRpc) -> None:
    wallet = built.accounts[3]

    async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
        answered = await client.call_tool(tool, arguments)
        assert answered.structured_content is not None
        return dict(answered.structured_content)

    async with Client(f"{url}/mcp") as client:
        token, trap = built.tokens["plain"], built.tokens["owner_only_sell"]
        assert (await answer(client, "check_token", address=token))["verdict"]["level"] == "ok"
        assert "status" in await answer(client, "token_holders", address=token)
        trade = await answer(client, "prepare_buy", token=token, **{"from": wallet}, amount="0.1")
        refused = await answer(client, "prepare_buy", token=trap, **{"from": wallet}, amount="0.1")
        assert (await answer(client, "check_token", address=trap))["verdict"]["level"] == "danger"
    assert (refused["refused"], refused["steps"]) == (True, [])
    assert trade["refused"] is False
    trusted = Network.read(parse(json.dumps(describe(built, rpc.url))))
    asked = Request(wallet=wallet, token=token, side="buy", amount="0.1", asset="eth")
    report = verify(parse(json.dumps(trade)), trusted, asked, int(time.time()))
    assert (report.ok, report.findings) == (True, ())
