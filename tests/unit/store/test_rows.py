"""Rows of the driver become records, by the records' own annotations."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
import pytest

from roundtrip.domain.base.types import Address, HexBytes, Numeric, TxHash
from roundtrip.store.server.rows import JsonObject, read


class DriverRecord:
    """What ``asyncpg.Record`` offers to a reader; that class cannot be constructed."""

    def __init__(self, **columns: object) -> None:
        self.columns = columns

    def keys(self) -> Iterator[str]:
        return iter(self.columns)

    def __iter__(self) -> Iterator[object]:
        return iter(self.columns.values())


def read_one(row_type: Any, **columns: object) -> Any:
    [row] = read([DriverRecord(**columns)], row_type)  # type: ignore[list-item]
    return row


class SpotRow(NamedTuple):
    block_number: int
    tx_hash: TxHash


@dataclass(frozen=True, slots=True)
class Proof:
    by: Literal["run", "sold"]
    wei: Numeric | None


class Plain(NamedTuple):
    id: int
    made_at: datetime
    labels: list[str]


class Trade(NamedTuple):
    wallet: Address
    hook: Address | None
    at: HexBytes
    token_raw: Numeric
    eth_wei: Numeric | None
    others: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class SaleRow:
    wire: ClassVar[str] = "Sale"

    id: int
    spot: SpotRow
    proof: Proof | None
    price: Numeric


WALLET, HASH = b"\x12" * 20, b"\xab" * 32
SALE = {"id": 7, "block_number": 5, "tx_hash": HASH, "by": "run", "wei": Decimal(3), "price": Decimal(10**30)}


def test_a_record_without_conversions_is_as_the_driver_returns_it() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert read_one(Plain, id=1, made_at=now, labels=["a"]) == Plain(1, now, ["a"])


def test_bytes_become_hex_and_numeric_becomes_int() -> None:
    trade = read_one(
        Trade,
        wallet=WALLET,
        hook=WALLET,
        at=b"\x01\xff",
        token_raw=Decimal(10**27),
        eth_wei=Decimal(-5),
        others=[WALLET, b"\0" * 20],
    )
    wallet = Address("0x" + "12" * 20)
    assert trade == Trade(wallet, wallet, "0x01ff", 10**27, -5, (wallet, Address("0x" + "00" * 20)))
    assert type(trade.token_raw) is int


def test_a_numeric_that_was_cast_to_text_becomes_int() -> None:
    assert read_one(tuple[Numeric, Numeric | None], a="-12", b=None) == (-12, None)


def test_an_object_of_json_is_decoded() -> None:
    assert read_one(tuple[int, JsonObject], id=1, payload='{"token": "0x"}') == (1, {"token": "0x"})
    with pytest.raises(msgspec.ValidationError):
        read_one(tuple[int, JsonObject], id=1, payload="[]")


def test_null_becomes_none_where_the_field_is_optional() -> None:
    trade = read_one(Trade, wallet=WALLET, hook=None, at=b"", token_raw="1", eth_wei=None, others=[])
    assert (trade.hook, trade.at, trade.eth_wei, trade.others) == (None, "0x", None, ())


def test_a_nested_record_takes_its_own_columns() -> None:
    sale = read_one(SaleRow, **SALE)
    assert sale == SaleRow(7, SpotRow(5, TxHash("0x" + "ab" * 32)), Proof("run", 3), 10**30)


def test_an_optional_nested_record_is_none_where_all_its_columns_are_null() -> None:
    rows: Any = [DriverRecord(**SALE), DriverRecord(**{**SALE, "by": None, "wei": None})]
    assert [sale.proof for sale in read(rows, SaleRow)] == [Proof("run", 3), None]


def test_a_tuple_is_a_key_and_a_record_or_a_value() -> None:
    assert read_one(tuple[Address, str | None], token=WALLET, symbol=None) == ("0x" + "12" * 20, None)
    assert read_one(tuple[int, Proof], nth=1, by="sold", wei=None) == (1, Proof("sold", None))


def test_no_row_is_no_record() -> None:
    assert read([], SaleRow) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "7"},
        {"id": None},
        {"tx_hash": "0xab"},
        {"tx_hash": None},
        {"by": "given"},
        {"by": None},
        {"price": None},
        {"price": 5},
        {"price": 1.5},
        {"price": "many"},
        {"wei": b"1"},
    ],
)
def test_another_type_raises(wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_one(SaleRow, **{**SALE, **wrong})


@pytest.mark.parametrize("others", [[WALLET, None], ["0x12"], None])
def test_another_type_within_a_list_raises(others: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        read_one(Trade, wallet=WALLET, hook=None, at=b"", token_raw=Decimal(1), eth_wei=None, others=others)


def test_another_name_or_order_raises() -> None:
    renamed = {("cost" if name == "price" else name): value for name, value in SALE.items()}
    for columns in (renamed, dict(reversed(SALE.items())), {**SALE, "more": 1}, {"id": 7}):
        with pytest.raises(TypeError, match="the query returns"):
            read_one(SaleRow, **columns)
    with pytest.raises(TypeError, match="the query returns"):
        read_one(tuple[int, Proof], nth=1, proof_by="sold", wei=None)
