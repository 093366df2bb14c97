"""Rows as the lines of a chat message."""

from collections.abc import Callable, Sequence

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


def lines_with_links(
    texts: Sequence[str], links: Sequence[str | None], most_rows: int, most: int, mark: Callable[[str], str]
) -> str | None:
    """A row a line with its link behind it, which nothing is done to; None where not all of that fits.
    ``mark``: how a text is written so that it stays what it is."""
    if not any(links[:most_rows]):
        return None
    rows = [mark(" ".join(text.split())) for text in texts[:most_rows]]
    rows = [f"{row} {link}" if link else row for row, link in zip(rows, links, strict=False)]
    more = len(texts) - len(rows)
    whole = "\n".join([*rows, f"and {more} more"] if more else rows)
    return whole if length(whole) <= most else None


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
