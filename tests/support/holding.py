"""Who comes to hold a token on the real local chain, and how: wallets of our own trade, move, pool and burn
it, and whatever they do is written down as they do it, out of balances and never out of logs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from roundtrip_development.devnet import launchpad, launchpad_v1
from roundtrip_development.devnet.deploy import calldata, v3_pool, v4_pool
from roundtrip_development.devnet.launchpad import LAUNCH, LAUNCH_FEE_WEI, LaunchRequest
from support.actors import ETH, MANY_GAS, Act, Actors, What, code_of, deeds_data
from support.wallet import PoolSpec, UnsignedStep, Wallet

ZERO, DEAD = "0x" + "0" * 40, "0x" + "0" * 36 + "dead"
TOKEN = 10**18
SUPPLY = 10**9 * TOKEN

_TRANSFER = "0x" + keccak(text="Transfer(address,address,uint256)").hex().removeprefix("0x")
_FEE_PIPS = 3000

V3 = PoolSpec("weth", _FEE_PIPS)
V4 = PoolSpec("eth", _FEE_PIPS, version=4)


@dataclass(frozen=True, slots=True)
class Deed:
    """What came of it for one wallet. ``paid_wei``: what it cost, where it was a buy for eth."""

    what: What
    wallet: str
    amount_raw: int
    block_number: int
    at_s: int
    tx_hash: str
    paid_wei: int = 0


class HoldersStage(Actors):
    """Makes tokens, too."""

    def books(self, owner: str, source: str = "truth/books.vy", extra: Sequence[int] = ()) -> "Held":
        """A token that ``owner`` deploys, and gets all of. ``extra``: more that its constructor takes."""
        types = ["string", "string", "uint256", *["uint256"] * len(extra)]
        held = Held(self, self.create(owner, source, types, ["Books", "BOOK", SUPPLY, *extra]), owner, V3)
        held.note(owner, "minted", SUPPLY, self.number())
        return held

    def launched(
        self, who: str, buy_wei: int = 0, recipient: str | None = None, salt: int = 1, **more: Any
    ) -> "Held":
        """A launch on the launchpad's curve, with a first buy in the same transaction where that is asked.
        The next block is ten seconds later: nobody pays the tax of the first three."""
        asked, own = LaunchRequest("Held", "HELD", salt=salt, **more), self.deployer(who)
        if not buy_wei:
            made = launchpad.launch(own, self.contracts, asked)
            self.rpc.call("evm_increaseTime", 10)
            return self.on_curve(made.token, made.curve, who)
        whose = recipient or who
        made = launchpad.launch_and_buy(own, self.contracts, asked, buy_wei, whose)
        held = self.on_curve(made.token, made.curve, who)
        held.note(whose, "bought", held.balance(whose), self.number(), buy_wei)
        self.rpc.call("evm_increaseTime", 10)
        return held

    def on_curve(self, token: str, curve: str, who: str) -> "Held":
        """A launch of the launchpad that was made otherwise."""
        held = Held(self, token.lower(), who, curve.lower())
        held.pools.add(curve.lower())
        return held

    def launch_act(self, who: str, salt: int, exempt: Sequence[str] = ()) -> tuple["Held", Act]:
        """A launch that is still to be sent, and the token and curve that it will make."""
        data = calldata(LAUNCH, LaunchRequest("Held", "HELD", salt=salt).as_tuple(), 0, ZERO, list(exempt))
        factory = self.contracts["launchpadFactory"]
        call = {"from": who, "to": factory, "data": data, "value": hex(LAUNCH_FEE_WEI)}
        rows = self.rpc.call("eth_call", call, "latest", {who: {"balance": hex(ETH)}})
        token, curve = "0x" + rows[26:66], "0x" + rows[90:130]
        return self.on_curve(token, curve, who), Act(
            who, UnsignedStep(factory, data, LAUNCH_FEE_WEI), gas=MANY_GAS
        )

    def launched_first(self, who: str, buy_wei: int = 0) -> "Held":
        """A launch of the launchpad's first generation, in its v3 pool from its first block."""
        factory = self.contracts["launchpadV1Factories"]
        token = launchpad_v1.launch_first(self.deployer(who), factory, "First", "FRST", buy_wei)
        held = Held(self, token, who, PoolSpec("weth", launchpad_v1.POOL_FEE_PIPS))
        held.knows_pool()
        if buy_wei:
            held.note(who, "bought", held.balance(who), self.number(), buy_wei)
        return held

    def made_by(self, hands: str, who: str) -> "Held":
        """A token that a contract makes and hands to ``who``, in one transaction of his."""
        arguments = encode(["string", "string", "uint256"], ["Made", "MADE", SUPPLY])
        code = bytes.fromhex(code_of("truth/books.vy")[2:]) + arguments
        hand_over = bytes.fromhex(calldata("transfer(address,uint256)", who, SUPPLY)[2:])
        made = self.send(who, hands, calldata("make(bytes,bytes)", code, hand_over), gas=MANY_GAS)
        held = Held(self, str(made["logs"][0]["address"]), who, V3)
        held.note(who, "got", SUPPLY, self.number())
        return held


@dataclass
class Held:
    """One token, where it trades, and everything that anybody did with it. ``venue``: a curve's address or a
    pool by its key. ``pools``, ``beside``: addresses that are nobody's wallets."""

    stage: HoldersStage
    token: str
    deployer: str
    venue: str | PoolSpec
    pools: set[str] = field(default_factory=set)
    deeds: list[Deed] = field(default_factory=list)

    # --- what there is -------------------------------------------------------------------------------

    def balance(self, whose: str) -> int:
        return self.stage.view(self.token, "balanceOf(address)", whose)

    def supply(self) -> int:
        return self.stage.view(self.token, "totalSupply()")

    def addresses(self) -> list[str]:
        """Every address that a log of the token names."""
        asked = {"address": self.token, "fromBlock": "0x0", "toBlock": "latest", "topics": [_TRANSFER]}
        logs = self.stage.rpc.call("eth_getLogs", asked)
        return sorted({"0x" + topic[26:] for log in logs for topic in log["topics"][1:3]})

    def transfers(self) -> int:
        asked = {"address": self.token, "fromBlock": "0x0", "toBlock": "latest", "topics": [_TRANSFER]}
        return len(self.stage.rpc.call("eth_getLogs", asked))

    def nobody(self) -> set[str]:
        """Every address that is no wallet."""
        own = {
            address
            for name, one in self.stage.contracts.items()
            if name != "share"
            for address in one.split()
        }
        return own | self.pools | {ZERO, DEAD}

    def in_pools(self) -> int:
        names = ("v4PoolManager", "launchpadHook")
        return sum(self.balance(at) for at in self.pools | {self.stage.contracts[name] for name in names})

    def knows_pool(self) -> None:
        """Notes the v3 pool."""
        assert isinstance(self.venue, PoolSpec)
        contracts = self.stage.contracts
        asked = calldata(
            "getPool(address,address,uint24)", self.token, contracts["weth"], self.venue.fee_pips
        )
        rows = self.stage.rpc.call("eth_call", {"to": contracts["v3Factory"], "data": asked}, "latest")
        self.pools.add("0x" + rows[26:])

    # --- what is done --------------------------------------------------------------------------------

    def do(self, *acts: Act) -> list[dict[str, Any]]:
        """All in one block; what came of it is written down."""
        whose = list(dict.fromkeys(wallet for act in acts for wallet, _ in act.does))
        before = {wallet: self.balance(wallet) if self._is_there() else 0 for wallet in whose}
        eth = {act.sender: self.stage.eth(act.sender) for act in acts}
        receipts = self.stage.block(acts)
        assert len(whose) == sum(len(act.does) for act in acts), "a wallet does one thing in a block"
        assert len(eth) == len(acts), "and sends one transaction"
        for act, receipt in zip(acts, receipts, strict=True):
            buyers = sum(what == "bought" for _, what in act.does)
            gas_wei = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
            for wallet, what in act.does:
                spent = eth[act.sender] - self.stage.eth(act.sender) - gas_wei
                paid = spent // buyers if what == "bought" else 0
                amount, tx_hash = abs(self.balance(wallet) - before[wallet]), receipt["transactionHash"]
                self.note(wallet, what, amount, int(receipt["blockNumber"], 16), paid, tx_hash)
        return receipts

    def one_by_one(self, *acts: Act) -> None:
        """Each in a block of its own."""
        for act in acts:
            self.do(act)

    def note(
        self, wallet: str, what: What, amount_raw: int, number: int, paid_wei: int = 0, tx_hash: str = ""
    ) -> None:
        """Writes down what was done otherwise."""
        assert amount_raw > 0, (wallet, what)
        at_s = int(self.stage.rpc.call("eth_getBlockByNumber", hex(number), False)["timestamp"], 16)
        self.deeds.append(Deed(what, wallet, amount_raw, number, at_s, tx_hash, paid_wei))

    def _is_there(self) -> bool:
        return bool(self.stage.rpc.call("eth_getCode", self.token, "latest") != "0x")

    def buy_step(self, wei: int, recipient: str) -> UnsignedStep:
        """A transaction that buys for so much eth, for the recipient."""
        if isinstance(self.venue, str):
            data = calldata("buy(uint256,uint256,address)", wei, 0, recipient)
            return UnsignedStep(self.venue, data, wei)
        (swap,) = self._trader(recipient).buy_steps(self.token, self.venue, wei)
        return swap

    def buy(self, who: str, wei: int) -> Act:
        """Buys for itself."""
        return Act(who, self.buy_step(wei, who), ((who, "bought"),))

    def buy_for(self, hands: str, who: str, recipients: Sequence[str], wei: int) -> Act:
        """One transaction that buys for so much eth for each of them."""
        steps = [self.buy_step(wei, one) for one in recipients]
        step = UnsignedStep(hands, deeds_data(steps), wei * len(steps))
        does: tuple[tuple[str, What], ...] = tuple((one, "bought") for one in recipients)
        return Act(who, step, does, MANY_GAS)

    def buy_and_pass_on(self, hands: str, who: str, wei: int, amount_raw: int) -> Act:
        """Hands buy, and pass so much of it on to ``who``; the rest stays with them."""
        steps = [self.buy_step(wei, hands), self.move(hands, who, amount_raw).step]
        does: tuple[tuple[str, What], ...] = ((who, "bought"), (hands, "bought"))
        return Act(who, UnsignedStep(hands, deeds_data(steps), wei), does, MANY_GAS)

    def sell(self, who: str, amount_raw: int) -> Act:
        """Allows it at once; the sale itself is still to be sent."""
        if isinstance(self.venue, str):
            approve = calldata("approve(address,uint256)", self.venue, amount_raw)
            first = [UnsignedStep(self.token, approve)]
            swap = UnsignedStep(self.venue, calldata("sell(uint256,uint256,address)", amount_raw, 0, who))
        else:
            *first, swap = self._trader(who).sell_steps(self.token, self.venue, amount_raw)
        for step in first:
            self.stage.send(who, step.to, step.data)
        return Act(who, swap, ((who, "sold"),))

    def move(self, who: str, to: str, amount_raw: int) -> Act:
        """A plain transfer; to a burn address it is burned."""
        step = UnsignedStep(self.token, calldata("transfer(address,uint256)", to, amount_raw))
        if to in (ZERO, DEAD):
            return Act(who, step, ((who, "burned"),))
        return Act(who, step, ((who, "moved"), (to, "got")))

    def burn(self, who: str, amount_raw: int) -> Act:
        """Makes the supply smaller."""
        return Act(who, UnsignedStep(self.token, calldata("burn(uint256)", amount_raw)), ((who, "burned"),))

    def says(self, who: str, signature: str, *values: object) -> Act:
        """Any call of the token, of which nothing is written down."""
        return Act(who, UnsignedStep(self.token, calldata(signature, *values)))

    def mint(self, who: str, amount_raw: int) -> Act:
        """Makes it larger."""
        step = UnsignedStep(self.token, calldata("mint(address,uint256)", who, amount_raw))
        return Act(who, step, ((who, "minted"),))

    def pool(self, who: str, amount_raw: int, wei: int) -> None:
        """Puts both into a pool of v3 or v4 as the venue says, which this makes where there is none."""
        stage, before = self.stage, self.balance(who)
        place = self.venue if isinstance(self.venue, PoolSpec) else V3
        own, contracts = stage.deployer(who), stage.contracts
        if place.version == 4:
            v4_pool(own, contracts, {self.token: amount_raw, ZERO: wei}, place.fee_pips, True)
        else:
            manager, weth = contracts["v3PositionManager"], contracts["weth"]
            stage.send(who, weth, calldata("deposit()"), wei)
            for asset, amount in ((weth, wei), (self.token, amount_raw)):
                stage.send(who, asset, calldata("approve(address,uint256)", manager, amount))
            v3_pool(own, contracts, {self.token: amount_raw, weth: wei}, place.fee_pips, True)
            self.knows_pool_of(place)
        own.check_receipts()
        self.note(who, "pooled", before - self.balance(who), stage.number())

    def knows_pool_of(self, place: PoolSpec) -> None:
        """Notes the v3 pool of that key."""
        kept, self.venue = self.venue, place
        self.knows_pool()
        self.venue = kept

    def graduate(self, who: str) -> None:
        """Takes a sold-out curve to its pool, where it trades from then on."""
        launchpad.graduate(self.stage.deployer(who), self.stage.contracts, self.token)
        hook = self.stage.contracts["launchpadHook"]
        self.venue = PoolSpec("eth", launchpad.POOL_FEE, 4, launchpad.TICK_SPACING, hook)

    def _trader(self, who: str) -> Wallet:
        return _Reader(self.stage.contracts, who)


class _Reader(Wallet):
    """A wallet's steps, without its key."""

    def __init__(self, contracts: dict[str, str], address: str) -> None:
        self._contracts, self.address = contracts, address
