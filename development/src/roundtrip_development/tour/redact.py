"""An answer as the page shows it: short, and with placeholders for what differs between runs. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from roundtrip_development.devnet.world import Built

WIDTH = 116
_MAX_ROWS, _MAX_CHARACTERS, _MAX_DATA, _MAX_LINES, _MAX_DEPTH = 1, 80, 10, 3, 2
_MAX_OF_LINE = 220
CUT = "…"
_HASH = re.compile(r"0x[0-9a-f]{64}(?![0-9a-f])")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?")
_BLOCKS = ("block", "fromBlock", "atBlock", "head")
_ALWAYS = ("ageS", "secondsBehind", "blocksBehind", "since", "fromTime", "start")
_AGES = re.compile(r"\b\d[\d,.]* (seconds?|minutes?|milliseconds?)\b")
_SECRETS = ("secret", "key")


@dataclass(frozen=True, slots=True)
class Placeholders:
    """What identifies values that differ between runs. ``head``, ``head_s``: the end of the built chain, with
    its ``hashes``: what comes before is the same in every run. ``names``: other texts, with their
    placeholders."""

    head: int
    head_s: int
    hashes: frozenset[str]
    names: Mapping[str, str] = field(default_factory=dict)


def build_placeholders(built: Built, names: Mapping[str, str]) -> Placeholders:
    """The placeholders for a built chain."""
    state = msgspec.json.decode(built.state.read_bytes())
    hashes = frozenset(transaction["info"]["transaction_hash"] for transaction in state["transactions"])
    return Placeholders(int(state["block"]["number"], 16), built.head_s, hashes, names)


def mask(value: Any, placeholders: Placeholders, varies: Iterable[str] = (), name: str = "") -> Any:
    """The value with placeholders for what differs between runs: blocks and times after the built chain's,
    hashes that are not on it, secrets, and the fields named in ``varies``."""
    if isinstance(value, dict):
        return {key: mask(item, placeholders, varies, key) for key, item in value.items()}
    if isinstance(value, list):
        return [mask(item, placeholders, varies, name) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if name in _SECRETS:
        return "<secret>"
    if name in _ALWAYS or name in varies:
        return f"<{name}>"
    if isinstance(value, int) and name in _BLOCKS:
        return "<block>" if value > placeholders.head else value
    return mask_text(value, placeholders) if isinstance(value, str) else value


def mask_text(text: str, placeholders: Placeholders) -> str:
    """The same for a text; also numbers in it that may be a block after the built chain's, and short spans of
    time."""
    for original, placeholder in placeholders.names.items():
        text = text.replace(original, placeholder)
    text = _HASH.sub(lambda match: match[0] if match[0] in placeholders.hashes else "<hash>", text)
    text = _TIME.sub(lambda match: match[0] if _is_old(match[0], placeholders) else "<time>", text)
    text = _AGES.sub("<time>", text)
    return re.sub(
        r"(?i)\b(blocks?) (\d{3,})\b",
        lambda match: f"{match[1]} <block>" if int(match[2]) > placeholders.head else match[0],
        text,
    )


def mask_fields(text: str, answer: Mapping[str, Any], varies: Iterable[str]) -> str:
    """A text with placeholders for the numbers of the fields named in ``varies``."""
    for name in varies:
        if name in answer:
            number = re.escape(str(answer[name]))
            text = re.sub(rf"(?<![\w.,]){number}(?!\w|[.,]\d)", f"<{name}>", text)
    return text


def _is_old(written: str, placeholders: Placeholders) -> bool:
    plain = written.removesuffix(" UTC").replace("Z", "+00:00")
    if not plain.endswith("+00:00"):
        plain += "+00:00"
    try:
        return datetime.fromisoformat(plain).timestamp() <= placeholders.head_s
    except ValueError:
        return False


def shorten(value: Any, text_above: str = "", depth: int = 0) -> Any:
    """Lists are cut after the first row, texts after 80 characters, calldata after its selector, objects
    below the second level. A ``text`` field equal to ``text_above`` is left out."""
    if isinstance(value, dict) and value and depth == _MAX_DEPTH:
        return CUT
    if isinstance(value, dict):
        return {
            name: item[:_MAX_DATA] + CUT
            if name == "data" and isinstance(item, str)
            else shorten(item, text_above, depth + 1)
            for name, item in value.items()
            if name != "text" or item != text_above
        }
    if isinstance(value, list):
        rows = [shorten(item, text_above, depth) for item in value[:_MAX_ROWS]]
        return [*rows, CUT] if len(value) > _MAX_ROWS else rows
    if isinstance(value, str) and len(value) > _MAX_CHARACTERS:
        return value[:_MAX_CHARACTERS] + CUT
    return value


def shorten_lines(text: str) -> str:
    """The first three lines of a text, each of 220 characters at most."""
    lines = [line if len(line) <= _MAX_OF_LINE else line[:_MAX_OF_LINE] + CUT for line in text.splitlines()]
    return "\n".join(lines if len(lines) <= _MAX_LINES else [*lines[:_MAX_LINES], CUT])


def format_json(value: Any, indent: str = "") -> str:
    """JSON in as few lines as the width allows: short fields and rows share a line."""
    flat = one_line_json(value)
    if len(indent) + len(flat) <= WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{one_line_json(name)}: {format_json(item, inner)}" for name, item in value.items()]
    else:
        parts = [format_json(item, inner) for item in value]
    packed = [inner + parts[0]]
    for part in parts[1:]:
        is_short = "\n" not in packed[-1] + part and len(packed[-1]) + len(part) + 2 <= WIDTH
        if is_short:
            packed[-1] += f", {part}"
        else:
            packed[-1] += ","
            packed.append(inner + part)
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([opened, *packed, indent + closed])


def one_line_json(value: Any) -> str:
    """JSON in one line, with a space after each mark."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{one_line_json(name)}: {one_line_json(item)}" for name, item in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(one_line_json, value)) + "]"
    return msgspec.json.encode(value).decode()


def shape(value: Any) -> Any:
    """The fields of an answer, with the first row of a list; None: its shape is unknown."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value and value[0] != CUT else None
    return None


def shapes_agree(first: Any, second: Any) -> bool:
    """Whether two shapes agree where both are known."""
    if first is None or second is None:
        return True
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            shapes_agree(first[name], second[name]) for name in first
        )
    if isinstance(first, list) and isinstance(second, list):
        return shapes_agree(first[0], second[0])
    return False
