"""Every row that is written reads back as it was, at the ends of what fits, in a real database."""

from decimal import Decimal
from typing import Any

import pytest

from roundtrip.domain.base.events import (
    LaunchedToken,
    LaunchEvent,
    LaunchMoved,
    LaunchStep,
    LiquidityChange,
    PoolPlace,
    Price,
    Spot,
    TradeEvent,
    Transfer,
    Transferred,
    WalletFunded,
    WalletMet,
)
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef, TxHash
from roundtrip.store.index import cursor, facts
from roundtrip.store.index.cursor import BLOCKS_KEPT, CHECKPOINT_BLOCKS, Ids
from roundtrip.store.server import partitions
from roundtrip.store.server.rows import Connection, as_bytes
from support.tables import all_rows
from unit.venues.logs import NETWORK
from unit.venues.network import address

MOST = 2**256 - 1
AT_S = 1_760_000_000
# Bytes that COPY's text form would take for its own: newline, tab, backslash.
TOKEN, WALLET, OTHER = Address("0x" + "5c" * 20), Address("0x" + "0a" * 20), Address("0x" + "09" * 20)
HASH = TxHash("0x" + "5c0a0d09005c4e00" * 4)
PLACE = "0x" + "5c2e" * 16
SPOT = Spot(2**31 - 1, 2**31 - 1, AT_S, HASH)
POOL = PoolPlace(PLACE, "amm_v4", TOKEN, ZERO_ADDRESS, 5, 2**24 - 1, -(2**23), OTHER, SPOT)


@pytest.fixture
async def ids(connection: Connection) -> Ids:
    """Everybody is known, and the pool; the day is there."""
    found = Ids()
    everybody = (TOKEN, WALLET, OTHER, ZERO_ADDRESS, NETWORK.weth, NETWORK.usdg)
    await facts.intern(connection, everybody, found)
    await facts.put_pools(connection, [POOL], found)
    for table in partitions.DAILY:
        await partitions.ensure(connection, table, AT_S, AT_S)
    return found


async def only(connection: Connection, table: str) -> dict[str, Any]:
    (row,) = await all_rows(connection, table, "1")
    return row


async def test_an_address_has_one_number(connection: Connection) -> None:
    one, other = Ids(), Ids()
    await facts.intern(connection, [TOKEN, WALLET, TOKEN], one)
    await facts.intern(connection, [WALLET, OTHER, TOKEN], other)
    assert {**other.addresses, **one.addresses} == other.addresses
    assert len(set(other.addresses.values())) == 3
    rows = await connection.fetch("SELECT id, address FROM facts.address WHERE id = ANY($1)", list(
        other.addresses.values()
    ))  # fmt: skip
    assert {row["id"]: row["address"] for row in rows} == {
        number: as_bytes(text) for text, number in other.addresses.items()
    }
    await facts.intern(connection, [], Ids())


async def test_a_pool_reads_back(connection: Connection, ids: Ids) -> None:
    again = Ids()
    assert await cursor.pools_at(connection, [PLACE, "0x" + "77" * 20], again) == {
        PLACE: POOL._replace(spot=SPOT._replace(tx_hash=TxHash("0x")))
    }
    assert again.pools == ids.pools


async def test_pools_of_no_money_are_found_by_either_side_and_reoriented(
    connection: Connection, ids: Ids
) -> None:
    unpaid = POOL._replace(at="0x" + "0d" * 20, token=TOKEN, quote=OTHER, in_money_from=None, hook=None)
    await facts.put_pools(connection, [unpaid], ids)
    for side in (TOKEN, OTHER):
        assert list(await cursor.pools_without_money(connection, [side], Ids())) == [unpaid.at]
    reoriented = unpaid._replace(token=OTHER, quote=TOKEN, in_money_from=7)
    await facts.reorient_pools(connection, [(TOKEN, 7)], [reoriented], ids)
    assert await cursor.launch_quotes(connection) == {TOKEN}
    (found,) = (await cursor.pools_at(connection, [unpaid.at], Ids())).values()
    assert (found.token, found.quote, found.in_money_from) == (OTHER, TOKEN, 7)
    assert await cursor.pools_without_money(connection, [TOKEN, OTHER], Ids()) == {}
    assert [pool.at for pool in await cursor.pools_of(connection, ids.addresses[OTHER], 5)] == [unpaid.at]


@pytest.mark.parametrize("threshold", [None, 0, MOST])
async def test_a_launch_and_its_steps_read_back(
    connection: Connection, ids: Ids, threshold: int | None
) -> None:
    launched = LaunchedToken(TOKEN, WALLET, OTHER, PLACE[:42], 2, threshold)
    steps = [
        LaunchStep(SPOT, LaunchMoved(TOKEN, "swept", MOST, 0)),
        LaunchStep(SPOT._replace(log_index=0), LaunchMoved(TOKEN, "rescued", None, None)),
    ]
    await facts.put_launches(connection, [LaunchEvent(SPOT, launched, OTHER)], steps, ids)
    row = await only(connection, "launch")
    assert row == {
        "token_id": ids.addresses[TOKEN], "generation": 2, "deployer_id": ids.addresses[WALLET],
        "sender_id": ids.addresses[OTHER], "quote_id": ids.addresses[OTHER], "at": as_bytes(PLACE[:42]),
        "threshold_raw": None if threshold is None else Decimal(threshold), "block_number": 2**31 - 1,
        "log_index": 2**31 - 1, "at_s": AT_S, "tx_hash": as_bytes(HASH),
        "symbol_key": None,
    }  # fmt: skip
    rescued, swept = await all_rows(connection, "launch_step", "log_index")
    assert (rescued["step"], rescued["quote_raw"], rescued["token_raw"]) == ("rescued", None, None)
    assert (swept["step"], swept["quote_raw"], swept["token_raw"]) == ("swept", Decimal(MOST), Decimal(0))
    assert (swept["tx_hash"], swept["token_id"]) == (as_bytes(HASH), ids.addresses[TOKEN])
    assert await cursor.launched_among(connection, [TOKEN, OTHER]) == {TOKEN}


@pytest.mark.parametrize(
    ("quote", "eth_wei", "micro_usd", "stored_wei"),
    [
        # Of eth and weth the amount is the value: it is not stored twice.
        (ZERO_ADDRESS, MOST, 2**63 - 1, None),
        (NETWORK.weth, MOST, None, None),
        (NETWORK.usdg, MOST, 0, Decimal(MOST)),
        (NETWORK.usdg, None, None, None),
        (OTHER, 0, 7, Decimal(0)),
    ],
)
@pytest.mark.parametrize("buys", [True, False])
async def test_a_trade_reads_back(
    connection: Connection,
    ids: Ids,
    quote: Address,
    eth_wei: int | None,
    micro_usd: int | None,
    stored_wei: Decimal | None,
    buys: bool,
) -> None:
    kept_raw = MOST if buys else None
    trade = TradeEvent(SPOT, PLACE, TOKEN, quote, WALLET, buys, MOST, MOST, eth_wei, micro_usd, kept_raw)
    await facts.put_trades(connection, [trade], NETWORK, ids)
    assert await only(connection, "trade") == {
        "micro_usd": micro_usd, "at_s": AT_S, "block_number": 2**31 - 1, "log_index": 2**31 - 1,
        "pool_id": ids.pools[PLACE], "trader_id": ids.addresses[WALLET], "buys": buys,
        "token_raw": Decimal(MOST), "quote_raw": Decimal(MOST), "eth_wei": stored_wei,
        "tx_hash": as_bytes(HASH), "kept_raw": kept_raw,
    }  # fmt: skip


@pytest.mark.parametrize("amounts", [(None, None), (MOST, -MOST), (0, None)])
async def test_liquidity_reads_back(
    connection: Connection, ids: Ids, amounts: tuple[int | None, int | None]
) -> None:
    ticks, active_raw = (-(2**23), 2**23 - 1), amounts[0]
    change = LiquidityChange(
        SPOT, PLACE, TOKEN, WALLET, OTHER, *ticks, -(2**255), *amounts, number=MOST, active_raw=active_raw
    )
    await facts.put_liquidity(connection, [change], ids)
    row = await only(connection, "liquidity")
    assert (row["liquidity_delta"], row["tick_lower"], row["tick_upper"]) == (-(2**255), -(2**23), 2**23 - 1)
    assert (row["token_raw"], row["quote_raw"]) == amounts
    assert (row["number"], row["active_raw"]) == (MOST, active_raw)
    assert (row["owner_id"], row["sender_id"]) == (ids.addresses[WALLET], ids.addresses[OTHER])
    assert (row["pool_id"], row["tx_hash"]) == (ids.pools[PLACE], as_bytes(HASH))


async def test_a_transfer_reads_back(connection: Connection, ids: Ids) -> None:
    moved = Transfer(SPOT, Transferred(TOKEN, WALLET, OTHER, MOST), WALLET)
    await facts.put_transfers(connection, [moved], ids)
    row = await only(connection, "transfer")
    assert (row["token_id"], row["from_id"], row["to_id"]) == tuple(
        ids.addresses[one] for one in (TOKEN, WALLET, OTHER)
    )
    assert (row["amount_raw"], row["tx_hash"]) == (MOST, as_bytes(HASH))


async def test_prices_read_back_the_newest_of_each_quote(connection: Connection, ids: Ids) -> None:
    assert await cursor.newest_prices(connection) == {}
    old = [Price(WALLET, number, AT_S, PLACE, number, MOST) for number in (3, 9, 5)]
    newest = Price(TOKEN, 4, AT_S, PLACE, MOST, 0)
    await facts.put_prices(connection, [*old, newest], ids)
    assert await cursor.newest_prices(connection) == {WALLET: old[1], TOKEN: newest}


async def test_origins_stay_as_they_were_first_told(connection: Connection, ids: Ids) -> None:
    await facts.put_origins(connection, [WalletMet(WALLET, 5, AT_S)], [], ids)
    await facts.put_origins(
        connection, [WalletMet(WALLET, 6, AT_S + 1)], [WalletFunded(WALLET, OTHER, 7, AT_S)], ids
    )
    await facts.put_origins(
        connection, [], [WalletFunded(WALLET, TOKEN, 8, AT_S), WalletFunded(OTHER, TOKEN, 8, 8)], ids
    )
    assert await only(connection, "origin") == {
        "wallet_id": ids.addresses[WALLET], "first_number": 5, "first_s": AT_S,
        "funder_id": ids.addresses[OTHER], "funded_number": 7, "funded_s": AT_S,
    }  # fmt: skip


async def test_who_had_eth_from_elsewhere_has_no_funder_for_ever(connection: Connection, ids: Ids) -> None:
    """Whether it is told with his being met, or later."""
    elsewhere, paid = WalletFunded(WALLET, None, 5, AT_S), WalletFunded(WALLET, OTHER, 6, AT_S)
    for met, answer in (([WalletMet(WALLET, 5, AT_S)], [elsewhere, paid]), ([], [elsewhere])):
        await connection.execute("TRUNCATE facts.origin")
        await facts.put_origins(connection, [WalletMet(WALLET, 5, AT_S)], [], ids)
        await facts.put_origins(connection, met, answer, ids)
        await facts.put_origins(connection, [], [paid], ids)
        await facts.put_origins(connection, [WalletMet(WALLET, 7, AT_S)], [paid], ids)
        row = await only(connection, "origin")
        assert (row["funder_id"], row["funded_number"], row["funded_s"]) == (None, 5, AT_S)


# --- the cursor and the blocks ---------------------------------------------------------------------


def ref(number: int) -> BlockRef:
    return BlockRef(number, f"0x{number + 1:064x}", AT_S + number)


async def test_the_cursor_moves_only_from_where_it_stands(connection: Connection) -> None:
    assert await cursor.cursor(connection) is None
    assert await cursor.advance(connection, ref(9).hash, ref(10)) is None
    await cursor.begin(connection, 10, ref(9))
    await cursor.begin(connection, 77, ref(76))
    assert await cursor.cursor(connection) == cursor.Cursor(10, ref(9))
    assert await cursor.advance(connection, ref(8).hash, ref(10)) is None
    assert await cursor.advance(connection, ref(9).hash, ref(12)) == 0
    assert await cursor.advance(connection, ref(9).hash, ref(10)) is None
    assert await cursor.cursor(connection) == cursor.Cursor(10, ref(12))


async def test_whoever_changes_what_was_folded_is_counted(connection: Connection) -> None:
    assert await cursor.lock_for_refold(connection) is None
    await cursor.begin(connection, 0, ref(0))
    assert await cursor.lock_for_refold(connection) == 0
    assert await cursor.advance(connection, ref(0).hash, ref(1)) == 1


@pytest.mark.parametrize("width", [1, 7, 700, BLOCKS_KEPT, 3 * BLOCKS_KEPT])
async def test_blocks_are_kept_for_a_window_and_every_so_many_for_ever(
    connection: Connection, width: int
) -> None:
    # Narrow ones only round the window's edges: all of them would take a minute.
    last = 3 * BLOCKS_KEPT if width > 7 else BLOCKS_KEPT + 20
    first = 1 if width > 7 else BLOCKS_KEPT - 10
    if first > 1:
        await cursor.keep_blocks(connection, [ref(n) for n in range(1, first)])
    for start in range(first, last + 1, width):
        await cursor.keep_blocks(connection, [ref(n) for n in range(start, min(start + width, last + 1))])
    window = range(last - BLOCKS_KEPT + 1, last + 1)
    older = [n for n in range(1, window.start) if n % CHECKPOINT_BLOCKS == 0]
    assert await cursor.stored_blocks(connection) == [ref(n) for n in (*older, *window)]


async def test_the_first_number_is_none_without_addresses(connection: Connection) -> None:
    before = await cursor.highest_address_id(connection)
    ids = Ids()
    await facts.intern(connection, [address(0xFACE)], ids)
    assert await cursor.highest_address_id(connection) == ids.addresses[address(0xFACE)] > before
