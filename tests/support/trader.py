"""A wallet that really trades on curves and in v4 pools of any key, with its own encoding."""

from dataclasses import dataclass

from eth_abi.abi import encode

from support.wallet import Fill, Wallet, calldata

_ZERO, _LATE = "0x" + "0" * 40, 2**40
_KEY = "(address,address,uint24,int24,address)"
_SWAP = f"({_KEY},bool,uint128,uint128,bytes)"


@dataclass(frozen=True, slots=True)
class Market:
    """Where a token trades: a curve's address, or a v4 key's fee, spacing and hook. ``quote`` is zero for
    eth."""

    token: str
    quote: str
    curve: str = ""
    fee_pips: int = 0
    tick_spacing: int = 0
    hook: str = _ZERO

    def key(self) -> tuple[str, str, int, int, str]:
        low, high = sorted((self.token, self.quote), key=lambda address: int(address, 16))
        return low, high, self.fee_pips, self.tick_spacing, self.hook


class MarketTrader:
    """Buys and sells in one market with one wallet."""

    def __init__(self, wallet: Wallet, contracts: dict[str, str], market: Market) -> None:
        self.wallet, self.market = wallet, market
        self._router, self._permit2 = contracts["universalRouter"], contracts["permit2"]

    def buy(self, amount_raw: int) -> int | None:
        """Tokens received for so much of the quote; None when the buy was refused."""
        market, wallet = self.market, self.wallet
        before = wallet.tokens(market.token)
        native = amount_raw if market.quote == _ZERO else 0
        if market.curve:
            if not native:
                wallet.send(market.quote, calldata("approve(address,uint256)", market.curve, amount_raw))
            data = calldata("buy(uint256,uint256,address)", amount_raw, 0, wallet.address)
            done = wallet.send(market.curve, data, native)
        else:
            if not native:
                self._allow(market.quote, amount_raw)
            paid = encode(["address", "uint256"], [market.quote, amount_raw])
            took = encode(["address", "uint256"], [market.token, 0])
            steps = [self._swap(market.quote, amount_raw), paid, took]
            done = wallet.send(self._router, self._execute(bytes([0x06, 0x0C, 0x0F]), steps), native)
        return wallet.tokens(market.token) - before if done.ok else None

    def sell(self, tokens_raw: int) -> Fill:
        """Allows exactly that much and sells it."""
        market, wallet = self.market, self.wallet
        if market.curve:
            wallet.send(market.token, calldata("approve(address,uint256)", market.curve, tokens_raw))
        else:
            self._allow(market.token, tokens_raw)
        held, money = wallet.tokens(market.token), self._money()
        if market.curve:
            data = calldata("sell(uint256,uint256,address)", tokens_raw, 0, wallet.address)
            done = wallet.send(market.curve, data)
        else:
            settle = encode(["address", "uint256", "bool"], [market.token, tokens_raw, True])
            take = encode(["address", "uint256"], [market.quote, 0])
            steps = [settle, self._swap(market.token, 0), take]
            done = wallet.send(self._router, self._execute(bytes([0x0B, 0x06, 0x0F]), steps))
        if not done.ok:
            return Fill(False, held_raw=held)
        gas_wei = done.gas_wei if market.quote == _ZERO else 0
        return Fill(True, held - wallet.tokens(market.token), self._money() - money + gas_wei, held)

    def _money(self) -> int:
        return self.wallet.eth() if self.market.quote == _ZERO else self.wallet.tokens(self.market.quote)

    def _allow(self, asset: str, amount_raw: int) -> None:
        self.wallet.send(asset, calldata("approve(address,uint256)", self._permit2, amount_raw))
        allow = "approve(address,address,uint160,uint48)"
        self.wallet.send(self._permit2, calldata(allow, asset, self._router, amount_raw, _LATE))

    def _swap(self, paid: str, amount_raw: int) -> bytes:
        """The five-field parameters of the router as published."""
        key = self.market.key()
        return encode([_SWAP], [(key, paid == key[0], amount_raw, 0, b"")])

    @staticmethod
    def _execute(actions: bytes, steps: list[bytes]) -> str:
        plan = encode(["bytes", "bytes[]"], [actions, steps])
        return calldata("execute(bytes,bytes[],uint256)", bytes([0x10]), [plan], _LATE)
