"""Performs the actors' steps with real transactions from their own accounts."""

from roundtrip.venues.abi import keccak

from .actors import FUNDER, SNIPERS, ActorMarket, ActorStep, StepOutcome, TradedToken
from .deploy import MAX, ZERO, ContractDeployer, calldata
from .launchpad import (
    CurveToken,
    LaunchRequest,
    curve_buy,
    curve_sell,
    graduate,
    launch,
    launch_and_buy,
    pool_key,
    v4_swap,
)
from .sync_rpc import SyncRpc

HOT_WALLETS = (1, 2, 3, 4, 9)
"""Which of the node's accounts send actors their first eth, as exchanges do."""
FLOOR_WEI = 2 * 10**18
REFILL_WEI = 40 * 10**18
POOL_FEE, POOL_SPACING = 3000, 60
"""Of the pools that are not the launchpad's."""

_TRADE_GAS, _LAUNCH_GAS = 1_500_000, 6_000_000
"""Limits: a block's own is 30 million, and the node drops transactions that do not fit."""
_COMPLETED = "0x" + keccak(b"CurveCompleted(address,uint256,uint256)").hex()
_SINGLE = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"
_AT_ROUTER = "0x" + "0" * 39 + "2"


def actor_address(name: str) -> str:
    """An actor's account. It has no known key: the local node impersonates it."""
    return "0x" + keccak(f"roundtrip actor: {name}".encode())[12:].hex()


class DevnetTrader:
    """Trades for actors on one chain. Raises DeployError, RpcFailure or OSError: a step failed."""

    def __init__(self, chain: SyncRpc, contracts: dict[str, str], accounts: list[str]) -> None:
        self._chain = chain
        self._contracts = contracts
        self._accounts = accounts
        self._wallets: dict[str, ContractDeployer] = {}
        self._approved: set[tuple[str, str]] = set()

    def wallet(self, name: str) -> ContractDeployer:
        """An actor's account, ready to send."""
        if name not in self._wallets:
            address = actor_address(name)
            self._chain.call("anvil_impersonateAccount", address)
            self._wallets[name] = ContractDeployer(self._chain, address, _TRADE_GAS)
        return self._wallets[name]

    def fund(self, name: str) -> None:
        """Sends an actor eth: to snipers from their funder, to all others from a hot wallet."""
        if name in SNIPERS:
            sender, wei = self.wallet(FUNDER), REFILL_WEI // 4
        else:
            number = HOT_WALLETS[int(actor_address(name), 16) % len(HOT_WALLETS)]
            sender, wei = ContractDeployer(self._chain, self._accounts[number], _TRADE_GAS), REFILL_WEI
        sender.receipt(sender.send(actor_address(name), "0x", wei))

    def give_usdg(self, name: str, amount_raw: int) -> None:
        """Sends an actor usdg from the node's first account."""
        transfer = calldata("transfer(address,uint256)", actor_address(name), amount_raw)
        sender = ContractDeployer(self._chain, self._accounts[0], _TRADE_GAS)
        sender.receipt(sender.send(self._contracts["usdg"], transfer))

    def perform(self, market: ActorMarket, step: ActorStep) -> StepOutcome:
        """Performs one step and waits until it is mined."""
        wallet = self.wallet(step.actor)
        wallet.sent.clear()
        wallet.gas = _LAUNCH_GAS if step.action in ("launch", "graduate") else _TRADE_GAS
        if int(self._chain.call("eth_getBalance", wallet.account, "latest"), 16) < FLOOR_WEI:
            if step.actor in SNIPERS and self._is_poor(FUNDER):
                self.fund(FUNDER)
            self.fund(step.actor)
        if step.action == "launch":
            return self._launch(wallet, step)
        listed = market.tokens[step.token]
        if step.action == "graduate":
            graduate(wallet, self._contracts, listed.token)
            return StepOutcome()
        if step.action == "buy":
            logs = wallet.receipt(self._buy(wallet, listed, step.amount))["logs"]
            return StepOutcome(sold_out=any(log["topics"][0] == _COMPLETED for log in logs))
        balance_raw = self._balance(listed.token, wallet.account)
        wallet.receipt(self._sell(wallet, listed, balance_raw * step.amount // 10_000))
        return StepOutcome()

    def _is_poor(self, name: str) -> bool:
        balance = self._chain.call("eth_getBalance", actor_address(name), "latest")
        return int(balance, 16) < REFILL_WEI // 4 + FLOOR_WEI

    def _balance(self, token: str, account: str) -> int:
        call = {"to": token, "data": calldata("balanceOf(address)", account)}
        return int(self._chain.call("eth_call", call, "latest"), 16)

    def _launch(self, wallet: ContractDeployer, step: ActorStep) -> StepOutcome:
        assert step.launch is not None
        plan, quote = step.launch, self._contracts.get(step.launch.quote, ZERO)
        tax_bps = plan.creator_tax_bps
        request = LaunchRequest(plan.name, plan.symbol, quote, creator_tax_bps=tax_bps, salt=step.token)
        if step.amount:
            launched = launch_and_buy(wallet, self._contracts, request, step.amount, wallet.account)
        else:
            launched = launch(wallet, self._contracts, request)
        return StepOutcome(launched.token, launched.curve)

    def _buy(self, wallet: ContractDeployer, listed: TradedToken, amount_raw: int) -> str:
        quote = self._contracts.get(listed.quote, ZERO)
        if listed.kind == "curve":
            return curve_buy(wallet, CurveToken(listed.token, listed.curve, quote), amount_raw)
        if listed.kind == "pool_v3":
            swap = (quote, listed.token, POOL_FEE, wallet.account, amount_raw, 0, 0)
            return wallet.send(self._contracts["swapRouter02"], calldata(_SINGLE, swap), amount_raw)
        return v4_swap(wallet, self._contracts, self._key(listed), quote, amount_raw)

    def _sell(self, wallet: ContractDeployer, listed: TradedToken, amount_raw: int) -> str:
        quote = self._contracts.get(listed.quote, ZERO)
        if listed.kind == "curve":
            return curve_sell(wallet, CurveToken(listed.token, listed.curve, quote), amount_raw)
        if listed.kind == "pool_v3":
            return self._sell_v3(wallet, listed, amount_raw)
        return v4_swap(wallet, self._contracts, self._key(listed), listed.token, amount_raw)

    def _sell_v3(self, wallet: ContractDeployer, listed: TradedToken, amount_raw: int) -> str:
        """Sells for weth, which the router turns into eth."""
        router, weth = self._contracts["swapRouter02"], self._contracts["weth"]
        if (wallet.account, listed.token) not in self._approved:
            wallet.send(listed.token, calldata("approve(address,uint256)", router, MAX))
            self._approved.add((wallet.account, listed.token))
        swap = calldata(_SINGLE, (listed.token, weth, POOL_FEE, _AT_ROUTER, amount_raw, 0, 0))
        unwrap = calldata("unwrapWETH9(uint256,address)", 0, wallet.account)
        calls = [bytes.fromhex(part[2:]) for part in (swap, unwrap)]
        return wallet.send(router, calldata("multicall(bytes[])", calls))

    def _key(self, listed: TradedToken) -> tuple[str, str, int, int, str]:
        if listed.kind == "graduated":
            return pool_key(self._contracts, listed.token, self._contracts.get(listed.quote, ZERO))
        return ZERO, listed.token, POOL_FEE, POOL_SPACING, ZERO
