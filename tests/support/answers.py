"""Answers for tests that read a few of their fields."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T")
TIME = "2026-01-05T12:00:00Z"
assert datetime.fromisoformat(TIME) == datetime(2026, 1, 5, 12, tzinfo=UTC)


def build_answer(kind: type[T], given: Mapping[str, Any] | None = None) -> T:
    """An answer of this type with the fields ``given`` by their names on the wire; all others are zero,
    empty, or null where they may be."""
    return msgspec.convert(_fill(inspect.type_info(kind), given or {}), kind)


def _fill(kind: inspect.Type, given: Any) -> Any:
    if isinstance(kind, inspect.Metadata):
        return _fill(kind.type, given)
    if isinstance(kind, inspect.UnionType) and given is not None:
        return _fill(next(one for one in kind.types if not isinstance(one, inspect.NoneType)), given)
    if isinstance(kind, inspect.ListType | inspect.VarTupleType) and given is not None:
        return [_fill(kind.item_type, item) for item in given]
    if not isinstance(kind, inspect.StructType) or given is None:
        return given
    return {
        field.encode_name: _fill(field.type, given[field.encode_name])
        if field.encode_name in given
        else _blank(field.type)
        for field in kind.fields
        if field.required or field.encode_name in given
    }


def _blank(kind: inspect.Type) -> Any:
    match kind:
        case inspect.Metadata():
            return _blank(kind.type)
        case inspect.UnionType():
            return None if kind.includes_none else _blank(kind.types[0])
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.StructType():
            return _fill(kind, {})
        case inspect.DateTimeType():
            return TIME
        case inspect.StrType():
            return ""
        case inspect.BoolType():
            return False
        case inspect.IntType() | inspect.FloatType():
            return kind.ge or 0
        case inspect.DictType():
            return {}
        case _:
            return []
