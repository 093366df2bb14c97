"""Prepared trades, signed and sent by a real wallet exactly as they were returned; and what it then holds."""

from dataclasses import dataclass
from typing import Any

import msgspec

from roundtrip.api.dispatch import read_params
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import HandlerCall
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.wallet import CHAIN_ID, Receipt, Wallet, calldata

_MAX_FEE_WEI = 10**10
_GRADUATE = ("graduate(address)", "createGraduatedPool(address)")


@dataclass(frozen=True)
class Prepared:
    """An answer as a caller reads it, and what it took."""

    answer: dict[str, Any]
    trips: int
    counted: bool

    @property
    def steps(self) -> list[dict[str, Any]]:
        return list(self.answer["steps"])

    @property
    def does(self) -> list[str]:
        return [step["does"] for step in self.answer["steps"]]

    @property
    def spend_raw(self) -> int:
        return int(self.answer["spend"]["raw"])

    @property
    def raw(self) -> int:
        """What is expected."""
        return int(self.answer["expect"]["raw"])

    @property
    def min_raw(self) -> int:
        return int(self.answer["expect"]["minRaw"])

    @property
    def code(self) -> str:
        return str(self.answer["verdict"]["code"])

    @property
    def text(self) -> str:
        return str(self.answer["verdict"]["text"])


async def prepared(ctx: Context, side: str, token: str, sender: str, **given: object) -> Prepared:
    """Through the parameters' own checks. Raises as the use case does."""
    operation = next(one for one in OPERATIONS if one.name == f"prepare_{side}")
    params = read_params(operation, {"token": token, "from": sender, **given})
    answered = await operation.handler(HandlerCall(ctx, params))
    answer = msgspec.json.decode(msgspec.json.encode(answered.answer))
    assert answered.meter is not None
    return Prepared(answer, answered.meter.trips, answered.counted)


@dataclass(frozen=True)
class Done:
    """What the steps came to: their receipts in order, and by how much balances changed, gas given back."""

    receipts: list[Receipt]
    token_raw: int
    money_raw: int

    @property
    def ok(self) -> bool:
        return all(receipt.ok for receipt in self.receipts)


class Signer(Wallet):
    """A wallet that signs what it is given, word for word."""

    def sign_and_send(self, steps: list[dict[str, Any]], at_s: int | None = None) -> list[Receipt]:
        """All of them in one block, in order, each with its own to, data, value and gas."""
        rpc, nonce, sent = self._rpc, self._nonce(), []
        rpc.call("evm_setAutomine", False)
        try:
            for n, step in enumerate(steps):
                signed = self._account.sign_transaction(
                    {
                        "chainId": CHAIN_ID,
                        "nonce": nonce + n,
                        "to": bytes.fromhex(step["to"][2:]),
                        "data": step["data"],
                        "value": int(step["value"]),
                        "gas": step["gas"],
                        "maxFeePerGas": _MAX_FEE_WEI,
                        "maxPriorityFeePerGas": 0,
                    }
                )
                raw = "0x" + signed.raw_transaction.hex().removeprefix("0x")
                sent.append(str(rpc.call("eth_sendRawTransaction", raw)))
            rpc.call("evm_setNextBlockTimestamp", now_s(rpc) + 1 if at_s is None else at_s)
            rpc.call("evm_mine")
        finally:
            rpc.call("evm_setAutomine", True)
        return [self.receipt(one) for one in sent]

    def trade(self, trade: Prepared, at_s: int | None = None) -> Done:
        """Signs and sends a prepared trade; of a buy ``money_raw`` is below zero, of a sell ``token_raw``."""
        answer, token = trade.answer, trade.answer["token"]["address"]
        usdg = answer["venue"]["pays"] == "usdg"
        tokens, money = self.tokens(token), self.money("usdg" if usdg else "eth")
        receipts = self.sign_and_send(trade.steps, at_s)
        gas_wei = 0 if usdg else sum(receipt.gas_wei for receipt in receipts)
        moved = self.money("usdg" if usdg else "eth") - money + gas_wei
        return Done(receipts, self.tokens(token) - tokens, moved)

    def fill_usdg(self, amount_raw: int) -> None:
        """Really buys exactly so much usdg, for as much eth as it takes."""
        step = self.usdg_step(amount_raw, most_wei=self.eth() // 2)
        assert self.send(step.to, step.data, step.value_wei).ok

    def allowed(self, asset: str, spender: str) -> int:
        """By the token itself."""
        return self._uint(asset, calldata("allowance(address,address)", self.address, spender))

    def allowed_by_permit2(self, asset: str) -> int:
        """To the Universal Router."""
        args = (self.address, asset, self._contracts["universalRouter"])
        return self._uint(self._contracts["permit2"], calldata("allowance(address,address,address)", *args))

    def leftovers(self, assets: list[str], curve: str | None = None) -> dict[tuple[str, str], int]:
        """Every allowance above zero that a trade may have used, by asset and spender."""
        spenders = {name: self._contracts[name] for name in ("swapRouter02", "universalRouter", "permit2")}
        spenders |= {} if curve is None else {"curve": curve}
        found = {(a, name): self.allowed(a, at) for a in assets for name, at in spenders.items()}
        found |= {(a, "by permit2"): self.allowed_by_permit2(a) for a in assets}
        return {pair: raw for pair, raw in found.items() if raw}

    def _uint(self, to: str, data: str) -> int:
        return int(self._rpc.call("eth_call", {"to": to, "data": data}, "latest")[:66], 16)


def now_s(rpc: SyncRpc) -> int:
    """The newest block's timestamp."""
    return int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)


def open_pool(anybody: Wallet, contracts: dict[str, str], token: str) -> None:
    """What anybody sends once a curve is sold out."""
    for signature in _GRADUATE:
        assert anybody.send(contracts["launchpadFactory"], calldata(signature, token)).ok
