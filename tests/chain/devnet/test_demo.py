"""``roundtrip demo`` as a newcomer meets it: a process of its own, ended by Ctrl-C."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from roundtrip_development.devnet.node import NodeOptions, free_port
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built, DevnetFolders, dated_name, start_world
from support.commands import running_command

WAIT_S = 30.0


class Demo:
    """A demo in a folder of its own, with the cached chain of the tests."""

    def __init__(self, var: Path) -> None:
        self.port, self.rpc_port = free_port(), free_port()
        self.environment = {
            **os.environ,
            "ROUNDTRIP_VAR": str(var),
            "ROUNDTRIP_PORT": str(self.port),
            "ROUNDTRIP_RPC_PORT": str(self.rpc_port),
            "ROUNDTRIP_ANON_PER_MINUTE": "100",
        }
        self.lines: list[str] = []

    def running(self, *more: str) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
        return running_command(self.environment, "demo", *more)

    def await_welcome(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.lines.append(line.rstrip())
            if "Press Ctrl-C to stop" in line:
                return
        raise AssertionError("\n".join(self.lines))

    def await_health(self) -> None:
        """Once the chain was followed to its end it is well."""
        deadline = time.monotonic() + WAIT_S
        while (answer := self.get("/v1/health"))["ok"] is not True:
            assert time.monotonic() < deadline, answer
        assert answer["blocksBehind"] <= 2

    def limit(self) -> int:
        """Calls a minute of who has no key."""
        url = f"http://127.0.0.1:{self.port}/v1/check/{'0x' + '1' * 40}"
        with urllib.request.urlopen(url, timeout=10) as response:
            return int(response.headers["x-ratelimit-limit"])

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as response:
            return json.load(response)


@pytest.fixture
def demo(built: Built, places: DevnetFolders, open_folder: Path) -> Demo:
    # Short: a socket lies below it, and its path has little room.
    var = Path(tempfile.mkdtemp(dir=open_folder))
    var.chmod(0o711)
    # As one that was built in 2025, and stood still since.
    shutil.copytree(built.state.parent, var / "devnet" / dated_name(places.project))
    return Demo(var)


def family(pid: int) -> set[int]:
    """Every process below ``pid``."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found: set[int] = set()
    queue = [pid]
    while queue:
        new = children.get(queue.pop(), [])
        found.update(new)
        queue += new
    return found


def await_gone(pids: set[int]) -> set[int]:
    """Those that still run after a bounded wait."""
    deadline = time.monotonic() + WAIT_S
    left = set(pids)
    while left and time.monotonic() < deadline:
        left = {pid for pid in left if _runs(pid)}
        time.sleep(0.01)
    return left


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_newcomer_gets_five_tokens_that_match_their_stories(demo: Demo) -> None:
    with demo.running() as process:
        demo.await_welcome(process)
        text = "\n".join(demo.lines)
        samples = dict(re.findall(r"(0x[0-9a-f]{40})  (\w+): ", text))
        assert len(samples) == 5
        codes = {s: demo.get(f"/v1/check/{address}")["verdict"]["code"] for address, s in samples.items()}
        assert codes == {
            "plain": "ok",
            "owner_only_sell": "cannot_sell",
            "blacklist_after_buy": "cannot_sell",
            "paused": "cannot_buy",
            "max_transaction": "ok",
        }
        assert f"curl -s http://127.0.0.1:{demo.port}/v1/check/" in text
        described = json.loads((Path(demo.environment["ROUNDTRIP_VAR"]) / "devnet.json").read_text())
        assert described.keys() == {"rpcUrl", "chainId", "contracts", "accounts", "tokens", "hooks"}
        assert (described["chainId"], len(described["accounts"])) == (4663, 10)
        assert described["rpcUrl"] == f"http://127.0.0.1:{demo.rpc_port}"
        with SyncRpc(described["rpcUrl"]) as chain:
            newest = chain.call("eth_getBlockByNumber", "latest", False)
        assert abs(int(newest["timestamp"], 16) - time.time()) < WAIT_S
        started_by_it = family(process.pid)
        assert len(started_by_it) >= 2
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
        assert await_gone(started_by_it) == set()


def test_a_second_start_keeps_the_data_and_leaves_strangers_alone(
    demo: Demo, places: DevnetFolders, built: Built
) -> None:
    with start_world(places, built, NodeOptions(state=built.state)) as stranger:
        for _ in range(2):
            with demo.running() as process:
                demo.await_welcome(process)
                demo.await_health()
                process.send_signal(signal.SIGTERM)
                assert process.wait(WAIT_S) == 0
        with SyncRpc(stranger.url) as chain:
            assert chain.call("eth_chainId") == "0x1237"


def test_killing_it_ends_what_it_started(demo: Demo) -> None:
    with demo.running() as process:
        demo.await_welcome(process)
        started_by_it = family(process.pid)
        process.kill()
        assert await_gone(started_by_it) == set()


def test_an_interrupt_while_it_starts_leaves_nothing(demo: Demo) -> None:
    with demo.running() as process:
        deadline = time.monotonic() + WAIT_S
        while not family(process.pid) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        started_by_it = family(process.pid)
        process.send_signal(signal.SIGINT)
        process.wait(WAIT_S)
        assert await_gone(started_by_it) == set()


@pytest.mark.parametrize(
    "settings", [["ROUNDTRIP_PORT"], ["ROUNDTRIP_RPC_PORT"], ["ROUNDTRIP_PORT", "ROUNDTRIP_RPC_PORT"]]
)
def test_a_taken_port_is_a_clear_error(demo: Demo, settings: list[str]) -> None:
    with contextlib.ExitStack() as stack:
        for setting in settings:
            taken = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            demo.environment[setting] = str(taken.getsockname()[1])
        with demo.running() as process:
            output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert output.startswith("roundtrip: Port")
    assert output.count("\n") == 1
    for setting in settings:
        assert f"{demo.environment[setting]} " in output
        assert setting in output


def test_a_folder_that_cannot_be_written_to_is_named_before_anything_is_fetched(demo: Demo) -> None:
    demo.environment["ROUNDTRIP_VAR"] = "/dev/null/var"
    with demo.running() as process:
        output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert output == "roundtrip: /dev/null/var cannot be written to: set ROUNDTRIP_VAR to a folder that can\n"


def test_a_setting_that_makes_no_sense_is_one_clear_error(demo: Demo) -> None:
    demo.environment["ROUNDTRIP_PORT"] = "many"
    with demo.running() as process:
        output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert "port" in output
    assert "Traceback" not in output


def test_a_place_to_which_nothing_can_be_sent_is_one_clear_error(demo: Demo) -> None:
    demo.environment["ROUNDTRIP_TELEGRAM_URL"] = "http://api.test"
    with demo.running() as process:
        output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    (line,) = (line for line in output.splitlines() if "TELEGRAM" in line)
    assert line == "roundtrip: ROUNDTRIP_TELEGRAM_URL is not allowed: it must begin with https://"
    assert "Traceback" not in output


# --- in several processes ---------------------------------------------------------------------------


def roles(lines: list[str]) -> dict[str, list[int]]:
    """Whose process ids the welcome tells."""
    found = (re.fullmatch(r"  (serve|sync|work): ([0-9 ]+)", line) for line in lines)
    return {rows[1]: [int(pid) for pid in rows[2].split()] for rows in found if rows}


def who_leads(demo: Demo) -> int:
    """The process id that ``sync --who`` tells; bounded."""
    deadline = time.monotonic() + WAIT_S
    while True:
        done = subprocess.run(
            [sys.executable, "-m", "roundtrip", "sync", "--who"],
            env=demo.environment,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        if rows := re.fullmatch(r"roundtrip sync, process (\d+) on .* leads\n", done.stdout):
            assert done.returncode == 0
            return int(rows[1])
        assert (done.stdout, done.returncode) == ("none leads\n", 1)
        assert time.monotonic() < deadline


def programs(pids: set[int]) -> set[str]:
    """What runs there."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            found.add(Path(f"/proc/{pid}/comm").read_text().strip())
    return found


def test_in_three_processes_one_port_is_served_and_another_sync_takes_over(demo: Demo) -> None:
    del demo.environment["ROUNDTRIP_ANON_PER_MINUTE"]
    with demo.running("--processes", "3") as process:
        demo.await_welcome(process)
        answer = roles(demo.lines)
        assert {name: len(pids) for name, pids in answer.items()} == {"serve": 3, "sync": 2, "work": 1}
        started_by_it = family(process.pid)
        assert {pid for pids in answer.values() for pid in pids} <= started_by_it
        assert {"anvil", "postgres", "valkey-server"} <= programs(started_by_it)
        demo.await_health()
        assert demo.limit() == 60
        (plain,) = re.findall(r"(0x[0-9a-f]{40})  plain: ", "\n".join(demo.lines))
        assert demo.get(f"/v1/check/{plain}")["verdict"]["code"] == "ok"
        before = who_leads(demo)
        assert before in answer["sync"]
        os.kill(before, signal.SIGKILL)
        assert await_gone({before}) == set()
        assert who_leads(demo) != before
        demo.await_health()
        started_by_it |= family(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
        assert await_gone(started_by_it) == set()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_several_processes_is_left(demo: Demo, how: signal.Signals) -> None:
    with demo.running("--processes", "2") as process:
        demo.await_welcome(process)
        started_by_it = family(process.pid)
        assert {"anvil", "postgres", "valkey-server"} <= programs(started_by_it)
        process.send_signal(how)
        assert process.wait(WAIT_S) == (0 if how == signal.SIGTERM else -how)
        assert await_gone(started_by_it) == set()
