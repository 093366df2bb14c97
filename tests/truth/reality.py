"""What wallets meet: they really buy and sell, each at the sizes and times that a verdict speaks of.

Blocks are made by hand, so that a trade stands in the block of exactly the second it is meant for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from roundtrip.domain.check.evidence import CrowdWallet, Environment
from roundtrip_development.devnet.stories import PoolPlan
from support.wallet import PoolSpec, UnsignedStep, Wallet, calldata, paid_out_in
from truth.paused_chain import PausedChain

PROBE_WEI = 10**17
SIZES = {"probe": 1, "tenth": 10, "hundredth": 100, "thousandth": 1000}
"""By what the probe is divided."""
MAIN_SIZES = ("probe", "tenth", "hundredth")
SOON_S, HOUR_S, DAY_S = 13, 3600, 86_400
DELAYS_S = (SOON_S, HOUR_S, DAY_S)
PIECES = 10
SMALL_PIECES = 50


def moments_s(count: int) -> tuple[int, ...]:
    """So many moments of a day, evenly apart."""
    return tuple(SOON_S + n * (DAY_S - SOON_S) // (count - 1) for n in range(count))


BPS = 10_000
_NEARLY_ALL_BPS = (9900, 9800, 9500, 9000)
"""What is tried where all of it is refused; the last counts as nearly all, too."""
NEARLY_BPS = 9800
"""What is sold of a buy that followed another trip."""

_MAX_GAS = 2**24
_MAX_HOOKED_GAS = 3_000_000
"""Nobody pays more to trade: in a pool with a hook no swap may take more."""
_APPROVAL_GAS = 300_000
_PIECE_GAS = {PIECES: 3_000_000, SMALL_PIECES: 700_000}
LADDER = (400_000, 1_200_000, 3_000_000)
"""A wallet that estimates gas allows little where that is enough."""
_SELLERS_A_BLOCK = 4
"""At least so many of a crowd sell soon in one block."""
_GAS_MONEY_WEI = 5 * 10**17
"""What limits of gas ask for in advance."""
_MAX = 2**256 - 1
_DELEGATION = "0xef0100" + "7702" * 10
"""The code of a wallet that delegates (EIP-7702) to an address without code."""
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


Way = Literal[
    "nearly", "nearly later", "half", "sliver", "handed", "pieces", "small pieces", "any hour", "route"
]
REFUSED = Sale(1, 1, 1, 0, 0)
"""A sell that was refused after all that came before it went through."""
Sales = dict[int, Sale | None]
"""Sells of all that was held, by delay; None: refused."""


@dataclass(frozen=True, slots=True)
class CrowdOutcome:
    """What a wallet of the check's crowd met alone; ``sale`` None: its sell, or one of its ten, was
    refused."""

    wallet: CrowdWallet
    sale: Sale | None


@dataclass(frozen=True, slots=True)
class Met:
    """What wallets met in one pool. ``size``: the largest at which it was bought, None when at none.

    ``sells`` are the main wallet's. ``day_after``: all but a fiftieth, sold a day after a buy that followed
    the sell of an hour, where the pool is not the cheapest. ``parts``: other ways to sell. 99 to 90 % of it
    (``nearly``; of that after an hour or a day: ``nearly later``), half, 1 % (``sliver``) and by another
    wallet (``handed``) are tried where less than half surely sold at once; ten sales over a day (``pieces``),
    fifty (``small pieces``), one sale at ten moments (``any hour``) and the other router (``route``) where no
    single sale surely sold half. ``kept_to_buyer``: another wallet could not sell half of what the buyer sent
    it; else it lost ``handed_more_bps`` more. ``little_gas_only``: a sale with much gas was refused, where
    the buyer's own went through. ``sell_gas``: the most gas of a sale. ``brought_raw``: what a probe's worth
    brings. ``exit_bps``: what is lost here of what was bought where it is cheapest. ``beside_trap``: the pool
    where it is cheapest takes no sell. ``large_refused``: ten times the probe was bought and not sold.
    ``keeps``: a buy was paid for and brought nothing. ``passed_raw``: what arrived of what left a wallet by a
    round trip's two moves made without the swaps, where the pool has a hook; None: it would not be moved so.

    Where level ok is at stake: ``drawn``, wallets of the check's crowd, and ``second``, the sells of a wallet
    that buys another amount, approves all, tips and sells late, after others have bought; empty where it did
    not get any. ``is_crowded_out``: of four wallets that sold in one block some were refused.
    """

    pool: PoolPlan
    size: str | None = None
    sells: Sales = field(default_factory=dict)
    day_after: Sales = field(default_factory=dict)
    parts: dict[Way, Sale | None] = field(default_factory=dict)
    brought_raw: int = 0
    exit_bps: int = 0
    passed_raw: tuple[int, int] | None = None
    small_loss_bps: int | None = None
    impact_bps: int | None = None
    large_refused: bool = False
    keeps: bool = False
    drawn: tuple[CrowdOutcome, ...] = ()
    second: Sales = field(default_factory=dict)
    beside_trap: bool = False
    kept_to_buyer: bool = False
    handed_more_bps: int = 0
    little_gas_only: bool = False
    is_crowded_out: bool = False
    sell_gas: int = 0
    toll_beside_bps: int = 0
    tax_beside_bps: int = 0
    """What the rules make of ``exit_bps``."""


@dataclass(frozen=True, slots=True)
class _Purchase:
    wallet: Wallet
    paid_raw: int
    bought_raw: int


class PoolTrader:
    """One pool, traded in by wallets that behave like the two of a check. ``ladder``: limits of gas that they
    try first; ``delegates``: they have code."""

    def __init__(
        self,
        chain: PausedChain,
        pool: PoolPlan,
        manners: tuple[Environment, ...],
        ladder: tuple[int, ...] = (),
        delegates: bool = False,
    ) -> None:
        self._chain = chain
        self._delegates = delegates
        self._ladder = ladder
        self._sell_gas = 0
        self._pool = pool
        hook = chain.hooks[f"{pool.hook}_{pool.quote}"] if pool.hook else ZERO
        self._place = PoolSpec(pool.quote, pool.key_fee(), pool.version, pool.tick_spacing, hook)
        self._manners = manners
        self._swap_gas = _MAX_HOOKED_GAS if pool.hook else _MAX_GAS
        self._paid_out_in = paid_out_in(self._place)
        self._keeps = False

    def met(self) -> Met:
        """Everything that the rules ask of this pool when it stands alone."""
        for size in MAIN_SIZES:
            with self._chain.kept():
                main = self._buy(0, PROBE_WEI // SIZES[size])
                if main is None:
                    continue
                sells = {delay_s: self._sell(0, main, delay_s) for delay_s in DELAYS_S}
                parts = self._in_part(main, sells)
            if not any(map(surely_half, (*sells.values(), parts.get("half")))):
                parts["pieces"] = self._in_pieces(size, PIECES)
                parts["small pieces"] = self._in_pieces(size, SMALL_PIECES)
                parts["any hour"] = self._at_any_hour(size)
                parts["route"] = self._by_route(size)
            small_loss_bps, impact_bps = self._small(size, main)
            # The same moves: those of the small round trip, where there was one.
            passed_raw = self._passed("thousandth" if small_loss_bps is not None else size)
            handed, sells_with_most = self._beside(size) if surely_half(sells[SOON_S]) else (None, True)
            soon, is_kept = sells[SOON_S], handed is REFUSED
            more_bps = _more_bps(handed, soon) if handed and soon and not is_kept else 0
            return Met(
                self._pool, size, sells, {}, parts, main.bought_raw * SIZES[size], 0, passed_raw,
                small_loss_bps, impact_bps, self._large_refused(), kept_to_buyer=is_kept,
                handed_more_bps=more_bps, little_gas_only=not sells_with_most, sell_gas=self._sell_gas,
            )  # fmt: skip
        return Met(self._pool, keeps=self._keeps)

    def _large_refused(self) -> bool:
        with self._chain.kept():
            purchase = self._buy(0, 10 * PROBE_WEI)
            return purchase is not None and self._sell(0, purchase, SOON_S) is None

    def _in_part(self, purchase: _Purchase, sells: Sales) -> dict[Way, Sale | None]:
        """What sells of a part, or from another wallet, where all of it does not sell at once."""
        if surely_half(sells[SOON_S]):
            return {}
        half = self._sell(0, purchase, SOON_S, BPS // 2)
        sliver = self._sell(0, purchase, SOON_S, BPS // 100)
        parts: dict[Way, Sale | None] = {"half": half, "sliver": sliver}
        for share_bps in _NEARLY_ALL_BPS if half else ():
            if nearly := self._sell(0, purchase, SOON_S, share_bps):
                later = (self._sell(0, purchase, delay_s, share_bps) for delay_s in (HOUR_S, DAY_S))
                parts |= {"nearly": nearly, "nearly later": next((sale for sale in later if sale), None)}
                break
        # Last, since it is not undone.
        return parts | {"handed": self._handed(purchase)}

    def _by_route(self, size: str) -> Sale | None:
        """All of it by the other router, or in its other order."""
        with self._chain.kept():
            purchase = self._buy(0, PROBE_WEI // SIZES[size])
            assert purchase is not None
            return self._sell(0, purchase, SOON_S, by_route=True)

    def day_after(self, size: str) -> Sales:
        """A sell after an hour, then a buy by another wallet, of which nearly all is sold after a day."""
        with self._chain.kept():
            first = self._buy(0, PROBE_WEI // SIZES[size])
            assert first is not None
            at_s = self._chain.now_s + 1 + HOUR_S
            held_raw = first.wallet.tokens(self._chain.token, at_s)
            self._sell_raw(0, first.wallet, at_s, held_raw, max(1, held_raw))
            with self._chain.passed(HOUR_S + 1):
                purchase = self._buy(0, PROBE_WEI // SIZES[size], "later")
                if purchase is None:
                    return {DAY_S: None}
                return {DAY_S: self._sell(0, purchase, DAY_S, NEARLY_BPS)}

    def _beside(self, size: str) -> tuple[Sale | None, bool]:
        """What another wallet sells of what the buyer sends it, and whether a sale with all gas goes
        through."""
        with self._chain.kept():
            main = self._buy(0, PROBE_WEI // SIZES[size])
            assert main is not None
            at_s = self._chain.now_s + 1 + SOON_S
            with self._chain.kept():
                held_raw = main.wallet.tokens(self._chain.token, at_s)
                sold_raw, _ = self._sell_raw(0, main.wallet, at_s, held_raw, max(1, held_raw), ladder=())
            return self._handed(main, halves_only=True), sold_raw > 0

    def _at_any_hour(self, size: str) -> Sale | None:
        """All of it at the first of ten moments that takes it, with the gas of one of ten sales. Of a token
        that rebases that is what there is then, or else the least that there is at any time of the day."""
        with self._chain.kept():
            purchase = self._buy(0, PROBE_WEI // SIZES[size])
            assert purchase is not None
            chain, wallet = self._chain, purchase.wallet
            bought_s = chain.now_s + 1
            balances = [wallet.tokens(chain.token, bought_s + delay_s) for delay_s in DELAYS_S]
            least_raw = max(1, min(purchase.bought_raw, *balances))
            for moment_s in moments_s(PIECES):
                at_s = bought_s + moment_s
                held_raw = wallet.tokens(chain.token, at_s)
                rebases = {*balances} != {purchase.bought_raw}
                whole_raw = held_raw if rebases else balances[-1]
                for asked_raw in sorted({least_raw, min(held_raw, whole_raw)}, reverse=True):
                    with chain.kept():
                        sold_raw, back_raw = self._sell_raw(
                            0, wallet, at_s, held_raw, asked_raw, most_gas=_PIECE_GAS[PIECES]
                        )
                    if sold_raw > 0:
                        return Sale(purchase.paid_raw, whole_raw, asked_raw, sold_raw, back_raw)
        return None

    def _in_pieces(self, size: str, count: int) -> Sale | None:
        with self._chain.kept():
            purchase = self._buy(0, PROBE_WEI // SIZES[size])
            assert purchase is not None
            return self._pieces_of(purchase, count)

    def _pieces_of(self, purchase: _Purchase, count: int, all_of_them: bool = False) -> Sale | None:
        """Approves all of it once and sells one of so many parts at a time, all through the day; None when no
        part was sold, or one was refused where all of them are asked for."""
        chain, manner, wallet = self._chain, self._manners[0], purchase.wallet
        bought_s = chain.now_s + 1
        balances = [wallet.tokens(chain.token, bought_s + delay_s) for delay_s in DELAYS_S]
        # Never more than there is at any time of the day: balances may shrink or grow.
        asked_raw = min(purchase.bought_raw, *balances)
        part_raw = asked_raw // count
        amounts = [*[part_raw] * (count - 1), asked_raw - part_raw * (count - 1)]
        allowed_raw = _MAX if manner.approves_all else None
        *approvals, _ = wallet.sell_steps(chain.token, self._place, max(1, asked_raw), allowed_raw)
        chain.wait(bought_s + SOON_S - manner.approved_s)
        self._queue(wallet, approvals, _APPROVAL_GAS, manner)
        chain.mine(bought_s + SOON_S - manner.approved_s)
        before, gas_wei, done_by = wallet.money(self._paid_out_in), 0, []
        limit = self._swap_gas if all_of_them else _PIECE_GAS[count]
        for at_s, raw in zip(moments_s(count), amounts, strict=True):
            if raw:
                *_, swap = wallet.sell_steps(chain.token, self._place, raw)
                chain.wait(bought_s + at_s)
                (sent,) = self._queue(wallet, [swap], limit, manner)
                chain.mine(bought_s + at_s)
                done = wallet.receipt(sent)
                gas_wei += done.gas_wei
                done_by.append(done.ok)
        held_raw, left_raw = balances[-1], wallet.tokens(chain.token)
        added_wei = gas_wei if self._paid_out_in == "eth" else 0
        back_raw = wallet.money(self._paid_out_in) - before + added_wei
        if not any(done_by) or left_raw >= held_raw or (all_of_them and not all(done_by)):
            return None
        # Of what was not asked for nothing was sold, whatever else left the wallet.
        part_raw = held_raw // len(done_by)
        rest_raw = held_raw - part_raw * len(done_by) if done_by[-1] else 0
        accepted_raw = part_raw * done_by.count(True) + rest_raw
        return Sale(purchase.paid_raw, held_raw, accepted_raw, held_raw - left_raw, back_raw)

    def lost_by(self, way_out: "PoolTrader", size: str) -> int:
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
            self._queue(wallet, [UnsignedStep(chain.token, allow)], _MAX_GAS, self._manners[0])
            chain.mine(at_s - self._manners[0].approved_s)
            (sent,) = self._queue(wallet, [UnsignedStep(bypass, carry)], _MAX_GAS, self._manners[0])
            chain.mine(at_s)
            left_raw = moved_raw - wallet.tokens(chain.token)
            if not wallet.receipt(sent).ok or left_raw <= 0:
                return None
            return receiver.tokens(chain.token), left_raw

    def second(self) -> Sales:
        """The second wallet's sells, of a buy of its own size; none where it was not sold any."""
        manner = self._manners[1]
        with self._chain.kept():
            purchase = self._buy(1, PROBE_WEI * manner.size_bps // BPS)
            if purchase is None:
                return {}
            return {
                # Some seconds late, as the crowd is; much later is another loss.
                delay_s: self._sell(1, purchase, delay_s, late_s=manner.late_s)
                for delay_s in DELAYS_S
            }

    def is_crowded_out(self) -> bool:
        """The last of some wallets that sell in one block is refused, where the first one sells."""
        chain = self._chain
        with chain.kept():
            names = [f"seller {number}" for number in range(_SELLERS_A_BLOCK)]
            bought = [self._buy(0, PROBE_WEI // _SELLERS_A_BLOCK, name) for name in names]
            wallets = [purchase.wallet for purchase in bought if purchase is not None]
            at_s = chain.now_s + 1 + DAY_S
            swaps = [self._approve(wallet, at_s) for wallet in wallets]
            chain.wait(at_s - 1)
            chain.mine(at_s - 1)
            sent = [
                self._queue(wallet, [swap], _MAX_HOOKED_GAS, self._manners[0])
                for wallet, swap in zip(wallets, swaps, strict=True)
            ]
            chain.mine(at_s)
            sold = [wallet.receipt(one).ok for wallet, (one,) in zip(wallets, sent, strict=True)]
        return len(sold) == _SELLERS_A_BLOCK and any(sold) and not all(sold)

    def _approve(self, wallet: Wallet, at_s: int) -> UnsignedStep:
        """Queues the approvals of a sale of all that the wallet holds at this second; the sale."""
        raw = wallet.tokens(self._chain.token, at_s)
        *approvals, swap = wallet.sell_steps(self._chain.token, self._place, raw)
        self._queue(wallet, approvals, _APPROVAL_GAS, self._manners[0])
        return swap

    def as_drawn(self, wallet: CrowdWallet) -> CrowdOutcome | None:
        """What a wallet of the crowd meets alone, in its own manner; None where it was not sold any."""
        manner = replace(
            self._manners[0],
            tip_wei=wallet.tip_wei,
            gas_float_wei=wallet.purse_wei + _GAS_MONEY_WEI,
            approves_all=wallet.approves_all,
        )
        trader = PoolTrader(self._chain, self._pool, (manner,), self._ladder, wallet.delegates)
        with self._chain.kept():
            purchase = trader._buy(0, wallet.size_wei)
            if purchase is None:
                return None
            wait_s = 0
            if wallet.again_wei:
                wait_s = 1
                with self._chain.passed(wait_s):
                    again = trader._buy(0, wallet.again_wei)
                if again is None:
                    return None
                purchase = replace(again, paid_raw=purchase.paid_raw + again.paid_raw)
            with self._chain.passed(wait_s):
                if wallet.way == "pieces":
                    return CrowdOutcome(wallet, trader._pieces_of(purchase, PIECES, all_of_them=True))
                by_route = wallet.way == "second route"
                sale = trader._sell(0, purchase, wallet.after_s, wallet.share_bps, by_route=by_route)
            return CrowdOutcome(wallet, sale)

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

    def _buy(self, which: int, wei: int, name: str = "buyer") -> _Purchase | None:
        """A wallet's buy in the next block; None when it got nothing. ``name``: another wallet."""
        chain, manner, place = self._chain, self._manners[which], self._place
        amount_raw = chain.quote_raw(wei, place.quote)
        wallet = self._wallet(f"{name} {which} {self._pool}", 3 * wei + manner.gas_float_wei)
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
        by_route: bool = False,
    ) -> Sale | None:
        """Sells so much of what is held then, so long after the buy, and undoes it; None when refused."""
        at_s = self._chain.now_s + 1 + delay_s + late_s
        with self._chain.kept():
            held_raw = purchase.wallet.tokens(self._chain.token, at_s)
            asked_raw = max(1, held_raw * share_bps // BPS)
            if self._manners[which].company:
                half_raw = self._chain.quote_raw(PROBE_WEI, self._place.quote) // 2
                self._strangers_buy(max(1, half_raw), self._manners[which])
            sold_raw, back_raw = self._sell_raw(which, purchase.wallet, at_s, held_raw, asked_raw, by_route)
        return Sale(purchase.paid_raw, held_raw, asked_raw, sold_raw, back_raw) if sold_raw > 0 else None

    def _sell_raw(
        self,
        which: int,
        wallet: Wallet,
        at_s: int,
        held_raw: int,
        asked_raw: int,
        by_route: bool = False,
        ladder: tuple[int, ...] | None = None,
        most_gas: int = _MAX_GAS,
    ) -> tuple[int, int]:
        """Approves a little earlier, then sells: what was sold of what is held, and what came back.
        ``ladder``: lower limits of gas that are tried before the highest."""
        chain, manner, most_gas = self._chain, self._manners[which], min(most_gas, self._swap_gas)
        allowed_raw = _MAX if manner.approves_all else None
        steps = wallet.second_sell_steps if by_route else wallet.sell_steps
        *approvals, swap = steps(chain.token, self._place, asked_raw, allowed_raw)
        chain.wait(at_s - manner.approved_s)
        self._queue(wallet, approvals, _APPROVAL_GAS, manner)
        chain.mine(at_s - manner.approved_s)
        before = wallet.money(self._paid_out_in)
        for limit in self._ladder if ladder is None else ladder:
            with chain.kept():
                (sent,) = self._queue(wallet, [swap], limit, manner)
                chain.mine(at_s)
                is_enough = wallet.receipt(sent).ok
            if is_enough:
                break
        else:
            limit = most_gas
        (sent,) = self._queue(wallet, [swap], limit, manner)
        chain.mine(at_s)
        done = wallet.receipt(sent)
        if not done.ok:
            return 0, 0
        self._sell_gas = max(self._sell_gas, done.gas_used)
        gas_wei = done.gas_wei if self._paid_out_in == "eth" else 0
        back_raw = wallet.money(self._paid_out_in) - before + gas_wei
        return held_raw - wallet.tokens(chain.token), back_raw

    def _handed(self, purchase: _Purchase, halves_only: bool = False) -> Sale | None:
        """Hands all of it to another wallet, which sells all that it got; where that is refused, or
        ``halves_only``, half of what was handed to it. None when it cannot be handed on; ``REFUSED`` when
        nothing is sold."""
        chain, handed_raw = self._chain, purchase.bought_raw
        at_s = chain.now_s + 1 + SOON_S
        receiver = self._wallet(f"receiver {self._pool}", PROBE_WEI)
        data = calldata("transfer(address,uint256)", receiver.address, handed_raw)
        (sent,) = self._queue(purchase.wallet, [UnsignedStep(chain.token, data)], _MAX_GAS, self._manners[0])
        chain.mine(at_s)
        got_raw = receiver.tokens(chain.token)
        if not purchase.wallet.receipt(sent).ok or got_raw == 0:
            return None
        for part_raw in (handed_raw // 2,) if halves_only else (got_raw, handed_raw // 2):
            with chain.kept():
                asked_raw = max(1, part_raw)
                sold_raw, back_raw = self._sell_raw(0, receiver, at_s + SOON_S, got_raw, asked_raw)
            if sold_raw > 0:
                # All of what was paid had become what arrived, however much was lost on the way.
                paid_raw = purchase.paid_raw * handed_raw // got_raw
                return Sale(paid_raw, handed_raw, handed_raw, sold_raw, back_raw)
        return REFUSED

    def _strangers_buy(self, amount_raw: int, manner: Environment) -> None:
        """Two others' buys, half of the round size each, in the block of the approvals."""
        for number in (0, 1):
            stranger = self._wallet(f"stranger {number} {self._pool}", 3 * PROBE_WEI)
            steps = stranger.buy_steps(self._chain.token, self._place, amount_raw)
            if self._place.quote == "usdg":
                steps.insert(0, stranger.usdg_step(amount_raw, 2 * PROBE_WEI))
            self._queue(stranger, steps, _MAX_HOOKED_GAS, manner)

    def _wallet(self, seed: str, wei: int) -> Wallet:
        wallet = Wallet(self._chain.rpc, self._chain.contracts, seed, wei=wei)
        if self._delegates:
            self._chain.rpc.call("anvil_setCode", wallet.address, _DELEGATION)
        return wallet

    def _queue(self, wallet: Wallet, steps: list[UnsignedStep], gas: int, manner: Environment) -> list[str]:
        max_fee_wei = 2 * self._chain.base_fee_wei + manner.tip_wei
        return wallet.queue(steps, gas, max_fee_wei, manner.tip_wei)


_TAX_BPS, _MARGIN_BPS = 1500, 500
"""What a wallet loses that got it from the buyer counts from here on."""


def _more_bps(handed: Sale, soon: Sale) -> int:
    """How much more than the buyer such a wallet loses; at most what is above the line where it counts."""
    lost_bps = handed.loss_bps()
    return min(lost_bps - max(0, soon.loss_bps()), lost_bps - _TAX_BPS + _MARGIN_BPS)


def surely_half(sale: Sale | None) -> bool:
    """More than half of it was sold, however its share is rounded."""
    return sale is not None and sale.share_bps() > BPS // 2 + 1


def met_everywhere(traders: list[PoolTrader], cheapest_of: Callable[[list[Met]], int]) -> list[Met]:
    """What wallets meet in every pool, alone, and on the way out of the cheapest one by the others."""
    found = [trader.met() for trader in traders]
    cheapest = cheapest_of(found)
    size = found[cheapest].size
    if size is None:
        return found
    return [
        met
        if number == cheapest or met.size is None
        else replace(
            met,
            exit_bps=traders[cheapest].lost_by(traders[number], size),
            day_after=traders[number].day_after(met.size),
        )
        for number, met in enumerate(found)
    ]
