"""Webhooks: whether the service sent a message, and what it says."""

import hashlib
import hmac
import re
import time
from base64 import b64decode
from collections.abc import Mapping

import msgspec

from .errors import WebhookRefused
from .models import AlertRow

TOLERANCE_S = 300


class WebhookMessage(msgspec.Struct, kw_only=True):
    """One message; each row is one alert. A row may come twice: keep its ``id`` and ``verb`` for a week."""

    mite: str
    """The account that it is for."""
    kind: str
    """That of all rows."""
    rows: list[AlertRow]
    ts: int
    """When this attempt was sent, in seconds since 1970."""


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: bytes, now_s: float | None = None
) -> WebhookMessage:
    """The message, where the service signed exactly these bytes within five minutes of ``now_s`` (left out:
    now). ``body``: raw, before any parsing. Raises WebhookRefused; ValueError for a secret that is none."""
    key = b64decode(secret.removeprefix("whsec_"), validate=True)
    if not (secret.startswith("whsec_") and key):
        raise ValueError("a secret is whsec_ and base64")
    named = {name.lower(): value for name, value in headers.items()}
    sent_s = named.get("webhook-timestamp", "")
    now_s = time.time() if now_s is None else now_s
    if not re.fullmatch("[0-9]{1,12}", sent_s) or abs(now_s - int(sent_s)) > TOLERANCE_S:
        raise WebhookRefused("webhook-timestamp is missing, or more than five minutes off")
    signed = f"{named.get('webhook-id', '')}.{sent_s}.".encode() + body
    wanted = hmac.new(key, signed, hashlib.sha256).digest()
    given = named.get("webhook-signature", "").split(" ")
    if not any(_is_signature(text, wanted) for text in given):
        raise WebhookRefused("webhook-signature does not match")
    try:
        return msgspec.json.decode(body, type=WebhookMessage)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WebhookRefused(f"signed, and no message that this client knows: {error}") from error


def read_challenge(headers: Mapping[str, str]) -> str:
    """The body to answer with 200, which proves that you want the messages; empty where none is asked."""
    named = {name.lower(): value for name, value in headers.items()}
    challenge = named.get("webhook-challenge", "")
    return challenge if re.fullmatch("[0-9a-f]{32}", challenge) else ""


def _is_signature(text: str, wanted: bytes) -> bool:
    version, _, given = text.partition(",")
    try:
        return version == "v1" and hmac.compare_digest(b64decode(given, validate=True), wanted)
    except ValueError:
        return False
