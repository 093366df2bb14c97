"""The body and signature of a webhook, and the proof that a target wants to receive it. Pure."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

import msgspec

from .post import PostReply

CHALLENGE = "webhook-challenge"
"""The header that carries the challenge."""
PREFIX = "whsec_"
SECRET_BYTES = 24


def new_secret(entropy: bytes) -> str:
    """``whsec_`` and 24 random bytes in base64. Raises ValueError for fewer bytes."""
    if len(entropy) < SECRET_BYTES:
        raise ValueError(f"a secret needs {SECRET_BYTES} random bytes")
    return PREFIX + b64encode(entropy[:SECRET_BYTES]).decode()


def build_message(
    secret: str,
    webhook_id: str,
    now_s: int,
    account: str,
    kind: str,
    rows: Sequence[Any],
    challenge: str | None = None,
) -> tuple[bytes, dict[str, str]]:
    """Body and headers of one attempt. ``rows``: anything msgspec encodes. The body is {mite, kind, rows, ts,
    sig}; ``sig``: HMAC-SHA256 hex of ts, a dot and the webhook's id, keyed with the whole secret text.
    ``x-service-sig`` is over the raw body, with the same key. webhook-id, webhook-timestamp and
    webhook-signature follow Standard Webhooks, keyed with the decoded base64 after whsec_. ``challenge``: for
    a target that is not proven; see ``is_echo``."""
    sig = _hmac(secret.encode(), f"{now_s}.{webhook_id}".encode()).hex()
    body = msgspec.json.encode({"mite": account, "kind": kind, "rows": rows, "ts": now_s, "sig": sig})
    key = b64decode(secret.removeprefix(PREFIX), validate=True)
    signature = b64encode(_hmac(key, f"{webhook_id}.{now_s}.".encode() + body)).decode()
    return body, {
        "content-type": "application/json",
        "x-service-sig": f"sha256={_hmac(secret.encode(), body).hex()}",
        "webhook-id": webhook_id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": f"v1,{signature}",
    } | ({} if challenge is None else {CHALLENGE: challenge})


def is_echo(reply: PostReply, challenge: str) -> bool:
    """Whether the reply proves that the target wants these messages: 2xx, with the challenge alone as body. A
    server that echoes every request proves nothing: the challenge is one of several headers, next to a
    body."""
    return reply.ok and reply.read.strip() == challenge.encode()


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()
