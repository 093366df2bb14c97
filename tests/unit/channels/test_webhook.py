"""What a webhook is sent, as its receiver checks it: by hand, and by the public library."""

import hashlib
import hmac
import json
import time
from base64 import b64decode

import msgspec
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from roundtrip.channels.post import PostReply
from roundtrip.channels.webhook import build_message, is_echo, new_secret

ENTROPY = bytes(range(32))
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
ROWS = [{"id": 7, "kind": "rule", "verb": "buying", "text": "naïve ☃ \u2028 <b> bought"}]


class WebhookRow(msgspec.Struct):
    id: int
    text: str


def test_a_secret_is_24_random_bytes() -> None:
    assert new_secret(ENTROPY) == SECRET
    assert b64decode(SECRET.removeprefix("whsec_")) == ENTROPY[:24]
    with pytest.raises(ValueError, match="24"):
        new_secret(ENTROPY[:23])


def test_a_message_by_hand() -> None:
    body, headers = build_message(SECRET, "msg_9", 1_700_000_000, "mite-ab12", "rule", ROWS)
    answer = json.loads(body)
    assert list(answer) == ["mite", "kind", "rows", "ts", "sig"]
    assert (answer["mite"], answer["kind"], answer["ts"]) == ("mite-ab12", "rule", 1_700_000_000)
    assert answer["rows"] == ROWS
    key = SECRET.encode()
    assert answer["sig"] == hmac.new(key, b"1700000000.msg_9", hashlib.sha256).hexdigest()
    assert headers["x-service-sig"] == "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()
    assert set(headers) == {
        "content-type",
        "x-service-sig",
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
    }
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("msg_9", "1700000000")


def test_a_message_as_it_was_once() -> None:
    """Whoever checks signatures relies on it. They are what ``openssl dgst`` makes of it."""
    body, headers = build_message(
        SECRET, "msg_9", 1_700_000_000, "mite-ab12", "test", [WebhookRow(1, "hello")]
    )
    assert body == (
        b'{"mite":"mite-ab12","kind":"test","rows":[{"id":1,"text":"hello"}],"ts":1700000000,"sig":"'
        b'51fc158a74c3cfacb2cc74224434fe8dbd29635ec726664670e69d353bf3c234"}'
    )
    assert (
        headers["x-service-sig"] == "sha256=9d1100d26119df22f538759299fcb1af0d3b0622622f5a4a04bc073031f6c0fc"
    )
    assert headers["webhook-signature"] == "v1,1/qAlrxbngnEAZ0Eh3Ff55UL5Z12GoZqO/VWp/+Z3No="


def test_the_public_library_takes_it() -> None:
    now_s = int(time.time())
    body, headers = build_message(SECRET, "msg_9", now_s, "mite-ab12", "follow", ROWS)
    assert Webhook(SECRET).verify(body, headers)["rows"] == ROWS


@pytest.mark.parametrize("changed", ["body", "secret", "webhook-id", "webhook-timestamp", "late"])
def test_the_public_library_refuses_what_was_changed(changed: str) -> None:
    now_s = int(time.time())
    sent_s = now_s - 3600 if changed == "late" else now_s
    body, headers = build_message(SECRET, "msg_9", sent_s, "mite-ab12", "follow", ROWS)
    secret = SECRET
    if changed == "body":
        body = body.replace(b"rule", b"Rule")
    elif changed == "secret":
        secret = new_secret(ENTROPY[1:])
    elif changed in headers:
        headers[changed] = {"webhook-id": "msg_8", "webhook-timestamp": str(now_s + 1)}[changed]
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, headers)


def test_every_try_is_signed_anew_under_the_same_id() -> None:
    first = build_message(SECRET, "msg_9", 1_700_000_000, "mite-ab12", "rule", ROWS)
    again = build_message(SECRET, "msg_9", 1_700_000_005, "mite-ab12", "rule", ROWS)
    assert first[1]["webhook-id"] == again[1]["webhook-id"]
    assert first[0] != again[0]
    for name in ("x-service-sig", "webhook-signature", "webhook-timestamp"):
        assert first[1][name] != again[1][name]


def test_only_the_challenge_alone_with_2xx_is_an_echo() -> None:
    challenge = "0123456789abcdef" * 2
    body, headers = build_message(SECRET, "msg_9", 1_700_000_000, "mite-ab12", "test", ROWS, challenge)
    assert headers["webhook-challenge"] == challenge
    assert challenge.encode() not in body
    said_back = "".join(f"{name}: {value}\n" for name, value in headers.items()).encode() + body
    answers = {
        challenge.encode(): True,
        challenge.encode() + b"\n": True,
        said_back: False,
        body: False,
        b"": False,
    }
    for read, is_one in answers.items():
        assert is_echo(PostReply(200, None, None, 1, read), challenge) is is_one
    assert not is_echo(PostReply(500, None, None, 1, challenge.encode()), challenge)
    assert "webhook-challenge" not in build_message(SECRET, "msg_9", 1, "mite-ab12", "test", ROWS)[1]
