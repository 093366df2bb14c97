"""What strangers put beside a token, hooks of their own and pools that hold one side of a market alone; and
whether a check still tells what a real wallet meets."""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, log

from eth_abi.abi import encode

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import CompletedBuy, Evidence, Sold, VenueEvidence
from roundtrip.domain.check.price import token_usd
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import (
    MAX,
    PERMIT2,
    ZERO,
    ContractDeployer,
    calldata,
    put_token,
    v3_pool,
    v4_pool,
)
from roundtrip_development.devnet.launchpad import mine_salt
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.gathering import gather_evidence
from support.trader import Market, MarketTrader
from support.wallet import Fill, Wallet

ETH = 10**18
PROBE_WEI = POLICY.probe_wei
FAIR = PoolPlan(quote_milli=20_000, supply_bps=7000)
"""20 eth and 0.3 %: what an honest token trades in here."""
DYNAMIC = 0x800000
"""Stands for the fee in the key of a pool whose hook sets it."""

FLAGS = {
    "pays_back": 0x0080,
    "floods": 0x0080,
    "burns_gas": 0x0080,
    "no_gain": 0x00C0,
    "kind_at_first": 0x0080,
    "keeps_large": 0x0080,
    "revert_on_sell": 0x0080,
    "singles_out": 0x0080,
}
"""What v4 reads off the last 14 bits of a hook's address, by the hook's file name."""

_KEY = "(address,address,uint24,int24,address)"
_EDGE = 887_272
_MINT, _SETTLE_PAIR = 0x02, 0x0D


class Parties:
    """Who has to do with a token: ``owner`` made it, ``stranger`` has nothing to do with it."""

    def __init__(self, rpc: SyncRpc, built: Built) -> None:
        self.contracts = built.contracts
        self.owner = ContractDeployer(rpc, built.accounts[0])
        self.stranger = ContractDeployer(rpc, built.accounts[9])

    def honest(self, *pools: PoolPlan, hooks: dict[str, str] | None = None) -> str:
        """A plain token with these pools, and a tenth of its supply in the stranger's hands."""
        story = Story("", "", "tokens/plain.vy", "Honest", "HON", pools=pools)
        code = compile_contract(PROJECT / "contracts" / story.source)
        token = put_token(self.owner, self.contracts, story, code, hooks)
        self.give(token, self.stranger.account, 10**8 * 10**18)
        self.owner.check_receipts()
        return token

    def put_v4(self, token: str, plan: PoolPlan) -> None:
        """A v4 eth pool of the owner's, filled."""
        supply_raw = 10**9 * ETH
        amounts = {token: supply_raw * plan.supply_bps // 10_000, ZERO: plan.quote_milli * ETH // 1000}
        v4_pool(self.owner, self.contracts, amounts, plan.fee_pips, True, ZERO, plan.tick_spacing)
        self.owner.check_receipts()

    def give(self, token: str, to: str, amount_raw: int) -> None:
        """So much of a token that the owner has."""
        self.owner.receipt(self.owner.send(token, calldata("transfer(address,uint256)", to, amount_raw)))

    def hook(self, stem: str, *extra: bool) -> str:
        """A hook of the stranger's, for pools whose quote is native eth; its address."""
        folder, who = PROJECT / "contracts" / "zoo" / "hooks", self.stranger
        helper = who.create(compile_contract(folder / "create2_deployer.vy"))
        types = ["address", "address", *["bool"] * len(extra)]
        arguments = encode(types, [self.contracts["v4PoolManager"], ZERO, *extra])
        code = bytes.fromhex(compile_contract(folder / f"{stem}.vy")[2:]) + arguments
        salt, address = mine_salt(helper, code, FLAGS[stem])
        who.receipt(who.send(helper, calldata("create(bytes,bytes32)", code, salt)))
        return address

    def empty_pool(self, market: Market) -> None:
        """A v4 pool of the stranger's with nothing in it, at one for one."""
        create = calldata(f"initialize({_KEY},uint160)", market.key(), 2**96)
        self.stranger.receipt(self.stranger.send(self.contracts["v4PoolManager"], create))

    def token_alone(
        self, market: Market, tokens_per_eth: int, tokens_raw: int, steps: int | None = None
    ) -> None:
        """A v4 eth pool of the stranger's with the token alone in it: it sells from that price upwards, over
        so many tick spacings, and has no eth to buy with but what buyers leave there."""
        who, key, spacing = self.stranger, market.key(), market.tick_spacing
        sqrt_price_x96 = isqrt(tokens_per_eth << 192)
        create = calldata(f"initialize({_KEY},uint160)", key, sqrt_price_x96)
        who.send(self.contracts["v4PoolManager"], create)
        manager = self.contracts["v4PositionManager"]
        who.send(market.token, calldata("approve(address,uint256)", PERMIT2, MAX))
        allow = "approve(address,address,uint160,uint48)"
        who.send(PERMIT2, calldata(allow, market.token, manager, 2**160 - 1, 2**40))
        # Eth is currency 0, so a dearer token is a lower tick.
        top = int(log(tokens_per_eth, 1.0001)) // spacing * spacing
        bottom = top - steps * spacing if steps else -(_EDGE // spacing * spacing)
        liquidity = int(0.999 * tokens_raw / (1.0001 ** (top / 2) - 1.0001 ** (bottom / 2)))
        position = encode(
            [_KEY, "int24", "int24", "uint256", "uint128", "uint128", "address", "bytes"],
            [key, bottom, top, liquidity, 0, tokens_raw, who.account, b""],
        )
        pair = encode(["address", "address"], [ZERO, market.token])
        steps_taken = encode(["bytes", "bytes[]"], [bytes([_MINT, _SETTLE_PAIR]), [position, pair]])
        who.send(manager, calldata("modifyLiquidities(bytes,uint256)", steps_taken, 2**40))
        who.check_receipts()

    def eth_alone(self, money: str, per_eth_raw: int, eth: int) -> None:
        """A standard v3 pool of the stranger's with weth alone in it, at an absurd price of that money:
        nobody can get at the weth for less."""
        who, weth = self.stranger, self.contracts["weth"]
        who.send(weth, calldata("deposit()"), eth * ETH)
        who.send(weth, calldata("approve(address,uint256)", self.contracts["v3PositionManager"], MAX))
        amounts = {money: per_eth_raw * eth, weth: eth * ETH}
        v3_pool(who, self.contracts, amounts, 3000, fill=True, only=weth)
        who.check_receipts()


def pass_time(rpc: SyncRpc, seconds: int) -> None:
    """One block, so much later."""
    latest = rpc.call("eth_getBlockByNumber", "latest", False)
    rpc.call("evm_setNextBlockTimestamp", int(latest["timestamp"], 16) + seconds)
    rpc.call("evm_mine")


@dataclass(frozen=True)
class Looked:
    """One check of a token."""

    evidence: Evidence
    judgement: Judgement

    def said(self) -> tuple[str, str]:
        return self.judgement.verdict.code, self.judgement.verdict.level

    def best(self) -> VenueEvidence:
        """The venue that decided."""
        assert self.judgement.best is not None
        return self.evidence.venues[self.judgement.best]

    def price(self) -> Fraction | None:
        """Dollars for a token there."""
        return token_usd(self.best(), self.evidence, POLICY)

    def market(self) -> Market:
        """Where a trader would go for it; not for v3 pools."""
        token, venue = self.evidence.token, self.best().venue
        if venue.kind == "launchpad_curve":
            return Market(token, venue.quote_address, curve=venue.pool or "")
        return Market(token, venue.quote_address, "", venue.fee_pips, venue.tick_spacing, venue.hook or ZERO)

    def bought(self) -> CompletedBuy:
        """What the first of the simulated wallets bought where it was decided."""
        return next(
            b.outcome
            for b in self.best().buys
            if (b.size, b.environment) == ("probe", 0) and isinstance(b.outcome, CompletedBuy)
        )

    def sold(self) -> Sold:
        """What all of that came to, thirteen seconds later."""
        return next(
            c.outcome
            for c in self.best().cells
            if (c.probe.size, c.probe.environment, c.probe.delay_s, c.probe.share_bps, c.probe.seller)
            == ("probe", 0, 13, 10_000, "buyer")
            and isinstance(c.outcome, Sold)
        )


async def look(ctx: Context, token: str) -> Looked:
    """A check on the newest block."""
    await ctx.heads.refresh()
    evidence = await gather_evidence(ctx, Address(token), Meter())
    return Looked(evidence, judge(evidence, POLICY))


def real_trade(rpc: SyncRpc, built: Built, token: str, seen: Looked, after_s: int = 13) -> Fill:
    """A real wallet buys as the first simulated one did, where it was decided, and sells all of it."""
    wallet, venue = Wallet(rpc, built.contracts, f"beside {token}"), seen.best()
    snapshot, offered_raw = rpc.call("evm_snapshot"), seen.bought().offered_raw
    if venue.venue.kind == "amm_v3":
        got = wallet.buy(token, "weth", venue.venue.fee_pips, offered_raw)
        assert got == seen.bought().received_raw
        pass_time(rpc, after_s)
        fill = wallet.sell(token, "weth", venue.venue.fee_pips, got)
    else:
        trader = MarketTrader(wallet, built.contracts, seen.market())
        got = trader.buy(offered_raw)
        assert got == seen.bought().received_raw
        pass_time(rpc, after_s)
        fill = trader.sell(got)
    rpc.call("evm_mine")
    assert rpc.call("evm_revert", snapshot)
    return fill


def assert_told(rpc: SyncRpc, built: Built, token: str, seen: Looked) -> None:
    """A real wallet gets back where it was decided what the simulated one did, to the wei."""
    fill = real_trade(rpc, built, token, seen)
    assert (fill.ok, fill.sold_raw, fill.back_raw) == (True, seen.sold().sold_raw, seen.sold().back_raw)


def assert_undisturbed(rpc: SyncRpc, built: Built, token: str, before: Looked, after: Looked) -> None:
    """The same venue decides, at the same price, and a real wallet trades there as was told."""
    assert before.said() == ("ok", "ok"), before.judgement.verdict.text
    assert after.said() == ("ok", "ok"), after.judgement.verdict.text
    assert after.best().venue == before.best().venue
    assert after.price() == before.price()
    assert after.price() is not None
    assert_told(rpc, built, token, after)
