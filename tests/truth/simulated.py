"""A wallet's buy simulated, then really sent, and what came of it really sold."""

from dataclasses import dataclass, field, replace

from roundtrip.domain.base.venue import Venue
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.deploy import ContractDeployer, calldata
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.simulated import SimulatedAnswer, simulated
from support.wallet import Fill, PoolSpec, Receipt, UnsignedStep, Wallet, paid_out_in

PROBE = {"eth": 10**17, "weth": 10**17, "usdg": 350 * 10**6, "share": 10**18}
DELAYS_S = (13, 3600, 86_400)
_APPROVED_S = 6
_MAX_GAS = 2**24
_TENTH_GAS, _TENTH_BPS = 3_000_000, 1000
"""Of ten sales over a day, which are tried where no single one sold half anywhere."""
_ZERO = "0x" + "0" * 40


@dataclass(frozen=True)
class TokenSpot:
    """One place of a token: a pool by its key, or a curve's address."""

    quote: str
    place: PoolSpec | None
    curve: str = ""


def spot_of(built: Built, venue: Venue) -> TokenSpot:
    """Where a venue is, in a wallet's words."""
    names = {built.contracts[name]: name for name in ("weth", "usdg", "share")} | {_ZERO: "eth"}
    quote = names[venue.quote_address]
    if venue.kind == "launchpad_curve":
        return TokenSpot(quote, None, venue.pool or "")
    version = 3 if venue.kind == "amm_v3" else 4
    return TokenSpot(quote, PoolSpec(quote, venue.fee_pips, version, venue.tick_spacing, venue.hook or _ZERO))


def money_for(rpc: SyncRpc, built: Built, wallet: Wallet, spot: TokenSpot) -> int:
    """How much is spent; the wallet has it then."""
    raw = PROBE[spot.quote]
    if spot.quote == "usdg":
        wallet.get_usdg(raw)
    elif spot.quote == "share":
        deployer = ContractDeployer(rpc, built.accounts[0])
        share = built.contracts["share"]
        deployer.receipt(deployer.send(share, calldata("transfer(address,uint256)", wallet.address, raw)))
    return raw


def buy_steps(built: Built, wallet: Wallet, token: str, spot: TokenSpot, raw: int) -> list[UnsignedStep]:
    """Approvals, and last what buys."""
    if spot.place is not None:
        return wallet.buy_steps(token, spot.place, raw)
    data = calldata("buy(uint256,uint256,address)", raw, 0, wallet.address)
    if spot.quote == "eth":
        return [UnsignedStep(spot.curve, data, raw)]
    money = built.contracts[spot.quote]
    return [
        UnsignedStep(money, calldata("approve(address,uint256)", spot.curve, raw)),
        UnsignedStep(spot.curve, data),
    ]


def sell_steps(wallet: Wallet, token: str, spot: TokenSpot, raw: int) -> list[UnsignedStep]:
    """Approvals of exactly that, and last what sells."""
    if spot.place is not None:
        return wallet.sell_steps(token, spot.place, raw)
    data = calldata("sell(uint256,uint256,address)", raw, 0, wallet.address)
    return [
        UnsignedStep(token, calldata("approve(address,uint256)", spot.curve, raw)),
        UnsignedStep(spot.curve, data),
    ]


@dataclass(frozen=True)
class Trip:
    """A simulation, what really came of the same transactions, and of each sell after them: by place, delay
    and share, a tenth for ten sales over a day."""

    said: SimulatedAnswer
    oks: list[bool]
    gas: list[int]
    spent: dict[str, int]
    received: dict[str, int]
    sells: dict[tuple[int, int, int], Fill]

    def fills(self, delay_s: int = 13) -> list[Fill]:
        """Sells of all of it at once, by place."""
        return [fill for (_, delay, share), fill in self.sells.items() if (delay, share) == (delay_s, 10_000)]

    def sells_within_a_day(self) -> bool:
        """True when on some place half of it or more really went in some sell, and sales do not end within
        the hour: what went at once, and neither after an hour nor after a day, is lost to its holder."""
        return any(self._sells_on(place) for place in {place for place, _, _ in self.sells})

    def _sells_on(self, place: int) -> bool:
        halves = {
            (delay, share)
            for (at, delay, share), fill in self.sells.items()
            if at == place and _is_half(fill)
        }
        ends = (13, 10_000) in halves and not halves & {(3600, 10_000), (86_400, 10_000)}
        return bool(halves) and not ends


def _is_half(fill: Fill) -> bool:
    return fill.ok and 2 * fill.sold_raw + 1 >= fill.held_raw > 1


async def trip(
    ctx: Context,
    rpc: SyncRpc,
    built: Built,
    token: str,
    spots: list[TokenSpot],
    bought_on: TokenSpot,
    opening: tuple[UnsignedStep, ...] = (),
) -> Trip:
    """All of it, on the newest block; the chain is put back to what it was before the buy. ``opening``: what
    somebody sends after the buy, each in a block of its own."""
    wallet = Wallet(rpc, built.contracts, f"simulated {token} {bought_on}")
    raw = money_for(rpc, built, wallet, bought_on)
    steps = buy_steps(built, wallet, token, bought_on, raw)
    await ctx.heads.refresh()
    result = await simulated(ctx, wallet.address, *steps)
    block = ctx.heads.current().block
    chain = _ByHand(rpc, built, wallet, ctx.heads.current().base_fee_wei, opening)
    assets = [token, *(a for name, a in built.contracts.items() if name in ("weth", "usdg", "share"))]
    snapshot = rpc.call("evm_snapshot")
    rpc.call("evm_setAutomine", False)
    try:
        before = chain.holds(assets)
        gas_limit = min(_MAX_GAS, max(result.gas(), default=0) * 3 // 2 + 50_000)
        receipts = chain.mined(steps, gas_limit, block.timestamp_s + 1)
        after = chain.holds(assets)
        after["eth"] += sum(receipt.gas_wei for receipt in receipts)
        moved = {asset: after[asset] - before[asset] for asset in before}
        sells = {}
        if moved[token] > 0:
            opened_s = chain.open_after(block.timestamp_s + 1)
            sells = chain.sells(token, spots, opened_s)
    finally:
        rpc.call("evm_setAutomine", True)
        assert rpc.call("evm_revert", snapshot)
    short = {address: name for name, address in built.contracts.items() if name in ("weth", "usdg")}
    return Trip(
        result,
        [receipt.ok for receipt in receipts],
        [receipt.gas_used for receipt in receipts],
        {short.get(asset, asset): -raw for asset, raw in moved.items() if raw < 0},
        {short.get(asset, asset): raw for asset, raw in moved.items() if raw > 0},
        sells,
    )


@dataclass(frozen=True)
class _ByHand:
    """A wallet whose blocks are made by hand."""

    rpc: SyncRpc
    built: Built
    wallet: Wallet
    base_fee_wei: int
    opening: tuple[UnsignedStep, ...] = field(default=())

    def open_after(self, at_s: int) -> int:
        """The second of the last of somebody's blocks."""
        for step in self.opening:
            at_s += 1
            somebody = Wallet(self.rpc, self.built.contracts, "anybody")
            self.rpc.call("evm_setAutomine", False)
            (sent,) = somebody.queue([step], _MAX_GAS, 2 * self.base_fee_wei, 0)
            self.rpc.call("evm_mine", hex(at_s))
            assert somebody.receipt(sent).ok
        return at_s

    def holds(self, assets: list[str]) -> dict[str, int]:
        return {"eth": self.wallet.eth()} | {asset: self.wallet.tokens(asset) for asset in assets}

    def mined(self, steps: list[UnsignedStep], gas: int, at_s: int) -> list[Receipt]:
        """These in one block of that second."""
        sent = self.wallet.queue(steps, gas, 2 * self.base_fee_wei, 0)
        self.rpc.call("evm_mine", hex(at_s))
        return [self.wallet.receipt(one) for one in sent]

    def sells(self, token: str, spots: list[TokenSpot], bought_s: int) -> dict[tuple[int, int, int], Fill]:
        found = {}
        for number, spot in enumerate(spots):
            for delay_s, share_bps in [*((d, 10_000) for d in DELAYS_S), (13, 5000)]:
                snapshot = self.rpc.call("evm_snapshot")
                found[number, delay_s, share_bps] = self._sell(token, spot, bought_s + delay_s, share_bps)
                assert self.rpc.call("evm_revert", snapshot)
        if not any(_is_half(fill) for fill in found.values()):
            for number, spot in enumerate(spots):
                snapshot = self.rpc.call("evm_snapshot")
                found[number, DELAYS_S[-1], _TENTH_BPS] = self._sell_tenths(token, spot, bought_s)
                assert self.rpc.call("evm_revert", snapshot)
        return found

    def _sell_tenths(self, token: str, spot: TokenSpot, bought_s: int) -> Fill:
        """Approves all of it once and sells ten tenths of it, evenly over the day."""
        wallet, (first_s, *_, last_s) = self.wallet, DELAYS_S
        balances = [wallet.tokens(token, bought_s + delay_s) for delay_s in (0, *DELAYS_S)]
        asked = min(balances)
        *approvals, _ = sell_steps(wallet, token, spot, asked)
        self.mined(approvals, self._approval_gas(approvals), bought_s + first_s - _APPROVED_S)
        paid_in = spot.quote if spot.place is None else paid_out_in(spot.place)
        money, gas_wei, accepted = wallet.money(paid_in), 0, 0
        for n in range(10):
            raw = asked // 10 if n < 9 else asked - asked // 10 * 9
            *_, swap = sell_steps(wallet, token, spot, raw)
            at_s = bought_s + first_s + n * (last_s - first_s) // 9
            (done,) = self.mined([swap], _TENTH_GAS, at_s)
            gas_wei += done.gas_wei if paid_in == "eth" else 0
            accepted += done.ok
        back = wallet.money(paid_in) - money + gas_wei
        held = balances[-1]
        # What left the wallet beyond the tenths that were accepted was not sold.
        sold = min(held - wallet.tokens(token), held if accepted == 10 else held * accepted // 10)
        return Fill(accepted > 0, sold_raw=sold, back_raw=back, held_raw=held)

    def _approval_gas(self, approvals: list[UnsignedStep]) -> int:
        """Half as much again as the dearest takes, as wallets set it."""
        calls = ({"from": self.wallet.address, "to": one.to, "data": one.data} for one in approvals)
        return max(int(self.rpc.call("eth_estimateGas", call), 16) for call in calls) * 3 // 2

    def _sell(self, token: str, spot: TokenSpot, at_s: int, share_bps: int) -> Fill:
        wallet = self.wallet
        held = wallet.tokens(token, at_s)
        *approvals, swap = sell_steps(wallet, token, spot, held * share_bps // 10_000)
        self.mined(approvals, self._approval_gas(approvals), at_s - _APPROVED_S)
        paid_in = spot.quote if spot.place is None else paid_out_in(spot.place)
        money = wallet.money(paid_in)
        (done,) = self.mined([swap], _MAX_GAS, at_s)
        if not done.ok:
            return Fill(False, held_raw=held)
        gas_wei = done.gas_wei if paid_in == "eth" else 0
        back = wallet.money(paid_in) - money + gas_wei
        return replace(Fill(True), sold_raw=held - wallet.tokens(token), back_raw=back, held_raw=held)
