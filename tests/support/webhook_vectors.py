"""Webhook messages as the service signs them, and what a receiver has to refuse."""

import json
from dataclasses import dataclass
from typing import Any

from roundtrip.channels.webhook import build_message, new_secret

SECRET, OTHER = new_secret(bytes(range(24))), new_secret(bytes(24))
NOW_S = 1_767_614_401
CHALLENGE = "0123456789abcdef" * 2


@dataclass(frozen=True, slots=True)
class Vector:
    """One message that arrives at ``NOW_S``."""

    name: str
    body: bytes
    headers: dict[str, str]
    is_ours: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "body": self.body.decode(),
            "headers": self.headers,
            "isOurs": self.is_ours,
        }


def row(number: int = 4711, verb: str = "buying") -> dict[str, Any]:
    """An alert with every field."""
    empty = dict.fromkeys(
        ("who", "wallet", "token", "symbol", "eth", "usd", "pct", "tx", "block", "rule", "link")
    )
    return {
        **empty,
        "id": number,
        "kind": "rule",
        "verb": verb,
        "ts": "2026-01-05T12:00:00Z",
        "text": "naïve ☃",
    }


def _signed(
    secret: str = SECRET, sent_s: int = NOW_S, webhook_id: str = "msg_1"
) -> tuple[bytes, dict[str, str]]:
    return build_message(secret, webhook_id, sent_s, "mite-ab12", "rule", [row()], CHALLENGE)


def vectors() -> list[Vector]:
    """What is ours and what is not."""
    body, headers = _signed()
    signature = headers["webhook-signature"]
    spaced = json.dumps(json.loads(body)).encode()
    return [
        Vector("as sent", body, headers, True),
        Vector("headers in capitals", body, {name.title(): value for name, value in headers.items()}, True),
        Vector("four minutes late", *_signed(sent_s=NOW_S - 240), True),
        Vector(
            "beside another signature", body, {**headers, "webhook-signature": f"v1,AAAA {signature}"}, True
        ),
        Vector("another secret", *_signed(OTHER), False),
        Vector("another body", body.replace(b"4711", b"4712"), headers, False),
        Vector("written otherwise", spaced, headers, False),
        Vector("another id", body, {**headers, "webhook-id": "msg_2"}, False),
        Vector("another time", body, {**headers, "webhook-timestamp": str(NOW_S + 1)}, False),
        Vector("six minutes late", *_signed(sent_s=NOW_S - 360), False),
        Vector("of the future", *_signed(sent_s=NOW_S + 360), False),
        Vector("no time", body, {**headers, "webhook-timestamp": "soon"}, False),
        Vector("no headers", body, {}, False),
        Vector("no signature", body, {**headers, "webhook-signature": ""}, False),
        Vector("half a signature", body, {**headers, "webhook-signature": signature[:9]}, False),
        Vector("no base64", body, {**headers, "webhook-signature": "v1,§"}, False),
        Vector(
            "another version", body, {**headers, "webhook-signature": signature.replace("v1", "v2")}, False
        ),
    ]
