"""A wallet that really trades on the local chain: its own key, signed transactions, its own encoding.

Nothing here is shared with the code under test but the contracts' addresses.
"""

from dataclasses import dataclass
from typing import Any

from eth_abi.abi import encode
from eth_account import Account
from eth_utils.crypto import keccak

from roundtrip_development.devnet.sync_rpc import RpcFailure, SyncRpc

CHAIN_ID = 4663
_SINGLE = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"
_OUTPUT = "exactOutputSingle((address,address,uint24,address,uint256,uint256,uint160))"
_SPACING = {100: 1, 500: 10, 3000: 60, 10_000: 200}
_ZERO, _LATE = "0x" + "0" * 40, 2**40
_APPROVE = "approve(address,uint256)"
_KEY = "(address,address,uint24,int24,address)"
_CALLER, _ROUTER = "0x" + "0" * 39 + "1", "0x" + "0" * 39 + "2"


def calldata(signature: str, *values: object) -> str:
    """Calldata by signature; a single tuple argument or flat ones."""
    inner = signature[signature.index("(") + 1 : -1]
    types = [inner] if inner.startswith("(") else [part for part in inner.split(",") if part]
    return "0x" + (keccak(text=signature)[:4] + encode(types, values)).hex()


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of one transaction."""

    ok: bool
    gas_wei: int
    gas_used: int


@dataclass(frozen=True, slots=True)
class Fill:
    """What a sell took and gave, from real balances; ``held_raw`` is what was held before."""

    ok: bool
    sold_raw: int = 0
    back_raw: int = 0
    held_raw: int = 0


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """A pool by its key. ``tick_spacing`` None: the usual one for the fee; ``hook``: v4 only."""

    quote: str
    fee_pips: int
    version: int = 3
    tick_spacing: int | None = None
    hook: str = _ZERO


@dataclass(frozen=True, slots=True)
class UnsignedStep:
    """One transaction of a trade, before it is signed."""

    to: str
    data: str
    value_wei: int = 0


class Wallet:
    """A fresh account with eth, on one chain."""

    def __init__(
        self, rpc: SyncRpc, contracts: dict[str, str], seed: str, eth: int = 10, wei: int | None = None
    ) -> None:
        self._rpc = rpc
        self._contracts = contracts
        self._account = Account.from_key(keccak(text=seed))
        self.address = self._account.address.lower()
        rpc.call("anvil_setBalance", self.address, hex(eth * 10**18 if wei is None else wei))

    # --- transactions -----------------------------------------------------------------------------

    def send(self, to: str, data: str, value_wei: int = 0) -> Receipt:
        """Estimates as wallets do, signs, sends, waits. A refused estimate is sent all the same."""
        call = {"from": self.address, "to": to, "data": data, "value": hex(value_wei)}
        try:
            gas = int(self._rpc.call("eth_estimateGas", call), 16) * 3 // 2
        except RpcFailure:
            gas = 3_000_000
        base = int(self._rpc.call("eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16)
        sent = self._broadcast(UnsignedStep(to, data, value_wei), self._nonce(), min(gas, 2**24), base * 2, 0)
        done = _receipt(self._wait(sent))
        self._await_own_pool()
        return done

    def queue(self, steps: list[UnsignedStep], gas: int, max_fee_wei: int, tip_wei: int) -> list[str]:
        """Signs and sends these for one block that someone else makes; their hashes."""
        nonce = self._nonce() if steps else 0
        return [self._broadcast(step, nonce + n, gas, max_fee_wei, tip_wei) for n, step in enumerate(steps)]

    def receipt(self, transaction: str) -> Receipt:
        """What became of a transaction whose block was made."""
        return _receipt(self._wait(transaction))

    def _nonce(self) -> int:
        return int(self._rpc.call("eth_getTransactionCount", self.address, "latest"), 16)

    def _broadcast(self, step: UnsignedStep, nonce: int, gas: int, max_fee_wei: int, tip_wei: int) -> str:
        signed = self._account.sign_transaction(
            {
                "chainId": CHAIN_ID,
                "nonce": nonce,
                "to": bytes.fromhex(step.to[2:]),
                "data": step.data,
                "value": step.value_wei,
                "gas": gas,
                "maxFeePerGas": max_fee_wei,
                "maxPriorityFeePerGas": tip_wei,
            }
        )
        raw = "0x" + signed.raw_transaction.hex().removeprefix("0x")
        return str(self._rpc.call("eth_sendRawTransaction", raw))

    def _wait(self, sent: str) -> dict[str, Any]:
        for _ in range(2000):
            receipt: dict[str, Any] | None = self._rpc.call("eth_getTransactionReceipt", sent)
            if receipt is not None:
                return receipt
        raise AssertionError("the transaction was not mined")

    def _await_own_pool(self) -> None:
        """A receipt can be read a moment before its transaction leaves the pool: where the chain is gone back
        to in that moment, the next one of the same number is refused for it."""
        for _ in range(2000):
            waiting = self._rpc.call("txpool_content")
            if self.address not in map(str.lower, (*waiting["pending"], *waiting["queued"])):
                return
        raise AssertionError("the transaction stayed in the pool")

    # --- balances ---------------------------------------------------------------------------------

    def eth(self) -> int:
        """Wei held."""
        return int(self._rpc.call("eth_getBalance", self.address, "latest"), 16)

    def tokens(self, token: str, at_s: int | None = None) -> int:
        """What the token says this wallet holds, or will hold in a block of that second."""
        call = {"to": token, "data": calldata("balanceOf(address)", self.address), "gas": hex(1_000_000)}
        later = ({}, {"time": hex(at_s)}) if at_s is not None else ()
        return int(self._rpc.call("eth_call", call, "latest", *later), 16)

    def money(self, quote: str) -> int:
        """What is held of the money side."""
        return self.eth() if quote == "eth" else self.tokens(self._contracts[quote])

    # --- trades -----------------------------------------------------------------------------------

    def get_usdg(self, amount_raw: int) -> None:
        """Really buys exactly so much usdg."""
        step = self.usdg_step(amount_raw)
        assert self.send(step.to, step.data, step.value_wei).ok

    def usdg_step(self, amount_raw: int, most_wei: int = 10**18) -> UnsignedStep:
        """The transaction that buys exactly so much usdg."""
        weth, usdg, router = (self._contracts[name] for name in ("weth", "usdg", "swapRouter02"))
        swap = calldata(_OUTPUT, (weth, usdg, 500, self.address, amount_raw, 2**200, 0))
        return UnsignedStep(router, _multicall(swap, calldata("refundETH()")), most_wei)

    def buy(self, token: str, quote: str, fee_pips: int, amount_raw: int, version: int = 3) -> int | None:
        """Tokens received for so much of the quote; None when the buy was refused."""
        before = self.tokens(token)
        *first, swap = self.buy_steps(token, PoolSpec(quote, fee_pips, version), amount_raw)
        for step in first:
            assert self.send(step.to, step.data, step.value_wei).ok
        done = self.send(swap.to, swap.data, swap.value_wei)
        return self.tokens(token) - before if done.ok else None

    def sell(self, token: str, quote: str, fee_pips: int, amount_raw: int, version: int = 3) -> Fill:
        """Approves exactly that much and sells it."""
        place = PoolSpec(quote, fee_pips, version)
        *first, swap = self.sell_steps(token, place, amount_raw)
        for step in first:
            self.send(step.to, step.data, step.value_wei)
        paid_in = paid_out_in(place)
        held, money = self.tokens(token), self.money(paid_in)
        done = self.send(swap.to, swap.data, swap.value_wei)
        if not done.ok:
            return Fill(False)
        gas_wei = done.gas_wei if paid_in == "eth" else 0
        return Fill(True, held - self.tokens(token), self.money(paid_in) - money + gas_wei)

    def buy_steps(self, token: str, place: PoolSpec, amount_raw: int) -> list[UnsignedStep]:
        """Approvals and the like, and last the swap that spends so much of the quote."""
        asset, router = self._contracts.get(place.quote, _ZERO), self._contracts["swapRouter02"]
        if place.version == 4:
            return self._buy_v4(token, place, amount_raw)
        swap = calldata(_SINGLE, (asset, token, place.fee_pips, self.address, amount_raw, 0, 0))
        if place.quote == "usdg":
            return [UnsignedStep(asset, calldata(_APPROVE, router, amount_raw)), UnsignedStep(router, swap)]
        return [UnsignedStep(router, swap, amount_raw)]

    def sell_steps(
        self, token: str, place: PoolSpec, amount_raw: int, approve_raw: int | None = None
    ) -> list[UnsignedStep]:
        """Approvals of exactly that much, or of ``approve_raw``, and last the swap."""
        allowed = amount_raw if approve_raw is None else approve_raw
        if place.version == 4:
            return self._sell_v4(token, place, amount_raw, allowed)
        router, asset = self._contracts["swapRouter02"], self._contracts[place.quote]
        approve = UnsignedStep(token, calldata(_APPROVE, router, allowed))
        if place.quote == "usdg":
            one = (token, asset, place.fee_pips, _CALLER, amount_raw, 0, 0)
            return [approve, UnsignedStep(router, calldata(_SINGLE, one))]
        swap = calldata(_SINGLE, (token, asset, place.fee_pips, _ROUTER, amount_raw, 0, 0))
        unwrap = calldata("unwrapWETH9(uint256,address)", 0, self.address)
        return [approve, UnsignedStep(router, _multicall(swap, unwrap))]

    def second_sell_steps(
        self, token: str, place: PoolSpec, amount_raw: int, approve_raw: int | None = None
    ) -> list[UnsignedStep]:
        """The same by the pool's other way: in v3 by the Universal Router, in v4 settled after the swap."""
        allowed = amount_raw if approve_raw is None else approve_raw
        if place.version == 3:
            return self.universal_sell_steps(token, place, amount_raw, allowed)
        swap = self._v4_swap(token, place, amount_raw, buys=False)
        settle = (0x0C, encode(["address", "uint256"], [token, amount_raw]))
        take = (0x0F, encode(["address", "uint256"], [self._contracts.get(place.quote, _ZERO), 0]))
        return [*self._permit2(token, allowed), self._execute([_actions(swap, settle, take)])]

    def universal_sell_steps(
        self, token: str, place: PoolSpec, amount_raw: int, approve_raw: int
    ) -> list[UnsignedStep]:
        """The same in a v3 pool, but by Permit2 and the Universal Router; it pays what SwapRouter02 pays."""
        path = b"".join(
            (_bytes(token), place.fee_pips.to_bytes(3, "big"), _bytes(self._contracts[place.quote]))
        )
        wraps = place.quote == "weth"
        swap = encode(
            ["address", "uint256", "uint256", "bytes", "bool"],
            [_ROUTER if wraps else _CALLER, amount_raw, 0, path, True],
        )
        unwrap = (0x0C, encode(["address", "uint256"], [_CALLER, 0]))
        return [*self._permit2(token, approve_raw), self._execute([(0x00, swap), *[unwrap] * wraps])]

    def _execute(self, commands: list[tuple[int, bytes]], value_wei: int = 0) -> UnsignedStep:
        signature = "execute(bytes,bytes[],uint256)"
        codes, inputs = bytes(code for code, _ in commands), [data for _, data in commands]
        return UnsignedStep(
            self._contracts["universalRouter"], calldata(signature, codes, inputs, _LATE), value_wei
        )

    def _v4_swap(self, token: str, place: PoolSpec, amount_raw: int, buys: bool) -> tuple[int, bytes]:
        """The 5-field parameters of the router as published, in action 06."""
        money = self._contracts.get(place.quote, _ZERO)
        low, high = sorted((token, money), key=lambda address: int(address, 16))
        paid = money if buys else token
        key = (low, high, place.fee_pips, place.tick_spacing or _SPACING[place.fee_pips], place.hook)
        one = (key, paid == low, amount_raw, 0, b"")
        return 0x06, encode([f"({_KEY},bool,uint128,uint128,bytes)"], [one])

    def _permit2(self, asset: str, amount_raw: int) -> list[UnsignedStep]:
        permit2, router = self._contracts["permit2"], self._contracts["universalRouter"]
        allow = "approve(address,address,uint160,uint48)"
        most = min(amount_raw, 2**160 - 1)
        return [
            UnsignedStep(asset, calldata(_APPROVE, permit2, amount_raw)),
            UnsignedStep(permit2, calldata(allow, asset, router, most, _LATE)),
        ]

    def _buy_v4(self, token: str, place: PoolSpec, amount_raw: int) -> list[UnsignedStep]:
        money = self._contracts.get(place.quote, _ZERO)
        swap = self._v4_swap(token, place, amount_raw, buys=True)
        take = (0x0F, encode(["address", "uint256"], [token, 0]))
        settle = (0x0C, encode(["address", "uint256"], [money, amount_raw]))
        steps = [UnsignedStep(money, calldata("deposit()"), amount_raw)] if place.quote == "weth" else []
        if place.quote != "eth":
            steps += self._permit2(money, amount_raw)
        buy = self._execute([_actions(swap, settle, take)], amount_raw if place.quote == "eth" else 0)
        return [*steps, buy]

    def _sell_v4(self, token: str, place: PoolSpec, amount_raw: int, allowed_raw: int) -> list[UnsignedStep]:
        settle = (0x0B, encode(["address", "uint256", "bool"], [token, amount_raw, True]))
        swap = self._v4_swap(token, place, 0, buys=False)
        take = (0x0F, encode(["address", "uint256"], [self._contracts.get(place.quote, _ZERO), 0]))
        return [*self._permit2(token, allowed_raw), self._execute([_actions(settle, swap, take)])]


def paid_out_in(place: PoolSpec) -> str:
    """What a sell pays: weth pools of v3 pay eth, those of v4 pay a wallet weth itself."""
    return "eth" if place.quote == "weth" and place.version == 3 else place.quote


def _receipt(told: dict[str, Any]) -> Receipt:
    gas_used = int(told["gasUsed"], 16)
    return Receipt(told["status"] == "0x1", gas_used * int(told["effectiveGasPrice"], 16), gas_used)


def _bytes(address: str) -> bytes:
    return bytes.fromhex(address[2:])


def _multicall(*calls: str) -> str:
    data = encode(["bytes[]"], [[bytes.fromhex(call[2:]) for call in calls]])
    return "0x" + (keccak(text="multicall(bytes[])")[:4] + data).hex()


def _actions(*steps: tuple[int, bytes]) -> tuple[int, bytes]:
    """A V4_SWAP command of these actions."""
    codes, parameters = bytes(code for code, _ in steps), [data for _, data in steps]
    return 0x10, encode(["bytes", "bytes[]"], [codes, parameters])
