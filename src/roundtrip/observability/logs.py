"""How the log is written: one line an event, ours and the libraries' alike, and no secret in any of them."""

import contextlib
import logging
import re
import sys
from collections.abc import Callable
from typing import Any, TextIO, cast

import structlog

from roundtrip.domain.accounts.keys import without_keys

_END = r"\s\"'\\<>)"
"""What is no part of a url, or of a word; a backslash begins the end of a line that JSON has."""
_QUOTED = (
    r"""'(?:\\.|[^'\\])*'|'(?:\\.|[^'"\\])*|"(?![,:}\]\s]|$)(?:\\.|[^"\\])*"?"""
    r"""|\\"(?:\\\\\\.|\\\\[^\\]|[^\\])*(?:\\")?"""
)
"""A value with its quotes, or all that there is of one that was cut off; the last: of JSON inside of JSON."""
_BARE = r"""(?:\\[^nrt]|"(?![,:}\]\s]|$)|[^\s&"\\])+"""
"""A value up to the next space, or where the text of JSON ends."""
_NEW_LINE = r"(?<=\\[nrt])"
"""As JSON has it: the letter is no part of the word behind it."""
_HOST = r"\[[0-9a-f:.]{0,45}\]|[\w.-]{0,253}(?::[0-9]{1,5}\b)?"
_NAME = r"(?:password|passwd|secret|api[_-]?key)[\w-]{0,20}"


def _host_alone(url: re.Match[str]) -> str:
    """Of a url the host: its path may be a key, and its user somebody's password. With a slash before the @
    the host cannot be told from either."""
    return "://..." if re.search("[/?#]", url[1] or "") else f"://{url[2]}"


# What one try to match reads is bounded, or is read by no other: a line of 32 kB may be a stranger's, and the
# loop waits for it.
_SECRETS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # Passwords have any character in them, so that the last @ counts.
    (re.compile(rf"://((?:\\[^nrt]|[^\s\\]){{0,256}}@)?({_HOST})[^{_END}]*", re.I), _host_alone),
    # Webhooks' secrets, and what is signed with them.
    (re.compile(r"whsec_[\w+/=-]+"), "whsec_..."),
    (re.compile(r"(sha256=|v1,)[\w+/=-]{16,}"), r"\1..."),
    (re.compile(r"(/api/(?:v\d{1,3}/)?webhooks/)[\w./-]+"), r"\1..."),
    # A wallet's signature has 64 bytes or 65; hashes have 32.
    (re.compile(r"(?<![0-9a-fA-F])(0x)?[0-9a-fA-F]{128,}"), r"\1..."),
    # In a path "bot" stands before it.
    (re.compile(r"(?<![0-9])[0-9]{5,}:[\w-]{20,}"), "..."),
    (re.compile(rf"(?:\b|{_NEW_LINE})(bearer|basic)(\s+)[^\s\"'\\]+", re.I), r"\1\2..."),
    (re.compile(rf"({_NAME}=)(?:{_QUOTED}|{_BARE})", re.I), r"\1..."),
    # A token's address is what most lines are about.
    (re.compile(rf"(token=)(?!\\?[\"']?0x[0-9a-f]{{40}}\b)(?:{_QUOTED}|{_BARE})", re.I), r"\1..."),
    (re.compile(rf"({_NAME}(\\?[\"'])\s{{0,9}}:\s{{0,9}})(?:{_QUOTED})", re.I), r"\1\2...\2"),
    # 32 bytes in base64, as the key of secrets is set.
    (re.compile(rf"(?:(?<![\w+/])|{_NEW_LINE})[A-Za-z0-9+/]{{43}}="), "..."),
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
    root.handlers = [*(one for one in root.handlers if not isinstance(one, _ToStderr)), handler]


class _DiskSafeFile:
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


def _scrub(logger: object, method: str, rendered: str) -> str:
    return without_secrets(rendered)


class _ToStderr(logging.StreamHandler[TextIO]):
    """Lines of libraries, to what standard error is when they come."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """Where to."""
        return cast(TextIO, _DiskSafeFile(sys.stderr))
