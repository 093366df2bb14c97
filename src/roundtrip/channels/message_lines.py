"""Formats rows as lines of a chat message."""

from collections.abc import Callable, Sequence

_MORE = 32
"""Room for the last line, which says how many rows are left out."""


def utf16_length(text: str) -> int:
    """The length as chats count it: in UTF-16 code units, one or two a character."""
    return len(text) + sum(character > "\uffff" for character in text)


def cut_text(text: str, most: int) -> str:
    """``text`` if it has at most ``most`` UTF-16 units, else its beginning and an ellipsis."""
    if utf16_length(text) <= most:
        return text
    beginning = text[: most - 1]
    while utf16_length(beginning) > most - 1:
        beginning = beginning[:-1]
    return beginning + "…"


def format_lines_with_links(
    texts: Sequence[str], links: Sequence[str | None], most_rows: int, most: int, escape: Callable[[str], str]
) -> str | None:
    """One line a row, followed by its unchanged link; None if there are no links or not all of it fits.
    ``escape``: escapes the chat's markup in a row's text."""
    if not any(links[:most_rows]):
        return None
    rows = [escape(" ".join(text.split())) for text in texts[:most_rows]]
    rows = [f"{row} {link}" if link else row for row, link in zip(rows, links, strict=False)]
    rest = len(texts) - len(rows)
    whole = "\n".join([*rows, f"and {rest} more"] if rest else rows)
    return whole if utf16_length(whole) <= most else None


def format_lines(texts: Sequence[str], most_rows: int, most: int) -> str:
    """One line a row for the first ``most_rows``, and the number of further rows. The text has at most
    ``most`` UTF-16 units: long rows are cut if needed."""
    rows = [" ".join(text.split()) for text in texts[:most_rows]]
    rest = len(texts) - len(rows)
    last = [f"and {rest} more"] if rest else []
    whole = "\n".join(rows + last)
    if utf16_length(whole) <= most:
        return whole
    most_a_row = (most - _MORE) // len(rows) - 1
    return "\n".join([cut_text(row, most_a_row) for row in rows] + last)
