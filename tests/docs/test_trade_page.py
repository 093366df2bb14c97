"""docs/trade.md as a newcomer follows it: every command of the page, in order, against a demo of its own."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chain.devnet.test_demo import Demo
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from support.documents import blocks, text_of

PAGE = "docs/trade.md"
WAIT_S = 20.0
DONE = "the block above is done"


def steps() -> list[tuple[str, str]]:
    """Language and text of every fenced block that is to be run, in order."""
    found = [(block.language, block.text) for block in blocks(PAGE)]
    assert {language for language, _ in found} == {"bash", "python"}
    return found


class Terminal:
    """One shell in an empty folder, where the page's addresses and paths mean the test's own."""

    def __init__(self, demo: Demo, folder: Path) -> None:
        self._demo, self._folder = demo, folder
        self._var = Path(demo.environment["ROUNDTRIP_VAR"])
        self._shell = subprocess.Popen(
            ["bash", "-eu", "-o", "pipefail"],  # noqa: S607
            cwd=folder,
            env=demo.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def close(self) -> None:
        self._shell.kill()
        self._shell.communicate()

    def _as_here(self, text: str) -> str:
        text = text.replace("http://127.0.0.1:8463", f"http://127.0.0.1:{self._demo.port}")
        text = text.replace(".venv/bin/", f"{Path(sys.executable).parent}/")
        return text.replace("var/", f"{self._var}/")

    def run(self, language: str, text: str) -> str:
        """What a block of commands printed; a script is saved where its first line says."""
        text = self._as_here(text)
        if language == "python":
            first, _ = text.split("\n", 1)
            Path(first.removeprefix("# ")).write_text(text)
            return ""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{text}\necho; echo '{DONE}'\n")
        self._shell.stdin.flush()
        printed: list[str] = []
        for line in self._shell.stdout:
            if line.rstrip() == DONE:
                return "".join(printed).strip()
            printed.append(line)
        raise AssertionError(f"{text}\n--- failed:\n{''.join(printed)}")

    def file(self, name: str) -> Any:
        return json.loads((self._var / name).read_text())


@pytest.fixture
def demo(built: Built, open_folder: Path) -> Demo:
    var = Path(tempfile.mkdtemp(dir=open_folder))
    var.chmod(0o711)
    shutil.copytree(built.state.parent, var / "devnet" / built.state.parent.name)
    found = Demo(var)
    # The page says that it stays within what a caller without a key may do.
    found.environment["ROUNDTRIP_ANON_PER_MINUTE"] = "10"
    return found


@pytest.fixture
def terminal(demo: Demo, tmp_path: Path) -> Iterator[Terminal]:
    with demo.running() as process:
        demo.await_welcome(process)
        found = Terminal(demo, tmp_path)
        yield found
        found.close()


def held_raw(demo: Demo, token: str, wallet: str) -> int:
    with SyncRpc(f"http://127.0.0.1:{demo.rpc_port}") as chain:
        data = "0x70a08231" + wallet[2:].rjust(64, "0")
        return int(chain.call("eth_call", {"to": token, "data": data}, "latest"), 16)


def await_caught_up(demo: Demo) -> None:
    """A person types slower than the service follows the chain; this test does not."""
    with SyncRpc(f"http://127.0.0.1:{demo.rpc_port}") as chain:
        newest = int(chain.call("eth_blockNumber"), 16)
    deadline = time.monotonic() + WAIT_S
    while demo.get("/v1/health")["head"] < newest:
        assert time.monotonic() < deadline, "the service does not follow the chain"


def test_the_page_does_what_it_says_from_its_first_command_to_its_last(
    demo: Demo, terminal: Terminal
) -> None:
    printed: list[str] = []
    held: dict[str, int] = {}
    for language, text in steps():
        printed.append(terminal.run(language, text))
        for name in re.findall(r"send\.py var/(\w+)\.json", text):
            trade = terminal.file(f"{name}.json")
            held[name] = held_raw(demo, trade["token"]["address"], trade["from"])
            assert printed[-1].endswith(f"base units of the token now held: {held[name]}")
            await_caught_up(demo)
    _traded(terminal, held)
    _shown(terminal.file("buy.json"), printed)
    rows = [
        line for one in printed for line in one.splitlines() if line.startswith(("OK: ", "DO NOT", "REF"))
    ]
    assert [line.split(":")[0] for line in rows] == ["OK"] * 3


def _traded(terminal: Terminal, held: dict[str, int]) -> None:
    """The tokens came, half of them went, then all."""
    bought, half, rest = (terminal.file(f"{name}.json") for name in ("buy", "half", "rest"))
    assert held["buy"] == int(bought["expect"]["raw"]) >= int(bought["expect"]["minRaw"]) > 0
    assert int(half["spend"]["raw"]) == held["buy"] // 2
    assert held["half"] == held["buy"] - int(half["spend"]["raw"]) == int(rest["spend"]["raw"])
    assert held["rest"] == 0
    assert 0.0993 < sum(int(trade["expect"]["raw"]) for trade in (half, rest)) / 10**18 < 0.0995
    assert [len(trade["steps"]) for trade in (bought, half, rest)] == [1, 2, 2]


def _shown(bought: Any, printed: list[str]) -> None:
    """What the page says of the answers it shows."""
    check, buy, refused, again, approval = (json.loads(one) for one in printed if one.startswith("{"))
    assert check["verdict"]["level"] == "ok"
    assert "a loss of 0.60 %" in check["verdict"]["text"]
    assert (buy, buy["refused"]) == (bought, False)
    assert (refused["refused"], refused["steps"]) == (True, [])
    assert again["received"][0]["raw"] == buy["expect"]["raw"]
    assert again["sellBack"]["roundTripLossBps"] == 60
    assert approval["verdict"]["code"] == "ok"
    assert [(one["unlimited"], one["amount"]) for one in approval["approvals"]] == [(True, None)]
    assert "take all you hold" in approval["verdict"]["text"].split(".")[0]


def test_the_page_makes_as_many_calls_as_it_says() -> None:
    calls = sum(text.count("http://127.0.0.1:8463/v1/") for language, text in steps() if language == "bash")
    assert calls == 7
    assert "this page makes seven" in text_of(PAGE)
