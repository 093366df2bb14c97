"""What a webhook is sent, and how it is signed. Pure."""

from collections.abc import Sequence
from typing import Any


def new_secret(entropy: bytes) -> str:
    """``whsec_`` and 24 of the random bytes in base64."""
    raise NotImplementedError


def message(
    secret: str, webhook_id: str, now_s: int, mite: str, kind: str, rows: Sequence[Any]
) -> tuple[bytes, dict[str, str]]:
    """Body and headers of one try. ``rows``: anything msgspec encodes. The body is {mite, kind, rows, ts,
    sig}; ``sig``: HMAC-SHA256 hex of ts, a dot and the webhook's id, keyed with the whole secret text.
    ``x-service-sig`` is over the raw body, with the same key; webhook-id, webhook-timestamp and
    webhook-signature are as Standard Webhooks says, keyed with what the base64 after whsec_ stands for."""
    raise NotImplementedError
