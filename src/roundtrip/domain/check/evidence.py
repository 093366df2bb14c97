"""What a check knows: facts and probe cells, each perhaps Missing. The verdict is a reading of this.

Amounts are base units of the asset they name. ``_raw`` is the token's or the quote's smallest unit.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from roundtrip.domain.base.types import BPS, Address, BlockRef
from roundtrip.domain.base.venue import PoolFacts, Venue


@dataclass(frozen=True, slots=True)
class Missing:
    """Could not be found out. ``node``: asking again may help. ``token``: the token's own doing."""

    wire: ClassVar[str] = "Missing"

    fault: Literal["node", "token"]
    why: str


@dataclass(frozen=True, slots=True)
class Environment:
    """The wallet and block conditions one run is made in: what a real block can have. ``prev_randao`` is
    what each block's own is drawn from, and the wallets what each probe's own are drawn from.

    What a contract can see of a wallet differs between environments as it does between people:
    ``gas_float_wei`` held beyond the trade, ``size_bps`` of the size bought, approvals of all or of exactly
    what is sold, ``approved_s`` before the sell, the gas they carry (0: half as much again as was measured),
    ``late_s`` later than the round delay, the gas limits that a sell is tried under in turn (none: the
    policy's).
    """

    wire: ClassVar[str] = "Environment"

    buyer: Address
    receiver: Address
    reader: Address
    nonce: int
    coinbase: Address
    prev_randao: str
    base_fee_wei: int
    max_fee_wei: int
    tip_wei: int
    gas_float_wei: int = 5 * 10**16
    size_bps: int = BPS
    approves_all: bool = False
    approve_gas_limit: int = 300_000
    approved_s: int = 6
    late_s: int = 0
    sell_gas_ladder: tuple[int, ...] = ()
    own_usdg_raw: int = 0
    """Usdg really bought beforehand, in its units: a wallet that holds something else too."""
    company: bool = False
    """Between buy and sell others buy, as happens to everybody."""


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """What the token answered about itself. None: it gave no such answer."""

    wire: ClassVar[str] = "TokenFacts"

    code_bytes: int | Missing
    name_data: str | Missing | None
    symbol_data: str | Missing | None
    decimals: int | Missing | None
    total_supply_raw: int | Missing | None
    balance_answers: bool | Missing
    owner: Address | Missing | None
    proxy_admin: Address | Missing | None


@dataclass(frozen=True, slots=True)
class QuoteHop:
    """One v3 pool on the way from weth to another money: what it leads to, and its fee."""

    wire: ClassVar[str] = "Hop"

    to: Address
    fee_pips: int


@dataclass(frozen=True, slots=True)
class QuoteRate:
    """What one whole eth was worth of a money that is not eth, weth or usdg, in its base units, and the
    way there by v3 pools, from weth on."""

    wire: ClassVar[str] = "QuoteRate"

    asset: Address
    units_per_eth_raw: int
    route: tuple[QuoteHop, ...]
    decimals: int


@dataclass(frozen=True, slots=True)
class MarketRates:
    """What one eth was worth at ``block_number``, from the deepest weth/usdg pool.

    ``usdg_per_eth_raw`` is in usdg base units for one whole eth; ``feed_usd_e8`` is the price feed's
    dollars times 1e8, where the network has a feed. ``rates``: other money that venues of this token
    are paid in, as far as a way to it was found.
    """

    wire: ClassVar[str] = "Market"

    block_number: int
    usdg_per_eth_raw: int | Missing
    pool_fee_pips: int | None
    feed_usd_e8: int | None
    rates: tuple[QuoteRate, ...] = ()


@dataclass(frozen=True, slots=True)
class Curve:
    """A bonding curve by its own views. ``quote_raw`` includes the phantom part, ``real_quote_raw`` does
    not; a buy stops when ``token_raw`` is down to ``reserved_raw``. ``snipe_bps`` is what a fresh wallet
    pays of a buy at the pinned block; it ends ``snipe_seconds`` after ``launched_at_s``, where told.
    """

    wire: ClassVar[str] = "Curve"

    quote_raw: int
    token_raw: int
    real_quote_raw: int
    reserved_raw: int
    fee_bps: int
    creator_tax_bps: int
    closed: bool
    snipe_bps: int
    launched_at_s: int
    snipe_seconds: int | None


LaunchPhase = Literal["curve", "swept", "pooled", "rescued"]


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """What the launchpad's factory knows of a token. ``curve_state`` is told while it is on its curve;
    ``hook_fee_bps`` of the pool it will be, or is, in."""

    wire: ClassVar[str] = "Launch"

    phase: LaunchPhase
    curve: Address
    deployer: Address
    quote_address: Address
    threshold_raw: int
    pool_fee_pips: int
    tick_spacing: int
    creator_tax_bps: int
    swept_at_s: int
    hook_fee_bps: int | None
    curve_state: Curve | Missing | None

    def is_between_venues(self) -> bool:
        """True between the close of the curve and the opening of the pool, and for a launch called off."""
        if self.phase == "curve":
            return isinstance(self.curve_state, Curve) and self.curve_state.closed
        return self.phase in ("swept", "rescued")


@dataclass(frozen=True, slots=True)
class PoolLaunch:
    """What a launchpad's factory knows of a token that was in its pool from the first block: it has no curve
    that could close, and nothing moves when it graduates. ``principal_raw`` of the quote, out of
    ``threshold_raw``, lies in the pool; None: the factory does not tell."""

    wire: ClassVar[str] = "PoolLaunch"

    deployer: Address
    quote_address: Address
    pool_fee_pips: int
    principal_raw: int | None
    threshold_raw: int | None
    graduated: bool

    def fill_bps(self) -> int | None:
        """How far it is from graduating; all of it once it has. None: not known."""
        if self.graduated:
            return BPS
        if self.principal_raw is None or self.threshold_raw is None:
            return None
        return min(BPS, self.principal_raw * BPS // self.threshold_raw) if self.threshold_raw > 0 else BPS


AnyLaunch = LaunchRecord | PoolLaunch


@dataclass(frozen=True, slots=True)
class DeployerRecord:
    """A launch's deployer: launches so far, how many of them graduated and of how many it sold its own
    tokens; what it got of this token, and what it sold of it."""

    wire: ClassVar[str] = "Deployer"

    launches: int
    graduated: int
    sold_own: int
    got_raw: int
    sold_raw: int


Size = Literal["probe", "tenth", "hundredth", "thousandth", "large"]


@dataclass(frozen=True, slots=True)
class CompletedBuy:
    """A buy that went through: what left the wallet and what arrived, both read from balances.

    ``held_later_raw``: what the wallet is told it holds in a later block, an hour and a day later, with
    nothing done; empty where that was not asked. It differs for tokens that rebase.
    """

    wire: ClassVar[str] = "Bought"

    paid_raw: int
    received_raw: int
    offered_raw: int
    gas: int
    held_later_raw: tuple[int, ...] = ()
    approve_gas: int = 0
    """What the dearest of the approvals took that a sell needs; 0 where that was not asked."""
    closes: bool = False
    """It sold a bonding curve out: until the pool opens nobody can sell."""


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """The chain said no. ``step`` names the leg, "arrive" a buy that was paid for and brought nothing;
    ``reason`` is a stranger's text, as decoded."""

    wire: ClassVar[str] = "Refused"

    step: Literal["fund", "buy", "arrive", "approve", "transfer", "sell"]
    reason: str | None
    gas: int


@dataclass(frozen=True, slots=True)
class Sold:
    """A buy and a later sell that both went through, read from balances.

    ``planned_raw`` is what the sell was asked to sell, ``sold_raw`` what left the wallet,
    ``held_raw`` what was held before the sell, which is what ``paid_raw`` had become; where a receiver
    sells, what the buyer had bought. ``back_raw`` is what came back. ``arrived_raw`` is what reached a
    receiver, less than was bought where transfers are taxed; None where the buyer sells.
    """

    wire: ClassVar[str] = "Sold"

    paid_raw: int
    held_raw: int
    planned_raw: int
    sold_raw: int
    back_raw: int
    buy_gas: int
    sell_gas: int
    arrived_raw: int | None = None


BuyOutcome = CompletedBuy | RefusedCall | Missing
CellOutcome = Sold | RefusedCall | Missing


@dataclass(frozen=True, slots=True)
class EnvironmentBuy:
    """One buy of trip 1, alone on the pinned state."""

    wire: ClassVar[str] = "Buy"

    size: Size
    environment: int
    outcome: BuyOutcome


@dataclass(frozen=True, slots=True)
class Probe:
    """One point of the grid: how much is bought, how long it is held, how much of it is sold by whom."""

    wire: ClassVar[str] = "Probe"

    size: Size
    delay_s: int
    share_bps: int
    environment: int
    seller: Literal["buyer", "receiver"] = "buyer"


@dataclass(frozen=True, slots=True)
class ProbeCell:
    """A probe and what came of it."""

    wire: ClassVar[str] = "Cell"

    probe: Probe
    outcome: CellOutcome


@dataclass(frozen=True, slots=True)
class HookCarry:
    """``moved_raw`` of the token moved as a sell moves it, and as much as a buy does, but past the pool:
    what ``arrived_raw`` at the pool's side, and what was ``received_raw`` from there. It tells what the
    token takes of its transfers from what a hook takes of swaps."""

    wire: ClassVar[str] = "Carried"

    moved_raw: int
    arrived_raw: int
    received_raw: int


@dataclass(frozen=True, slots=True)
class VenueEvidence:
    """Everything asked of one venue. ``told_on_buy`` and ``told_on_sell`` are what the token itself said
    to the move behind a buy or a sell, made directly: routers and pools swallow its reason. None: it did
    not object, or was not asked. ``carried`` is asked where a hook takes part in swaps; Refused: the token
    would not be moved so. ``crossed`` is what came of selling here what was bought on the venue where it is
    cheapest, paid in that venue's quote; None: it is cheapest here, or nothing was bought elsewhere."""

    wire: ClassVar[str] = "VenueEvidence"

    venue: Venue
    facts: PoolFacts | Missing
    buys: tuple[EnvironmentBuy, ...] = ()
    cells: tuple[ProbeCell, ...] = ()
    told_on_buy: RefusedCall | Missing | None = None
    told_on_sell: RefusedCall | Missing | None = None
    carried: HookCarry | RefusedCall | Missing | None = None
    crossed: CellOutcome | None = None


@dataclass(frozen=True, slots=True)
class OwnerCall:
    """A function of the owner's, called with one sort of values between a buy and the sell after it.

    ``function`` and ``passed`` (the last values that were taken) are this service's own words. ``calls``: the
    calldata that was taken, in order, from ``sender``; ``buyer`` sold then. ``stand_in`` was given code that
    knows none of a token's functions, where a contract was passed. ``outcome``: what that sell came to; None:
    every call was refused.
    """

    wire: ClassVar[str] = "OwnerCall"

    function: str
    passed: str
    by: Literal["owner", "proxy admin"]
    sender: Address
    buyer: Address
    calls: tuple[str, ...]
    outcome: CellOutcome | None
    stand_in: Address | None = None


@dataclass(frozen=True, slots=True)
class OwnerCalls:
    """What a token's owner could change, by trying. ``venue``: by its number, the one that was sold on.
    ``control`` is the same trade with nothing called; ``tried`` the most hostile first. ``left_out``
    functions were found and not tried."""

    wire: ClassVar[str] = "OwnerCalls"

    venue: int
    control: CellOutcome
    tried: tuple[OwnerCall, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class HolderSell:
    """A wallet that the index knows to have bought, and what its own sell came to. ``held_raw``: its own
    balance, None where that was not told. Of ``outcome`` nothing was paid: it had bought before. ``later``:
    of the same sell tried once more when a day is over; None: it had gone through, or the day was over."""

    wire: ClassVar[str] = "HolderSell"

    holder: Address
    held_raw: int | None
    outcome: CellOutcome
    later: CellOutcome | None = None


@dataclass(frozen=True, slots=True)
class HolderSells:
    """What real holders' own tokens sell for. ``venue``: by its number, the one that was sold on.
    ``control``: what the check's own wallet sold for there; each holder stands in its place, after the same
    buy, and sells as much of his own, or all that he has. Of ``known`` ones those with code, behind
    the token or without tokens were not ``tried``."""

    wire: ClassVar[str] = "HolderSells"

    venue: int
    control: Sold
    known: int
    tried: tuple[HolderSell, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One check, whole: re-judging this document gives the verdict again.

    ``pools_found`` counts every pool; ``venues`` are the best of them by what the buy brought, and every
    candidate whose state or buy could not be found out.
    """

    wire: ClassVar[str] = "Evidence"

    schema: int
    policy_version: str
    chain_id: int
    block: BlockRef
    block_base_fee_wei: int
    token: Address
    role: Literal["token", "weth", "usdg"]
    facts: TokenFacts
    market: MarketRates
    environments: tuple[Environment, ...] = ()
    venues: tuple[VenueEvidence, ...] = ()
    candidates_complete: bool = False
    """False while only the standard pools were looked at (no index)."""
    pools_found: int = 0
    left_out: int = 0
    """Pools that are known and were not even looked at, because there are too many."""
    launch: AnyLaunch | Missing | None = None
    """None: launched on no launchpad, or there is none here."""
    given: tuple[Address, ...] = ()
    """Money that the wallets were given, because no swap brought it."""
    deployer: DeployerRecord | None = None
    """None: not known, which takes an index."""
    owner_calls: OwnerCalls | Missing | None = None
    """None: not asked, or there is no owner, or nothing that sells."""
    holder_sells: HolderSells | Missing | None = None
    """None: not asked, or no holder is known, or nothing that the wallet which bought it sells."""
