"""Builds the clients that deliver messages to channels, and reads the service's secret key."""

import base64
import contextlib
import functools
import os
import secrets
from collections.abc import AsyncIterator

from roundtrip.channels.post import Poster
from roundtrip.channels.secrets import Seal
from roundtrip.channels.targets import BadTarget, parse_target
from roundtrip.channels.telegram import Telegram
from roundtrip.config.settings import LIBRARIES, Settings
from roundtrip.domain.base.errors import CannotRun
from roundtrip.services.cards.pictures import Pictures, font_files
from roundtrip.services.runtime.notifiers import Bot, Notifiers


@contextlib.asynccontextmanager
async def open_notifiers(settings: Settings) -> AsyncIterator[Notifiers]:
    """The clients that deliver messages to channels. Raises CannotRun."""
    loopback = frozenset(settings.webhook_loopback)
    for host_port in settings.webhook_loopback:
        _check_target("ROUNDTRIP_WEBHOOK_LOOPBACK", f"http://{host_port}", loopback)
    _check_target("ROUNDTRIP_TELEGRAM_URL", settings.telegram_url, loopback)
    async with Poster(loopback) as poster:
        bot = draw = None
        if settings.telegram_token is not None:
            bot = Bot(Telegram(poster, settings.telegram_token, settings.telegram_url))
            if all(font.is_file() for font in font_files(LIBRARIES)):
                draw = Pictures(LIBRARIES).draw
        seal = functools.cache(lambda: Seal(secret_key(settings)))
        yield Notifiers(poster.post, seal, bot, loopback, settings.public_url, draw)


def _check_target(setting: str, url: str, loopback: frozenset[str]) -> None:
    """Raises CannotRun: ``url`` is not a valid target. The text does not show the setting's value."""
    try:
        parse_target(url, loopback)
    except BadTarget as error:
        raise CannotRun(f"{setting} is not allowed: {error}") from None


def secret_key(settings: Settings) -> bytes:
    """The key that encrypts channels' secrets and signs backups: ROUNDTRIP_SECRET_KEY, else the content of
    the file ``secret.key``, which is created if missing. Raises OSError, ValueError."""
    if settings.secret_key is not None:
        return base64.b64decode(settings.secret_key)
    path = settings.var / "secret.key"
    if not path.exists():
        settings.var.mkdir(parents=True, exist_ok=True)
        # Atomic: of several processes that start at once, each reads the key that the first one wrote.
        temporary = path.with_name(f"secret.key.{os.getpid()}.{secrets.token_hex(8)}")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(base64.b64encode(secrets.token_bytes(32)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            temporary.unlink()
    try:
        key = base64.b64decode(path.read_bytes().strip(), validate=True)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ValueError(f"{path} must contain 32 bytes in base64")
    return key
