"""Quotes what a node wrote, so that it can be shown to anybody. Finds the secrets in a node's URL, and cuts
them out of a text.

A node's text may hold anything: control characters, a page of HTML, even the API key of the request.
"""

import contextlib
import json
import re
from urllib.parse import parse_qsl, unquote, urlsplit

from roundtrip.domain.base import names

from .rpc_error import RpcError

_CUT = "…"
_READ_CHARACTERS = 4_000
"""No more of a node's text is read."""
_TITLE = re.compile(r"<title[^>]*>(.*?)(?:</title|$)", re.IGNORECASE | re.DOTALL)
_JSON_TEXTS = tuple(
    re.compile(rf'"{name}"\s*:\s*("(?:[^"\\]|\\.)+")')
    for name in ("message", "detail", "reason", "title", "error")
)
"""Where a JSON object says what is wrong, whatever else it holds, the most telling first."""
_MARKUP = re.compile(r"<(script|style)\b.*?(?:</\1\s*>|$)|<[^>]*>", re.IGNORECASE | re.DOTALL)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+|\b(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?[/?]\S*", re.IGNORECASE)
_NAMED_SECRET = re.compile(
    r"\b((?:api|access|project|secret)?[-_ ]?(?:key|token|secret|password|id)\s*[=:]|bearer|basic)\s*"
    r"[\"']?[^\s\"',;)]+",
    re.IGNORECASE,
)
_LONG_WORD = re.compile(r"[\w.+/~=%-]{12,}")
_METHOD = re.compile(r"(?:eth|debug|trace|net|web3|arb)_[A-Za-z]+(?:V\d)?")
_KEY_FROM, _KEY_WITH_DIGIT_FROM = 24, 16
"""A word of so many characters or more may be a key."""


def quote(text: str) -> str:
    """The text in quotes, on one line, at most 80 characters; of a page only its title or its text without
    markup, of JSON its message; without characters that do not show, URLs, and words that may be keys.
    Empty: nothing is left."""
    words = names.clean(_read_page(text[:_READ_CHARACTERS]), _READ_CHARACTERS)
    for pattern, put in ((_URL, _CUT), (_NAMED_SECRET, rf"\1 {_CUT}")):
        words = pattern.sub(put, words)
    words = _LONG_WORD.sub(_cut_long_word, words)
    is_whole, words = len(words) <= names.REASON_LENGTH, names.reason(words)
    if not is_whole:
        words = f"{words[: names.REASON_LENGTH - 2].rpartition(' ')[0] or words[:-2]} {_CUT}"
    return f'"{words}"' if words.strip(f"{_CUT} ") else ""


def quote_error(error: RpcError) -> str:
    """The error's code and the node's message."""
    return f"error {error.code} {quote(error.message)}".rstrip()


def _read_page(text: str) -> str:
    """A page's title, else its text; the message of a JSON object; else the text itself."""
    if text.lstrip().startswith("{"):
        message = next(filter(None, (pattern.search(text) for pattern in _JSON_TEXTS)), None)
        with contextlib.suppress(ValueError):
            return str(json.loads(message[1], strict=False)) if message else text
    if not text.lstrip().startswith("<"):
        return text
    title = _TITLE.search(text)
    return title.group(1) if title is not None and title.group(1).strip() else _MARKUP.sub(" ", text)


def _cut_long_word(match: re.Match[str]) -> str:
    word = match.group()
    if _METHOD.fullmatch(word):
        return word
    has_digit = any(character.isdigit() for character in word)
    is_mixed = has_digit and word.lower() != word and word.upper() != word
    is_key = is_mixed or len(word) >= (_KEY_WITH_DIGIT_FROM if has_digit else _KEY_FROM)
    return _CUT if is_key else word


_MIN_NAMED_SECRET, _MIN_SECRET, _MIN_SECRET_WITHOUT_DIGIT = 4, 8, 16


def secrets_in(url: str) -> tuple[str, ...]:
    """The parts of a node's URL that may be a key, the longest first: its user name, its password and the
    values of its query from a few characters on, and long parts of its host and path."""
    parts = urlsplit(url)
    named = [parts.username, parts.password, *(value for _, value in parse_qsl(parts.query))]
    pieces = [*(parts.hostname or "").split("."), *parts.path.split("/")]
    secrets = {piece for piece in named if piece and len(piece) >= _MIN_NAMED_SECRET}
    secrets |= {piece for piece in pieces if _is_secret(piece)}
    return tuple(sorted(secrets | {unquote(piece) for piece in secrets}, key=len, reverse=True))


def _is_secret(piece: str) -> bool:
    has_digit = any(character.isdigit() for character in piece)
    return len(piece) >= (_MIN_SECRET if has_digit else _MIN_SECRET_WITHOUT_DIGIT)


def cut_secrets(text: str, secrets: tuple[str, ...]) -> str:
    """The text with an ellipsis in place of each of these secrets."""
    for secret in secrets:
        text = text.replace(secret, _CUT)
    return text
