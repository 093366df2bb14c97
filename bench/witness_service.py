"""One running service that stands still between questions, and what keeps its answers."""

import contextlib
import hashlib
import http.client
import http.server
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from roundtrip_development.devnet import world
from roundtrip_development.devnet.deploy import COINBASE
from roundtrip_development.devnet.node import NodeOptions, find_anvil, free_port, running
from roundtrip_development.devnet.sync_rpc import SyncRpc

from .watched import started

Headers = Mapping[str, str]
PROJECT = Path(__file__).resolve().parents[1]
CLOCK = """
import hashlib, os, secrets, time
def _line(number):
    with open(os.environ["WITNESS_CLOCK"]) as file:
        return file.read().split("\\n")[number]
_steady = time.monotonic
time.time = lambda: float(_line(0))
time.monotonic = lambda: _steady() + float(_line(2))
secrets.token_bytes = lambda n=None: hashlib.shake_256(_line(1).encode()).digest(32 if n is None else n)
"""
"""Python imports it at its start, as ``sitecustomize``."""
LIMITS = (
    "ANON_PER_MINUTE", "VIEWS_PER_MINUTE", "VIEWS_PER_DAY", "KEY_PER_MINUTE", "KEY_PER_DAY",
    "KEYED_PER_ADDRESS", "REQUESTS_PER_ADDRESS", "ACCOUNTS_PER_ADDRESS",
)  # fmt: skip
UNSTEADY_HEADERS = {"content-length", "date", "x-cache", "x-ratelimit-remaining", "x-request-id"}
UNSTEADY = (
    (r'<tr><td class="all">[^\n]*data-label="Median"[^\n]*\n', ""),
    (r"Calls today</dt><dd>[0-9,]+", "Calls today</dt><dd>"),
    (r">[0-9,]+ calls? in 14 days", "> calls in 14 days"),
    (r'data-label="Insiders">.*?</td>', 'data-label="Insiders"></td>'),
    (r" insiders-[0-9]+", ""),
    (r"(<tr><td>[0-9]{4}-[0-9]{2}-[0-9]{2}</td><td>)[0-9,]+", r"\1"),
)
"""Patterns of what varies from run to run, and what stands for it: how long answers took; calls, which are
counted by and by; a board's share of insiders, which is read by and by."""
READS_ON = 'class="know waits"'
"""In a token's page that does not have its holders yet."""
BUSY = (429, 502, 503)
TRIES, STEADY, PATIENCE_S = 6, 6, 90.0
BEFORE_S = 8 * 86_400
"""How long before the chain's end the service's clock begins: accounts that are made then are old later."""
EXPIRES_S = 100.0
"""By so much the service's steady clock jumps at each phase: nothing shared before is shared after it."""
WAITING = "<dt>(?:Jobs due|Messages to send|Blocks without alerts yet)</dt><dd>([0-9,]+)</dd>"


@dataclass
class Witness:
    """Asks one running service, and keeps what it answers. ``built``: the chain's contents. ``receiver``:
    where webhooks may go."""

    built: world.Built
    chain: SyncRpc
    port: int
    clock: Path
    receiver: "Receiver"
    pid: int
    answers: dict[str, Any] = field(default_factory=dict)
    now_s: int = 0
    phase: str = ""
    later_s: float = 0.0

    def begin(self, phase: str, now_s: int) -> None:
        """Sets the service's clock, lets go of shared answers, and waits until the jobs that are due now have
        run. The names of further questions begin with the phase."""
        self.phase, self.now_s = phase, now_s
        self.later_s += EXPIRES_S
        self.write_clock(phase)
        self.settle()

    def ask(
        self, method: str, path: str, body: Any = None, headers: Headers | None = None, as_: str = ""
    ) -> Any:
        """Asks and keeps the answer; returns it, as decoded JSON or text. A body of ``str`` values is sent as
        a form where the path is a page's. ``as_``: who asks, for the answer's name."""
        said = json.dumps(body, sort_keys=True) if body is not None else ""
        name = self._steady(" ".join(filter(None, (f"{self.phase}:", method, path, said, as_))))
        self.write_clock((re.findall(r"0x[0-9a-fA-F]{40}", path + said) or [name])[0].lower())
        status, found, answer = self._send(method, path, body, headers or {})
        for _ in range(TRIES):
            if status not in BUSY and not (isinstance(answer, str) and READS_ON in answer):
                break
            time.sleep(1.0)
            status, found, answer = self._send(method, path, body, headers or {})
        kept = {key: value for key, value in found.items() if key not in UNSTEADY_HEADERS}
        self.answers[name] = {"status": status, "headers": kept, "body": answer}
        return answer

    def tool(self, name: str, key: str = "", /, **arguments: Any) -> Any:
        """Calls a tool; returns its structured answer, None: there is none."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        params = {"name": name, "arguments": arguments}
        headers = {"x-api-key": key} if key else {}
        answer = self.ask("POST", "/mcp", {**call, "params": params}, headers, f"with {self.phase_key(key)}")
        return (answer.get("result") or {}).get("structuredContent")

    def phase_key(self, key: str) -> str:
        """A key in the name of a question: a few letters of it."""
        return f"key {hashlib.sha256(key.encode()).hexdigest()[:6]}" if key else "no key"

    def stream(self, path: str, headers: Headers, until: int, wait_s: float = 5.0) -> None:
        """Keeps the first events of a stream, at most ``until`` and as far as they come in ``wait_s``."""
        self.write_clock(path)
        connection, response = self.open(path, headers, wait_s)
        self.keep_events(f"GET {path}", connection, response, until)

    def open(
        self, path: str, headers: Headers, wait_s: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Opens a stream."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=wait_s)
        connection.request("GET", path, headers={"accept": "text/event-stream", **headers})
        return connection, connection.getresponse()

    def keep_events(
        self,
        name: str,
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        until: int,
    ) -> None:
        """Keeps up to ``until`` events of an open stream, and closes it."""
        lines: list[str] = []
        with contextlib.suppress(TimeoutError):
            while sum(not line for line in lines) < until and (line := response.readline()):
                lines.append(self._steady(line.decode().rstrip("\r\n")))
        connection.close()
        # How far the index was, and how many lines come in one event, depends on the moment.
        lines = [line for line in lines if line and not line.startswith(("id: ", "event: step"))]
        self.answers[f"{self.phase}: {name}"] = {"status": response.status, "body": lines}

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stops the service for a while, so that it sees all that happens in it at once."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def settle(self, *paths: str) -> None:
        """Waits until the index has the chain's newest block, nothing waits for a job, and the newest
        verdicts and these answers stay as they are."""
        head = int(self.chain.call("eth_blockNumber"), 16)
        paths = ("/boards/newest_verdicts/rows", "/boards/graduating_soon/rows", *paths)
        until_s, last, same = time.monotonic() + PATIENCE_S, b"", 0
        while same < STEADY:
            if time.monotonic() > until_s:
                raise SystemExit(f"the service does not come to rest: {last[-600:]!r}")
            time.sleep(0.25)
            health = json.loads(self._raw("GET", "/v1/health")[2])
            now = b"".join(self._raw("GET", path)[2] for path in paths)
            waits = re.findall(WAITING, self._raw("GET", "/status")[2].decode())
            follows = health.get("head") == head and health.get("blocksBehind") == 0
            rests = follows and waits == ["0"] * 3 and now == last
            same, last = same + 1 if rests else 0, now

    def write_clock(self, salt: str) -> None:
        """What the service reads: its time, what its entropy is drawn from, how far its steady clock is
        ahead."""
        partial = self.clock.with_suffix(".new")
        partial.write_text(f"{self.now_s}\n{salt}\n{self.later_s}\n")
        partial.replace(self.clock)

    def _raw(
        self, method: str, path: str, body: bytes | None = None, headers: Headers | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        found = (
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read(),
        )
        connection.close()
        return found

    def _send(self, method: str, path: str, body: Any, headers: Headers) -> tuple[int, Any, Any]:
        is_api = path.startswith(("/v1/", "/mcp"))
        sent: dict[str, str] = {"accept": "*/*" if is_api else "text/html", **headers}
        data = None
        if body is not None:
            kind = "json" if is_api else "x-www-form-urlencoded"
            sent["content-type"] = f"application/{kind}"
            data = (json.dumps(body) if is_api else urlencode(body)).encode()
        status, found, raw = self._raw(method, path, data, sent)
        found = {name: self._steady(value) for name, value in found.items()}
        try:
            text = self._steady(raw.decode())
        except UnicodeDecodeError:
            return status, found, hashlib.sha256(raw).hexdigest()
        kind = found.get("content-type", "")
        if kind.startswith("application/x-ndjson"):
            # Each line is sent as soon as it is known.
            return status, found, sorted(text.splitlines())
        return status, found, json.loads(text) if kind.startswith("application/json") and text else text

    def _steady(self, text: str) -> str:
        for port in (self.port, self.receiver.server_port, int(self.chain.url.rpartition(":")[2])):
            text = text.replace(f"127.0.0.1:{port}", "HOST")
        for pattern, instead in UNSTEADY:
            text = re.sub(pattern, instead, text)
        return text


class Receiver(http.server.ThreadingHTTPServer):
    """A stranger's webhook on loopback: it keeps the bodies that it gets, and echoes challenges."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiving)
        self.bodies: list[dict[str, Any]] = []

    def rows(self) -> list[dict[str, Any]]:
        """The rows of all messages, by id: how many come in a message depends on the moment."""
        rows = (row for body in list(self.bodies) for row in body["rows"])
        return sorted(rows, key=lambda row: (row["id"] or 0, json.dumps(row)))


class _Receiving(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        challenge = self.headers.get("webhook-challenge", "").encode()
        self.send_response(200)
        self.send_header("content-length", str(len(challenge)))
        self.end_headers()
        self.wfile.write(challenge)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def service(code: Path) -> Iterator[Witness]:
    """The service of the checkout in ``code``, over a chain that moves only when it is told to."""
    folders = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(folders, print)
    options = NodeOptions(state=built.state, timestamp_s=built.head_s + 1)
    with (
        tempfile.TemporaryDirectory() as scratch,
        running(find_anvil(PROJECT), options) as node,
        SyncRpc(node.url) as chain,
        Receiver() as receiver,
    ):
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        chain.call("anvil_setCoinbase", COINBASE)
        chain.call("evm_setNextBlockTimestamp", built.head_s + 1)
        chain.call("evm_mine")
        chain.call("anvil_setBlockTimestampInterval", 1)
        var, port = Path(scratch), free_port()
        (var / "sitecustomize.py").write_text(CLOCK)
        world.write_description(world.DevnetFolders(PROJECT, var), built, node.url)
        environment = {
            "PYTHONPATH": os.pathsep.join((scratch, str(code / "src"))),
            "WITNESS_CLOCK": str(var / "clock"),
            "PYTHONHASHSEED": "0",
            "ROUNDTRIP_VAR": scratch,
            "ROUNDTRIP_PORT": str(port),
            "ROUNDTRIP_WEBHOOK_LOOPBACK": json.dumps([f"127.0.0.1:{receiver.server_port}"]),
            "ROUNDTRIP_IDLE_POLL_MS": "200",
            "ROUNDTRIP_PUBLIC_URL": "http://witness.test",
            **{f"ROUNDTRIP_{name}": str(10**6) for name in LIMITS},
        }
        # The service reads it from its first moment on.
        clock = var / "clock"
        clock.write_text(f"{built.head_s - BEFORE_S}\nstart\n0\n")
        command = [sys.executable, "-m", "roundtrip", "serve", "--all"]
        with started(command, environment, var / "log", code) as process:
            while "roundtrip is at" not in process.log.read_text():
                process.check()
                time.sleep(0.1)
            yield Witness(built, chain, port, clock, receiver, process.process.pid)
            receiver.shutdown()
