"""Real liquidity on the local chain, and whoever holds it: wallets, lockers, contracts, nobody.

A position knows every way in which it can be taken out, as calls of real accounts. ``liquidity_reality``
takes those ways.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import isqrt
from math import log as logarithm
from typing import NamedTuple

from eth_abi.abi import encode

from roundtrip.domain.base.types import BURN_ADDRESS
from roundtrip.venues.abi import keccak
from roundtrip_development.devnet import launchpad
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import (
    ETH_PRICE_USDG,
    MAX,
    PERMIT2,
    ZERO,
    ContractDeployer,
    calldata,
    put_token,
    v3_pool,
    v4_pool,
)
from roundtrip_development.devnet.launchpad import CurveToken, LaunchRequest
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT
from support.wallet import Wallet

LIQUIDITY = PROJECT / "contracts" / "liquidity"
V3 = PoolPlan("weth", 3000, 10_000)
V4 = PoolPlan("eth", 3000, 10_000, version=4)
TAXED = PoolPlan("taxed", 3000, 10_000)
"""A v3 pool against a quote that costs a part of whatever a contract sends."""
LOCKED_S = 20 * 86_400
"""For how long the lockers keep positions."""
ACCOUNTS = {"deployer": 0, "other": 3, "author": 4, "stranger": 8}
"""Which of the node's accounts: who makes the token, a wallet beside it, the author of the lockers, and one
that has nothing to do with it."""
SPACING, EDGE = 60, 887_220
_TOKEN_RAW = 8 * 10**8 * 10**18
"""What a pool of a plain token holds in all."""
_LATE = 2**40
_TAX_BPS, _QUOTE_RAW, _QUOTE_FEE = 200, 10**10 * 10**18, 500
_TRANSFER = "transferFrom(address,address,uint256)"
_MINT = "mint((address,address,uint24,int24,int24,uint256,uint256,uint256,uint256,address,uint256))"
_INCREASED = "0x" + keccak(b"IncreaseLiquidity(uint256,uint128,uint256,uint256)").hex()
_AT_ONCE = 20
_MINT_ACTIONS = bytes([0x02, 0x0D, 0x14])
"""Of the v4 position manager: mint, settle both, sweep what is left of the eth."""
_KEY = "(address,address,uint24,int24,address)"


class AccountCall(NamedTuple):
    """One call of an account."""

    sender: str
    to: str
    data: str


class Exit(NamedTuple):
    """A way to take a position out. ``wallet``: who does it, with ``acts``, from ``at_s`` on. ``takes``: who
    has the NFT then; empty: the acts take the liquidity itself."""

    wallet: str
    takes: str
    acts: tuple[AccountCall, ...] = ()
    at_s: int = 0


@dataclass(frozen=True, slots=True)
class PutPool:
    """A token and a pool of it, against the address ``quote``, that holds ``token_raw`` and ``quote_raw``
    once it is full. ``address``: of a v3 pool; ``key``: of a v4 pool; ``curve``: where the token sells as
    well."""

    token: str
    plan: PoolPlan
    quote: str
    token_raw: int = 0
    quote_raw: int = 0
    address: str = ""
    key: tuple[str, str, int, int, str] | None = None
    curve: str = ""

    def amounts(self, share_bps: int = 10_000) -> dict[str, int]:
        """So much of what it holds, by currency."""
        whole = {self.token: self.token_raw, self.quote: self.quote_raw}
        return {currency: raw * share_bps // 10_000 for currency, raw in whole.items()}

    def sqrt_price_x96(self) -> int:
        """At which it was opened."""
        (low, high), whole = self.sides(), self.amounts()
        return isqrt((whole[high] << 192) // whole[low])

    def sides(self) -> tuple[str, str]:
        """Both currencies, sorted."""
        low, high = sorted((self.token, self.quote), key=lambda address: int(address, 16))
        return low, high


@dataclass(frozen=True, slots=True)
class PutPosition:
    """Liquidity in a pool. ``owner``: whom the pool knows; ``number``: the NFT, 0 where there is none;
    ``holder``: who has it. ``exits``: every way to take it out, the earliest first."""

    pool: PutPool
    owner: str
    number: int
    tick_lower: int
    tick_upper: int
    liquidity: int
    holder: str
    exits: tuple[Exit, ...] = ()

    def free_to(self, now_s: int) -> set[str]:
        """Who can take it out in a block of this second."""
        return {one.wallet for one in self.exits if one.at_s <= now_s}


@dataclass(frozen=True, slots=True)
class PutWorld:
    """What was put on the chain. ``roles``: accounts by name."""

    pool: PutPool
    positions: tuple[PutPosition, ...]
    roles: dict[str, str]


@cache
def compiled(name: str, folder: str = "liquidity") -> str:
    """One of our contracts."""
    return compile_contract(PROJECT / "contracts" / folder / f"{name}.vy")


def account_of(rpc: SyncRpc, address: str) -> ContractDeployer:
    """Sends transactions of any account, which has eth."""
    rpc.call("anvil_impersonateAccount", address)
    if int(rpc.call("eth_getBalance", address, "latest"), 16) < 10**19:
        rpc.call("anvil_setBalance", address, hex(10**20))
    return ContractDeployer(rpc, address)


def pass_snipe_tax(rpc: SyncRpc) -> None:
    """The tax on buying a launch early is over afterwards."""
    rpc.call("evm_increaseTime", 10)
    rpc.call("evm_mine")


def now_s(rpc: SyncRpc) -> int:
    """The newest block's second."""
    return int(rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)


@dataclass
class LiquidityGround:
    """Puts tokens, pools and positions on one chain."""

    rpc: SyncRpc
    built: Built
    contracts: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.contracts = dict(self.built.contracts)
        self.roles = {role: self.built.accounts[number].lower() for role, number in ACCOUNTS.items()}
        self.deployer, self.author = (account_of(self.rpc, self.roles[one]) for one in ("deployer", "author"))

    def put(self, pool: PutPool, *positions: PutPosition, **roles: str) -> PutWorld:
        """The world of these positions."""
        for account in (self.deployer, self.author):
            account.check_receipts()
        return PutWorld(pool, positions, self.roles | roles)

    def create(self, name: str, *arguments: str) -> str:
        """One of the contracts of liquidity, made by the author; the arguments are addresses."""
        code = compiled(name)
        return self.author.create(code, ["address"] * len(arguments), list(arguments)).lower()

    def view(self, to: str, signature: str, *values: object) -> int:
        """The first word that a view answers."""
        call = {"to": to, "data": calldata(signature, *values)}
        return int(self.rpc.call("eth_call", call, "latest")[:66], 16)

    # --- pools --------------------------------------------------------------------------------------

    def pool(self, plan: PoolPlan = V3) -> PutPool:
        """A plain token and a pool at a price, with nothing in it."""
        story = Story("plain", "", "", pools=())
        token = put_token(self.deployer, self.contracts, story, compiled("plain", "tokens"))
        quote_raw = plan.quote_milli * 10**15
        return self._open(PutPool(token, plan, self.contracts.get(plan.quote, ZERO), _TOKEN_RAW, quote_raw))

    def _open(self, pool: PutPool) -> PutPool:
        """The pool at its price, with nothing in it."""
        low, high = pool.sides()
        self._approve_all(low, high)
        if pool.plan.version == 4:
            v4_pool(self.deployer, self.contracts, pool.amounts(), pool.plan.fee_pips, fill=False)
            return replace(pool, key=(low, high, pool.plan.fee_pips, SPACING, ZERO))
        v3_pool(self.deployer, self.contracts, pool.amounts(), pool.plan.fee_pips, fill=False)
        factory = self.contracts["v3Factory"]
        found = self.view(factory, "getPool(address,address,uint24)", low, high, pool.plan.fee_pips)
        return replace(pool, address=f"0x{found:040x}")

    def taxed_pool(self) -> PutPool:
        """A token on its curve against a quote that costs a part of what a contract sends, and a v3 pool of
        the two at the same price, and deeper."""
        quote = self._taxed_quote()
        launchpad.approve_quote(self.deployer, self.contracts["launchpadFactory"], quote, 10**18, 4 * 10**18)
        launched = launchpad.launch(self.deployer, self.contracts, LaunchRequest("Toller", "TOLL", quote))
        pass_snipe_tax(self.rpc)
        token = launched.token.lower()
        launchpad.curve_buy(self.deployer, replace(launched, quote=quote), 2 * 10**18)
        rows = self.rpc.call("eth_call", {"to": launched.curve, "data": calldata("getReserves()")}, "latest")
        on_curve = {"quote": int(rows[2:66], 16), "token": int(rows[66:130], 16)}
        held_raw = self.view(token, "balanceOf(address)", self.deployer.account)
        quote_raw = held_raw * on_curve["quote"] // on_curve["token"]
        pool = PutPool(token, TAXED, quote, held_raw, quote_raw, curve=launched.curve)
        return self._open(pool)

    def _approve_all(self, *currencies: str) -> None:
        managers = (self.contracts["v3PositionManager"], PERMIT2)
        for currency in (one for one in currencies if one != ZERO):
            for spender in managers:
                self.deployer.send(currency, calldata("approve(address,uint256)", spender, MAX))
            manager = self.contracts["v4PositionManager"]
            allow = "approve(address,address,uint160,uint48)"
            self.deployer.send(PERMIT2, calldata(allow, currency, manager, 2**160 - 1, _LATE))

    def _taxed_quote(self) -> str:
        """A quote that takes a fee of what any contract sends; it is worth an eth."""
        code = compiled("fee_on_buy", "tokens")
        types, values = ["string", "string", "uint256", "uint256"], ["Levy", "LEVY", _QUOTE_RAW, _TAX_BPS]
        quote = self.author.create(code, types, values).lower()
        self.author.send(quote, calldata("transfer(address,uint256)", self.deployer.account, _QUOTE_RAW // 2))
        self._approve_all(quote, self.contracts["usdg"])
        amounts = {quote: 1000 * 10**18, self.contracts["usdg"]: 1000 * ETH_PRICE_USDG * 10**6}
        v3_pool(self.deployer, self.contracts, amounts, _QUOTE_FEE, fill=True)
        return quote

    # --- positions ----------------------------------------------------------------------------------

    def add(
        self,
        pool: PutPool,
        to: str,
        share_bps: int = 10_000,
        ticks: tuple[int, int] = (-EDGE, EDGE),
        only: str | None = None,
    ) -> PutPosition:
        """So much of what the full pool holds, whose NFT the wallet ``to`` gets. ``only``: of this currency
        alone, in ticks where the price is not."""
        amounts = {one: raw if only in (None, one) else 0 for one, raw in pool.amounts(share_bps).items()}
        if pool.key is not None:
            return self._add_v4(pool, to, amounts, ticks)
        (added,) = self._add_v3(pool, [to], amounts, ticks)
        return added

    def add_many(self, pool: PutPool, wallets: Sequence[str], share_bps: int) -> list[PutPosition]:
        """So much over all prices of a v3 pool for each of the wallets."""
        amounts = pool.amounts(share_bps)
        parts = [wallets[at : at + _AT_ONCE] for at in range(0, len(wallets), _AT_ONCE)]
        return [one for part in parts for one in self._add_v3(pool, part, amounts, (-EDGE, EDGE))]

    def _add_v3(
        self, pool: PutPool, wallets: Sequence[str], amounts: dict[str, int], ticks: tuple[int, int]
    ) -> list[PutPosition]:
        """Each gets as much."""
        (low, high), manager = pool.sides(), self.contracts["v3PositionManager"]
        if pool.plan.quote == "weth" and amounts[pool.quote]:
            self.deployer.send(pool.quote, calldata("deposit()"), amounts[pool.quote] * len(wallets))
        place = (low, high, pool.plan.fee_pips, *ticks, amounts[low], amounts[high], 0, 0)
        mints = [bytes.fromhex(calldata(_MINT, (*place, to, _LATE))[2:]) for to in wallets]
        sent = self.deployer.send(manager, calldata("multicall(bytes[])", mints))
        # IncreaseLiquidity has the NFT's number; then liquidity and amounts.
        added = [log for log in self.deployer.receipt(sent)["logs"] if log["topics"][0] == _INCREASED]
        return [
            PutPosition(
                pool,
                manager,
                int(log["topics"][1], 16),
                *ticks,
                int(log["data"][:66], 16),
                to,
                (Exit(to, to),),
            )
            for log, to in zip(added, wallets, strict=True)
        ]

    def _add_v4(self, pool: PutPool, to: str, amounts: dict[str, int], ticks: tuple[int, int]) -> PutPosition:
        low, high = pool.sides()
        manager = self.contracts["v4PositionManager"]
        number, liquidity = self.view(manager, "nextTokenId()"), _full_range(pool, amounts)
        place = (pool.key, *ticks, liquidity, amounts[low], amounts[high], to, b"")
        types = [_KEY, "int24", "int24", "uint256", "uint128", "uint128", "address", "bytes"]
        steps = [
            encode(types, place),
            encode(["address", "address"], [low, high]),
            encode(["address", "address"], [ZERO, self.deployer.account]),
        ]
        plan = encode(["bytes", "bytes[]"], [_MINT_ACTIONS, steps])
        data = calldata("modifyLiquidities(bytes,uint256)", plan, _LATE)
        self.deployer.receipt(self.deployer.send(manager, data, amounts.get(ZERO, 0)))
        return PutPosition(pool, manager, number, *ticks, liquidity, to, (Exit(to, to),))

    def give(self, position: PutPosition, to: str, *exits: Exit) -> PutPosition:
        """The deployer's NFT, given to somebody out of whose hands only these ways lead."""
        deployer = self.deployer
        deployer.receipt(
            deployer.send(position.owner, calldata(_TRANSFER, deployer.account, to, position.number))
        )
        return replace(position, holder=to, exits=exits)

    def lock(self, position: PutPosition, locker: str, until_s: int, *sooner: Exit) -> PutPosition:
        """Locks the deployer's NFT by its number, for the deployer."""
        owner, number = position.owner, position.number
        self._approve_nft(position, locker)
        lock = "lock(address,uint256,uint256,address)"
        self._lock(locker, calldata(lock, owner, number, until_s, self.deployer.account))
        at_end = Exit(
            self.deployer.account, self.deployer.account, (self.withdraws(position, locker),), until_s
        )
        return replace(position, holder=locker, exits=(*sooner, at_end))

    def withdraws(self, position: PutPosition, locker: str) -> AccountCall:
        """What the deployer takes an NFT out of a locker with."""
        data = calldata("withdraw(address,uint256)", position.owner, position.number)
        return AccountCall(self.deployer.account, locker, data)

    def lock_by_id(self, position: PutPosition, vault: str, until_s: int) -> PutPosition:
        """Locks the deployer's NFT in the next lock of a vault, for the deployer."""
        me, lock_id = self.deployer.account, self.view(vault, "lockCount()")
        self._approve_nft(position, vault)
        lock = "lock(address,uint256,address,address,uint256)"
        self._lock(vault, calldata(lock, position.owner, position.number, me, me, until_s))
        withdraw = AccountCall(me, vault, calldata("withdraw(uint256,address)", lock_id, me))
        exits = (Exit(me, me, (withdraw,), until_s),) if until_s < MAX else ()
        return replace(position, holder=vault, exits=exits)

    def _approve_nft(self, position: PutPosition, locker: str) -> None:
        data = calldata("approve(address,uint256)", locker, position.number)
        self.deployer.send(position.owner, data)

    def _lock(self, locker: str, data: str) -> None:
        self.deployer.receipt(self.deployer.send(locker, data))

    def add_direct(self, pool: PutPool, name: str, share_bps: int = 10_000) -> PutPosition:
        """Liquidity that a contract of the author holds in the v3 pool itself, over all prices."""
        contract, author = self.create(name), self.author.account
        amounts = pool.amounts(share_bps)
        self.deployer.send(pool.quote, calldata("deposit()"), amounts[pool.quote])
        for currency, raw in amounts.items():
            self.deployer.send(currency, calldata("transfer(address,uint256)", contract, raw))
        liquidity = _full_range(pool, amounts)
        values = (pool.address, -EDGE, EDGE, liquidity)
        direct = name == "direct_position"
        verb, leaves = ("add", calldata("pull()")) if direct else ("mint", calldata("burn(uint256)", 1))
        self.author.receipt(
            self.author.send(contract, calldata(f"{verb}(address,int24,int24,uint128)", *values))
        )
        leave = Exit(author, "", (AccountCall(author, contract, leaves),))
        return PutPosition(pool, contract, 0, -EDGE, EDGE, liquidity, contract, (leave,))


def _full_range(pool: PutPool, amounts: dict[str, int]) -> int:
    """The liquidity that these amounts pay over all prices, with a millionth to spare."""
    (low, high), price = pool.sides(), pool.sqrt_price_x96()
    liquidity = min(amounts[high] * 2**96 // price, amounts[low] * price // 2**96)
    return liquidity * 999_999 // 10**6


# --- worlds -----------------------------------------------------------------------------------------------


def _of_wallets(plan: PoolPlan, **shares_bps: int) -> Callable[[LiquidityGround], PutWorld]:
    def put(ground: LiquidityGround) -> PutWorld:
        pool = ground.pool(plan)
        fresh = {
            role: Wallet(ground.rpc, ground.contracts, f"liquidity {role}").address for role in shares_bps
        }
        roles = fresh | ground.roles
        positions = [ground.add(pool, roles[role], bps) for role, bps in shares_bps.items()]
        return ground.put(pool, *positions, **fresh | ground.roles)

    return put


def _burned(plan: PoolPlan) -> Callable[[LiquidityGround], PutWorld]:
    def put(ground: LiquidityGround) -> PutWorld:
        pool = ground.pool(plan)
        return ground.put(pool, ground.give(ground.add(pool, ground.deployer.account), BURN_ADDRESS))

    return put


def _time_locked(plan: PoolPlan, share_bps: int = 10_000) -> Callable[[LiquidityGround], PutWorld]:
    """The rest is the deployer's own."""

    def put(ground: LiquidityGround) -> PutWorld:
        pool, me = ground.pool(plan), ground.deployer.account
        until_s = now_s(ground.rpc) + LOCKED_S
        locked = ground.lock(ground.add(pool, me, share_bps), ground.create("time_lock"), until_s)
        rest = [ground.add(pool, me, 10_000 - share_bps)] if share_bps < 10_000 else []
        return ground.put(pool, locked, *rest)

    return put


def _over(ground: LiquidityGround) -> PutWorld:
    """A lock whose time has passed."""
    pool, until_s = ground.pool(), now_s(ground.rpc) + 1000
    locked = ground.lock(ground.add(pool, ground.deployer.account), ground.create("time_lock"), until_s)
    ground.rpc.call("evm_setNextBlockTimestamp", until_s)
    ground.rpc.call("evm_mine")
    return ground.put(pool, locked)


def _in_vault(eternal: bool) -> Callable[[LiquidityGround], PutWorld]:
    """The second lock of the vault; the first is of another token."""

    def put(ground: LiquidityGround) -> PutWorld:
        vault, me = ground.create("vault_lock"), ground.deployer.account
        until_s = MAX if eternal else now_s(ground.rpc) + LOCKED_S
        ground.lock_by_id(ground.add(ground.pool(), me), vault, until_s)
        pool = ground.pool()
        return ground.put(pool, ground.lock_by_id(ground.add(pool, me), vault, until_s))

    return put


def _in_crowded_vault(ground: LiquidityGround) -> PutWorld:
    """The sixth lock of the vault. The first is for ever, the others end soon."""
    vault, me = ground.create("vault_lock"), ground.deployer.account
    elsewhere, soon_s = ground.pool(), now_s(ground.rpc) + 9000
    for until_s in (MAX, *range(soon_s, soon_s + 4)):
        ground.lock_by_id(ground.add(elsewhere, me, 100), vault, until_s)
    pool = ground.pool()
    return ground.put(pool, ground.lock_by_id(ground.add(pool, me), vault, now_s(ground.rpc) + LOCKED_S))


def _with_operator_first(ground: LiquidityGround) -> PutWorld:
    """The time lock's code, at an address for which the author was approved before the code was there."""
    pool, author = ground.pool(), ground.author.account
    position = ground.add(pool, ground.deployer.account)
    code = ground.rpc.call("eth_getCode", ground.create("time_lock"), "latest")
    approve = calldata("setApprovalForAll(address,bool)", author, True)
    locker = ground.author.create(calling_first(position.owner, approve, code)).lower()
    way = Exit(author, author, (AccountCall(author, position.owner, _move(position, locker, author)),))
    return ground.put(pool, ground.lock(position, locker, now_s(ground.rpc) + LOCKED_S, way))


def calling_first(to: str, data: str, code: str) -> str:
    """Creation code that makes a call, and then leaves ``code``."""
    call, left = bytes.fromhex(data[2:]), bytes.fromhex(code[2:])
    size, start = len(call), 52
    program = (
        # Copy the call's data to memory, call, drop the answer.
        f"61{size:04x}61{start:04x}5f39" + f"5f5f61{size:04x}5f5f73{to[2:]}5af150"
        # Copy the code to memory, return it.
        f"61{len(left):04x}61{start + size:04x}5f39" + f"61{len(left):04x}5ff3"
    )
    assert len(program) == 2 * start
    return f"0x{program}{call.hex()}{left.hex()}"


def _move(position: PutPosition, holder: str, to: str) -> str:
    return calldata(_TRANSFER, holder, to, position.number)


def _behind_back_door(plan: PoolPlan) -> Callable[[LiquidityGround], PutWorld]:
    def put(ground: LiquidityGround) -> PutWorld:
        pool, author = ground.pool(plan), ground.author.account
        locker, position = ground.create("back_door"), ground.add(pool, ground.deployer.account)
        move = "migrateVault(address,uint256,address)"
        act = AccountCall(author, locker, calldata(move, position.owner, position.number, author))
        until_s = now_s(ground.rpc) + LOCKED_S
        return ground.put(pool, ground.lock(position, locker, until_s, Exit(author, author, (act,))))

    return put


def _with_operator(ground: LiquidityGround) -> PutWorld:
    """The NFT's manager lets the author move what the locker keeps."""
    pool, author = ground.pool(), ground.author.account
    locker, position = ground.create("operator_lock"), ground.add(pool, ground.deployer.account)
    way = Exit(author, author, (AccountCall(author, position.owner, _move(position, locker, author)),))
    return ground.put(pool, ground.lock(position, locker, now_s(ground.rpc) + LOCKED_S, way))


def _shortened(alone: bool) -> Callable[[LiquidityGround], PutWorld]:
    """A lock whose time can be set: by its beneficiary alone, or by its author for the beneficiary."""

    def put(ground: LiquidityGround) -> PutWorld:
        pool, me = ground.pool(), ground.deployer.account
        owner = ground.deployer if alone else ground.author
        locker, position = owner.create(compiled("short_lock")).lower(), ground.add(pool, me)
        shorten = "setUnlockTime(address,uint256,uint256)"
        acts = (
            AccountCall(owner.account, locker, calldata(shorten, position.owner, position.number, 1)),
            ground.withdraws(position, locker),
        )
        until_s = now_s(ground.rpc) + LOCKED_S
        return ground.put(pool, ground.lock(position, locker, until_s, Exit(me, me, acts)))

    return put


def _upgradable(name: str) -> Callable[[LiquidityGround], PutWorld]:
    """The author replaces the logic; the deployer then takes the position out."""

    def put(ground: LiquidityGround) -> PutWorld:
        pool, me, author = ground.pool(), ground.deployer.account, ground.author.account
        locker = ground.create(name, ground.create("time_lock"))
        position, opened = ground.add(pool, me), ground.create("open_lock")
        acts = (
            AccountCall(author, locker, calldata("upgradeTo(address)", opened)),
            ground.withdraws(position, locker),
        )
        until_s = now_s(ground.rpc) + LOCKED_S
        return ground.put(pool, ground.lock(position, locker, until_s, Exit(author, me, acts)))

    return put


def _clone(ground: LiquidityGround) -> PutWorld:
    """A minimal proxy (EIP-1167) of the back door, whose first slots name the author."""
    pool, author = ground.pool(), ground.author.account
    code = f"363d3d373d3d3d363d73{ground.create('back_door')[2:]}5af43d82803e903d91602b57fd5bf3"
    stores = "".join(f"73{author[2:]}60{slot:02x}55" for slot in range(4))
    size, start = len(code) // 2, len(stores) // 2 + 10
    locker = ground.author.create(f"0x{stores}60{size:02x}60{start:02x}5f3960{size:02x}5ff3{code}").lower()
    position = ground.add(pool, ground.deployer.account)
    move = "migrateVault(address,uint256,address)"
    act = AccountCall(author, locker, calldata(move, position.owner, position.number, author))
    way = Exit(author, author, (act,))
    return ground.put(pool, ground.lock(position, locker, now_s(ground.rpc) + LOCKED_S, way))


def _stuck(ground: LiquidityGround) -> PutWorld:
    pool = ground.pool()
    return ground.put(pool, ground.give(ground.add(pool, ground.deployer.account), ground.create("stuck")))


def _direct(name: str) -> Callable[[LiquidityGround], PutWorld]:
    def put(ground: LiquidityGround) -> PutWorld:
        pool = ground.pool()
        return ground.put(pool, ground.add_direct(pool, name))

    return put


def _crowded(ground: LiquidityGround) -> PutWorld:
    """Two hundred wallets, each with as much."""
    pool = ground.pool()
    wallets = [f"0x{2**140 + number:040x}" for number in range(200)]
    return ground.put(pool, *ground.add_many(pool, wallets, 50))


def _one_sided(ground: LiquidityGround) -> PutWorld:
    """The deployer's position holds the token where the price is not; another wallet's is all the depth."""
    pool = ground.pool()
    at = round(2 * logarithm(pool.sqrt_price_x96() / 2**96, 1.0001)) // SPACING
    # Above the price where the token is the first currency, else below it.
    first, last = (at + 10, at + 500) if pool.sides()[0] == pool.token else (at - 500, at - 10)
    ticks = (first * SPACING, last * SPACING)
    aside = ground.add(pool, ground.deployer.account, 2000, ticks, pool.token)
    return ground.put(pool, ground.add(pool, ground.roles["other"]), aside)


def _narrow_burned(ground: LiquidityGround) -> PutWorld:
    """All that is in range is a narrow position of a thousandth, at a burn address. The rest lies on both
    sides of it in the deployer's positions."""
    pool, me = ground.pool(), ground.deployer.account
    at = round(2 * logarithm(pool.sqrt_price_x96() / 2**96, 1.0001)) // SPACING * SPACING
    narrow = ground.give(ground.add(pool, me, 10, (at, at + SPACING)), BURN_ADDRESS)
    # The first currency lies above the price, the second below it.
    low, high = pool.sides()
    above, below = ((at + SPACING, EDGE), low), ((-EDGE, at), high)
    return ground.put(pool, narrow, *(ground.add(pool, me, 9000, *side) for side in (above, below)))


def _free_above_burned(ground: LiquidityGround) -> PutWorld:
    """All that is in range is burned, and thin. The deployer's tokens begin a step beyond the price, where
    the next buy leads."""
    pool, me = ground.pool(), ground.deployer.account
    at = round(2 * logarithm(pool.sqrt_price_x96() / 2**96, 1.0001)) // SPACING * SPACING
    burned = ground.give(ground.add(pool, me, 300), BURN_ADDRESS)
    ticks = (at + SPACING, EDGE) if pool.sides()[0] == pool.token else (-EDGE, at)
    return ground.put(pool, burned, ground.add(pool, me, 9000, ticks, pool.token))


def _graduated(ground: LiquidityGround) -> PutWorld:
    """What the launchpad's locker keeps for ever."""
    launched = _launch(ground, "Dean", "DEAN")
    launchpad.curve_buy(ground.deployer, launched, 10 * 10**18)
    launchpad.graduate(ground.deployer, ground.contracts, launched.token)
    locker, token = ground.contracts["launchpadLocker"], launched.token.lower()
    key = launchpad.pool_key(ground.contracts, token, ZERO)
    number = ground.view(locker, "positionOf(bytes32)", launchpad.pool_id(key))
    manager = ground.contracts["v4PositionManager"]
    liquidity = ground.view(manager, "getPositionLiquidity(uint256)", number)
    pool = PutPool(token, PoolPlan("eth", 0, version=4), ZERO, key=key)
    edge = 887_272 // launchpad.TICK_SPACING * launchpad.TICK_SPACING
    return ground.put(pool, PutPosition(pool, manager, number, -edge, edge, liquidity, locker))


def _on_curve(ground: LiquidityGround) -> PutWorld:
    """A launch that somebody bought some of: it has no position."""
    launched = _launch(ground, "Arch", "ARCH")
    launchpad.curve_buy(ground.deployer, launched, 10**18)
    plan = PoolPlan("eth", 0)
    return ground.put(PutPool(launched.token.lower(), plan, ZERO, curve=launched.curve))


def _launch(ground: LiquidityGround, name: str, symbol: str) -> CurveToken:
    launched = launchpad.launch(ground.deployer, ground.contracts, LaunchRequest(name, symbol))
    pass_snipe_tax(ground.rpc)
    return launched


def _against_taxed(ground: LiquidityGround) -> PutWorld:
    pool = ground.taxed_pool()
    return ground.put(pool, ground.add(pool, ground.deployer.account))


WORLDS: dict[str, Callable[[LiquidityGround], PutWorld]] = {
    "deployer": _of_wallets(V3, deployer=10_000),
    "deployer, v4": _of_wallets(V4, deployer=10_000),
    "another wallet": _of_wallets(V3, other=10_000),
    "another wallet, v4": _of_wallets(V4, other=10_000),
    "several wallets": _of_wallets(V3, deployer=5000, other=3000, third=2000),
    "several wallets, v4": _of_wallets(V4, deployer=5000, other=3000, third=2000),
    "burned": _burned(V3),
    "burned, v4": _burned(V4),
    "time lock": _time_locked(V3),
    "time lock, v4": _time_locked(V4),
    "time lock of a part": _time_locked(V3, 6000),
    "time lock that is over": _over,
    "vault": _in_vault(eternal=False),
    "vault for ever": _in_vault(eternal=True),
    "vault of many locks": _in_crowded_vault,
    "operator before its code": _with_operator_first,
    "back door": _behind_back_door(V3),
    "back door, v4": _behind_back_door(V4),
    "operator of the NFTs": _with_operator,
    "short lock": _shortened(alone=True),
    "short lock of two": _shortened(alone=False),
    "upgradable lock": _upgradable("upgradable_lock"),
    "proxy of its own kind": _upgradable("owned_proxy"),
    "clone of a back door": _clone,
    "stuck": _stuck,
    "direct position": _direct("direct_position"),
    "ownerOf reverts": _direct("owner_of_reverts"),
    "two hundred wallets": _crowded,
    "one-sided": _one_sided,
    "narrow position burned": _narrow_burned,
    "free above burned": _free_above_burned,
    "taxed quote": _against_taxed,
    "graduated": _graduated,
    "on its curve": _on_curve,
}


class ExpectedPosition(NamedTuple):
    """What is true of a position. ``held_by``: what keeps it, in the answer's words. ``can_withdraw_now``: by
    role. ``until_s``: for how long after it was locked nobody can; 0: there is no such time."""

    held_by: str
    can_withdraw_now: frozenset[str] = frozenset()
    until_s: int = 0


def _free(role: str) -> ExpectedPosition:
    return ExpectedPosition("free", frozenset({role}))


_LOCKED = ExpectedPosition("locked", until_s=LOCKED_S)
_STAYS = ExpectedPosition("contract")
EXPECTED: dict[str, tuple[ExpectedPosition, ...]] = {
    "deployer": (_free("deployer"),),
    "deployer, v4": (_free("deployer"),),
    "another wallet": (_free("other"),),
    "another wallet, v4": (_free("other"),),
    "several wallets": (_free("deployer"), _free("other"), _free("third")),
    "several wallets, v4": (_free("deployer"), _free("other"), _free("third")),
    "burned": (ExpectedPosition("burned"),),
    "burned, v4": (ExpectedPosition("burned"),),
    "time lock": (_LOCKED,),
    "time lock, v4": (_LOCKED,),
    "time lock of a part": (_LOCKED, _free("deployer")),
    "time lock that is over": (_free("deployer"),),
    "vault": (_LOCKED,),
    "vault for ever": (ExpectedPosition("locked"),),
    "vault of many locks": (_LOCKED,),
    "operator before its code": (_free("author"),),
    "back door": (_free("author"),),
    "back door, v4": (_free("author"),),
    "operator of the NFTs": (_free("author"),),
    "short lock": (_free("deployer"),),
    "short lock of two": (_free("deployer"),),
    "upgradable lock": (_free("author"),),
    "proxy of its own kind": (_free("author"),),
    "clone of a back door": (_free("author"),),
    "stuck": (_STAYS,),
    "direct position": (_free("author"),),
    "ownerOf reverts": (_free("author"),),
    "two hundred wallets": (),
    "one-sided": (_free("other"), _free("deployer")),
    "narrow position burned": (ExpectedPosition("burned"), _free("deployer"), _free("deployer")),
    "free above burned": (ExpectedPosition("burned"), _free("deployer")),
    "taxed quote": (_free("deployer"),),
    "graduated": (ExpectedPosition("launchpad"),),
    "on its curve": (),
}
"""By world, of its positions in order. Of two hundred, each is its own wallet's."""
