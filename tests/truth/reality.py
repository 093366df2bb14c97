"""What wallets meet: they really buy and sell, each at the sizes and times that a verdict speaks of.

Blocks are made by hand, so that a trade stands in the block of exactly the second it is meant for.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from roundtrip.devnet.stories import PoolPlan
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.domain.check.evidence import Environment
from support.wallet import Place, Step, Wallet, calldata, paid_out_in

PROBE_WEI = 10**17
SIZES = {"probe": 1, "tenth": 10, "hundredth": 100, "thousandth": 1000}
"""By what the probe is divided."""
MAIN_SIZES = ("probe", "tenth", "hundredth")
SOON_S, HOUR_S, DAY_S = 13, 3600, 86_400
DELAYS_S = (SOON_S, HOUR_S, DAY_S)
PIECES = 10
PIECES_S = tuple(SOON_S + n * (DAY_S - SOON_S) // (PIECES - 1) for n in range(PIECES))
BPS = 10_000

_MOST_GAS = 2**24
_MOST_HOOKED_GAS = 3_000_000
"""Nobody pays more to trade: in a pool with a hook no swap may take more."""
_APPROVAL_GAS = 300_000
_PIECE_GAS = 3_000_000
_MAX = 2**256 - 1
ZERO = "0x" + "0" * 40


@dataclass(frozen=True, slots=True)
class Sale:
    """A sell that went through: of ``held_raw``, which had cost ``paid_raw``, it was asked to sell
    ``asked_raw`` and took ``sold_raw``; ``back_raw`` came back."""

    paid_raw: int
    held_raw: int
    asked_raw: int
    sold_raw: int
    back_raw: int

    def loss_bps(self) -> int:
        """Lost of what the tokens that left the wallet had cost, rounded up."""
        cost_raw = max(1, self.paid_raw * self.sold_raw // self.held_raw)
        return -((self.back_raw - cost_raw) * BPS // cost_raw)

    def share_bps(self) -> int:
        """How much of what was held this sold, rounded up; never more than was asked."""
        return min(BPS, -(-min(self.sold_raw, self.asked_raw) * BPS // self.held_raw))

    def whole(self) -> bool:
        """True when all that was asked was sold, but for a ten-thousandth."""
        return self.sold_raw >= self.asked_raw - self.asked_raw // BPS


@dataclass(frozen=True, slots=True)
class Met:
    """What wallets met in one pool. ``size``: the largest at which it was bought, None when at none.

    ``sells`` are of all that was held, by wallet (0 or 1) and delay; None: refused. ``second_bought``:
    whether the second wallet got any. ``brought_raw``: what a probe's worth brings. ``exit_bps``: what is
    lost here of what was bought where it is cheapest. ``sliver`` is 1 % of it; ``handed`` is tried where less
    than half sold at once; ``pieces``, ten sales over a day, where no single one surely sold half.
    ``large_refused``: ten times the probe was bought and not sold. ``keeps``: a buy was paid for and brought
    nothing. ``passed_raw``: what arrived of what left a wallet by a round trip's two
    moves made without the swaps, where the pool has a hook; None: it would not be moved so.
    """

    pool: PoolPlan
    size: str | None = None
    sells: dict[tuple[int, int], Sale | None] = field(default_factory=dict)
    second_bought: bool = True
    brought_raw: int = 0
    exit_bps: int = 0
    half: Sale | None = None
    handed: Sale | None = None
    sliver: Sale | None = None
    passed_raw: tuple[int, int] | None = None
    small_loss_bps: int | None = None
    impact_bps: int | None = None
    large_refused: bool = False
    keeps: bool = False
    pieces: Sale | None = None


@dataclass(frozen=True, slots=True)
class _Purchase:
    wallet: Wallet
    paid_raw: int
    bought_raw: int


class Chain:
    """The local chain while wallets trade: time stands still between the blocks they make. ``bypass``: what
    moves a token into the pool manager and out again."""

    def __init__(
        self,
        rpc: SyncRpc,
        contracts: dict[str, str],
        token: str,
        usdg_an_eth_raw: int,
        hooks: dict[str, str],
        bypass: str,
    ) -> None:
        self.rpc = rpc
        self.hooks = hooks
        self.bypass = bypass
        self.contracts = contracts
        self.token = token
        self._usdg_an_eth_raw = usdg_an_eth_raw
        latest = rpc.call("eth_getBlockByNumber", "latest", False)
        self.now_s = int(latest["timestamp"], 16)
        self.base_fee_wei = int(latest["baseFeePerGas"], 16)

    @contextlib.contextmanager
    def by_hand(self) -> Iterator[None]:
        """Inside, blocks are made by hand only."""
        self.rpc.call("evm_setAutomine", False)
        try:
            yield
        finally:
            self.rpc.call("evm_setAutomine", True)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Undoes what happens inside."""
        snapshot = self.rpc.call("evm_snapshot")
        yield
        assert self.rpc.call("evm_revert", snapshot)

    def mine(self, at_s: int) -> None:
        """One block of what is queued, at this second."""
        self.rpc.call("evm_mine", hex(at_s))

    def quote_raw(self, wei: int, quote: str) -> int:
        """What so much eth is worth in the money side's units."""
        return wei * self._usdg_an_eth_raw // 10**18 if quote == "usdg" else wei

    def wei(self, raw: int, quote: str) -> int:
        """What so much of the money side is worth."""
        return raw * 10**18 // self._usdg_an_eth_raw if quote == "usdg" else raw


class Trader:
    """One pool, traded in by wallets that behave like the two of a check."""

    def __init__(self, chain: Chain, pool: PoolPlan, manners: tuple[Environment, ...]) -> None:
        self._chain = chain
        self._pool = pool
        hook = chain.hooks[f"{pool.hook}_{pool.quote}"] if pool.hook else ZERO
        self._place = Place(pool.quote, pool.key_fee(), pool.version, pool.tick_spacing, hook)
        self._manners = manners
        self._swap_gas = _MOST_HOOKED_GAS if pool.hook else _MOST_GAS
        self._paid_out_in = paid_out_in(self._place)
        self._keeps = False

    def met(self) -> Met:
        """Everything that the rules ask of this pool."""
        for size in MAIN_SIZES:
            with self._chain.kept():
                main = self._buy(0, PROBE_WEI // SIZES[size])
                if main is None:
                    continue
                first = {(0, delay_s): self._sell(0, main, delay_s) for delay_s in DELAYS_S}
            second = self._second(size)
            sells = first | second
            at_once = (sells[which, SOON_S] for which in (0, 1) if (which, SOON_S) in sells)
            enough = all(sale is not None and sale.share_bps() > BPS // 2 + 1 for sale in at_once)
            parts = self._in_part(size, not enough)
            brought_raw = main.bought_raw * SIZES[size]
            small = self._small(size, main)
            # The same moves: those of the small round trip, where there was one.
            passed_raw = self._passed("thousandth" if small[0] is not None else size)
            found = (sells, bool(second), brought_raw, 0, *parts, passed_raw, *small)
            met = Met(self._pool, size, *found, large_refused=self._large_refused())
            return met if _surely_sold_half(met) else replace(met, pieces=self._in_pieces(size))
        return Met(self._pool, keeps=self._keeps)

    def _large_refused(self) -> bool:
        with self._chain.kept():
            purchase = self._buy(0, 10 * PROBE_WEI)
            return purchase is not None and self._sell(0, purchase, SOON_S) is None

    def _in_part(self, size: str, handed_on: bool) -> tuple[Sale | None, Sale | None, Sale | None]:
        """Half of it, all of it from another wallet where that is asked, and 1 % of it."""
        with self._chain.kept():
            purchase = self._buy(0, PROBE_WEI // SIZES[size])
            assert purchase is not None
            half = self._sell(0, purchase, SOON_S, BPS // 2)
            sliver = self._sell(0, purchase, SOON_S, BPS // 100)
            return half, self._handed(purchase) if handed_on else None, sliver

    def _in_pieces(self, size: str) -> Sale | None:
        """Approves all of it once and sells a tenth of it at a time, all through the day; None when no tenth
        was sold."""
        chain, manner = self._chain, self._manners[0]
        with chain.kept():
            purchase = self._buy(0, PROBE_WEI // SIZES[size])
            assert purchase is not None
            wallet, bought_s = purchase.wallet, chain.now_s + 1
            balances = [wallet.tokens(chain.token, bought_s + delay_s) for delay_s in DELAYS_S]
            # Never more than there is at any time of the day: balances may shrink or grow.
            asked_raw = min(purchase.bought_raw, *balances)
            tenth_raw = asked_raw // PIECES
            amounts = [*[tenth_raw] * (PIECES - 1), asked_raw - tenth_raw * (PIECES - 1)]
            *approvals, _ = wallet.sell_steps(chain.token, self._place, max(1, asked_raw))
            self._queue(wallet, approvals, _APPROVAL_GAS, manner)
            chain.mine(bought_s + SOON_S - manner.approved_s)
            before, gas_wei, done_by = wallet.money(self._paid_out_in), 0, []
            for at_s, raw in zip(PIECES_S, amounts, strict=True):
                if raw:
                    *_, swap = wallet.sell_steps(chain.token, self._place, raw)
                    (sent,) = self._queue(wallet, [swap], _PIECE_GAS, manner)
                    chain.mine(bought_s + at_s)
                    done = wallet.receipt(sent)
                    gas_wei += done.gas_wei
                    done_by.append(done.ok)
            held_raw, left_raw = balances[-1], wallet.tokens(chain.token)
            added_wei = gas_wei if self._paid_out_in == "eth" else 0
            back_raw = wallet.money(self._paid_out_in) - before + added_wei
        if not any(done_by) or left_raw >= held_raw:
            return None
        # Of what was not asked for nothing was sold, whatever else left the wallet.
        part_raw = held_raw // len(done_by)
        rest_raw = held_raw - part_raw * len(done_by) if done_by[-1] else 0
        accepted_raw = part_raw * done_by.count(True) + rest_raw
        return Sale(purchase.paid_raw, held_raw, accepted_raw, held_raw - left_raw, back_raw)

    def lost_by(self, way_out: "Trader", size: str) -> int:
        """What is lost, in bps of its worth, of what is bought here and sold there; all of it where less than
        half sells."""
        with self._chain.kept():
            purchase = self._buy(0, PROBE_WEI // SIZES[size])
            assert purchase is not None
            sale = way_out._sell(0, purchase, SOON_S)
        if sale is None or sale.sold_raw * 2 < sale.held_raw:
            return BPS
        paid_wei, back_wei = (
            self._chain.wei(raw, trader._place.quote)
            for raw, trader in ((sale.paid_raw, self), (sale.back_raw, way_out))
        )
        return max(0, -((back_wei - paid_wei) * BPS // paid_wei))

    def _passed(self, size: str) -> tuple[int, int] | None:
        """What arrives of what a buy of this size brought, moved into the pool manager and out again
        without a swap, and what left."""
        chain, bypass = self._chain, self._chain.bypass
        if not self._pool.hook:
            return None
        with chain.kept():
            purchase = self._buy(0, PROBE_WEI // SIZES[size])
            assert purchase is not None
            wallet, at_s = purchase.wallet, chain.now_s + 1 + SOON_S
            receiver = self._wallet(f"beside {self._pool}", PROBE_WEI)
            moved_raw = wallet.tokens(chain.token, at_s)
            allow = calldata("approve(address,uint256)", bypass, moved_raw)
            carry = calldata("carry(address,address,uint256)", chain.token, receiver.address, moved_raw)
            self._queue(wallet, [Step(chain.token, allow)], _MOST_GAS, self._manners[0])
            chain.mine(at_s - self._manners[0].approved_s)
            (sent,) = self._queue(wallet, [Step(bypass, carry)], _MOST_GAS, self._manners[0])
            chain.mine(at_s)
            left_raw = moved_raw - wallet.tokens(chain.token)
            if not wallet.receipt(sent).ok or left_raw <= 0:
                return None
            return receiver.tokens(chain.token), left_raw

    def _second(self, size: str) -> dict[tuple[int, int], Sale | None]:
        """The other wallet's sells, of a buy of its own size; none where it was not sold any."""
        manner = self._manners[1]
        own_size = size == "probe"
        wei = PROBE_WEI * manner.size_bps // BPS if own_size else PROBE_WEI // SIZES[size]
        with self._chain.kept():
            purchase = self._buy(1, wei)
            if purchase is None:
                return {}
            late_s = manner.late_s if own_size else 0
            return {
                (1, delay_s): self._sell(
                    1,
                    purchase,
                    delay_s,
                    late_s=late_s * max(1, delay_s // 240),
                    strangers_wei=PROBE_WEI // SIZES[size],
                )
                for delay_s in DELAYS_S
            }

    def _small(self, size: str, main: _Purchase) -> tuple[int | None, int | None]:
        """What a thousandth of the probe loses, and how much more the smallest buy gives for its money."""
        loss_bps = None
        for smaller in ("thousandth", "hundredth", "tenth"):
            if smaller == size:
                break
            with self._chain.kept():
                purchase = self._buy(0, PROBE_WEI // SIZES[smaller])
                if purchase is None:
                    continue
                if smaller == "thousandth":
                    sale = self._sell(0, purchase, SOON_S)
                    loss_bps = sale.loss_bps() if sale is not None else None
                best = purchase.bought_raw * main.paid_raw
                worse = -((main.bought_raw * purchase.paid_raw - best) * BPS // best)
                return loss_bps, max(0, worse)
        return loss_bps, None

    # --- single trades ----------------------------------------------------------------------------

    def _buy(self, which: int, wei: int) -> _Purchase | None:
        """A fresh wallet's buy in the next block; None when it got nothing."""
        chain, manner, place = self._chain, self._manners[which], self._place
        amount_raw = chain.quote_raw(wei, place.quote)
        wallet = self._wallet(f"buyer {which} {self._pool}", 3 * wei + manner.gas_float_wei)
        steps = wallet.buy_steps(chain.token, place, amount_raw)
        if place.quote == "usdg":
            steps.insert(0, wallet.usdg_step(amount_raw, 2 * wei))
        before_wei = wallet.eth()
        sent = self._queue(wallet, steps, self._swap_gas, manner)
        chain.mine(chain.now_s + 1)
        receipts = [wallet.receipt(one) for one in sent]
        assert all(receipt.ok for receipt in receipts[:-1])
        bought_raw = wallet.tokens(chain.token)
        if not receipts[-1].ok or bought_raw == 0:
            self._keeps = self._keeps or receipts[-1].ok
            return None
        if place.quote == "usdg":
            return _Purchase(wallet, amount_raw - wallet.money("usdg"), bought_raw)
        gas_wei = sum(receipt.gas_wei for receipt in receipts)
        return _Purchase(wallet, before_wei - wallet.eth() - gas_wei, bought_raw)

    def _sell(
        self,
        which: int,
        purchase: _Purchase,
        delay_s: int,
        share_bps: int = BPS,
        late_s: int = 0,
        strangers_wei: int = PROBE_WEI,
    ) -> Sale | None:
        """Sells so much of what is held then, so long after the buy, and undoes it; None when refused."""
        at_s = self._chain.now_s + 1 + delay_s + late_s
        with self._chain.kept():
            held_raw = purchase.wallet.tokens(self._chain.token, at_s)
            asked_raw = max(1, held_raw * share_bps // BPS)
            if self._manners[which].company:
                half_raw = self._chain.quote_raw(strangers_wei, self._place.quote) // 2
                self._strangers_buy(max(1, half_raw), self._manners[which])
            sold_raw, back_raw = self._sell_raw(which, purchase.wallet, at_s, held_raw, asked_raw)
        return Sale(purchase.paid_raw, held_raw, asked_raw, sold_raw, back_raw) if sold_raw > 0 else None

    def _sell_raw(
        self, which: int, wallet: Wallet, at_s: int, held_raw: int, asked_raw: int
    ) -> tuple[int, int]:
        """Approves a little earlier, then sells: what was sold of what is held, and what came back."""
        chain, manner = self._chain, self._manners[which]
        allowed_raw = _MAX if manner.approves_all else None
        *approvals, swap = wallet.sell_steps(chain.token, self._place, asked_raw, allowed_raw)
        self._queue(wallet, approvals, _APPROVAL_GAS, manner)
        chain.mine(at_s - manner.approved_s)
        before = wallet.money(self._paid_out_in)
        (sent,) = self._queue(wallet, [swap], self._swap_gas, manner)
        chain.mine(at_s)
        done = wallet.receipt(sent)
        if not done.ok:
            return 0, 0
        gas_wei = done.gas_wei if self._paid_out_in == "eth" else 0
        back_raw = wallet.money(self._paid_out_in) - before + gas_wei
        return held_raw - wallet.tokens(chain.token), back_raw

    def _handed(self, purchase: _Purchase) -> Sale | None:
        """Hands all of it to another wallet, which sells all that it got; where that is refused, half of what
        was handed to it. None when nothing is sold."""
        chain, handed_raw = self._chain, purchase.bought_raw
        at_s = chain.now_s + 1 + SOON_S
        receiver = self._wallet(f"receiver {self._pool}", PROBE_WEI)
        data = calldata("transfer(address,uint256)", receiver.address, handed_raw)
        (sent,) = self._queue(purchase.wallet, [Step(chain.token, data)], _MOST_GAS, self._manners[0])
        chain.mine(at_s)
        got_raw = receiver.tokens(chain.token)
        if not purchase.wallet.receipt(sent).ok or got_raw == 0:
            return None
        for part_raw in (got_raw, handed_raw // 2):
            with chain.kept():
                asked_raw = max(1, part_raw)
                sold_raw, back_raw = self._sell_raw(0, receiver, at_s + SOON_S, got_raw, asked_raw)
            if sold_raw > 0:
                # All of what was paid had become what arrived, however much was lost on the way.
                paid_raw = purchase.paid_raw * handed_raw // got_raw
                return Sale(paid_raw, handed_raw, handed_raw, sold_raw, back_raw)
        return None

    def _strangers_buy(self, amount_raw: int, manner: Environment) -> None:
        """Two others' buys, half of the round size each, in the block of the approvals."""
        for number in (0, 1):
            stranger = self._wallet(f"stranger {number} {self._pool}", 3 * PROBE_WEI)
            steps = stranger.buy_steps(self._chain.token, self._place, amount_raw)
            if self._place.quote == "usdg":
                steps.insert(0, stranger.usdg_step(amount_raw, 2 * PROBE_WEI))
            self._queue(stranger, steps, _MOST_HOOKED_GAS, manner)

    def _wallet(self, seed: str, wei: int) -> Wallet:
        return Wallet(self._chain.rpc, self._chain.contracts, seed, wei=wei)

    def _queue(self, wallet: Wallet, steps: list[Step], gas: int, manner: Environment) -> list[str]:
        max_fee_wei = 2 * self._chain.base_fee_wei + manner.tip_wei
        return wallet.queue(steps, gas, max_fee_wei, manner.tip_wei)


def _surely_sold_half(met: Met) -> bool:
    """Each wallet sold more than half of it in one sale, so that nobody needs ten."""
    by_delay = [[met.sells[w, d] for w in (0, 1) if (w, d) in met.sells] for d in DELAYS_S]
    ways = [*by_delay, [met.half]]
    return any(all(sale is not None and sale.share_bps() >= BPS // 2 for sale in way) for way in ways)


def met_everywhere(chain: Chain, pools: tuple[PoolPlan, ...], manners: tuple[Environment, ...]) -> list[Met]:
    """What wallets meet in every pool, alone, and on the way out of the cheapest one by the others."""
    traders = [Trader(chain, pool, manners) for pool in pools]
    found = [trader.met() for trader in traders]
    cheapest = max(range(len(pools)), key=lambda number: found[number].brought_raw)
    size = found[cheapest].size
    if size is None:
        return found
    return [
        met
        if number == cheapest or met.size is None
        else replace(met, exit_bps=traders[cheapest].lost_by(traders[number], size))
        for number, met in enumerate(found)
    ]
