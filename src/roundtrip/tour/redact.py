"""An answer as the page shows it: short, and with words for what differs from run to run. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from roundtrip.devnet.world import Built

WIDTH = 116
_MOST_ROWS, _MOST_CHARACTERS, _MOST_DATA = 2, 160, 10
CUT = "…"
_HASH = re.compile(r"0x[0-9a-f]{64}(?![0-9a-f])")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?")
_BLOCKS = ("block", "fromBlock", "atBlock", "head")
_ALWAYS = ("ageS", "secondsBehind", "blocksBehind", "since", "fromTime", "start")
_AGES = re.compile(r"\b\d[\d,.]* (seconds?|minutes?|milliseconds?)\b")
_SECRETS = ("secret", "key")


@dataclass(frozen=True, slots=True)
class Placeholders:
    """What stands for what differs. ``head``, ``head_s``: where the built chain ends, with its ``hashes``:
    what lies before is the same in every run. ``names``: other texts, by what stands for them."""

    head: int
    head_s: int
    hashes: frozenset[str]
    names: Mapping[str, str] = field(default_factory=dict)


def words(built: Built, names: Mapping[str, str]) -> Placeholders:
    """Those of a built chain."""
    state = msgspec.json.decode(built.state.read_bytes())
    hashes = frozenset(one["info"]["transaction_hash"] for one in state["transactions"])
    return Placeholders(int(state["block"]["number"], 16), built.head_s, hashes, names)


def stable(value: Any, known: Placeholders, varies: Iterable[str] = (), name: str = "") -> Any:
    """The same, with words in the place of what differs from run to run: blocks and times after the built
    chain's, hashes that are not on it, secrets, and the fields named in ``varies``."""
    if isinstance(value, dict):
        return {one: stable(told, known, varies, one) for one, told in value.items()}
    if isinstance(value, list):
        return [stable(one, known, varies, name) for one in value]
    if value is None or isinstance(value, bool):
        return value
    if name in _SECRETS:
        return "<secret>"
    if name in _ALWAYS or name in varies:
        return f"<{name}>"
    if isinstance(value, int) and name in _BLOCKS:
        return "<block>" if value > known.head else value
    return stable_text(value, known) if isinstance(value, str) else value


def stable_text(text: str, known: Placeholders) -> str:
    """The same of a text; also numbers in it that could be a block after the built chain's, and short spans
    of time."""
    for said, word in known.names.items():
        text = text.replace(said, word)
    text = _HASH.sub(lambda found: found[0] if found[0] in known.hashes else "<hash>", text)
    text = _TIME.sub(lambda found: found[0] if _is_old(found[0], known) else "<time>", text)
    text = _AGES.sub("<time>", text)
    return re.sub(
        r"(?i)\b(blocks?) (\d{3,})\b",
        lambda found: f"{found[1]} <block>" if int(found[2]) > known.head else found[0],
        text,
    )


def without(text: str, answer: Mapping[str, Any], varies: Iterable[str]) -> str:
    """A text with words in the place of the numbers that the fields named in ``varies`` have."""
    for name in varies:
        if name in answer:
            number = re.escape(str(answer[name]))
            text = re.sub(rf"(?<![\w.,]){number}(?!\w|[.,]\d)", f"<{name}>", text)
    return text


def _is_old(written: str, known: Placeholders) -> bool:
    plain = written.removesuffix(" UTC").replace("Z", "+00:00")
    if not plain.endswith("+00:00"):
        plain += "+00:00"
    try:
        return datetime.fromisoformat(plain).timestamp() <= known.head_s
    except ValueError:
        return False


def shorten(value: Any, said: str = "") -> Any:
    """Lists cut after two rows, texts after 160 characters, calldata after its selector. Left out is what is
    said already."""
    if isinstance(value, dict):
        return {
            name: one[:_MOST_DATA] + CUT if name == "data" and isinstance(one, str) else shorten(one, said)
            for name, one in value.items()
            if name != "text" or one != said
        }
    if isinstance(value, list):
        kept = [shorten(one, said) for one in value[:_MOST_ROWS]]
        return [*kept, CUT] if len(value) > _MOST_ROWS else kept
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        return value[:_MOST_CHARACTERS] + CUT
    return value


def lines(value: Any, indent: str = "") -> str:
    """JSON in as few lines as the width allows: short fields and rows share a line."""
    flat = one_line_json(value)
    if len(indent) + len(flat) <= WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{one_line_json(name)}: {lines(one, inner)}" for name, one in value.items()]
    else:
        parts = [lines(one, inner) for one in value]
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
            + ", ".join(f"{one_line_json(name)}: {one_line_json(one)}" for name, one in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(one_line_json, value)) + "]"
    return msgspec.json.encode(value).decode()


def shape(value: Any) -> Any:
    """Which fields an answer has, of a list's rows the first one's; None: it says nothing of its shape."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value and value[0] != CUT else None
    return None


def fits(one: Any, other: Any) -> bool:
    """Whether two shapes agree as far as both say something."""
    if one is None or other is None:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(fits(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return fits(one[0], other[0])
    return False
