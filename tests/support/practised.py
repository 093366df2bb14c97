"""Practice trades over the service's own means, and a wallet that really holds as much."""

from decimal import Decimal
from typing import Any

import pytest

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import WEI_PER_ETH, ZERO_ADDRESS, Address
from roundtrip.services.practice.account import practice_account, practice_trades
from roundtrip.services.practice.buy import practice_buy
from roundtrip.services.practice.schema import PracticeBuyParams, PracticeSellParams
from roundtrip.services.practice.sell import practice_sell
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import Nothing
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.keys import Clock
from support.practising import read
from support.trader import Market, Trader
from support.wallet import Fill, Wallet

ETH = WEI_PER_ETH


async def buys(shop: Context, account: Account, token: str, eth: str) -> dict[str, Any]:
    """On the newest block."""
    return read((await practice_buy(shop, PracticeBuyParams(token, eth), account, None)).answer)


async def sells(shop: Context, account: Account, token: str, percent: float = 100) -> dict[str, Any]:
    return read((await practice_sell(shop, PracticeSellParams(token, percent), account, None)).answer)


async def account_of(shop: Context, account: Account) -> dict[str, Any]:
    return read((await practice_account(shop, Nothing(), account)).answer)


def wei(eth: str) -> int:
    return int(Decimal(eth) * ETH)


class Holder:
    """A real wallet that bought of a token where that is traded, and has its own way to sell."""

    def __init__(self, shop: Context, rpc: SyncRpc, built: Built, token: str) -> None:
        assert shop.heads.venue_index is not None
        # What was launched on a curve that is sold out trades in its pool, which was known last.
        self.venue = shop.heads.venue_index.venues_of(Address(token))[-1]
        self.token, self.wallet = token, Wallet(rpc, built.contracts, f"holds {token}", eth=50)
        curve = self.venue.pool if self.venue.kind == "launchpad_curve" else None
        self.trader = Trader(
            self.wallet,
            built.contracts,
            Market(
                token,
                self.venue.quote_address,
                curve or "",
                self.venue.fee_pips,
                self.venue.tick_spacing,
                self.venue.hook or ZERO_ADDRESS,
            ),
        )

    def buy(self) -> None:
        """More than a practice account is given."""
        raw = 2 * ETH // 10
        if self.venue.quote == "usdg":
            raw = 700 * 10**6
            self.wallet.get_usdg(raw)
        if self.venue.kind == "amm_v3":
            assert self.wallet.buy(self.token, self.venue.quote, self.venue.fee_pips, raw)
        else:
            assert self.trader.buy(raw)

    def sell(self, raw: int) -> Fill:
        if self.venue.kind == "amm_v3":
            return self.wallet.sell(self.token, self.venue.quote, self.venue.fee_pips, raw)
        return self.trader.sell(raw)


def pass_s(rpc: SyncRpc, clock: Clock, seconds: int) -> None:
    """For everybody."""
    clock.now_s += seconds
    rpc.call("evm_increaseTime", seconds)
    rpc.call("evm_mine")


async def refused(shop: Context, account: Account, token: str, stuck: bool = False) -> str:
    """A sell that the chain refuses, and the position stands unvalued. ``stuck``: it cannot be sold, by the
    check. Why."""
    with pytest.raises(CallerFault) as raised:
        await sells(shop, account, token)
    assert raised.value.code == "would_fail"
    (position,) = (await account_of(shop, account))["positions"]
    assert (position["worth"], position["gain"]) == (None, None)
    assert (position["stuckAt"] is not None) is stuck
    lines = read((await practice_trades(shop, Nothing(), account)).answer)["trades"]
    assert [line["side"] for line in lines] == ["buy"]
    return raised.value.message
