"""Null in the place of a parameter that may be left out, as many programs send it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import msgspec
from msgspec import inspect


@dataclass(frozen=True, slots=True)
class _Fields:
    """What a type's fields are, by the names that requests use. ``inner``: the structs within them."""

    optional: frozenset[str]
    inner: Mapping[str, type[msgspec.Struct]]


def drop_nulls(raw: Mapping[str, object], kind: type[msgspec.Struct]) -> dict[str, object]:
    """The parameters without those that are null and may be left out, in inner objects, too. Unknown and
    required ones stay: validation refuses them."""
    fields = _read_fields(kind)
    return {
        name: _drop_within(value, fields.inner.get(name))
        for name, value in raw.items()
        if value is not None or name not in fields.optional
    }


def _drop_within(value: object, kind: type[msgspec.Struct] | None) -> object:
    if kind is None:
        return value
    if isinstance(value, list):
        return [_drop_within(item, kind) for item in value]
    return drop_nulls(value, kind) if isinstance(value, dict) else value


@cache
def _read_fields(kind: type[msgspec.Struct]) -> _Fields:
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    inner = {field.encode_name: _find_struct(field.type) for field in described.fields}
    return _Fields(
        frozenset(field.encode_name for field in described.fields if not field.required),
        {name: struct for name, struct in inner.items() if struct is not None},
    )


def _find_struct(described: inspect.Type) -> type[msgspec.Struct] | None:
    """The struct that a field holds, alone or in a list; None: it holds none."""
    match described:
        case inspect.StructType():
            found: type[msgspec.Struct] = described.cls
            return found
        case inspect.Metadata():
            return _find_struct(described.type)
        case inspect.ListType():
            return _find_struct(described.item_type)
        case inspect.UnionType():
            return next(filter(None, map(_find_struct, described.types)), None)
    return None
