"""Log format: one line per event, for this service and its libraries, with secrets removed."""

import contextlib
import logging
import re
import sys
from collections.abc import Callable
from typing import Any, TextIO, cast

import structlog

from roundtrip.domain.accounts.keys import without_keys

_END = r"\s\"'\\<>)"
"""Characters that end a url or a word; a backslash starts an escaped line end in JSON."""
_QUOTED = (
    r"""'(?:\\.|[^'\\])*'|'(?:\\.|[^'"\\])*|"(?![,:}\]\s]|$)(?:\\.|[^"\\])*"?"""
    r"""|\\"(?:\\\\\\.|\\\\[^\\]|[^\\])*(?:\\")?"""
)
"""A value with its quotes, or the rest of a truncated one; the last alternative: JSON inside of JSON."""
_BARE = r"""(?:\\[^nrt]|"(?![,:}\]\s]|$)|[^\s&"\\])+"""
"""A value up to the next space, or to the end of the JSON string."""
_NEW_LINE = r"(?<=\\[nrt])"
"""An escaped line end in JSON: its letter is not part of the next word."""
_HOST = r"\[[0-9a-f:.]{0,45}\]|[\w.-]{0,253}(?::[0-9]{1,5}\b)?"
_NAME = r"(?:password|passwd|secret|api[_-]?key)[\w-]{0,20}"


def _keep_host(url: re.Match[str]) -> str:
    """Keeps a url's host: its path may be a key, and its user info a password. With a slash before the @ the
    host is ambiguous, and nothing is kept."""
    return "://..." if re.search("[/?#]", url[1] or "") else f"://{url[2]}"


# Matching must stay linear: a stranger can cause a line of 32 kB, and the event loop waits for it. So each
# attempt reads a bounded length, or text that no other attempt reads.
_SECRETS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # Passwords may contain any character, so the last @ counts.
    (re.compile(rf"://((?:\\[^nrt]|[^\s\\]){{0,256}}@)?({_HOST})[^{_END}]*", re.I), _keep_host),
    # Webhook secrets, and signatures made with them.
    (re.compile(r"whsec_[\w+/=-]+"), "whsec_..."),
    (re.compile(r"(sha256=|v1,)[\w+/=-]{16,}"), r"\1..."),
    (re.compile(r"(/api/(?:v\d{1,3}/)?webhooks/)[\w./-]+"), r"\1..."),
    # A wallet's signature has 64 bytes or 65; hashes have 32.
    (re.compile(r"(?<![0-9a-fA-F])(0x)?[0-9a-fA-F]{128,}"), r"\1..."),
    # A Telegram bot token; in a path it follows "bot".
    (re.compile(r"(?<![0-9])[0-9]{5,}:[\w-]{20,}"), "..."),
    (re.compile(rf"(?:\b|{_NEW_LINE})(bearer|basic)(\s+)[^\s\"'\\]+", re.I), r"\1\2..."),
    (re.compile(rf"({_NAME}=)(?:{_QUOTED}|{_BARE})", re.I), r"\1..."),
    # token=0x... is a token's address, which most lines contain.
    (re.compile(rf"(token=)(?!\\?[\"']?0x[0-9a-f]{{40}}\b)(?:{_QUOTED}|{_BARE})", re.I), r"\1..."),
    (re.compile(rf"({_NAME}(\\?[\"'])\s{{0,9}}:\s{{0,9}})(?:{_QUOTED})", re.I), r"\1\2...\2"),
    # 32 bytes in base64: ROUNDTRIP_SECRET_KEY.
    (re.compile(rf"(?:(?<![\w+/])|{_NEW_LINE})[A-Za-z0-9+/]{{43}}="), "..."),
)  # fmt: skip


def without_secrets(text: str) -> str:
    """The text with everything that looks like a secret truncated. The last line of defence: code that logs
    must leave secrets out."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return without_keys(text)


def configure(is_readable: bool) -> None:
    """Sends log lines to standard error. ``is_readable``: formatted for a person, else JSON."""
    first: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
    ]
    renderer = (
        structlog.dev.ConsoleRenderer(colors=False) if is_readable else structlog.processors.JSONRenderer()
    )
    last: list[Any] = [structlog.processors.format_exc_info, renderer, _scrub]
    structlog.configure(
        processors=[*first, *last],
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _DiskSafeFile(sys.stderr))),
    )
    handler = _ToStderr()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*first, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers = [*(old for old in root.handlers if not isinstance(old, _ToStderr)), handler]


class _DiskSafeFile:
    """A file whose disk may be full: lines are lost, but the code that logs does not fail."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()


def _scrub(logger: object, method: str, rendered: str) -> str:
    return without_secrets(rendered)


class _ToStderr(logging.StreamHandler[TextIO]):
    """A handler for libraries' lines that writes to the current ``sys.stderr``."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """The current standard error."""
        return cast(TextIO, _DiskSafeFile(sys.stderr))
