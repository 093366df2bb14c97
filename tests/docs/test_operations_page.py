"""docs/operations.md: its commands run on a database and a node, its defaults those of the settings, and its
blocks taken by what reads them."""

import asyncio
import json
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from typer.testing import CliRunner

from roundtrip.cli import app
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built, describe
from roundtrip.settings import Settings
from support.documents import PROJECT, blocks, prose
from support.holding_asked import copied

PAGE = "docs/operations.md"
OTHER = "0x" + "1" * 40


@pytest.fixture
async def machine(
    tmp_path: Path,
    rpc: SyncRpc,
    built: Built,
    database_url: str,
    indexed_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[None]:
    """Where commands find a node and a database that has the local chain followed."""
    (tmp_path / "devnet.json").write_text(json.dumps(describe(built, rpc.url)))
    monkeypatch.setenv("ROUNDTRIP_VAR", str(tmp_path))
    async with copied(database_url, indexed_url) as url:
        monkeypatch.setenv("ROUNDTRIP_DATABASE_URL", url)
        yield


@pytest.mark.usefixtures("machine")
async def test_the_commands_of_who_runs_it_do_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, as a shell would. What each does in full is tested elsewhere."""
    for words, ends, said in (
        ("migrate", 0, "up to date"),
        ("doctor", 0, "speaks as anvil"),
        ("keys list", 0, "wallet"),
        ("deliveries list 7", 0, "webhook id"),
        ("sync --who", 1, "none leads"),
        ("rebuild", 0, "made again: "),
        (f"origin {OTHER}", 0, f"{OTHER} was not met up to block "),
        ("forget", 1, "Say --yes to do it."),
        ("forget --yes", 0, "the next sync begins anew"),
    ):
        ended = await asyncio.to_thread(CliRunner().invoke, app, shlex.split(words))
        told = ended.output + capsys.readouterr().out
        assert ended.exit_code == ends, told
        assert said in told, words


def test_the_defaults_are_those_of_the_settings() -> None:
    """A row names one setting or two; what is none is said in words."""
    table = prose(PAGE).partition("## Settings")[2].partition("\n## ")[0]
    told: dict[str, str] = {}
    for names, defaults in re.findall(r"(?m)^\| (`ROUNDTRIP_[^|]*) \| ([^|]*) \|", table):
        fields = re.findall("`ROUNDTRIP_([A-Z_]+)`", names)
        values = defaults.split(", ") if len(fields) > 1 else [defaults]
        told |= {name.lower(): value.strip("`") for name, value in zip(fields, values, strict=True)}
    assert told.keys() == Settings.model_fields.keys()
    shown = {name: _shown(getattr(Settings(), name)) for name in told}
    of_the_network = {"public_url", "rpc_url", "sync_from", "var"}
    none = {"none": "None"}
    different = {name for name in told if none.get(told[name], told[name]) != shown[name]}
    assert different <= of_the_network | {"metrics_port"}


def _shown(value: object) -> str:
    return "[]" if value == () else str(value)


def test_the_nodes_that_the_page_sets_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for block in blocks(PAGE, "json"):
        monkeypatch.setenv("ROUNDTRIP_RPC_URLS", block.text)
        first, second = Settings().rpc_urls
        assert (first.url, first.calls_per_second) == ("https://node.example/key", 0)
        assert (second.calls_per_second, second.calls_per_day, second.calls_a_request) == (25, 100_000, 20)


def test_what_is_installed_is_what_make_writes_by_options_that_there_are() -> None:
    """It asks a registry, which the gate does not: what it names is held instead."""
    (block,) = blocks(PAGE, "bash")
    _, *installing = (shlex.split(line) for line in block.text.strip().splitlines())
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--help"], capture_output=True, text=True, check=True
    )
    for program, command, *given in installing:
        assert (Path(program).name, command) == ("pip", "install")
        assert [word for word in given if word[0] == "-" and f"{word} " not in done.stdout + " "] == []
    files = {word for words in installing for word in words if word.startswith("dist/")}
    assert files == {"dist/requirements.lock", "dist/roundtrip-*.whl"}
    assert "`make wheel` builds `dist/roundtrip-*.whl`" in prose(PAGE)
    assert "requirements.lock" in (PROJECT / "deploy" / "bill.py").read_text()


async def test_what_the_page_asks_of_the_database_is_answered(connection: asyncpg.Connection) -> None:
    await connection.execute(
        "INSERT INTO jobs.job (kind, key, run_at, last_error) VALUES ('token', 'x', now(), 'KeyError')"
    )
    (asked,) = blocks(PAGE, "sql")
    waiting, failed = [await connection.fetch(one) for one in asked.text.strip().split("\n")]
    assert [(row["kind"], row["count"]) for row in waiting] == [("token", 1)]
    assert [(row["key"], row["last_error"]) for row in failed] == [("x", "KeyError")]
