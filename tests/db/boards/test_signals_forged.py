"""What somebody puts on the chain to be read as a signal of another's, or to push real ones out of sight."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, cast

import asyncpg
import pytest

from roundtrip.domain.base.policy import POLICY, Policy
from roundtrip.domain.base.types import Address
from roundtrip.services.boards.signals import MAX_SHOWN, Signals, signals
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip.store.index import tokens
from roundtrip.store.server import connections
from support.tables import append_blocks, begin_index, own_database
from support.told_blocks import (
    DEAD,
    ENTRY_POINT,
    WETH,
    Chain,
    LoggedTransaction,
    executing,
    launched,
    moved,
    operated,
    sent,
    v3_at,
    v3_burnt,
    v3_minted,
    v3_opened,
    v3_swap,
)
from support.told_winners import DEPLOYER, MILLION, TOKEN, buys, curve, sells
from unit.venues.logs import NETWORK
from unit.venues.network import address

ETH, SUPPLY = 10**18, 10**27
STRANGER, BUYER, BUNDLER = address(0x57A6), address(0xB0B), address(0xB0D1)
MAIN, SIDE = 3000, 100


@dataclass
class ForgedSignalsContext:
    """What the answer needs of a context."""

    pool: asyncpg.Pool
    policy: Policy = POLICY
    contracts: Any = NETWORK
    chain_id: int = 1

    def index_pool(self) -> asyncpg.Pool:
        return self.pool

    async def signals(self, chain: Chain, supply_raw: int | None = SUPPLY) -> Signals:
        async with self.pool.acquire() as connection:
            await append_blocks(connection, await begin_index(connection, chain.parent), chain.blocks)
            if supply_raw is not None:
                await tokens.keep(connection, TOKEN, "S", None, 18, supply_raw, 1)
        return (await signals(cast(Context, self), Nothing())).answer


@pytest.fixture(scope="session")
async def ground(database_url: str) -> AsyncIterator[ForgedSignalsContext]:
    async with (
        own_database(database_url, "signals_forged") as url,
        connections.create_pool(url, min_size=1, max_size=2) as pool,
    ):
        yield ForgedSignalsContext(pool)


def begins() -> Chain:
    chain = Chain()
    chain.block(sent(launched(TOKEN, curve(TOKEN), DEPLOYER), sender=DEPLOYER), after_s=7200)
    chain.block(after_s=7200)
    return chain


def amounts(token_raw: int, quote_raw: int) -> tuple[int, int]:
    return (token_raw, quote_raw) if TOKEN < WETH else (quote_raw, token_raw)


def opens(fee: int, who: Address, eth: int, token: Address = TOKEN) -> LoggedTransaction:
    at = v3_at(token, WETH, fee)
    pair = (SUPPLY // 10, eth * ETH) if token < WETH else (eth * ETH, SUPPLY // 10)
    return sent(v3_opened(token, WETH, fee), v3_minted(at, who, eth * 10**18, *pair), sender=who)


def takes(fee: int, who: Address, eth: int, token: Address = TOKEN) -> LoggedTransaction:
    at = v3_at(token, WETH, fee)
    pair = (SUPPLY // 10, eth * ETH) if token < WETH else (eth * ETH, SUPPLY // 10)
    return sent(v3_burnt(at, who, eth * 10**18, *pair), sender=who)


def swaps(fee: int, wei: int, who: Address = BUYER) -> LoggedTransaction:
    return sent(v3_swap(v3_at(TOKEN, WETH, fee), *amounts(-MILLION, wei)), sender=who)


def shown(answer: Signals) -> list[tuple[str, str]]:
    return [(one.kind, one.wallet) for one in answer.signals]


# --- airdrops --------------------------------------------------------------------------------------


async def test_of_many_who_got_some_nobody_is_said_to_have_got_all(ground: ForgedSignalsContext) -> None:
    chain = begins()
    some = [moved(TOKEN, DEPLOYER, address(0xD00 + n), SUPPLY // 100) for n in range(99)]
    chain.block(sent(*some, moved(TOKEN, DEPLOYER, BUYER, SUPPLY // 50), sender=DEPLOYER))
    (one,) = (await ground.signals(chain)).signals
    assert (one.kind, one.other, one.recipients, one.size.supply_bps) == ("insider_moved", None, 100, 10_100)
    assert one.text.endswith(f"of the supply to 100 addresses, the largest part to {BUYER} (2.00 %).")


async def test_who_got_it_twice_is_one(ground: ForgedSignalsContext) -> None:
    chain = begins()
    for _ in range(2):
        chain.block(sent(moved(TOKEN, DEPLOYER, BUYER, SUPPLY // 50), sender=DEPLOYER))
    (one,) = (await ground.signals(chain)).signals
    assert (one.other, one.recipients, one.size.supply_bps) == (BUYER, 1, 400)
    assert one.text.endswith(f"moved 4.00 % of the supply to {BUYER}.")


# --- pools -----------------------------------------------------------------------------------------


async def test_a_strangers_pool_is_not_the_tokens(ground: ForgedSignalsContext) -> None:
    """Nothing, or next to nothing, is traded there, though he takes all out of it."""
    chain = begins()
    chain.block(opens(MAIN, DEPLOYER, 1000), *(swaps(MAIN, ETH) for _ in range(9)))
    chain.block(opens(SIDE, STRANGER, 1))
    chain.block(takes(SIDE, STRANGER, 1))
    assert shown(await ground.signals(chain)) == []
    chain.block(swaps(SIDE, ETH - 1, STRANGER))
    assert shown(await ground.signals(chain)) == []
    chain.block(swaps(SIDE, 1, STRANGER))
    assert shown(await ground.signals(chain)) == [("liquidity_left", STRANGER)], "a tenth is traded there"


async def test_many_small_trades_make_no_pool_of_weight(ground: ForgedSignalsContext) -> None:
    chain = begins()
    chain.block(opens(MAIN, DEPLOYER, 1000), swaps(MAIN, ETH))
    chain.block(opens(SIDE, STRANGER, 1), *(swaps(SIDE, 1000, STRANGER) for _ in range(50)))
    chain.block(takes(SIDE, STRANGER, 1))
    assert shown(await ground.signals(chain)) == []


async def test_the_pool_where_it_is_traded_is_told_of(ground: ForgedSignalsContext) -> None:
    chain = begins()
    chain.block(opens(MAIN, DEPLOYER, 1000), swaps(MAIN, ETH), buys(BUYER, 8.9))
    chain.block(takes(MAIN, DEPLOYER, 1000), after_s=7200)
    (one,) = (await ground.signals(chain)).signals
    assert (one.kind, one.wallet, one.size.pool_bps) == ("liquidity_left", DEPLOYER, 10_000)
    # A day later what was traded before counts no more.
    chain.block(takes(MAIN, DEPLOYER, 1000), after_s=86_400)
    assert shown(await ground.signals(chain)) == []


async def test_the_account_took_it_and_not_who_sent_its_operation(ground: ForgedSignalsContext) -> None:
    chain = begins()
    at = v3_at(TOKEN, WETH, MAIN)
    pair = amounts(SUPPLY // 10, 100 * ETH)
    put = v3_opened(TOKEN, WETH, MAIN), executing(), v3_minted(at, BUYER, 10**24, *pair)
    chain.block(sent(*put, operated(BUYER), sender=BUNDLER, to=ENTRY_POINT), swaps(MAIN, ETH))
    taken = executing(), v3_burnt(at, BUYER, 10**24, *pair), operated(BUYER)
    chain.block(sent(*taken, sender=BUNDLER, to=ENTRY_POINT))
    assert shown(await ground.signals(chain)) == [("liquidity_left", BUYER)]


# --- floods ----------------------------------------------------------------------------------------


async def test_what_cannot_be_measured_pushes_nothing_out(ground: ForgedSignalsContext) -> None:
    chain = begins()
    chain.block(buys(DEPLOYER, 3.0))
    chain.block(sells(DEPLOYER, 3.0))
    burners = [address(0xC0000 + n) for n in range(2100)]
    chain.block(*(sent(moved(TOKEN, who, DEAD, 1), sender=who) for who in burners))
    answer = await ground.signals(chain, None)
    assert shown(answer) == [("insider_sold", DEPLOYER)]
    assert "Not measured: at least 700 events" in answer.text


async def test_many_small_ones_push_no_large_one_out(ground: ForgedSignalsContext) -> None:
    """Of its own kind it is the largest, and the others have their turn."""
    chain = begins()
    chain.block(opens(MAIN, DEPLOYER, 1000), swaps(MAIN, ETH))
    chain.block(takes(MAIN, DEPLOYER, 1000))
    chain.block(sent(moved(TOKEN, BUYER, DEAD, SUPPLY // 2), sender=BUYER))
    burners = [address(0xC0000 + n) for n in range(60)]
    chain.block(*(sent(moved(TOKEN, who, DEAD, SUPPLY // 100), sender=who) for who in burners))
    fakes = [address(0xFA4E_0000 + n * 2) for n in range(120)]
    chain.block(*(sent(launched(fake, curve(fake), STRANGER), sender=STRANGER) for fake in fakes))
    chain.block(*(opens(MAIN, STRANGER, 1, fake) for fake in fakes))
    chain.block(*(sent(v3_swap(v3_at(fake, WETH), -1, 1), sender=STRANGER) for fake in fakes))
    chain.block(*(takes(MAIN, STRANGER, 1, fake) for fake in fakes))
    answer = await ground.signals(chain)
    found = shown(answer)
    assert len(found) == MAX_SHOWN
    assert ("liquidity_left", DEPLOYER) in found
    assert ("large_burn", BUYER) in found
    assert ("serial_launcher", STRANGER) in found
    blocks = [one.block for one in answer.signals]
    assert blocks == sorted(blocks, reverse=True), "the newest first"


# --- a young index ---------------------------------------------------------------------------------


async def test_an_index_of_a_minute_does_not_speak_of_an_hour(ground: ForgedSignalsContext) -> None:
    chain = Chain()
    chain.block(after_s=60)
    chain.block(after_s=60)
    answer = await ground.signals(chain)
    assert answer.text.startswith("We found no unusual event on launches.\nThe index begins at 20")
    assert answer.text.endswith("earlier events are not counted.")
    chain.block(after_s=3600)
    assert (await ground.signals(chain)).text == "We found no unusual event on launches within the last hour."
