"""What insiders did with a launch's tokens, by an obvious look at every sell and every transfer alone."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address
from roundtrip.domain.transaction.account import account_at, operations
from roundtrip.store.server.rows import Connection
from roundtrip.sync.ledger import decode_blocks
from roundtrip.venues.decode import Decoder
from roundtrip.venues.entry_point import ENTRY_POINTS
from support.tables import all_rows
from support.told_blocks import WETH, Chain
from unit.venues.logs import NETWORK

Row = dict[str, Any]
MACHINERY = NETWORK.all_addresses() | ENTRY_POINTS


def doers(chain: Chain) -> dict[tuple[int, int], Address]:
    """Whose transaction or operation each log was, by block and log."""
    found = {}
    for block in decode_blocks(chain.blocks, Decoder(NETWORK)):
        ran = operations(block.events)
        for tx_index, log_index, _ in block.events:
            sender = Address(block.transactions[tx_index].sender)
            found[block.ref.number, log_index] = account_at(ran, log_index) or sender
    return found


@dataclass(frozen=True, slots=True)
class Insiders:
    """Who made each launch, and whom each wallet had its first eth from."""

    launches: Mapping[int, Row]
    funders: Mapping[int, Row]

    def has(self, row: Row, wallet_id: int, own: bool = True) -> bool:
        """Whether the wallet was one when that happened; ``own``: it did it itself."""
        launch = self.launches.get(row["token_id"])
        if launch is None or launch["block_number"] > row["block_number"]:
            return False
        funded = self.funders.get(wallet_id)
        by_deployer = (
            own
            and funded is not None
            and funded["funder_id"] == launch["deployer_id"]
            and funded["funded_number"] <= row["block_number"]
        )
        return launch["deployer_id"] == wallet_id or by_deployer


async def read_table(connection: Connection, table: str) -> list[Row]:
    rows: list[Row] = await all_rows(connection, table, "1")
    return rows


def deed(row: Row, what: str, wallet_id: int, other_id: int | None, token_raw: int) -> Row:
    same = {name: row[name] for name in ("block_number", "log_index", "at_s", "token_id", "tx_hash")}
    return same | {
        "what": what, "wallet_id": wallet_id, "other_id": other_id, "token_raw": token_raw,
        "eth_wei": None,
    }  # fmt: skip


async def deeds_inside(connection: Connection, chain: Chain) -> list[Row]:
    """In the order of the chain."""
    by = doers(chain)
    rows = {name: await read_table(connection, name) for name in ("address", "launch", "origin", "pool")}
    by_id = {row["id"]: Address("0x" + row["address"].hex()) for row in rows["address"]}
    launches = {row["token_id"]: row for row in rows["launch"]}
    insiders = Insiders(launches, {row["wallet_id"]: row for row in rows["origin"] if row["funder_id"]})
    pools = {row["id"]: row for row in rows["pool"]}
    opened = {"0x" + row["at"].hex(): row["block_number"] for row in pools.values()}
    found: list[Row] = []
    unsold: dict[tuple[bytes, int, int], int] = defaultdict(int)
    places: dict[bytes, set[str]] = defaultdict(set)
    for trade in await read_table(connection, "trade"):
        pool = pools[trade["pool_id"]]
        trade["token_id"] = pool["token_id"]
        if trade["buys"]:
            continue
        unsold[trade["tx_hash"], pool["token_id"], trade["trader_id"]] += trade["token_raw"]
        places[trade["tx_hash"]].add("0x" + pool["at"].hex())
        if insiders.has(trade, trade["trader_id"]):
            eth = by_id[pool["quote_id"]] in (ZERO_ADDRESS, WETH)
            wei = trade["quote_raw"] if eth else trade["eth_wei"]
            found.append(deed(trade, "sold", trade["trader_id"], None, trade["token_raw"]) | {"eth_wei": wei})
    transfers = sorted(
        await read_table(connection, "transfer"), key=lambda row: (row["block_number"], row["log_index"])
    )
    for is_direct in (True, False):
        for row in transfers:
            giver, taker = by_id[row["from_id"]], by_id[row["to_id"]]
            if giver == ZERO_ADDRESS:
                continue
            if taker in BURN_ADDRESSES:
                if is_direct and row["token_id"] in launches:
                    found.append(deed(row, "burned", row["from_id"], row["to_id"], row["amount_raw"]))
                continue
            if is_direct is not (taker in MACHINERY or taker in places[row["tx_hash"]]):
                continue
            if not is_direct and (giver == taker or giver in MACHINERY):
                continue
            key = row["tx_hash"], row["token_id"], row["from_id"]
            sold_raw = min(unsold[key], row["amount_raw"])
            unsold[key] -= sold_raw
            left_raw = row["amount_raw"] - sold_raw
            is_place = opened.get(taker, 2**31) <= row["block_number"]
            own = by[row["block_number"], row["log_index"]] == giver
            if not is_direct and left_raw and not is_place and insiders.has(row, row["from_id"], own):
                found.append(deed(row, "moved", row["from_id"], row["to_id"], left_raw))
    return sorted(found, key=lambda row: (row["block_number"], row["log_index"]))
