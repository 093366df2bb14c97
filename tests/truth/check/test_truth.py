"""Verdicts against what real wallets meet in real transactions on the same chain."""

from dataclasses import dataclass, replace

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Evidence, RefusedCall, Sold
from roundtrip.domain.check.verdict import judge
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.stories import STORIES, PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import RpcFailure, SyncRpc
from roundtrip_development.devnet.world import Built
from support.gathering import gather_evidence
from support.wallet import Fill, Wallet, calldata

PROBE_WEI = 10**17
DELAYS_S = (13, 3600, 86_400)
TRADED = [story for story in STORIES if story.pools and story.key != "loops_on_balance"]


@dataclass(frozen=True)
class Reality:
    """What one wallet met in one pool: the buy, then each sell from the same moment."""

    paid_raw: int
    bought_raw: int | None
    sells: dict[tuple[int, int], Fill]
    small_loss_bps: int | None
    impact_bps: int
    large_refused: bool
    ten: Fill | None = None
    """Ten sales over a day, tried where no single one sold half."""
    kept_to_buyer: bool = False
    """A wallet that got all of it from the buyer could not sell half, where the buyer could sell it."""

    def loss_bps(self, delay_s: int, share_bps: int = 10_000) -> int | None:
        return self._loss_bps(self.sells[delay_s, share_bps])

    def ten_loss_bps(self) -> int | None:
        return None if self.ten is None else self._loss_bps(self.ten)

    def _loss_bps(self, fill: Fill) -> int | None:
        if not fill.ok or not self.bought_raw or fill.sold_raw == 0:
            return None
        cost = self.paid_raw * fill.sold_raw / fill.held_raw
        return round(10_000 * (cost - fill.back_raw) / cost)

    def sold_all(self, delay_s: int) -> bool:
        fill = self.sells[delay_s, 10_000]
        return fill.ok and fill.sold_raw * 10_000 >= fill.held_raw * 9999

    def sold_share(self) -> float:
        assert self.bought_raw
        fills = [*self.sells.values(), *([self.ten] if self.ten else [])]
        return max(fill.sold_raw / fill.held_raw for fill in fills)

    def stops_selling(self) -> bool:
        """Half of it sold at once, and not after an hour nor after a day."""
        soon, *later = (fill.sold_raw / fill.held_raw >= 0.4999 for fill in map(self._sell_of_all, DELAYS_S))
        return soon and not any(later)

    def _sell_of_all(self, delay_s: int) -> Fill:
        return self.sells[delay_s, 10_000]


def trade(rpc: SyncRpc, built: Built, token: str, pool: PoolPlan, amount_raw: int) -> Reality:
    """Buys for real, then from a snapshot sells at each delay and share for real."""
    wallet = Wallet(rpc, built.contracts, f"truth {token} {pool.fee_pips}")
    if pool.quote == "usdg":
        wallet.get_usdg(2 * amount_raw)
    before = rpc.call("evm_snapshot")
    bought = wallet.buy(token, pool.quote, pool.fee_pips, amount_raw, pool.version)
    sells: dict[tuple[int, int], Fill] = {}
    if bought:
        now = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
        for delay_s, share_bps in [*((d, 10_000) for d in DELAYS_S), (13, 5000), (13, 100)]:
            snapshot = rpc.call("evm_snapshot")
            rpc.call("evm_setNextBlockTimestamp", now + delay_s)
            rpc.call("evm_mine")
            held = wallet.tokens(token)
            fill = wallet.sell(token, pool.quote, pool.fee_pips, held * share_bps // 10_000, pool.version)
            sells[delay_s, share_bps] = replace(fill, held_raw=held)
            rpc.call("evm_revert", snapshot)
    ten = None
    if sells and max(fill.sold_raw / fill.held_raw for fill in sells.values()) < 0.4999:
        ten = _sold_in_ten(rpc, wallet, token, pool)
    is_kept = bool(sells) and sells[13, 10_000].ok and _is_kept_to_buyer(rpc, built, wallet, token, pool)
    rpc.call("evm_revert", before)
    large_refused, small_loss, impact = other_sizes(rpc, built, wallet, token, pool, amount_raw, bought)
    return Reality(amount_raw, bought, sells, small_loss, impact, large_refused, ten, is_kept)


def _is_kept_to_buyer(rpc: SyncRpc, built: Built, wallet: Wallet, token: str, pool: PoolPlan) -> bool:
    other, held = Wallet(rpc, built.contracts, f"handed {token} {pool.fee_pips}"), wallet.tokens(token)
    if not wallet.send(token, calldata("transfer(address,uint256)", other.address, held)).ok:
        return False
    now = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    rpc.call("evm_setNextBlockTimestamp", now + 13)
    rpc.call("evm_mine")
    return not other.sell(token, pool.quote, pool.fee_pips, held // 2, pool.version).ok


def other_sizes(
    rpc: SyncRpc,
    built: Built,
    wallet: Wallet,
    token: str,
    pool: PoolPlan,
    amount_raw: int,
    bought: int | None,
) -> tuple[bool, int | None, int]:
    """Whether ten times the amount is bought and not sold; what a thousandth loses; and the price impact, in
    bps. The wallet buys the thousandth, and keeps it where it does not sell."""
    before = rpc.call("evm_snapshot")
    large_refused = _large_refused(rpc, built, token, pool, 10 * amount_raw)
    rpc.call("evm_revert", before)
    small_raw = amount_raw // 1000
    small = wallet.buy(token, pool.quote, pool.fee_pips, small_raw, pool.version)
    small_loss, impact = None, 0
    if small and bought:
        fill = wallet.sell(token, pool.quote, pool.fee_pips, small, pool.version)
        # Of a few units it is rounding.
        is_fine = fill.ok and small >= 10_000
        small_loss = round(10_000 * (small_raw - fill.back_raw) / small_raw) if is_fine else None
        impact = round(10_000 * (1 - (bought / amount_raw) / (small / small_raw)))
    return large_refused, small_loss, impact


def _sold_in_ten(rpc: SyncRpc, wallet: Wallet, token: str, pool: PoolPlan) -> Fill:
    """Sells a tenth of what is held at a time, evenly over a day. What a sale takes beyond its tenth was not
    sold."""
    bought_s = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    held, sold, back = wallet.tokens(token), 0, 0
    for n in range(10):
        rpc.call("evm_setNextBlockTimestamp", bought_s + 13 + n * (86_400 - 13) // 9)
        rpc.call("evm_mine")
        fill = wallet.sell(token, pool.quote, pool.fee_pips, held // 10, pool.version)
        sold, back = sold + min(fill.sold_raw, held // 10), back + fill.back_raw
    return Fill(sold > 0, sold, back, held)


def _large_refused(rpc: SyncRpc, built: Built, token: str, pool: PoolPlan, amount_raw: int) -> bool:
    """Whether so much is bought and then not sold."""
    wallet = Wallet(rpc, built.contracts, f"large {token} {pool.fee_pips}")
    if pool.quote == "usdg":
        step = wallet.usdg_step(amount_raw, 2 * 10**18)
        assert wallet.send(step.to, step.data, step.value_wei).ok
    if not wallet.buy(token, pool.quote, pool.fee_pips, amount_raw, pool.version):
        return False
    now = int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    rpc.call("evm_setNextBlockTimestamp", now + 13)
    rpc.call("evm_mine")
    return not wallet.sell(token, pool.quote, pool.fee_pips, wallet.tokens(token), pool.version).ok


def expected(story: Story, found: list[Reality]) -> tuple[str, str]:
    """Code and level by the published rules, from real fills alone."""
    bought = [r for r in found if r.bought_raw]
    filled = [r for r, pool in zip(found, story.pools, strict=True) if pool.quote_milli]
    if not bought and any(r.bought_raw == 0 for r in filled):
        return "heavy_fees", "danger"
    if not bought:
        return ("empty_pool" if all(p.quote_milli == 0 for p in story.pools) else "cannot_buy"), "warn"
    selling = [r for r in bought if r.sold_share() >= 0.4999 and not r.stops_selling()]
    if not selling:
        return "cannot_sell", "danger"
    best = min(selling, key=lambda r: (r.loss_bps(13) is None, r.loss_bps(13) or 0))
    losses = [loss for d in DELAYS_S if (loss := best.loss_bps(d)) is not None]
    # Only where no single sale went through.
    losses = losses or [loss for loss in (best.ten_loss_bps(),) if loss is not None]
    fees = max([*losses, best.small_loss_bps or 0])
    worst = max(fees, best.impact_bps)
    if worst >= 1500:
        level = "danger" if worst >= 5000 else "warn"
        if best.impact_bps > fees:
            return "thin_pool", level
        return ("heavy_fees" if worst >= 5000 else "high_fees"), level
    steady = not best.large_refused and not best.kept_to_buyer and all(best.sold_all(d) for d in DELAYS_S)
    return "ok", "ok" if steady else "warn"


def probe_raw(evidence: Evidence, pool: PoolPlan) -> int:
    if pool.quote != "usdg":
        return PROBE_WEI
    price = evidence.market.usdg_per_eth_raw
    assert isinstance(price, int)
    return PROBE_WEI * price // 10**18


@pytest.mark.parametrize("story", TRADED, ids=lambda story: story.key)
async def test_the_verdict_is_what_a_wallet_meets(
    ctx: Context, rpc: SyncRpc, built: Built, story: Story
) -> None:
    token = built.tokens[story.key]
    evidence = await gather_evidence(ctx, Address(token), Meter())
    verdict = judge(evidence, POLICY).verdict
    found = [trade(rpc, built, token, pool, probe_raw(evidence, pool)) for pool in story.pools]
    assert (verdict.code, verdict.level) == expected(story, found), verdict.text
    for pool, reality in zip(story.pools, found, strict=True):
        compare_cells(evidence, pool, reality)


def compare_cells(evidence: Evidence, pool: PoolPlan, reality: Reality) -> None:
    """Each simulated cell came to the wei to what the real sell came to."""
    (venue,) = [
        v
        for v in evidence.venues
        if (v.venue.kind, v.venue.quote, v.venue.fee_pips)
        == (f"amm_v{pool.version}", pool.quote, pool.fee_pips)
    ]
    compared = set()
    for cell in venue.cells:
        probe = cell.probe
        if probe.size != "probe" or probe.seller != "buyer" or probe.share_bps == POLICY.most_bps:
            continue
        fill = reality.sells[probe.delay_s, probe.share_bps]
        if isinstance(cell.outcome, Sold):
            assert fill.ok, probe
            assert (cell.outcome.sold_raw, cell.outcome.back_raw) == (fill.sold_raw, fill.back_raw), probe
        else:
            assert isinstance(cell.outcome, RefusedCall)
            assert not fill.ok, probe
        compared.add((probe.delay_s, probe.share_bps))
    # On all but the best venue the sell after a day follows another trip.
    later_s = DELAYS_S if len(evidence.venues) == 1 else DELAYS_S[:2]
    assert compared >= ({(delay_s, 10_000) for delay_s in later_s} if reality.bought_raw else set())


async def test_a_token_that_hides_balances_hides_them_from_wallets_too(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    token = built.tokens["loops_on_balance"]
    wallet = Wallet(rpc, built.contracts, "fog")
    with pytest.raises(RpcFailure):
        wallet.tokens(token)
    evidence = await gather_evidence(ctx, Address(token), Meter())
    assert judge(evidence, POLICY).verdict.code == "not_a_token"


async def test_a_verdict_follows_the_chain(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    """The same token, before and after its owner lifts the pause with a real transaction."""
    token = Address(built.tokens["paused"])
    assert judge(await gather_evidence(ctx, token, Meter()), POLICY).verdict.code == "cannot_buy"
    owner = rpc.call("eth_accounts")[0]
    rpc.call("eth_sendTransaction", {"from": owner, "to": token, "data": "0x3f4ba83a", "gas": hex(200_000)})
    rpc.call("evm_mine")
    await ctx.heads.refresh()
    assert judge(await gather_evidence(ctx, token, Meter()), POLICY).verdict.code == "ok"
