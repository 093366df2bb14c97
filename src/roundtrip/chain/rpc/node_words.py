"""Quotes what a node wrote, so that it can be shown to anybody.

A node's text may hold anything: control characters, a page of HTML, even the API key of the request.
"""

import re
from urllib.parse import parse_qsl, unquote, urlsplit

from roundtrip.domain.base import names

from .rpc_error import RpcError

_CUT = "…"
_READ_CHARACTERS = 4_000
"""So much of a page is searched for its title."""
_TITLE = re.compile(r"<title[^>]*>(.*?)(?:</title|$)", re.IGNORECASE | re.DOTALL)
_MARKUP = re.compile(r"<(script|style)\b.*?(?:</\1\s*>|$)|<[^>]*>", re.IGNORECASE | re.DOTALL)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+|\b(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?[/?]\S*", re.IGNORECASE)
_NAMED_SECRET = re.compile(
    r"\b((?:api|access|project|secret)?[-_ ]?(?:key|token|secret|password|id)\s*[=:]|bearer|basic)\s*"
    r"[\"']?[^\s\"',;)]+",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[\w.+/~=%-]{12,}")
_METHOD = re.compile(r"(?:eth|debug|trace|net|web3|arb)_[A-Za-z]+(?:V\d)?")
_MAX_WORD, _MAX_WORD_WITH_DIGIT = 24, 16


def quote(text: str) -> str:
    """The text in quotes, on one line, at most 80 characters: without markup, characters that do not show,
    URLs, and words that may be keys. Empty: nothing is left."""
    words = names.clean(_read_page(text[:_READ_CHARACTERS]), _READ_CHARACTERS)
    for pattern, put in ((_URL, _CUT), (_NAMED_SECRET, rf"\1 {_CUT}")):
        words = pattern.sub(put, words)
    words = names.reason(_TOKEN.sub(_cut_token, words))
    return f'"{words}"' if words.strip(f"{_CUT} ") else ""


def quote_error(error: RpcError) -> str:
    """The error's code and the node's message."""
    return f"error {error.code} {quote(error.message)}".rstrip()


def _read_page(text: str) -> str:
    """A page's title, else its text; the text itself where it is no page."""
    if not text.lstrip().startswith("<"):
        return text
    title = _TITLE.search(text)
    return title.group(1) if title is not None and title.group(1).strip() else _MARKUP.sub(" ", text)


def _cut_token(match: re.Match[str]) -> str:
    word = match.group()
    if _METHOD.fullmatch(word):
        return word
    has_digit = any(character.isdigit() for character in word)
    is_mixed = has_digit and word.lower() != word and word.upper() != word
    is_key = is_mixed or len(word) >= (_MAX_WORD_WITH_DIGIT if has_digit else _MAX_WORD)
    return _CUT if is_key else word


_MIN_SECRET, _MIN_SECRET_WITHOUT_DIGIT = 8, 16


def secrets_in(url: str) -> tuple[str, ...]:
    """The parts of a node's URL that may be a key, the longest first: its password, values of its query, and
    long parts of its host and path."""
    parts = urlsplit(url)
    named = [parts.username, parts.password, *(value for _, value in parse_qsl(parts.query))]
    pieces = [*(parts.hostname or "").split("."), *parts.path.split("/")]
    found = {piece for piece in named if piece and len(piece) >= _MIN_SECRET // 2}
    found |= {piece for piece in pieces if _is_secret(piece)}
    return tuple(sorted(found | {unquote(piece) for piece in found}, key=len, reverse=True))


def _is_secret(piece: str) -> bool:
    has_digit = any(character.isdigit() for character in piece)
    return len(piece) >= (_MIN_SECRET if has_digit else _MIN_SECRET_WITHOUT_DIGIT)


def cut_secrets(text: str, secrets: tuple[str, ...]) -> str:
    """The text without these words."""
    for secret in secrets:
        text = text.replace(secret, _CUT)
    return text
