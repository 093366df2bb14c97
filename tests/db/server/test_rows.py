"""Records as the driver really returns their columns."""

from typing import NamedTuple

import msgspec
import pytest

from roundtrip.domain.base.types import Address, BlockRef, HexBytes, Numeric, TxHash
from roundtrip.store.server.rows import (
    Connection,
    fetch,
    fetch_one,
    fetch_optional,
    fetch_value,
    fetch_values,
)


class Fact(NamedTuple):
    wallet: Address
    block: BlockRef | None
    raw: Numeric
    """From a numeric column; the next one from text."""
    read_raw: Numeric
    steps: frozenset[str]
    others: tuple[Address, ...]
    share: float | None


WALLET = Address("0x" + "1f" * 20)
FACT = (
    "SELECT decode(repeat('1f', 20), 'hex') AS wallet, 7 AS number, '\\xab'::bytea AS hash, 9 AS timestamp_s,"
    " 10::numeric ^ 30 AS raw, (-(10::numeric ^ 30)::numeric(40, 0))::text AS read_raw,"
    " ARRAY['swept', 'pooled'] AS steps, ARRAY[decode(repeat('1f', 20), 'hex')] AS others,"
    " 0.5::float8 AS share"
)


async def test_a_record_has_the_values_of_its_columns(connection: Connection) -> None:
    steps = frozenset(("swept", "pooled"))
    expected = Fact(WALLET, BlockRef(7, "0xab", 9), 10**30, -(10**30), steps, (WALLET,), 0.5)
    assert await fetch_one(connection, Fact, FACT) == expected
    assert await fetch(connection, tuple[Address, int, BlockRef], "SELECT '\\x01'::bytea, 2, 3 AS number,"
        " '\\x04'::bytea AS hash, 5 AS timestamp_s") == [("0x01", 2, BlockRef(3, "0x04", 5))]  # fmt: skip


async def test_a_single_column_is_read_by_its_type(connection: Connection) -> None:
    assert await fetch_value(connection, TxHash, "SELECT '\\xff'::bytea") == "0xff"
    assert await fetch_values(connection, Address, "SELECT '\\x01'::bytea UNION ALL SELECT '\\x02'") == [
        "0x01",
        "0x02",
    ]
    assert await fetch_optional(connection, HexBytes, "SELECT NULL::bytea") is None
    assert await fetch_optional(connection, HexBytes, "SELECT '\\x'::bytea") == "0x"


@pytest.mark.parametrize("column", ["1", "'0xff'::text", "NULL::bytea"])
async def test_a_column_that_is_null_or_of_another_type_raises(connection: Connection, column: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        await fetch_value(connection, Address, f"SELECT {column}")
    with pytest.raises(msgspec.ValidationError):
        await fetch(connection, tuple[Numeric, Address], f"SELECT 1::numeric, {column}")
