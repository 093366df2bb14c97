"""A wallet that really trades on the local chain: its own key, signed transactions, its own encoding.

Nothing here is shared with the code under test but the contracts' addresses.
"""

from dataclasses import dataclass
from typing import Any

from eth_abi.abi import encode
from eth_account import Account
from eth_utils.crypto import keccak

from roundtrip.devnet.wire import RpcFailure, SyncRpc

CHAIN_ID = 4663
_SINGLE = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"
_OUTPUT = "exactOutputSingle((address,address,uint24,address,uint256,uint256,uint160))"
_SPACING = {100: 1, 500: 10, 3000: 60, 10_000: 200}
_ZERO, _LATE = "0x" + "0" * 40, 2**40
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


class Wallet:
    """A fresh account with eth, on one chain."""

    def __init__(self, rpc: SyncRpc, contracts: dict[str, str], seed: str, eth: int = 10) -> None:
        self._rpc = rpc
        self._contracts = contracts
        self._account = Account.from_key(keccak(text=seed))
        self.address = self._account.address.lower()
        rpc.call("anvil_setBalance", self.address, hex(eth * 10**18))

    def send(self, to: str, data: str, value_wei: int = 0) -> Receipt:
        """Estimates as wallets do, signs, sends, waits. A refused estimate is sent all the same."""
        call = {"from": self.address, "to": to, "data": data, "value": hex(value_wei)}
        try:
            gas = int(self._rpc.call("eth_estimateGas", call), 16) * 3 // 2
        except RpcFailure:
            gas = 3_000_000
        base = int(self._rpc.call("eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16)
        signed = self._account.sign_transaction(
            {
                "chainId": CHAIN_ID,
                "nonce": int(self._rpc.call("eth_getTransactionCount", self.address, "latest"), 16),
                "to": self._checksummed(to),
                "data": data,
                "value": value_wei,
                "gas": min(gas, 2**24),
                "maxFeePerGas": base * 2,
                "maxPriorityFeePerGas": 0,
            }
        )
        sent = self._rpc.call(
            "eth_sendRawTransaction", "0x" + signed.raw_transaction.hex().removeprefix("0x")
        )
        receipt = self._receipt(sent)
        gas_used = int(receipt["gasUsed"], 16)
        gas_wei = gas_used * int(receipt["effectiveGasPrice"], 16)
        return Receipt(receipt["status"] == "0x1", gas_wei, gas_used)

    def _receipt(self, sent: str) -> dict[str, Any]:
        for _ in range(2000):
            receipt: dict[str, Any] | None = self._rpc.call("eth_getTransactionReceipt", sent)
            if receipt is not None:
                return receipt
        raise AssertionError("the transaction was not mined")

    @staticmethod
    def _checksummed(address: str) -> bytes:
        return bytes.fromhex(address[2:])

    def eth(self) -> int:
        """Wei held."""
        return int(self._rpc.call("eth_getBalance", self.address, "latest"), 16)

    def tokens(self, token: str) -> int:
        """What the token says this wallet holds."""
        call = {"to": token, "data": calldata("balanceOf(address)", self.address), "gas": hex(1_000_000)}
        return int(self._rpc.call("eth_call", call, "latest"), 16)

    def get_usdg(self, amount_raw: int) -> None:
        """Really buys exactly so much usdg."""
        weth, usdg = self._contracts["weth"], self._contracts["usdg"]
        swap = calldata(_OUTPUT, (weth, usdg, 500, self.address, amount_raw, 2**200, 0))
        assert self.send(self._contracts["swapRouter02"], swap, 10**18).ok

    def buy(self, token: str, quote: str, fee_pips: int, amount_raw: int, version: int = 3) -> int | None:
        """Tokens received for so much of the quote; None when the buy was refused."""
        if version == 4:
            return self._buy_v4(token, quote, fee_pips, amount_raw)
        router = self._contracts["swapRouter02"]
        asset = self._contracts[quote]
        before = self.tokens(token)
        swap = calldata(_SINGLE, (asset, token, fee_pips, self.address, amount_raw, 0, 0))
        if quote == "usdg":
            assert self.send(asset, calldata("approve(address,uint256)", router, amount_raw)).ok
            done = self.send(router, swap)
        else:
            done = self.send(router, swap, amount_raw)
        return self.tokens(token) - before if done.ok else None

    def sell(self, token: str, quote: str, fee_pips: int, amount_raw: int, version: int = 3) -> Fill:
        """Approves exactly that much and sells it."""
        if version == 4:
            return self._sell_v4(token, quote, fee_pips, amount_raw)
        router, asset = self._contracts["swapRouter02"], self._contracts[quote]
        self.send(token, calldata("approve(address,uint256)", router, amount_raw))
        paid_in = "usdg" if quote == "usdg" else "eth"
        held, money = self.tokens(token), self._money(paid_in)
        if quote == "usdg":
            done = self.send(router, calldata(_SINGLE, (token, asset, fee_pips, _CALLER, amount_raw, 0, 0)))
        else:
            swap = calldata(_SINGLE, (token, asset, fee_pips, _ROUTER, amount_raw, 0, 0))
            unwrap = calldata("unwrapWETH9(uint256,address)", 0, self.address)
            calls = [bytes.fromhex(part[2:]) for part in (swap, unwrap)]
            data = "0x" + (keccak(text="multicall(bytes[])")[:4] + encode(["bytes[]"], [calls])).hex()
            done = self.send(router, data)
        if not done.ok:
            return Fill(False)
        gas_wei = 0 if quote == "usdg" else done.gas_wei
        return Fill(True, held - self.tokens(token), self._money(paid_in) - money + gas_wei)

    def _v4(self, commands: list[tuple[int, bytes]], value_wei: int = 0) -> Receipt:
        signature = "execute(bytes,bytes[],uint256)"
        codes, inputs = bytes(code for code, _ in commands), [data for _, data in commands]
        return self.send(
            self._contracts["universalRouter"], calldata(signature, codes, inputs, _LATE), value_wei
        )

    def _v4_swap(
        self, token: str, quote: str, fee_pips: int, amount_raw: int, buys: bool
    ) -> tuple[int, bytes]:
        """The 5-field parameters of the router as published, in action 06."""
        money = self._contracts.get(quote, _ZERO)
        low, high = sorted((token, money), key=lambda address: int(address, 16))
        paid = money if buys else token
        key = (low, high, fee_pips, _SPACING[fee_pips], _ZERO)
        one = (key, paid == low, amount_raw, 0, b"")
        return 0x06, encode([f"({_KEY},bool,uint128,uint128,bytes)"], [one])

    def _permit2(self, asset: str, amount_raw: int) -> None:
        permit2, router = self._contracts["permit2"], self._contracts["universalRouter"]
        self.send(asset, calldata("approve(address,uint256)", permit2, amount_raw))
        allow = "approve(address,address,uint160,uint48)"
        self.send(permit2, calldata(allow, asset, router, amount_raw, _LATE))

    def _buy_v4(self, token: str, quote: str, fee_pips: int, amount_raw: int) -> int | None:
        before, money = self.tokens(token), self._contracts.get(quote, _ZERO)
        swap = self._v4_swap(token, quote, fee_pips, amount_raw, buys=True)
        take = (0x0F, encode(["address", "uint256"], [token, 0]))
        if quote == "weth":
            self.send(money, calldata("deposit()"), amount_raw)
        if quote != "eth":
            self._permit2(money, amount_raw)
        settle = (0x0C, encode(["address", "uint256"], [money, amount_raw]))
        done = self._v4([_actions(swap, settle, take)], amount_raw if quote == "eth" else 0)
        return self.tokens(token) - before if done.ok else None

    def _sell_v4(self, token: str, quote: str, fee_pips: int, amount_raw: int) -> Fill:
        self._permit2(token, amount_raw)
        held, money = self.tokens(token), self._money(quote)
        settle = (0x0B, encode(["address", "uint256", "bool"], [token, amount_raw, True]))
        swap = self._v4_swap(token, quote, fee_pips, 0, buys=False)
        take = (0x0F, encode(["address", "uint256"], [self._contracts.get(quote, _ZERO), 0]))
        done = self._v4([_actions(settle, swap, take)])
        if not done.ok:
            return Fill(False)
        gas_wei = done.gas_wei if quote == "eth" else 0
        return Fill(True, held - self.tokens(token), self._money(quote) - money + gas_wei)

    def _money(self, quote: str) -> int:
        """What is held of the money side; on v4 a wallet is paid weth itself."""
        return self.eth() if quote == "eth" else self.tokens(self._contracts[quote])


def _actions(*steps: tuple[int, bytes]) -> tuple[int, bytes]:
    """A V4_SWAP command of these actions."""
    codes, parameters = bytes(code for code, _ in steps), [data for _, data in steps]
    return 0x10, encode(["bytes", "bytes[]"], [codes, parameters])
