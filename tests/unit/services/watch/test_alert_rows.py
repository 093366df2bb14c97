"""The row of an alert: what it is told with, and what strangers wrote."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.watch.alerts import Alert, Draft
from roundtrip.services.support.alert_rows import AlertRow, rows

WALLET, TOKEN = Address("0x" + "c0" * 20), Address("0x" + "70" * 20)
TX = TxHash("0x" + "ab" * 32)
SAID = "Somebody bought something."
DRAFT = Draft(
    account_id=7,
    kind="rule",
    source_id=3,
    at_s=1_760_000_000,
    said=SAID,
    verb="buying",
    who="any",
    wallet=WALLET,
    token=TOKEN,
    eth_wei=1_500_000_000_000_000_000,
    micro_usd=5_250_000_000,
    share_ppm=12_345,
    tx_hash=TX,
    block_number=99,
    log_index=4,
    rule="any buying over 1 eth",
)


def encode_row(alert: Alert) -> dict[str, Any]:
    (row,) = rows([alert])
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(row))
    assert msgspec.convert(found, AlertRow) == row
    return found


def test_a_hit_with_all_of_it() -> None:
    assert encode_row(Alert(5, DRAFT, symbol="FRESH")) == {
        "id": 5,
        "kind": "rule",
        "who": "any",
        "verb": "buying",
        "wallet": WALLET,
        "token": TOKEN,
        "symbol": "FRESH",
        "eth": 1.5,
        "usd": 5250.0,
        "pct": 1.2345,
        "tx": TX,
        "block": 99,
        "ts": "2025-10-09T08:53:20Z",
        "rule": "any buying over 1 eth",
        "text": SAID,
        "link": None,
    }


def test_a_row_about_a_token_has_a_link_where_people_can_reach_the_service() -> None:
    reachable = "https://trip.example"
    assert [row.link for row in rows([Alert(5, DRAFT), Alert(6, replace(DRAFT, token=None))], reachable)] == [
        f"https://trip.example/token/{TOKEN}",
        None,
    ]


def test_what_is_about_no_fact_has_nothing_of_one() -> None:
    found = encode_row(Alert(6, Draft(7, "service", 2, 1_760_000_000, "A channel was switched off.")))
    is_null = {name for name, value in found.items() if value is None}
    assert is_null == {
        "who", "verb", "wallet", "token", "symbol", "eth", "usd", "pct", "tx", "block", "rule", "link",
    }  # fmt: skip


def test_what_was_taken_back_says_so_and_keeps_its_id_and_facts() -> None:
    was, found = encode_row(Alert(5, DRAFT)), encode_row(Alert(5, DRAFT, retracted=True))
    assert found["verb"] == "retracted"
    assert found["text"] == f"Retracted, a reorg removed it: {SAID}"
    assert {**found, "verb": was["verb"], "text": was["text"]} == was


@pytest.mark.parametrize(
    ("symbol", "shown"),
    [
        ("FR\u200bSH\n\u202eX", "FRSH X"),
        ("W" * 100, "W" * 32),
        ("\u3164\u2063", None),
        ("", None),
        (None, None),
    ],
)
def test_symbols_are_cleaned_and_cut(symbol: str | None, shown: str | None) -> None:
    assert encode_row(Alert(5, DRAFT, symbol=symbol))["symbol"] == shown


def test_numbers_are_finite_however_large_and_zero_is_not_null() -> None:
    most = replace(DRAFT, eth_wei=2**256 - 1, micro_usd=2**256 - 1, share_ppm=2**63 - 1)
    found = encode_row(Alert(5, most))
    assert found["eth"] == pytest.approx((2**256 - 1) / 10**18)
    assert found["usd"] == pytest.approx((2**256 - 1) / 10**6)
    found = encode_row(Alert(5, replace(DRAFT, eth_wei=0, micro_usd=0, share_ppm=0)))
    assert (found["eth"], found["usd"], found["pct"]) == (0.0, 0.0, 0.0)


def test_rows_keep_their_order() -> None:
    assert [row.id for row in rows([Alert(9, DRAFT), Alert(2, DRAFT), Alert(5, DRAFT)])] == [9, 2, 5]


def test_a_followed_wallet_without_a_name_is_its_address() -> None:
    follow = replace(DRAFT, kind="follow", rule=None)
    assert encode_row(Alert(5, replace(follow, who="Whale1")))["who"] == "Whale1"
    assert encode_row(Alert(5, replace(follow, who="")))["who"] == WALLET
