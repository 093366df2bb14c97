"""Text by strangers: token names, symbols, revert reasons. Data, never instructions."""

import unicodedata

SYMBOL_LENGTH = 32
NAME_LENGTH = 64
REASON_LENGTH = 80
"""The most characters of each that are shown."""

# Categories that show nothing or reorder what is shown: control, format (bidi, zero width, tags),
# surrogate, private use, unassigned.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
# Letters and marks that render as nothing though their category is visible: the Hangul fillers,
# the Khmer inherent vowels, the combining grapheme joiner, the blank braille pattern.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u17b4\u17b5\u034f\u2800")
_QUOTES = frozenset(
    '"\u201c\u201d\u201e\u201f\u2033\u2036\uff02\u275d\u275e\u301d\u301e\u301f\u02ba\u02dd\u02ee\u05f4\u3003'
)
# More than this many combining marks on one character is a pile that hides its neighbours.
_MARKS_IN_A_ROW = 3


def clean(text: str, length: int) -> str:
    """``text`` without invisible characters, white space folded, at most ``length`` characters. Of a longer
    text only the first 64 times as many characters are looked at."""
    characters: list[str] = []
    marks = 0
    for character in text[: length * 64]:
        category = unicodedata.category(character)
        if category[0] == "Z" or character in "\t\n\r\v\f":
            characters.append(" ")
            continue
        if category in _HIDDEN or character in _BLANK or _is_selector(character):
            continue
        marks = marks + 1 if category[0] == "M" else 0
        if marks <= _MARKS_IN_A_ROW:
            characters.append(character)
    return " ".join("".join(characters).split())[:length].rstrip()


def _is_selector(character: str) -> bool:
    """Variation selectors: marks with no shape of their own, used to smuggle text."""
    return (
        "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
        or character in "\u180b\u180c\u180d\u180f"
    )


def symbol(text: str) -> str | None:
    """A symbol fit to show, or None when nothing visible is left."""
    return clean(text, SYMBOL_LENGTH) or None


def symbol_key(text: str) -> str | None:
    """A symbol as it is compared: cleaned, case folded. None as in ``symbol``."""
    shown = symbol(text)
    return None if shown is None else shown.casefold()


def name(text: str) -> str | None:
    """A name fit to show, or None when nothing visible is left."""
    return clean(text, NAME_LENGTH) or None


def reason(text: str) -> str:
    """A revert reason, cleaned to be quoted inside a sentence: it cannot close the quotes."""
    cleaned = "".join("'" if c in _QUOTES else c for c in clean(text, REASON_LENGTH))
    # Two quotes in a row look like the closing quote.
    while "''" in cleaned:
        cleaned = cleaned.replace("''", "'")
    # A combining mark at the front would attach to the quotation mark before it.
    while cleaned and unicodedata.category(cleaned[0])[0] == "M":
        cleaned = cleaned[1:].lstrip()
    return cleaned


def text_in(data: bytes) -> str | None:
    """The text that a token returned from name() or symbol(): an ABI string, or bytes32 as old tokens return.

    Bytes that are not UTF-8 become replacement characters; None: the data has another shape.
    """
    if len(data) >= 64:
        offset = int.from_bytes(data[:32], "big")
        if offset + 32 <= len(data):
            length = int.from_bytes(data[offset : offset + 32], "big")
            if offset + 32 + length <= len(data):
                return data[offset + 32 : offset + 32 + length].decode("utf-8", "replace")
    if len(data) == 32:
        return data.rstrip(b"\0").decode("utf-8", "replace")
    return None
