"""Evidence as one canonical JSON document: the same evidence is the same bytes, and back.

Keys are sorted, there is no white space, and integers beyond 2**53 are decimal strings, which
readers without big integers would otherwise round. Each object names its class under ``kind_of``: the
class's ``wire`` tag. A field may name its key in its metadata. So classes and fields can be renamed without
changing a document.
"""

import dataclasses
import json
import types
from collections.abc import Callable
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_EXACT = 2**53
_TAG = "kind_of"


def dump(value: object) -> bytes:
    """The canonical bytes of a frozen dataclass tree."""
    parts = list[str]()
    _write(value, parts.append)
    return "".join(parts).encode()


def load(kind: type[T], document: bytes) -> T:
    """The dataclass tree of canonical bytes. Raises ValueError when they do not fit ``kind``."""
    try:
        result = _build(kind, json.loads(document, parse_constant=_refuse, parse_float=_refuse))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a canonical {kind.__name__}: {error}") from error
    assert isinstance(result, kind)
    return result


def _refuse(text: str) -> None:
    raise ValueError(f"{text} has no place in evidence")


def _write(value: Any, put: Callable[[str], None]) -> None:
    kind: type = type(value)
    if kind is int:
        put(_integer(value))
    elif kind is str:
        put(_quote(value))
    elif value is None or kind is bool:
        put(_WORDS[value])
    elif kind is tuple:
        opened = "["
        for item in value:
            put(opened)
            _write(item, put)
            opened = ","
        put("[]" if opened == "[" else "]")
    else:
        for before, name in _cut_object(kind):
            put(before)
            if name:
                _write(getattr(value, name), put)


_quote = json.encoder.encode_basestring_ascii
_WORDS = MappingProxyType({None: "null", True: "true", False: "false"})


def _integer(value: int) -> str:
    return str(value) if -_EXACT < value < _EXACT else f'"{value}"'


@cache
def _cut_object(kind: type) -> tuple[tuple[str, str], ...]:
    """A class's object, cut where a field's value stands: the text before it, and the field's name; the name
    after the last one is empty. Raises TypeError for what is no part of evidence."""
    if not dataclasses.is_dataclass(kind):
        raise TypeError(f"{kind.__name__} has no place in evidence")
    names = {key: name for key, name, _ in _fields(kind)} | {_TAG: ""}
    text, cuts = "{", list[tuple[str, str]]()
    for key in sorted(names):
        text += f"{_quote(key)}:"
        if key == _TAG:
            text += f"{_quote(_tag(kind))},"
        else:
            cuts.append((text, names[key]))
            text = ","
    return (*cuts, (text.rstrip(",") + "}", ""))


def _tag(kind: type) -> str:
    """The name of a class in documents. Raises TypeError where it has none: it is not part of evidence."""
    tag = kind.__dict__.get("wire")
    if not isinstance(tag, str):
        raise TypeError(f"{kind.__name__} has no wire tag")
    return tag


@cache
def _fields(kind: type) -> tuple[tuple[str, str, Any], ...]:
    """The key in documents, the name and the type of each field. The key is ``wire`` in the field's metadata,
    else the name."""
    hints = get_type_hints(kind)
    fields = dataclasses.fields(kind)
    return tuple((field.metadata.get("wire", field.name), field.name, hints[field.name]) for field in fields)


def _build(kind: Any, plain: Any) -> Any:
    if isinstance(kind, NewType):
        kind = kind.__supertype__
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _build_union(get_args(kind), plain)
    if origin is Literal:
        if plain not in get_args(kind):
            raise ValueError(f"{plain!r} is none of {get_args(kind)}")
        return plain
    if origin is tuple:
        if not isinstance(plain, list):
            raise ValueError(f"{plain!r} is no list")
        return tuple(_build(get_args(kind)[0], item) for item in plain)
    if dataclasses.is_dataclass(kind):
        return _build_object(kind, plain)  # type: ignore[arg-type]
    if kind is int:
        return _int(plain)
    if isinstance(plain, kind):
        return plain
    raise ValueError(f"{plain!r} is no {kind}")


def _build_object(kind: type, plain: Any) -> Any:
    if plain[_TAG] != _tag(kind):
        raise ValueError(f"{plain[_TAG]} stands where {kind} belongs")
    fields = _fields(kind)
    if plain.keys() != {_TAG, *(key for key, _, _ in fields)}:
        raise ValueError(f"{kind} has other fields")
    return kind(**{name: _build(hint, plain[key]) for key, name, hint in fields})


def _int(plain: Any) -> int:
    """An integer as dump writes it: a number below 2**53, else its decimal digits."""
    if isinstance(plain, bool) or not isinstance(plain, int | str):
        raise ValueError(f"{plain!r} is no integer")
    value = int(plain)
    if _integer(value) != json.dumps(plain):
        raise ValueError(f"{plain!r} is not how an integer is written")
    return value


def _build_union(members: tuple[Any, ...], plain: Any) -> Any:
    if plain is None and types.NoneType in members:
        return None
    if isinstance(plain, dict):
        tagged = {_tag(m): m for m in members if dataclasses.is_dataclass(m) and isinstance(m, type)}
        return _build(tagged[plain[_TAG]], plain)
    simple = [m for m in members if m is not types.NoneType and not dataclasses.is_dataclass(m)]
    literals = [m for m in simple if get_origin(m) is Literal and plain in get_args(m)]
    if literals:
        return plain
    for member in simple:
        if get_origin(member) is not Literal:
            return _build(member, plain)
    raise ValueError(f"{plain!r} is none of {members}")
