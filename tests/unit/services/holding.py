"""A token whose holders are known, for what is said of them."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from roundtrip.domain.base.types import BURN_ADDRESS, Address, BlockRef
from roundtrip.domain.holders.book import HolderColumns, InsiderLedger
from roundtrip.domain.holders.findings import HolderInputs, KnownWallet
from roundtrip.services.holder_record.findings import HolderRecord
from roundtrip.store.holders.smart_money import BoardRow, SmartCrowd, WinningClose
from unit.domain.holding import (
    AT_S,
    DEPLOYER,
    LOCKER,
    POOL,
    TOKEN,
    FilledBook,
    address,
    book,
    find_holders,
    launch,
    paid_by,
)

A, B, C, D, E = (address(number) for number in range(0xA1, 0xA6))
FUNDER = address(0xB1)
DAY_S = 86_400
NOW_S = AT_S + 10 * DAY_S
SUPPLY_RAW = 10_000 * 10**18
UNIT = 10**18
LAUNCHED = launch((A, 300 * UNIT, 9), (B, 200 * UNIT, 9), (C, 100 * UNIT), (DEPLOYER, 50 * UNIT))


WIN = WinningClose(address(0xC0FFEE), "W\u202eIN", 2 * UNIT, 5 * UNIT, AT_S)


def the_book(**changes: Any) -> FilledBook:
    """A, B and C bought at the launch with eth of one funder; B sold out. D came later."""
    made = book(
        {
            A: HolderColumns(300 * UNIT, 300 * UNIT, 300 * UNIT, 0, 0, 30 * 10**6, AT_S, AT_S),
            B: HolderColumns(0, 200 * UNIT, 200 * UNIT, 200 * UNIT, 0, 20 * 10**6, AT_S, AT_S),
            C: HolderColumns(50 * UNIT, 100 * UNIT, 100 * UNIT, 50 * UNIT, 0, None, AT_S, AT_S),
            D: HolderColumns(1000 * UNIT, 1000 * UNIT, 0, 0, 0, 0, AT_S, None),
            DEPLOYER: 40 * UNIT,
            POOL: 8000 * UNIT,
            LOCKER: 500 * UNIT,
            BURN_ADDRESS: 100 * UNIT,
        },
        LAUNCHED,
        {DEPLOYER: InsiderLedger(50 * UNIT, 50 * UNIT, 10 * UNIT, 0, 0, 0)},
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def the_told(**changes: Any) -> HolderInputs:
    wallets = paid_by(FUNDER, A, B, C)
    wallets[A] = replace(wallets[A], first_s=AT_S - DAY_S)
    wallets[D] = KnownWallet(first_s=NOW_S - 100 * DAY_S, is_contract=True)
    return replace(
        find_holders(the_book(), SUPPLY_RAW, wallets=wallets, families={FUNDER: 3}, winners=(A,)), **changes
    )


def gathered(**changes: Any) -> HolderRecord:
    """A token whose every transfer was read."""
    whole = HolderRecord(
        chain_id=4663,
        token=TOKEN,
        symbol="PEPE",
        decimals=18,
        supply_raw=SUPPLY_RAW,
        block=BlockRef(2_000, "0x" + "ab" * 32, NOW_S),
        checked_s=NOW_S + 1,
        status="complete",
        transfers_read=1234,
        inputs=the_told(),
        launch=LAUNCHED,
        market_cap_micro_usd=Fraction(5_000 * 10**6),
        winners=(),
        biggest_wins=dict.fromkeys((A, B, C, D, E), WIN),
        crowd=SmartCrowd(4, {}),
    )
    return replace(whole, **changes)


def winner(wallet: Address, **changes: Any) -> BoardRow:
    return replace(BoardRow(wallet, "24h", 3, 2 * UNIT, 4, 3), **changes)
