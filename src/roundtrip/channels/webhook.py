"""What a webhook is sent, how it is signed, and how a target proves that it wants this. Pure."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

import msgspec

from .post import PostReply

CHALLENGE = "webhook-challenge"
"""The header of it."""
PREFIX = "whsec_"
SECRET_BYTES = 24


def new_secret(entropy: bytes) -> str:
    """``whsec_`` and 24 of the random bytes in base64. Raises ValueError for fewer."""
    if len(entropy) < SECRET_BYTES:
        raise ValueError(f"a secret takes {SECRET_BYTES} random bytes")
    return PREFIX + b64encode(entropy[:SECRET_BYTES]).decode()


def message(
    secret: str,
    webhook_id: str,
    now_s: int,
    account: str,
    kind: str,
    rows: Sequence[Any],
    challenge: str | None = None,
) -> tuple[bytes, dict[str, str]]:
    """Body and headers of one try. ``rows``: anything msgspec encodes. The body is {account, kind, rows, ts,
    sig}; ``sig``: HMAC-SHA256 hex of ts, a dot and the webhook's id, keyed with the whole secret text.
    ``x-service-sig`` is over the raw body, with the same key; webhook-id, webhook-timestamp and
    webhook-signature are as Standard Webhooks says, keyed with what the base64 after whsec_ stands for.
    ``challenge``: of a target that is not proven; see ``is_echo``."""
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
    """Whether who answered wants to be sent this: 2xx, and the challenge alone as body. A server that says
    back whatever it is sent does not: the challenge comes in a header, among others and beside a body."""
    return reply.ok and reply.read.strip() == challenge.encode()


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()
