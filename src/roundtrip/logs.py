"""How the log is written: one line an event, ours and the libraries' alike, and no secret in any of them."""

import contextlib
import logging
import re
import sys
from typing import Any, TextIO, cast

import structlog

from roundtrip.domain.keys import without_keys

_END = r"\s\"'\\<>)"
"""What is no part of a url, or of a word; a backslash begins the end of a line that JSON has."""
_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    # Of a url the host alone: its path may be a key, and its user somebody's password.
    (re.compile(rf"(\b[a-z][a-z0-9+.-]*://)(?:[^/{_END}]*@)?([^/?#@{_END}]*)[^{_END}]*", re.I), r"\1\2"),
    # Webhooks' secrets, and what is signed with them.
    (re.compile(r"whsec_[\w+/=-]+"), "whsec_..."),
    (re.compile(r"\b(sha256=|v1,)[\w+/=-]{16,}"), r"\1..."),
    # A wallet's signature has 64 bytes or 65; hashes have 32.
    (re.compile(r"(?<![0-9a-zA-Z])(0x)?[0-9a-fA-F]{128,}"), r"\1..."),
    (re.compile(r"\b[0-9]{5,}:[\w-]{20,}"), "..."),
    (re.compile(r"(?i)\b(bearer|basic)(\s+)[^\s\"'\\]+"), r"\1\2..."),
    (re.compile(r"(?i)\b(password|passwd|secret|token|api_?key)=[^\s\"'\\&]+"), r"\1=..."),
    # 32 bytes in base64, as the key of secrets is set.
    (re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{43}="), "..."),
)  # fmt: skip


def without_secrets(text: str) -> str:
    """The text, and of whatever reads like a secret only how it begins. It is the last line of defence: what
    writes a line leaves secrets out of it."""
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return without_keys(text)


def configure(watched: bool) -> None:
    """From here on lines go to standard error. ``watched``: for a person who reads them, else JSON."""
    first: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
    ]
    renderer = structlog.dev.ConsoleRenderer(colors=False) if watched else structlog.processors.JSONRenderer()
    last: list[Any] = [structlog.processors.format_exc_info, renderer, _scrubbed]
    structlog.configure(
        processors=[*first, *last],
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Unfailing(sys.stderr))),
    )
    handler = _ToStderr()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*first, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    root = logging.getLogger()
    root.handlers = [*(one for one in root.handlers if not isinstance(one, _ToStderr)), handler]


class _Unfailing:
    """A file whose disk may be full: that costs lines, and never what they tell of."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()


def _scrubbed(logger: object, method: str, rendered: str) -> str:
    return without_secrets(rendered)


class _ToStderr(logging.StreamHandler[TextIO]):
    """Lines of libraries, to what standard error is when they come."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """Where to."""
        return cast(TextIO, _Unfailing(sys.stderr))
