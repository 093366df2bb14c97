"""Rows of a query as records, so that nothing of the driver's ``Any`` leaves the store.

A record is a NamedTuple or a dataclass whose fields are the query's columns, in their order. Its
annotations say how a column is read: ``Address``, ``TxHash`` and ``HexBytes`` from bytea, ``Numeric``
from numeric, all others as the driver returns them. A field that is itself a record takes the columns of
that record, by their own names; an optional one is None where all of them are NULL. ``tuple[Address,
int]`` is a row of two columns of any name, ``tuple[Address, Record]`` one of a key and the columns of a
record.

``as_bytes`` turns hex text into the database's bytes."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache, partial
from itertools import accumulate, chain
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import asyncpg
import asyncpg.pool
import msgspec

from roundtrip.domain.base.types import Address, HexBytes, Numeric, TxHash

Connection: TypeAlias = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy
"""A connection of its own, or one that a pool lent."""

Row = TypeVar("Row")
Value = TypeVar("Value")
_BUILT_BY_DRIVER = (bytes, date, datetime, timedelta, Decimal, UUID)
"""Column types that msgspec checks and does not convert."""
JsonObject: TypeAlias = Annotated[Mapping[str, Any], "jsonb"]
"""A jsonb column that is an object."""


async def fetch(connection: Connection, row_type: type[Row], query: str, *args: object) -> list[Row]:
    """Every row as a ``row_type``. Raises msgspec.ValidationError where a column has another type than its
    field, TypeError where the columns have other names than the fields."""
    return read(await connection.fetch(query, *args), row_type)


async def fetch_row(connection: Connection, row_type: type[Row], query: str, *args: object) -> Row | None:
    """The first row; None where there is none. Raises as ``fetch``."""
    record = await connection.fetchrow(query, *args)
    return None if record is None else read([record], row_type)[0]


async def fetch_one(connection: Connection, row_type: type[Row], query: str, *args: object) -> Row:
    """The first row of a query that always has one. Raises as ``fetch``; LookupError where it has none."""
    row = await fetch_row(connection, row_type, query, *args)
    if row is None:
        raise LookupError("the query returned no row")
    return row


async def fetch_value(connection: Connection, value_type: type[Value], query: str, *args: object) -> Value:
    """The first column of the first row. Raises msgspec.ValidationError where it is NULL, of another type, or
    where there is no row."""
    value: Value = _convert([await connection.fetchval(query, *args)], value_type)[0]
    return value


async def fetch_optional(
    connection: Connection, value_type: type[Value], query: str, *args: object
) -> Value | None:
    """The first column of the first row; None where it is NULL or there is no row. Raises as
    ``fetch_value``."""
    value = await connection.fetchval(query, *args)
    return None if value is None else _convert([value], value_type)[0]


async def fetch_values(
    connection: Connection, value_type: type[Value], query: str, *args: object
) -> list[Value]:
    """The first column of every row. Raises as ``fetch_value``."""
    return _convert([record[0] for record in await connection.fetch(query, *args)], value_type)


def read(records: Sequence[asyncpg.Record], row_type: type[Row]) -> list[Row]:
    """Records that were fetched already, from a cursor or a prepared statement. Raises as ``fetch``."""
    if not records:
        return []
    kind: Any = row_type
    reader = _reader(kind)
    names = tuple(records[0].keys())
    if not _fit(names, reader.names):
        raise TypeError(f"the query returns {names}, and {row_type.__name__} has {reader.names}")
    rows: list[Any] = msgspec.convert(
        [tuple(record) for record in records], reader.rows, builtin_types=_BUILT_BY_DRIVER
    )
    if reader.is_built or reader.build is None:
        return rows
    return reader.build(list(zip(*rows, strict=True)))


def array_of(values: Iterable[int | None]) -> str:
    """Whole numbers as the text of an array, for ``$1::text::int[]``. With thousands of numbers this takes a
    third of the time of a list, which the driver encodes element by element."""
    return "{" + ",".join(map(str, values)).replace("None", "NULL") + "}"


# --- columns to values -----------------------------------------------------------------------------

_Build: TypeAlias = Callable[[Sequence[Any]], list[Any]]


class _RowReader(NamedTuple):
    """How columns become values of a type. ``names``: of the columns; None: any. ``types``: what the driver
    returns in them. ``build``: makes the values from the columns, or from a single one; None: that column
    has the values already. ``rows``: the type as which msgspec checks the rows; None: the type needs a single
    column. ``is_built``: the checked rows are the records already."""

    names: tuple[str | None, ...]
    types: tuple[Any, ...]
    build: _Build | None
    rows: Any = None
    is_built: bool = False


def _convert(values: list[Any], value_type: Any) -> list[Any]:
    reader = _reader(value_type)
    checked: list[Any] = msgspec.convert(values, _list_of(reader.types[0]), builtin_types=_BUILT_BY_DRIVER)
    return checked if reader.build is None else reader.build(checked)


@cache
def _fit(names: tuple[str, ...], wanted: tuple[str | None, ...]) -> bool:
    """Whether a query's columns have the names of a reader."""
    return len(names) == len(wanted) and all(
        want in (None, name) for name, want in zip(names, wanted, strict=True)
    )


@cache
def _list_of(kind: Any) -> Any:
    return GenericAlias(list, (kind,))


def _rows_of(kinds: Sequence[Any]) -> Any:
    """The type of the driver's rows. A class, because msgspec caches how it checks one."""
    row = NamedTuple("DriverRow", [(f"column_{n}", kind) for n, kind in enumerate(kinds)])  # type: ignore[misc]
    return _list_of(row)


@cache
def _reader(hint: Any) -> _RowReader:
    """The reader of a record, or of the type of one column."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = [member for member in members if member is not NoneType]
    is_optional = len(kinds) < len(members)
    kind = kinds[0] if len(kinds) == 1 else hint
    items = get_args(kind)
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        reader = _record_reader(kind)
    elif get_origin(kind) is tuple and ... not in items:
        parts = [_reader(item) for item in items]
        reader = _join(parts, tuple(chain(*(part.names for part in parts))), tuple)
    else:
        return _column_reader(hint, kind, is_optional)
    return _optional_reader(reader) if is_optional else reader


def _column_reader(hint: Any, kind: Any, is_optional: bool) -> _RowReader:
    items = [item for item in get_args(kind) if item is not ...]
    types: Any = hint
    build: _Build | None = None
    if kind == Numeric:
        types, build = Any, partial(_read_numeric, _OPTIONAL_INTS if is_optional else _INTS)
    elif kind == JsonObject:
        types, build = str, _read_json
    elif kind in (Address, TxHash, HexBytes):
        types, build = bytes | None if is_optional else bytes, _read_hex
    elif get_origin(kind) in (tuple, list, frozenset) and (item := _reader(items[0])).build is not None:
        values = GenericAlias(list, item.types)
        types = Union[values, None] if is_optional else values  # noqa: UP007
        build = partial(_read_collection, get_origin(kind), item.build)
    return _RowReader((None,), (types,), build)


def _record_reader(kind: Any) -> _RowReader:
    hints = get_type_hints(kind, include_extras=True)
    is_tuple = hasattr(kind, "_fields")
    fields = kind._fields if is_tuple else [field.name for field in dataclasses.fields(kind)]
    parts = [_reader(hints[name]) for name in fields]
    names = [
        (name,) if part.names == (None,) else part.names for name, part in zip(fields, parts, strict=True)
    ]
    # A NamedTuple's own constructor is written in Python.
    make = partial(tuple.__new__, kind) if is_tuple else lambda values: kind(*values)
    reader = _join(parts, tuple(chain(*names)), make)
    if is_tuple and all(part.build is None for part in parts):
        return reader._replace(rows=_list_of(kind), is_built=True)
    return reader


def _join(parts: Sequence[_RowReader], names: tuple[str | None, ...], make: Callable[..., Any]) -> _RowReader:
    """The reader of what ``make`` makes of a tuple with one value of each part."""
    ends = accumulate(len(part.types) for part in parts)
    places = [
        (part.build, end - 1 if part.rows is None else slice(end - len(part.types), end))
        for part, end in zip(parts, ends, strict=True)
    ]

    def build(columns: Sequence[Any]) -> list[Any]:
        values = [columns[at] if decode is None else decode(columns[at]) for decode, at in places]
        return list(map(make, zip(*values, strict=True)))

    types = tuple(chain(*(part.types for part in parts)))
    return _RowReader(names, types, build, _rows_of(types))


def _optional_reader(reader: _RowReader) -> _RowReader:
    def build(columns: Sequence[Any]) -> list[Any]:
        rows = [
            row if any(value is not None for value in row) else None for row in zip(*columns, strict=True)
        ]
        present = msgspec.convert(
            [row for row in rows if row is not None], reader.rows, builtin_types=_BUILT_BY_DRIVER
        )
        assert reader.build is not None
        values = iter(reader.build(list(zip(*present, strict=True))) if present else ())
        return [None if row is None else next(values) for row in rows]

    types = tuple(Union[kind, None] for kind in reader.types)  # noqa: UP007
    return _RowReader(reader.names, types, build, _rows_of(types))


def _read_hex(column: Sequence[Any]) -> list[Any]:
    return [None if value is None else "0x" + value.hex() for value in column]


def _read_json(column: Sequence[Any]) -> list[Any]:
    return [msgspec.json.decode(value, type=dict[str, Any]) for value in column]


_INTS: dict[type, Callable[[Any], int | None]] = {Decimal: int, str: int}
_OPTIONAL_INTS = {**_INTS, NoneType: lambda _: None}


def _read_numeric(ints: Mapping[type, Callable[[Any], int | None]], column: Sequence[Any]) -> list[Any]:
    try:
        return [ints[type(value)](value) for value in column]
    except (KeyError, ValueError) as error:
        raise msgspec.ValidationError(f"Expected `numeric`: {error}") from error


def _read_collection(kind: Any, decode: _Build, column: Sequence[Any]) -> list[Any]:
    return [None if values is None else kind(decode(values)) for values in column]


def as_bytes(text: str) -> bytes:
    """``0x`` hex as bytes."""
    return bytes.fromhex(text[2:])
