"""Rows as the lines of a chat message."""

from collections.abc import Sequence

_MORE = 32
"""Room for the last line, which tells how many are missing."""


def length(text: str) -> int:
    """As chats count: in UTF-16 units, of which a character takes one or two."""
    return len(text) + sum(character > "\uffff" for character in text)


def cut(text: str, most: int) -> str:
    """``text``, or its beginning and an ellipsis, of at most ``most`` UTF-16 units."""
    if length(text) <= most:
        return text
    kept = text[: most - 1]
    while length(kept) > most - 1:
        kept = kept[:-1]
    return kept + "…"


def lines(texts: Sequence[str], most_rows: int, most: int) -> str:
    """A row a line, the first ``most_rows`` and how many more there were, of at most ``most`` UTF-16 units:
    where they do not fit, long rows lose their ends."""
    rows = [" ".join(text.split()) for text in texts[:most_rows]]
    more = len(texts) - len(rows)
    last = [f"and {more} more"] if more else []
    whole = "\n".join(rows + last)
    if length(whole) <= most:
        return whole
    each = (most - _MORE) // len(rows) - 1
    return "\n".join([cut(row, each) for row in rows] + last)
