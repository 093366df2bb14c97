"""Puts together what talks to the servers of people who are told something. Used by the assembly only."""

import base64
import contextlib
import functools
import os
import secrets
from collections.abc import AsyncIterator

import asyncpg

from roundtrip.channels.post import Poster
from roundtrip.channels.seal import Seal
from roundtrip.channels.telegram import Telegram
from roundtrip.services.outward import Bot, Outward
from roundtrip.settings import Settings
from roundtrip.store import channels


@contextlib.asynccontextmanager
async def outward(settings: Settings) -> AsyncIterator[Outward]:
    """What talks to the servers of people who are told something."""
    loopback = frozenset(settings.webhook_loopback)
    async with Poster(loopback) as poster:
        bot = None
        if settings.telegram_token is not None:
            bot = Bot(Telegram(poster, settings.telegram_token, settings.telegram_url))
        yield Outward(poster, functools.cache(lambda: Seal(secret_key(settings))), bot, loopback)


class OtherKey(Exception):
    """Channels are kept that were sealed with another key."""


async def check_key(pool: asyncpg.Pool, out: Outward) -> None:
    """Before anything is sent: with another key nothing that is kept could be. Raises OtherKey; OSError and
    ValueError where there is no good key."""
    async with pool.acquire() as connection:
        # Where nothing is sealed no key is needed, nor made.
        if not await channels.has_sealed(connection):
            return
        if not await channels.is_key(connection, out.seal().fingerprint):
            raise OtherKey(
                "ROUNDTRIP_SECRET_KEY, or the file secret.key, is not the key that the channels in this "
                "database were sealed with: set that one, or remove the channels"
            )


def secret_key(settings: Settings) -> bytes:
    """What secrets that are used again are encrypted with: as it is set, else as it stands in the file
    ``secret.key``, which is made where there is none. Raises OSError, ValueError."""
    if settings.secret_key is not None:
        return base64.b64decode(settings.secret_key)
    path = settings.var / "secret.key"
    if not path.exists():
        settings.var.mkdir(parents=True, exist_ok=True)
        # All of it or nothing: of several processes that come at once, each reads what the first wrote.
        drawn = path.with_name(f"secret.key.{os.getpid()}.{secrets.token_hex(8)}")
        with open(os.open(drawn, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(base64.b64encode(secrets.token_bytes(32)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            with contextlib.suppress(FileExistsError):
                os.link(drawn, path)
        finally:
            drawn.unlink()
    try:
        key = base64.b64decode(path.read_bytes().strip(), validate=True)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ValueError(f"{path} does not hold 32 bytes in base64")
    return key
