"""Wallets that really trade a token with a spring, each in a manner of its own."""

from dataclasses import dataclass, fields

from roundtrip_development.devnet.stories import PoolPlan
from support.wallet import PoolSpec, UnsignedStep, Wallet, calldata, paid_out_in
from truth.paused_chain import PausedChain
from truth.reality import BPS, DELAYS_S

USUAL_WEI = 10**17
_OTHERS_WEI = 10**16
_EXTRA_WEI, _EXTRA_USDG_RAW = 10**15, 10**6
_BETWEEN_BUYS_S = 60
_APPROVED_S = 6
_SWAP_GAS, _APPROVAL_GAS = 3_000_000, 300_000
_MAX = 2**256 - 1
_MAX_TRIED = 200


class NotTraded(Exception):
    """No wallet could trade in this manner up to its own sale."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a wallet trades. ``purse_wei`` it holds when it sells; ``money`` names what else it holds then.
    ``caught``: what the contract says of its address, None where that does not matter. It tries to sell
    ``share_bps`` at each of ``delays_s`` after its last buy, as if it had not tried at the other times."""

    size_wei: int = USUAL_WEI
    purse_wei: int = 10**18
    tip_wei: int = 0
    money: str = ""
    buys: int = 1
    approves_all: bool = False
    universal: bool = False
    others_buy: int = 0
    others_sell: int = 0
    caught: bool | None = None
    delays_s: tuple[int, ...] = DELAYS_S
    share_bps: int = BPS

    def text(self) -> str:
        """What is not usual about it."""
        odd = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return f"a wallet {odd or 'like any'}"


def brought_back_bps(chain: PausedChain, pool: PoolPlan, manner: Manner) -> list[int]:
    """What each try to sell brought, of what was paid for it; 0 where it was refused. Everything is undone.
    Raises NotTraded."""
    for number in range(_MAX_TRIED):
        with chain.kept():
            trader = _Trader(chain, pool, manner, number)
            trader.buy()
            if trader.is_as_asked():
                trader.let_others_trade()
                return [trader.brought_bps(delay_s) for delay_s in manner.delays_s]
    raise NotTraded(f"none of {_MAX_TRIED} wallets is so")


class _Trader:
    """One wallet in one pool; ``_now_s`` is the newest block's second."""

    def __init__(self, chain: PausedChain, pool: PoolPlan, manner: Manner, number: int) -> None:
        self._chain, self._manner = chain, manner
        self._place = PoolSpec(pool.quote, pool.fee_pips, pool.version)
        self._now_s = self._bought_s = chain.now_s
        self._wallet = self._new(f"spring {number}", manner.buys * manner.size_wei)

    def buy(self) -> None:
        """Gets what else the wallet holds, and buys as often as its manner says."""
        chain, size_wei = self._chain, self._manner.size_wei
        if self._manner.money == "weth":
            self._queue(
                self._wallet, [UnsignedStep(chain.contracts["weth"], calldata("deposit()"), _EXTRA_WEI)]
            )
        elif self._manner.money == "usdg":
            self._queue(self._wallet, [self._wallet.usdg_step(_EXTRA_USDG_RAW)])
        self._mine(0)
        for _ in range(self._manner.buys):
            sent = self._queue(self._wallet, self._buy_steps(self._wallet, size_wei))
            self._mine(self._bought_s + _BETWEEN_BUYS_S)
            self._bought_s = self._now_s
            self._check(self._wallet, sent)
        self._paid_raw = self._manner.buys * chain.quote_raw(size_wei, self._place.quote)

    def is_as_asked(self) -> bool:
        """The contract says of the wallet what the manner asks."""
        if self._manner.caught is None:
            return True
        call = {"to": self._chain.token, "data": calldata("catches(address)", self._wallet.address)}
        return bool(int(self._chain.rpc.call("eth_call", call, "latest"), 16)) == self._manner.caught

    def let_others_trade(self) -> None:
        """Others buy in one block, and those who sell do so in the next."""
        manner = self._manner
        count = max(manner.others_buy, manner.others_sell)
        others = [self._new(f"other {number}", _OTHERS_WEI) for number in range(count)]
        for steps_of in (self._buy_steps, self._sell_steps)[: 2 if manner.others_sell else 1]:
            sent = [(other, self._queue(other, steps_of(other, _OTHERS_WEI))) for other in others]
            self._mine(0)
            for other, transactions in sent:
                self._check(other, transactions)

    def brought_bps(self, delay_s: int) -> int:
        """What a sale so long after the buy brings, of what its share had cost; undone."""
        manner, wallet, now_s = self._manner, self._wallet, self._now_s
        with self._chain.kept():
            at_s = max(self._now_s + 2, self._bought_s + delay_s)
            *approvals, swap = self._sell_steps(wallet)
            self._queue(wallet, approvals, _APPROVAL_GAS)
            self._mine(at_s - _APPROVED_S)
            self._chain.rpc.call("anvil_setBalance", wallet.address, hex(manner.purse_wei))
            paid_in = paid_out_in(self._place)
            before = wallet.money(paid_in)
            (sent,) = self._queue(wallet, [swap])
            self._mine(at_s)
            done = wallet.receipt(sent)
            gas_wei = done.gas_wei if paid_in == "eth" else 0
            back_raw = wallet.money(paid_in) - before + gas_wei
        self._now_s = now_s
        return back_raw * BPS * BPS // (self._paid_raw * manner.share_bps) if done.ok else 0

    # --- single steps -----------------------------------------------------------------------------

    def _new(self, seed: str, spends_wei: int) -> Wallet:
        return Wallet(self._chain.rpc, self._chain.contracts, seed, wei=3 * spends_wei + 10**18)

    def _buy_steps(self, wallet: Wallet, wei: int) -> list[UnsignedStep]:
        raw = self._chain.quote_raw(wei, self._place.quote)
        steps = wallet.buy_steps(self._chain.token, self._place, raw)
        return [wallet.usdg_step(raw, 2 * wei), *steps] if self._place.quote == "usdg" else steps

    def _sell_steps(self, wallet: Wallet, _: int = 0) -> list[UnsignedStep]:
        raw = wallet.tokens(self._chain.token) * self._manner.share_bps // BPS
        allowed_raw = _MAX if self._manner.approves_all else raw
        if self._manner.universal:
            return wallet.universal_sell_steps(self._chain.token, self._place, raw, allowed_raw)
        return wallet.sell_steps(self._chain.token, self._place, raw, allowed_raw)

    def _queue(self, wallet: Wallet, steps: list[UnsignedStep], gas: int = _SWAP_GAS) -> list[str]:
        tip_wei = self._manner.tip_wei
        return wallet.queue(steps, gas, 2 * self._chain.base_fee_wei + tip_wei, tip_wei)

    def _mine(self, at_s: int) -> None:
        """A block of this second, or of the next one after the newest block's."""
        self._now_s = max(self._now_s + 1, at_s)
        self._chain.mine(self._now_s)

    def _check(self, wallet: Wallet, sent: list[str]) -> None:
        if not all(wallet.receipt(transaction).ok for transaction in sent):
            raise NotTraded("a buy, or a sale by others, was refused")
