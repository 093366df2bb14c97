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
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from roundtrip.api.server.drain import READY
from roundtrip.cli import drain
from roundtrip.cli.main import app
from roundtrip.config.settings import Settings
from roundtrip.domain.accounts import keys
from roundtrip.store.server.rows import Connection
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built, describe
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
    for words, ends, text in (
        ("migrate", 0, "up to date"),
        ("migrate --distribute", 1, "up to date"),
        ("doctor", 0, "in the format of anvil"),
        ("keys list", 0, "wallet"),
        ("deliveries list 7", 0, "webhook id"),
        ("sync --who", 1, "none leads"),
        ("rebuild", 0, "Rebuilt "),
        (f"origin {OTHER}", 0, f"{OTHER} has not appeared up to block "),
        ("forget", 1, "Add --yes to do it."),
        ("forget --yes", 0, "The next sync starts over."),
    ):
        ended = await asyncio.to_thread(CliRunner().invoke, app, shlex.split(words))
        answer = ended.output + capsys.readouterr().out
        assert ended.exit_code == ends, answer
        assert text in answer, words


def test_the_defaults_are_those_of_the_settings() -> None:
    """A row names one setting or two; what is none is said in words."""
    table = prose(PAGE).partition("## Settings")[2].partition("\n## ")[0]
    answer: dict[str, str] = {}
    for names, defaults in re.findall(r"(?m)^\| (`ROUNDTRIP_[^|]*) \| ([^|]*) \|", table):
        fields = re.findall("`ROUNDTRIP_([A-Z_]+)`", names)
        values = defaults.split(", ") if len(fields) > 1 else [defaults]
        answer |= {name.lower(): value.strip("`") for name, value in zip(fields, values, strict=True)}
    assert answer.keys() == Settings.model_fields.keys()
    shown = {name: _shown(getattr(Settings(), name)) for name in answer}
    of_the_network = {"public_url", "rpc_url", "sync_every_ms", "sync_from", "var"}
    none = {"none": "None"}
    different = {name for name in answer if none.get(answer[name], answer[name]) != shown[name]}
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
    assert files == {"dist/requirements.lock", "dist/roundtrip_check-*.whl", "dist/roundtrip_verify-*.whl"}
    assert "`make write NAME=wheel` builds `dist/roundtrip_check-*.whl`" in prose(PAGE)
    assert "requirements.lock" in (PROJECT / "deploy" / "bill.py").read_text()


async def test_what_the_page_asks_of_the_database_is_answered(connection: Connection) -> None:
    await connection.execute(
        "INSERT INTO jobs.job (kind, key, run_at, last_error) VALUES ('token', 'x', now(), 'KeyError')"
    )
    (asked,) = blocks(PAGE, "sql")
    waiting, failed = [await connection.fetch(one) for one in asked.text.strip().split("\n")]
    assert [(row["kind"], row["count"]) for row in waiting] == [("token", 1)]
    assert [(row["key"], row["last_error"]) for row in failed] == [("x", "KeyError")]


# --- keys in a proxy's log -------------------------------------------------------------------------

KEY = keys.format_key(bytes(range(32)))
ADDRESSES = [
    f"/mcp/{KEY}", f"/mcp/{KEY}?a=1", f"/%6dcp/{KEY}", f"/mcp%2F{KEY}", f"/mcp/rt%5F{KEY[3:]}", f"/MCP/{KEY}",
    f"/mcp/%72t_{KEY[3:]}", f"/mcp/{KEY}/more", f"/v1/check/{KEY}", f"/v1/health?key={KEY}",
]  # fmt: skip
"""Where a key may stand in an address, as a client may write it."""


@pytest.mark.parametrize("address", ADDRESSES)
def test_nginx_cuts_keys_from_its_log(address: str) -> None:
    (block,) = blocks(PAGE, "nginx")
    rules = re.findall(r'"~\*([^"]+)"\s+(\S+);', block.text)
    assert len(rules) == 2
    # What nginx calls $uri: decoded, and without the query.
    uri = unquote(address.partition("?")[0])
    logged = next((cut for pattern, cut in rules if re.search(pattern, uri, re.IGNORECASE)), uri)
    assert KEY[3:] not in logged
    assert "$request_uri" not in block.text
    assert "$request " not in block.text.replace('"', " ")
    assert "error_log /dev/null;" in block.text


@pytest.mark.parametrize("address", ADDRESSES)
def test_caddy_cuts_keys_from_its_log(address: str) -> None:
    (block,) = blocks(PAGE, "caddyfile")
    found = re.search(r'request>uri regexp "([^"]+)" "\$\{1\}-"', block.text)
    assert found is not None
    assert KEY[3:] not in re.sub(found[1], r"\1-", address)
    assert "request>headers>X-Api-Key delete" in block.text
    # The default log's filter: what fails is written there, with the whole request.
    assert block.text.startswith("{\n\tlog {")


def test_what_has_no_key_is_logged_as_it_is() -> None:
    (nginx,), (caddy,) = blocks(PAGE, "nginx"), blocks(PAGE, "caddyfile")
    patterns = [f"(?i){pattern}" for pattern, _ in re.findall(r'"~\*([^"]+)"\s+(\S+);', nginx.text)]
    patterns += re.findall(r'request>uri regexp "([^"]+)"', caddy.text)
    assert len(patterns) == 3
    for address in ("/mcp", "/", "/v1/health", "/v1/check/0x" + "1" * 40, "/account/keys", "/token/0x12"):
        assert not any(re.search(pattern, address) for pattern in patterns)


# --- a balancer -------------------------------------------------------------------------------------


def test_a_balancer_has_taken_a_machine_out_before_a_drain_ends() -> None:
    (block,) = blocks(PAGE, "haproxy")
    assert f"option httpchk GET {READY}\n" in block.text
    (every_s, fails), *more = re.findall(r"inter (\d+)s fall (\d+)", block.text)
    assert not more
    assert int(every_s) * int(fails) < drain.QUIET_S
    # Without these all callers would count as one address.
    assert "    mode http\n    option forwardfor\n" in block.text
    # A POST that was sent twice would be made twice.
    assert "retry-on" not in block.text
    assert set(re.findall(r"server \w+ [\d.]+:(\d+)", block.text)) == {str(Settings().port)}
