"""A client of roundtrip: checks of tokens, streams of events, prepared trades, and webhooks."""

from . import models
from .client import AsyncClient, Client
from .errors import ClientError, ConnectionFailed, ServiceError, UnreadableAnswer, WebhookRefused
from .retries import Retries
from .streams import AsyncEventStream, EventStream
from .webhooks import WebhookMessage, read_challenge, verify_webhook

__all__ = [
    "AsyncClient",
    "AsyncEventStream",
    "Client",
    "ClientError",
    "ConnectionFailed",
    "EventStream",
    "Retries",
    "ServiceError",
    "UnreadableAnswer",
    "WebhookMessage",
    "WebhookRefused",
    "models",
    "read_challenge",
    "verify_webhook",
]
