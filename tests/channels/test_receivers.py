"""The receivers of docs/receivers, each as a process: they take what this service sends, and nothing else."""

import asyncio
import contextlib
import json
import os
import re
import secrets
import shutil
import sys
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roundtrip.app.notifiers import open_notifiers
from roundtrip.channels.post import Poster, PostReply
from roundtrip.channels.targets import parse_target
from roundtrip.channels.webhook import build_message, is_echo, new_secret
from roundtrip.config.settings import Settings
from roundtrip.services.runtime.context import Context
from support.documents import blocks, run, text_of
from support.serving import service

DOCS = Path(__file__).resolve().parents[2] / "docs"
SECRET, OTHER = new_secret(bytes(range(24))), new_secret(bytes(24))
PATIENCE_S = 30.0
RECEIVERS = {"python": "receiver.py", "javascript": "receiver.mjs"}


def row(number: int, verb: str = "buying", text: str = "naïve ☃ bought") -> dict[str, Any]:
    return {"id": number, "kind": "rule", "verb": verb, "text": text}


class Running:
    """A receiver that runs; ``says`` reads the next line that it prints."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.port = 0

    async def says(self) -> str:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            return (await self._process.stdout.readline()).decode().strip()

    async def post(self, body: bytes, headers: dict[str, str]) -> int | None:
        return (await self.answers(body, headers)).status

    async def answers(self, body: bytes, headers: dict[str, str]) -> PostReply:
        at = f"127.0.0.1:{self.port}"
        async with Poster(frozenset({at}), timeout_s=PATIENCE_S) as poster:
            return await poster.post(parse_target(f"http://{at}/alerts", poster.loopback), body, headers)


@contextlib.asynccontextmanager
async def running(language: str, secret: str, port: int = 0) -> AsyncIterator[Running]:
    program = sys.executable if language == "python" else shutil.which("node")
    assert program is not None, "node runs the receiver in JavaScript"
    process = await asyncio.create_subprocess_exec(
        program,
        str(DOCS / "receivers" / RECEIVERS[language]),
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "WEBHOOK_SECRET": secret, "PORT": str(port)},
    )
    receiver = Running(process)
    try:
        first = await receiver.says()
        assert first.startswith("listening on "), first
        receiver.port = int(first.split()[-1])
        yield receiver
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("language", RECEIVERS)
async def test_a_receiver_does_each_row_once_and_takes_it_back(language: str) -> None:
    now_s = int(time.time())
    async with running(language, SECRET) as there:
        first = build_message(SECRET, "msg_1", now_s, "mite-ab12", "rule", [row(1), row(2)])
        assert await there.post(*first) == 204
        assert [await there.says(), await there.says()] == [
            "alert: 1 naïve ☃ bought",
            "alert: 2 naïve ☃ bought",
        ]
        assert (
            await there.post(
                *build_message(SECRET, "msg_1", now_s + 5, "mite-ab12", "rule", [row(1), row(2)])
            )
            == 204
        )
        assert await there.post(*first) == 204
        taken_back = [row(2, "retracted"), row(3)]
        assert (
            await there.post(*build_message(SECRET, "msg_2", now_s, "mite-ab12", "rule", taken_back)) == 204
        )
        assert [await there.says(), await there.says()] == ["never happened: 2", "alert: 3 naïve ☃ bought"]


@pytest.mark.parametrize("language", RECEIVERS)
async def test_a_receiver_takes_nothing_that_this_service_did_not_send(language: str) -> None:
    now_s = int(time.time())
    async with running(language, SECRET) as there:
        body, headers = build_message(SECRET, "msg_1", now_s, "mite-ab12", "rule", [row(1)])
        spaced = json.dumps(json.loads(body)).encode()
        wrong = {
            "another secret": build_message(OTHER, "msg_1", now_s, "mite-ab12", "rule", [row(1)]),
            "another body": (body.replace(b'"id":1', b'"id":9'), headers),
            "the same body written otherwise": (spaced, headers),
            "another id": (body, {**headers, "webhook-id": "msg_2"}),
            "another time": (body, {**headers, "webhook-timestamp": str(now_s + 1)}),
            "an old message": build_message(SECRET, "msg_1", now_s - 600, "mite-ab12", "rule", [row(1)]),
            "one of the future": build_message(SECRET, "msg_1", now_s + 600, "mite-ab12", "rule", [row(1)]),
            "no time": (body, {**headers, "webhook-timestamp": "soon"}),
            "no headers": (body, {}),
            "no signature": (body, {**headers, "webhook-signature": ""}),
            "half a signature": (body, {**headers, "webhook-signature": headers["webhook-signature"][:9]}),
            "another version": (
                body,
                {**headers, "webhook-signature": headers["webhook-signature"].replace("v1", "v2")},
            ),
            "nothing": (b"", headers),
        }
        for case, answer in wrong.items():
            assert await there.post(*answer) == 401, case
        assert await there.post(b"x" * 1_100_000, headers) in (413, None)
        # Of several signatures one is enough: so a secret can be changed.
        turned = {**headers, "webhook-signature": f"v1,AAAA {headers['webhook-signature']}"}
        assert await there.post(body, turned) == 204
        assert await there.says() == "alert: 1 naïve ☃ bought", "the first that it took"


@pytest.mark.parametrize("language", RECEIVERS)
async def test_a_receiver_without_a_secret_takes_the_test_delivery_and_does_nothing(language: str) -> None:
    async with running(language, "") as there:
        tried = build_message(SECRET, "msg_1", int(time.time()), "mite-ab12", "test", [row(1)])
        assert await there.post(*tried) == 204


@pytest.mark.parametrize("language", RECEIVERS)
@pytest.mark.parametrize("secret", [SECRET, ""])
async def test_a_receiver_echoes_the_challenge_and_nothing_else(language: str, secret: str) -> None:
    now_s, challenge = int(time.time()), "0123456789abcdef" * 2
    async with running(language, secret) as there:
        tried = build_message(SECRET, "msg_1", now_s, "mite-ab12", "rule", [row(1)], challenge)
        reply = await there.answers(*tried)
        assert (reply.status, is_echo(reply, challenge)) == (200, True)
        body, headers = build_message(SECRET, "msg_2", now_s, "mite-ab12", "rule", [row(2)], "<script>")
        other = await there.answers(body, headers)
        assert (other.status, other.read) == (204, b"")
        if secret:
            body, headers = build_message(OTHER, "msg_3", now_s, "mite-ab12", "rule", [row(3)], challenge)
            strange = await there.answers(body, headers)
            assert (strange.status, strange.read) == (401, b"")


def test_the_page_shows_what_is_sent() -> None:
    """The example in docs/alerts.md is signed with the secret beside it."""
    page = (DOCS / "alerts.md").read_text()
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", page)
    shown = re.search(r"```http\n(.*?)\n\n(.*?)\n```", page, re.DOTALL)
    assert secret is not None
    assert shown is not None
    headers = {name.lower(): value for name, value in re.findall(r"^([\w-]+): (.*)$", shown[1], re.MULTILINE)}
    answer = json.loads(shown[2])
    sent_s, webhook_id = int(headers["webhook-timestamp"]), headers["webhook-id"]
    body, signed = build_message(
        secret[0], webhook_id, sent_s, answer["mite"], answer["kind"], answer["rows"]
    )
    assert body.decode() == shown[2]
    assert headers | signed == headers


async def test_the_page_sets_a_webhook_and_its_receiver_takes_what_is_sent(
    ctx: Context, tmp_path: Path
) -> None:
    """The steps of docs/alerts.md, on another port: a receiver, the call, the receiver with its secret."""
    start, call = (block.text for block in blocks("docs/alerts.md", "bash"))
    assert start == "PORT=9000 .venv/bin/python docs/receivers/receiver.py\n"
    has_key = [block.text for block in blocks("docs/keys.md", "bash")]
    async with running("python", "") as there:
        port, at = there.port, f"127.0.0.1:{there.port}"
        settings = Settings(secret_key=b64encode(b"k" * 32).decode(), var=tmp_path, webhook_loopback=(at,))
        async with open_notifiers(settings) as out:
            shop = replace(ctx, outward=out, entropy=lambda: secrets.token_bytes(32), now_s=time.time)
            async with service(shop) as url:
                rows = await run(tmp_path, [*has_key, call.replace("127.0.0.1:9000", at)], url)
                assert await ctx.pool.fetchval(
                    "SELECT proven_at IS NOT NULL FROM accounts.channel WHERE host = $1", at
                )
    secret = rows[-1].strip()
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/=]{32}", secret)
    assert "`whsec_` and 32 more characters" in text_of("docs/alerts.md")
    async with running("python", secret, port) as there:
        assert (
            await there.post(*build_message(secret, "msg_1", int(time.time()), "mite-ab12", "rule", [row(1)]))
            == 204
        )
        assert await there.says() == "alert: 1 naïve ☃ bought"
