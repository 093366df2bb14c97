"""A crowd on the demo's chain. Without it no token counts as fair, and the board of winners is empty.

The history's tokens have at most fourteen buyers from five purses. Here visitors buy one of them, each paid
by another actor that existed a day before the token began; the first of them sell out at the price that the
others made, and buy again. And a deployer sells what it bought of another token.
"""

import threading
from dataclasses import dataclass

from roundtrip_development.devnet.actors import (
    DUMPER,
    LAUNCHERS,
    SERIAL,
    SNIPERS,
    TRADERS,
    ActorMarket,
    TradedToken,
)
from roundtrip_development.devnet.deploy import ZERO, ContractDeployer, DeployError, await_receipt, calldata
from roundtrip_development.devnet.launchpad import CurveToken, curve_sell, pool_key, v4_swap
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.trading import REFILL_WEI, actor_address
from roundtrip_development.devnet.world import Built

GIVERS = (*TRADERS, *LAUNCHERS, *SNIPERS, SERIAL, DUMPER)
"""The actors that pay one visitor each, so each visitor has a purse of its own."""
WINNERS = 3
"""The number of visitors that buy first and sell out."""
_GIFT_WEI = 2 * 10**18
_BUY_WEI, _COME_BACK_WEI = 10**17, 3 * 10**16
_GAS = 1_500_000


def visitor(number: int) -> str:
    """A visitor's wallet."""
    return actor_address(f"visitor {number}")


@dataclass(frozen=True, slots=True)
class CrowdTokens:
    """The crowd's tokens: ``crowded``, one with a pool, and ``dumped``, one that its deployer ``dumper``
    sells."""

    crowded: TradedToken
    dumped: TradedToken
    dumper: str


def choose_tokens(built: Built) -> CrowdTokens:
    """The newest of the graduated launches with most holders, which began long after the actors were paid;
    and the newest launch with a deployer who still holds its tokens."""
    newest_first = ActorMarket.unpack(built.market).tokens[::-1]
    graduated = (listed for listed in newest_first if listed.kind == "graduated")
    crowded = max(graduated, key=lambda listed: len(listed.stakes))
    dumped = next(
        listed
        for listed in newest_first
        if listed.kind == "curve" and listed.quote == "eth" and set(listed.stakes) & set(LAUNCHERS)
    )
    return CrowdTokens(crowded, dumped, next(holder for holder in dumped.stakes if holder in LAUNCHERS))


class DemoCrowd:
    """Sends for actors and visitors on the local chain. ``over`` is set when the demo ends. Raises
    DeployError, RpcFailure or OSError, and OSError once the demo ends."""

    def __init__(self, chain: SyncRpc, built: Built, over: threading.Event) -> None:
        self._chain = chain
        self._built = built
        self._over = over
        self.tokens = choose_tokens(built)

    def has_run(self) -> bool:
        """Whether the crowd has finished on this chain, which is new at each start."""
        return self._nonce(visitor(0)) > 2

    def run_crowd(self) -> None:
        """Plays the crowd, in some six blocks."""
        visitors = range(len(GIVERS))
        self._await_all(self._send_gifts())
        first, others = visitors[:WINNERS], visitors[WINNERS:]
        self._await_all([self._buy(number, _BUY_WEI) for number in first])
        self._await_all([self._buy(number, _BUY_WEI) for number in others])
        for number in first:
            self._sell(number)
        self._await_all([self._buy(number, _COME_BACK_WEI) for number in first])

    def sell_deployers_tokens(self) -> None:
        """The deployer of ``tokens.dumped`` sells all that it bought; does nothing if it has sold
        already."""
        dumped, seller = self.tokens.dumped, self._sender(actor_address(self.tokens.dumper))
        balance_raw = self._balance(dumped.token, seller.account)
        if balance_raw:
            seller.receipt(curve_sell(seller, CurveToken(dumped.token, dumped.curve, ZERO), balance_raw))

    def _send_gifts(self) -> list[str]:
        for name in GIVERS:
            self._chain.call("anvil_impersonateAccount", actor_address(name))
            # Some actors have spent their eth.
            self._chain.call("anvil_setBalance", actor_address(name), hex(REFILL_WEI))
        return [
            self._sender(actor_address(name), waits=False).send(visitor(number), "0x", _GIFT_WEI)
            for number, name in enumerate(GIVERS)
        ]

    def _buy(self, number: int, wei: int) -> str:
        contracts, token = self._built.contracts, self.tokens.crowded.token
        buyer = self._sender(visitor(number), waits=False)
        return v4_swap(buyer, contracts, pool_key(contracts, token, ZERO), ZERO, wei)

    def _sell(self, number: int) -> None:
        contracts, token = self._built.contracts, self.tokens.crowded.token
        seller = self._sender(visitor(number))
        balance_raw = self._balance(token, seller.account)
        seller.receipt(v4_swap(seller, contracts, pool_key(contracts, token, ZERO), token, balance_raw))

    def _sender(self, account: str, waits: bool = True) -> ContractDeployer:
        if self._over.is_set():
            raise OSError("the demo ends")
        self._chain.call("anvil_impersonateAccount", account)
        return (ContractDeployer if waits else _CrowdSender)(self._chain, account, _GAS)

    def _await_all(self, sent: list[str]) -> None:
        for transaction in sent:
            if await_receipt(self._chain, transaction)["status"] != "0x1":
                raise DeployError("a visitor's transaction failed")

    def _balance(self, token: str, account: str) -> int:
        call = {"to": token, "data": calldata("balanceOf(address)", account)}
        return int(self._chain.call("eth_call", call, "latest"), 16)

    def _nonce(self, account: str) -> int:
        return int(self._chain.call("eth_getTransactionCount", account, "latest"), 16)


class _CrowdSender(ContractDeployer):
    """Does not wait for its block, so that a crowd's transactions go into one."""

    def send(self, to: str | None, data: str, value_wei: int = 0) -> str:
        transaction = {
            "from": self.account,
            "to": to,
            "data": data,
            "gas": hex(self.gas),
            "value": hex(value_wei),
            "maxFeePerGas": hex(20 * 10**9),
            "maxPriorityFeePerGas": hex(10**9),
        }
        return str(self.chain.call("eth_sendTransaction", transaction))
