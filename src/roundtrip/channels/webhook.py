"""What a webhook is sent, and how it is signed. Pure."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

import msgspec

PREFIX = "whsec_"
SECRET_BYTES = 24


def new_secret(entropy: bytes) -> str:
    """``whsec_`` and 24 of the random bytes in base64. Raises ValueError for fewer."""
    if len(entropy) < SECRET_BYTES:
        raise ValueError(f"a secret takes {SECRET_BYTES} random bytes")
    return PREFIX + b64encode(entropy[:SECRET_BYTES]).decode()


def message(
    secret: str, webhook_id: str, now_s: int, mite: str, kind: str, rows: Sequence[Any]
) -> tuple[bytes, dict[str, str]]:
    """Body and headers of one try. ``rows``: anything msgspec encodes. The body is {mite, kind, rows, ts,
    sig}; ``sig``: HMAC-SHA256 hex of ts, a dot and the webhook's id, keyed with the whole secret text.
    ``x-service-sig`` is over the raw body, with the same key; webhook-id, webhook-timestamp and
    webhook-signature are as Standard Webhooks says, keyed with what the base64 after whsec_ stands for."""
    sig = _hmac(secret.encode(), f"{now_s}.{webhook_id}".encode()).hex()
    body = msgspec.json.encode({"mite": mite, "kind": kind, "rows": rows, "ts": now_s, "sig": sig})
    key = b64decode(secret.removeprefix(PREFIX), validate=True)
    signature = b64encode(_hmac(key, f"{webhook_id}.{now_s}.".encode() + body)).decode()
    return body, {
        "content-type": "application/json",
        "x-service-sig": f"sha256={_hmac(secret.encode(), body).hex()}",
        "webhook-id": webhook_id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": f"v1,{signature}",
    }


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()
