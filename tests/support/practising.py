"""Accounts that practise, with what others tell of worth and of the league made up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.domain.accounts import keys
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.base.venue import Venue
from roundtrip.services.practice import buy, sell
from roundtrip.services.practice.schema import PracticeBuyParams, PracticeSellParams
from roundtrip.services.runtime.context import Context
from roundtrip.services.valuation.holdings import HoldingToSell, SellValue, Valued
from roundtrip.store.practice import practice as store
from roundtrip.store.server.rows import Connection
from support.keys import Person, account_of_key, key_for

UNIT = 10**18
VENUE = Venue("amm_v3", "eth", ZERO_ADDRESS, Address("0x" + "77" * 20), 3000)


async def new_account(ctx: Context) -> Account:
    key = (await key_for(ctx, Person()))["key"]
    async with ctx.pool.acquire() as connection:
        found = await account_of_key(connection, keys.hash_of(key))
    assert found is not None
    return found


async def a_slot(ctx: Context, head: ChainHead, token: Address, meter: Meter) -> BalanceSlot | None:
    return BalanceSlot(token, "solidity", 3)


async def counts(
    connection: Connection,
    account: Account,
    token: Address,
    profit_wei: int,
    block: BlockRef,
    now: datetime,
    **where: object,
) -> str | None:
    return None if profit_wei >= 0 else "it lost"


@dataclass
class Appraiser:
    """Says what it is told to of every holding; ``asked``: each of its trips."""

    says: Valued = field(default_factory=lambda: SellValue(UNIT, VENUE))
    asked: list[list[HoldingToSell]] = field(default_factory=list)

    async def __call__(
        self, ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], meter: Meter
    ) -> list[Valued]:
        self.asked.append(list(holdings))
        return [self.says for _ in holdings]


BUYS = buy.BuyPricing(slot_of=a_slot)


async def bought(
    ctx: Context, account: Account, token: str, eth: str, once: str | None = None, means: Any = BUYS
) -> dict[str, Any]:
    """Through the parameters' own checks, as a caller reads it. Raises as the use case does."""
    params = msgspec.convert({"token": token, "eth": eth}, PracticeBuyParams)
    return read(await buy.buy(ctx, params, account, once, means, Meter()))


async def sold(
    ctx: Context,
    account: Account,
    token: str,
    appraiser: Appraiser,
    percent: float = 100,
    once: str | None = None,
) -> dict[str, Any]:
    """The same of a sell."""
    means = sell.SellPricing(worth=appraiser, slot_of=a_slot, count_sell=counts)
    params = msgspec.convert({"token": token, "percent": percent}, PracticeSellParams)
    return read(await sell.sell(ctx, params, account, once, means, Meter()))


def read(answer: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(answer))
    return found


async def conserved(connection: Connection, account_id: int) -> None:
    """No wei and no token of an account was made or lost, by its ledger."""
    kept = await store.account(connection, account_id)
    if kept is None:
        return
    rows = await connection.fetch("SELECT * FROM accounts.practice_trade WHERE account_id = $1", account_id)
    of = {
        side: [row for row in rows if row["side"] == side] for side in ("buy", "sell", "gift", "written_off")
    }
    paid, got = (sum(int(row["eth_wei"]) for row in of[side]) for side in ("buy", "sell"))
    assert kept.eth_wei + kept.apart_wei == kept.given_wei - paid + got
    gains = sum(int(row["profit_wei"]) for row in of["sell"] if not row["counted"] and row["profit_wei"] > 0)
    assert kept.apart_wei == gains
    assert kept.given_wei == UNIT + sum(int(row["eth_wei"]) for row in of["gift"])
    positions = await connection.fetch(
        "SELECT * FROM accounts.practice_position WHERE account_id = $1", account_id
    )
    assert {row["token"] for row in positions} == {row["token"] for row in of["buy"]}
    for one in positions:
        own = {side: [row for row in of[side] if row["token"] == one["token"]] for side in of}
        came = sum(row["token_raw"] for row in own["buy"])
        gone = sum(row["token_raw"] for row in (*own["sell"], *own["written_off"]))
        cost = sum(row["cost_wei"] for row in (*own["sell"], *own["written_off"]))
        assert one["held_raw"] == came - gone
        assert one["cost_wei"] == sum(row["eth_wei"] for row in own["buy"]) - cost
    for row in (*of["sell"], *of["written_off"]):
        assert row["profit_wei"] == row["eth_wei"] - row["cost_wei"]
