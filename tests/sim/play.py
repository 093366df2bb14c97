"""A chain that lives, all from one seed: actors trade, wallets are paid, pools filled, and forks come and go.

The node's clock is set by blocks alone, so one seed gives one chain, hash by hash, on any machine.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from eth_abi.abi import encode

from roundtrip.devnet.actors import (
    LAUNCHERS,
    TRADERS,
    ActorMarket,
    ActorStep,
    StepOutcome,
    choose,
    give_up,
    live_role,
    record,
)
from roundtrip.devnet.deploy import MAX, ZERO, ContractDeployer, DeployError, calldata, v3_pool
from roundtrip.devnet.launchpad import CurveToken, curve_buy, curve_sell, v4_swap
from roundtrip.devnet.launchpad_v1 import LIMITED_BLOCKS, launch_first, pool_buy
from roundtrip.devnet.sync_rpc import RpcFailure, SyncRpc
from roundtrip.devnet.trading import POOL_FEE, POOL_SPACING, DevnetTrader, actor_address
from roundtrip.devnet.world import Built
from roundtrip.venues.abi import keccak

DEEPEST = 40
"""Blocks that a fork takes back at most."""
HOURS_AT_ONCE = 20

_ETH = 10**18
_SEND_GAS = 1_500_000
_LIQUIDITY_GAS = 12_000_000
_COMPLETED = "0x" + keccak(b"CurveCompleted(address,uint256,uint256)").hex()
_INCREASED = "0x" + keccak(b"IncreaseLiquidity(uint256,uint128,uint256,uint256)").hex()
_MOVED = "0x" + keccak(b"Transfer(address,address,uint256)").hex()
_DECREASE = "decreaseLiquidity((uint256,uint128,uint256,uint256,uint256))"
_COLLECT = "collect((uint256,address,uint128,uint128))"
_V4_ADD, _V4_TAKE = bytes([0x02, 0x0D, 0x14]), bytes([0x01, 0x11])
"""v4's actions: mint a position, settle the pair, sweep; decrease it, take the pair."""
_LATE = 2**40
_KEY, _MAX_TICK = "(address,address,uint24,int24,address)", 887_272
_REFUSED = (DeployError, RpcFailure)


class Hurried(ContractDeployer):
    """Sends without waiting for a block: somebody else makes it."""

    def send(self, to: str | None, data: str, value_wei: int = 0) -> str:
        """The transaction's hash."""
        fees = {"maxFeePerGas": hex(20 * 10**9), "maxPriorityFeePerGas": hex(10**9)}
        what = {"from": self.account, "to": to, "data": data, "value": hex(value_wei), "gas": hex(self.gas)}
        self.sent.append(self.chain.call("eth_sendTransaction", what | fees))
        return self.sent[-1]


@dataclass(frozen=True, slots=True)
class Branch:
    """Where a branch began, and how it was played: ``state`` of the random numbers. ``tip``: its last block's
    number and hash; None: it is still being played."""

    snapshot: str
    fork: int
    mind: "Mind"
    state: tuple[Any, ...]
    tip: tuple[int, str] | None = None


@dataclass(slots=True)
class Mind:
    """What the players know of the chain: as the chain goes back, so does this."""

    market: ActorMarket
    positions: list[tuple[str, int, int, str]] = field(default_factory=list)
    """(v3 or v4, the position's number, its liquidity, the token)"""
    firsts: list[str] = field(default_factory=list)
    strangers: int = 0


class Play:
    """Plays on at ``chain``. Blocking. Raises OSError when the node is gone."""

    def __init__(self, chain: SyncRpc, built: Built, rng: Random) -> None:
        self._chain, self._built, self._rng = chain, built, rng
        self._mind = Mind(ActorMarket.unpack(built.market))
        self._desk = DevnetTrader(chain, built.contracts, built.accounts)
        self._first = self.head()
        self._minds = [(self._first, copy.deepcopy(self._mind))]
        self._branch: Branch | None = None
        self.given_up: list[tuple[int, int]] = []
        """Of each fork the last block that stayed, and the last that was taken away."""
        self.highest = self._first
        chain.call("anvil_setBlockTimestampInterval", 1)

    def head(self) -> int:
        """The chain's last block."""
        return int(self._chain.call("eth_blockNumber"), 16)

    def tip(self) -> tuple[int, str]:
        """The chain's last block, by number and hash."""
        block = self._chain.call("eth_getBlockByNumber", "latest", False)
        return int(block["number"], 16), str(block["hash"])

    def turns(self, count: int) -> None:
        """So many turns."""
        for _ in range(count):
            self._turn()

    def up_to(self, number: int) -> None:
        """Turns until the chain has block ``number``."""
        while self.head() < number:
            self._turn()

    def outgrow(self) -> None:
        """Turns until the chain is longer than any that was ever seen here, as the one that wins is."""
        self.up_to(self.highest + 1)

    # --- forks ------------------------------------------------------------------------------------

    def branch_off(self, blocks: int) -> None:
        """Plays a branch of about so many blocks that will be given up by ``come_back``."""
        snapshot, fork = self._chain.call("evm_snapshot"), self.head()
        self._branch = Branch(snapshot, fork, copy.deepcopy(self._mind), self._rng.getstate())
        self.up_to(fork + blocks)

    def come_back(self, longer: bool) -> int:
        """The branch is given up for another one, which is longer or shorter; the blocks taken back."""
        assert self._branch is not None
        branch, self._branch = self._branch, None
        head = self._reverted(branch)
        if longer:
            self.up_to(head + 1)
        else:
            self.turns(self._rng.randrange(3))
        return head - branch.fork

    def branch_to_return_to(self, blocks: int) -> None:
        """Plays a branch of about so many blocks for ``leave_branch``."""
        # It is played twice, and each time it knows of no approvals.
        self._desk = DevnetTrader(self._chain, self._built.contracts, self._built.accounts)
        self.branch_off(blocks)

    def leave_branch(self) -> None:
        """The branch is given up for a longer one, which ``return_to_branch`` gives up for it again."""
        assert self._branch is not None
        left = replace(self._branch, tip=self.tip())
        head = self._reverted(left)
        self._branch = replace(left, snapshot=self._chain.call("evm_snapshot"))
        self.up_to(head + 1)

    def return_to_branch(self) -> None:
        """The chain has the blocks of the branch that was left again, each by its hash."""
        assert self._branch is not None
        assert self._branch.tip is not None
        branch, number = self._branch, self._branch.tip[0]
        self._reverted(branch)
        self._rng.setstate(branch.state)
        self.up_to(number)
        self._branch = None
        assert self.tip() == branch.tip, f"the branch ended with {branch.tip}, and now with {self.tip()}"

    def _reverted(self, branch: Branch) -> int:
        """Goes back to before the branch; the last block that there was."""
        head = self.head()
        assert self._chain.call("evm_revert", branch.snapshot)
        self._give_up(branch.fork, head, branch.mind)
        return head

    def drop(self) -> int:
        """As many blocks again, without what was in them; the blocks taken back."""
        fork, mind = self._some_time_ago()
        depth = self.head() - fork
        if depth:
            self._chain.call("anvil_reorg", depth, [])
            self._give_up(fork, fork + depth, mind)
        return depth

    def shorten(self) -> int:
        """The chain without its last blocks; the blocks taken back."""
        fork, mind = self._some_time_ago()
        depth = self.head() - fork
        if depth:
            self._chain.call("anvil_rollback", depth)
            self._give_up(fork, fork + depth, mind)
        return depth

    def _some_time_ago(self) -> tuple[int, Mind]:
        """A moment between turns, at most DEEPEST blocks ago."""
        head = self.head()
        return self._rng.choice(
            [kept for kept in self._minds if kept[0] >= head - DEEPEST] or self._minds[-1:]
        )

    def _give_up(self, fork: int, last: int, mind: Mind) -> None:
        """What is known after the blocks from ``fork`` to ``last`` were taken away."""
        self.given_up.append((fork, last))
        self._mind = copy.deepcopy(mind)
        self._minds = [kept for kept in self._minds if kept[0] <= fork]
        # What it had approved may be taken back, too.
        self._desk = DevnetTrader(self._chain, self._built.contracts, self._built.accounts)

    # --- turns ------------------------------------------------------------------------------------

    def _turn(self) -> None:
        deeds: dict[Callable[[], None], int] = {
            self._actors: 12,
            self._crowd: 4,
            self._quiet: 3,
            self._pay: 3,
            self._stranger: 2,
            self._hand_over: 3,
            self._add_liquidity: 2,
            self._take_liquidity: 2,
            self._first_generation: 1,
            self._open_pool: 1,
            self._hours_pass: 1,
        }
        (deed,) = self._rng.choices(list(deeds), list(deeds.values()))
        before = self.head()
        try:
            deed()
        except _REFUSED:
            # What the chain refuses is a failed transaction at most, and such there are.
            self._chain.call("evm_setAutomine", True)
        if self.head() == before:
            self._chain.call("evm_mine")
        self.highest = max(self.highest, self.head())
        self._minds = [*self._minds[-DEEPEST:], (self.head(), copy.deepcopy(self._mind))]

    def _actors(self) -> None:
        market = self._mind.market
        for step in choose(market, self._rng, live_role(self._rng)):
            try:
                record(market, step, self._desk.perform(market, step))
            except _REFUSED:
                give_up(market, step)
                return

    def _crowd(self) -> None:
        """Several buys, sells and payments in one block."""
        self._chain.call("evm_setAutomine", False)
        sent: list[tuple[str, ActorStep | None]] = []
        for who in self._rng.sample(TRADERS, self._rng.randrange(2, 8)):
            sent += self._in_the_crowd(who)
        self._chain.call("evm_mine")
        self._chain.call("evm_setAutomine", True)
        for transaction, step in sent:
            found = self._chain.call("eth_getTransactionReceipt", transaction)
            if step is not None and found is not None and found["status"] == "0x1":
                sold_out = any(log["topics"][0] == _COMPLETED for log in found["logs"])
                record(self._mind.market, step, StepOutcome(sold_out=sold_out))

    def _in_the_crowd(self, who: str) -> list[tuple[str, ActorStep | None]]:
        wallet = Hurried(self._chain, self._desk.wallet(who).account, _SEND_GAS)
        number, wei = self._some_token("curve", "pool_v4"), self._rng.randrange(1, 200) * 10**15
        if number is None or self._rng.randrange(5) == 0:
            return [(wallet.send(self._somebody(), "0x", wei), None)]
        listed = self._mind.market.tokens[number]
        if listed.kind == "pool_v4":
            key = (ZERO, listed.token, POOL_FEE, POOL_SPACING, ZERO)
            return [
                (v4_swap(wallet, self._built.contracts, key, ZERO, wei), ActorStep(who, "buy", number, wei))
            ]
        on_curve = CurveToken(listed.token, listed.curve, ZERO)
        bought = curve_buy(wallet, on_curve, wei)
        if self._rng.randrange(3) == 0:
            # Back again in the same block: the last of it is still sold in one piece by whoever comes later.
            curve_sell(wallet, on_curve, _ETH)
        return [(bought, ActorStep(who, "buy", number, wei))]

    def _some_token(self, *kinds: str) -> int | None:
        """The place of some eth-quoted token that is of one of these kinds."""
        found = [
            number
            for number, listed in enumerate(self._mind.market.tokens)
            if listed.kind in kinds and listed.quote == "eth"
        ]
        return self._rng.choice(found) if found else None

    def _somebody(self) -> str:
        """An address: of an actor, or of nobody who was ever there."""
        if self._rng.randrange(2):
            return actor_address(self._rng.choice((*TRADERS, *LAUNCHERS)))
        return "0x" + self._rng.randbytes(20).hex()

    def _quiet(self) -> None:
        for _ in range(self._rng.randrange(1, 5)):
            self._chain.call("evm_mine")

    def _hours_pass(self) -> None:
        """No fork takes hours back: what is too old to be kept would be younger again."""
        if self._branch is not None:
            return
        now_s = int(self._chain.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
        self._chain.call("evm_setNextBlockTimestamp", now_s + self._rng.randrange(1, HOURS_AT_ONCE) * 3600)
        self._chain.call("evm_mine")
        self._minds.clear()

    def _pay(self) -> None:
        wallet = self._desk.wallet(self._rng.choice(TRADERS))
        wallet.send(self._somebody(), "0x", self._rng.randrange(3) * 10**16)

    def _stranger(self) -> None:
        """Somebody new gets eth, then buys."""
        name, number = f"stranger {self._mind.strangers}", self._some_token("curve")
        self._mind.strangers += 1
        self._desk.wallet(self._rng.choice(TRADERS)).send(actor_address(name), "0x", 3 * _ETH)
        if number is not None:
            listed = self._mind.market.tokens[number]
            curve_buy(self._desk.wallet(name), CurveToken(listed.token, listed.curve, ZERO), _ETH // 50)

    def _hand_over(self) -> None:
        """A holder gives a part of a launchpad's token away."""
        holders = [
            (who, listed.token)
            for listed in self._mind.market.tokens
            if listed.curve
            for who in listed.stakes
        ]
        if holders:
            who, token = self._rng.choice(holders)
            amount_raw = self._rng.randrange(1, 1000) * _ETH
            self._desk.wallet(who).send(
                token, calldata("transfer(address,uint256)", self._somebody(), amount_raw)
            )

    def _first_generation(self) -> None:
        """A launch of the launchpad's first generation, with its creator's buy, and somebody else's."""
        contracts, market = self._built.contracts, self._mind.market
        wallet = self._desk.wallet(self._rng.choice(LAUNCHERS))
        wallet.gas = _LIQUIDITY_GAS
        name = f"Sim {market.turn} {len(self._mind.firsts)}"
        wei = self._rng.randrange(2) * 10**16
        token = launch_first(wallet, contracts["launchpadV1Factories"], name, "SIM", wei)
        self._mind.firsts.append(token)
        for _ in range(LIMITED_BLOCKS):
            self._chain.call("evm_mine")
        pool_buy(self._desk.wallet(self._rng.choice(TRADERS)), contracts, token, 10**17)

    # --- pools ------------------------------------------------------------------------------------

    def _provider(self) -> ContractDeployer:
        """Who deployed the traded tokens, holds the rest of them, and has everything approved."""
        return ContractDeployer(self._chain, self._built.accounts[0], _LIQUIDITY_GAS)

    def _open_pool(self) -> None:
        """A holder opens a pool of a token that is on its curve: it trades in two places then."""
        number = self._some_token("curve", "graduated")
        if number is None or not self._mind.market.tokens[number].stakes:
            return
        contracts, listed = self._built.contracts, self._mind.market.tokens[number]
        wallet = self._desk.wallet(self._rng.choice(sorted(listed.stakes)))
        wallet.gas = _LIQUIDITY_GAS
        weth, manager = contracts["weth"], contracts["v3PositionManager"]
        wallet.send(weth, calldata("deposit()"), _ETH // 10)
        for token in (weth, listed.token):
            wallet.send(token, calldata("approve(address,uint256)", manager, MAX))
        v3_pool(wallet, contracts, {listed.token: 1000 * _ETH, weth: _ETH // 10}, POOL_FEE, fill=True)

    def _add_liquidity(self) -> None:
        # The market begins with the tokens that had pools before any launch.
        pools = [one for one in self._mind.market.tokens if one.kind in ("pool_v3", "pool_v4")]
        listed = self._rng.choice(pools)
        if listed.kind == "pool_v3":
            self._mind.positions.append(self._add_v3(listed.token))
        else:
            self._mind.positions.append(self._add_v4(listed.token))

    def _add_v3(self, token: str) -> tuple[str, int, int, str]:
        deployer, contracts = self._provider(), self._built.contracts
        token_raw, wei = self._rng.randrange(1, 50) * 1000 * _ETH, self._rng.randrange(1, 50) * 10**16
        v3_pool(deployer, contracts, {token: token_raw, contracts["weth"]: wei}, POOL_FEE, fill=True)
        logs = deployer.receipt(deployer.sent[-1])["logs"]
        (answer,) = [log for log in logs if log["topics"][0] == _INCREASED]
        return "v3", int(answer["topics"][1], 16), int(answer["data"][2:66], 16), token

    def _add_v4(self, token: str) -> tuple[str, int, int, str]:
        deployer, contracts = self._provider(), self._built.contracts
        liquidity, edge = self._rng.randrange(1, 1000) * _ETH, _MAX_TICK // POOL_SPACING * POOL_SPACING
        key = (ZERO, token, POOL_FEE, POOL_SPACING, ZERO)
        position = encode(
            [_KEY, "int24", "int24", "uint256", "uint128", "uint128", "address", "bytes"],
            [key, -edge, edge, liquidity, _ETH, 2**127, deployer.account, b""],
        )
        pair = encode(["address", "address"], [ZERO, token])
        sweep = encode(["address", "address"], [ZERO, deployer.account])
        receipt = self._modify(deployer, _V4_ADD, [position, pair, sweep], _ETH)
        manager = contracts["v4PositionManager"]
        minted = [log for log in receipt["logs"] if (log["address"], log["topics"][0]) == (manager, _MOVED)]
        return "v4", int(minted[0]["topics"][3], 16), liquidity, token

    def _take_liquidity(self) -> None:
        if not self._mind.positions:
            return
        kind, number, liquidity, token = self._rng.choice(self._mind.positions)
        deployer, part = self._provider(), liquidity // self._rng.randrange(2, 6)
        if kind == "v3":
            manager = self._built.contracts["v3PositionManager"]
            deployer.send(manager, calldata(_DECREASE, (number, part, 0, 0, _LATE)))
            deployer.send(manager, calldata(_COLLECT, (number, deployer.account, 2**128 - 1, 2**128 - 1)))
        else:
            less = encode(["uint256", "uint256", "uint128", "uint128", "bytes"], [number, part, 0, 0, b""])
            taken = encode(["address", "address", "address"], [ZERO, token, deployer.account])
            self._modify(deployer, _V4_TAKE, [less, taken])

    def _modify(
        self, deployer: ContractDeployer, actions: bytes, arguments: list[bytes], value_wei: int = 0
    ) -> dict[str, Any]:
        unlock = encode(["bytes", "bytes[]"], [actions, arguments])
        data = calldata("modifyLiquidities(bytes,uint256)", unlock, _LATE)
        return deployer.receipt(deployer.send(self._built.contracts["v4PositionManager"], data, value_wei))
