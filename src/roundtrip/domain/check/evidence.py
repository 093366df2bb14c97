"""The evidence of a check: facts and probe cells, each possibly Missing. The verdict is computed from it.

Amounts are base units of the asset they name. ``_raw`` is the token's or the quote's smallest unit.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from roundtrip.domain.base.types import BPS, Address, BlockRef
from roundtrip.domain.base.venue import OtherPool, PoolFacts, Venue


@dataclass(frozen=True, slots=True)
class Missing:
    """An unknown piece. ``node``: trying again may help. ``token``: the token caused it."""

    wire: ClassVar[str] = "Missing"
    fault: Literal["node", "token"]
    why: str


@dataclass(frozen=True, slots=True)
class Environment:
    """The wallet and block conditions of one run, as a real block can have them. ``prev_randao`` is the seed
    of each block's own value, and the wallets are the seeds of each probe's own wallets.

    Environments differ in what a contract can see of a wallet, as real wallets do: ``gas_float_wei`` held
    beyond the trade, ``size_bps`` of the nominal size, approvals of everything or of exactly the sold amount,
    ``approved_s`` before the sell, the approvals' gas limit (0: 1.5 times the measured gas), ``late_s``
    beyond the nominal delay, the gas limits that a sell is tried with in turn (none: the policy's),
    ``own_usdg_raw`` bought before, and in ``company``: other wallets buy between the buy and the sell.
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
    company: bool = False


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """The token's answers about itself. None: it gave no such answer."""

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
    """One v3 pool on the route from weth to a quote: the asset it leads to, and its fee."""

    wire: ClassVar[str] = "Hop"
    to: Address
    fee_pips: int


@dataclass(frozen=True, slots=True)
class QuoteRate:
    """The price of one whole eth in a quote other than eth, weth and usdg, in the quote's base units, and the
    route to it through v3 pools, starting at weth."""

    wire: ClassVar[str] = "QuoteRate"
    asset: Address
    units_per_eth_raw: int
    route: tuple[QuoteHop, ...]
    decimals: int


@dataclass(frozen=True, slots=True)
class MarketRates:
    """The price of one eth at ``block_number``, from the deepest weth/usdg pool.

    ``usdg_per_eth_raw`` is in usdg base units for one whole eth; ``feed_usd_e8`` is the price feed's
    dollars times 1e8, where the network has a feed. ``rates``: other quotes of this token's venues, as
    far as a route was found.
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
    pays of a buy at the pinned block; it ends ``snipe_seconds`` after ``launched_at_s``, where known.
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
    """The launchpad factory's record of a token. ``phase``: its last ``events.Step``; ``curve``: none yet,
    and ``curve_state`` is set. ``hook_fee_bps`` is of the pool that it has or will have."""

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
    """A launchpad factory's record of a token that was in its pool from the first block: it has no curve that
    could close, and nothing moves when it graduates. ``principal_raw`` of the quote, out of
    ``threshold_raw``, is in the pool; None: the factory does not state it."""

    wire: ClassVar[str] = "PoolLaunch"
    deployer: Address
    quote_address: Address
    pool_fee_pips: int
    principal_raw: int | None
    threshold_raw: int | None
    graduated: bool

    def fill_bps(self) -> int | None:
        """The progress to graduation; all of it once graduated. None: not known."""
        if self.graduated:
            return BPS
        if self.principal_raw is None or self.threshold_raw is None:
            return None
        return min(BPS, self.principal_raw * BPS // self.threshold_raw) if self.threshold_raw > 0 else BPS


AnyLaunch = LaunchRecord | PoolLaunch


@dataclass(frozen=True, slots=True)
class DeployerRecord:
    """A launch's deployer: the number of its launches, of those that graduated, and of those that it sold
    tokens of; the amounts of this token that it got and sold."""

    wire: ClassVar[str] = "Deployer"
    launches: int
    graduated: int
    sold_own: int
    got_raw: int
    sold_raw: int


Size = Literal["probe", "tenth", "hundredth", "thousandth", "large"]


@dataclass(frozen=True, slots=True)
class CompletedBuy:
    """A buy that succeeded: the amounts that left the wallet and arrived, both read from balances.

    ``held_later_raw``: the wallet's balance in a later block, an hour and a day later, without other action;
    empty where it was not read. It differs for tokens that rebase.
    """

    wire: ClassVar[str] = "Bought"
    paid_raw: int
    received_raw: int
    offered_raw: int
    gas: int
    held_later_raw: tuple[int, ...] = ()
    approve_gas: int = 0
    """Gas of the most expensive approval that a sell needs; 0 where it was not measured."""
    closes: bool = False
    """The buy sold a bonding curve out: no sell is possible until the pool opens."""


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that reverted. ``step`` names the leg; "arrive" is a buy that was paid for and brought nothing.
    ``reason`` is the decoded, untrusted text."""

    wire: ClassVar[str] = "Refused"
    step: Literal["fund", "buy", "arrive", "approve", "transfer", "sell"]
    reason: str | None
    gas: int


@dataclass(frozen=True, slots=True)
class Sold:
    """A buy and a later sell that both succeeded, read from balances.

    ``planned_raw``: the amount to sell, of pieces those that succeeded; ``sold_raw``: the amount that left
    the wallet; ``held_raw``: the balance before the sell, bought for ``paid_raw``, or, where a receiver
    sells, the amount that the buyer bought. ``back_raw``: the quote that came back. ``arrived_raw``: the
    amount that reached a receiver, less than was bought where transfers are taxed; None where the buyer
    sells.
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
    """One buy of the buy round, alone on the pinned state."""

    wire: ClassVar[str] = "Buy"
    size: Size
    environment: int
    outcome: BuyOutcome


ProbeSeller = Literal[
    "buyer", "receiver", "pieces", "small pieces", "any hour", "much gas", "little gas", "second route",
    "nearly all", "traded before",
]  # fmt: skip
OVER_A_DAY: tuple[ProbeSeller, ...] = ("pieces", "small pieces", "any hour")
"""Several sales in the course of a day."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One point of the grid: the size, the delay, the share that is sold, and the seller. ``pieces`` and
    ``small pieces``: the buyer sells the share in ten or fifty equal sales, the last of them after the delay.
    ``any hour``: it tries one sale at each of ten moments until the delay, and the first that succeeds
    counts. ``much gas``: the sale may use as much gas as a transaction may have; ``little gas``: about what
    it uses. ``second route``: it sells by the venue's second route. ``nearly all``: the largest part that
    sells, of those that the policy tries. ``traded before``: the wallet has a history."""

    wire: ClassVar[str] = "Probe"
    size: Size
    delay_s: int
    share_bps: int
    environment: int
    seller: ProbeSeller = "buyer"


@dataclass(frozen=True, slots=True)
class ProbeCell:
    """A probe and its outcome."""

    wire: ClassVar[str] = "Cell"
    probe: Probe
    outcome: CellOutcome


@dataclass(frozen=True, slots=True)
class HookCarry:
    """``moved_raw`` of the token transferred like in a sell, and the same amount like in a buy, but without a
    swap: ``arrived_raw`` at the pool's side, and ``received_raw`` from there. It separates the token's tax on
    transfers from a hook's fee on swaps."""

    wire: ClassVar[str] = "Carried"
    moved_raw: int
    arrived_raw: int
    received_raw: int


CrowdWay = Literal["usual", "second route", "pieces"]
"""How a wallet of the crowd sells: as the main wallet does, through the venue's second route, or in equal
sales over the day."""


@dataclass(frozen=True, slots=True)
class CrowdWallet:
    """A drawn wallet that trades among others. ``purse_wei``: eth beyond what its buys cost; it also holds
    ``weth_wei`` and ``usdg_raw``. It buys for ``size_wei``, and later for ``again_wei`` (0: not again), paid
    in the venue's quote. It sells ``share_bps`` of what that bought, ``after_s`` after its last buy.
    ``delegates``: it has code, the designator of an EIP-7702 delegation.
    """

    wire: ClassVar[str] = "CrowdWallet"
    wallet: Address
    nonce: int
    size_wei: int
    again_wei: int
    purse_wei: int
    weth_wei: int
    usdg_raw: int
    tip_wei: int
    approves_all: bool
    after_s: int
    share_bps: int
    way: CrowdWay
    delegates: bool = False


@dataclass(frozen=True, slots=True)
class CrowdSale:
    """A sale among others, from balances and the venue's own logs. The venue gave ``given_raw`` of the token,
    and ``received_raw`` arrived. Of ``planned_raw`` sold the venue got ``taken_raw``; it paid ``paid_raw``,
    and ``back_raw`` arrived. Others' trades move the price between buy and sell: a loss can only be read from
    these pairs. ``pool_bps``: what the pool's own fee took of both trades, by the pool's logs, where each
    swap has its own; else 0."""

    wire: ClassVar[str] = "CrowdSale"
    given_raw: int
    received_raw: int
    planned_raw: int
    taken_raw: int
    paid_raw: int
    back_raw: int
    pool_bps: int = 0


@dataclass(frozen=True, slots=True)
class NotTried:
    """Why a drawn wallet did not trade: the venue is too thin for it (pool), or its trades need more gas than
    a simulation has or than its limit allows (gas)."""

    wire: ClassVar[str] = "NotTried"
    why: Literal["pool", "gas"]


TradeOutcome = CrowdSale | RefusedCall | Missing | NotTried


@dataclass(frozen=True, slots=True)
class CrowdTrade:
    """A wallet of the crowd and the outcome of its trade; RefusedCall: its buy or its sell was refused.
    ``late_s``: so much later than drawn it sold, because each wait begins at the crowd's last buy."""

    wire: ClassVar[str] = "CrowdTrade"
    wallet: CrowdWallet
    outcome: TradeOutcome
    late_s: int = 0


Difference = Literal[
    "as drawn", "blocks", "wallet", "nearly all", "others", "others sold",
    "size", "time", "share", "pieces", "route", "approval", "tip", "code", "in company",
]  # fmt: skip
"""In what an isolated trade differs from the main wallet's. ``blocks``: only in that as many blocks and
seconds pass as in company, which they do in all of these; ``as drawn``: in all that the wallet of the crowd
does; ``wallet``: only in what the wallet is and has, its code aside; ``nearly all``: in that it sells a
thousandth less, as the two ``others`` do; ``others``, ``others sold``: only in that others buy before, or buy
and sell; ``in company``: the whole crowd buys as it did, and then this wallet tries to sell, soon, after an
hour and after a day; the rest: only in the wallet's choice of that name."""


@dataclass(frozen=True, slots=True)
class IsolatedTrade:
    """A trade of the isolation round: of trade number ``of`` of the crowd only one difference is kept. The
    wallet is alone but for ``others``. Sold: ``held_raw`` as read after the buy."""

    wire: ClassVar[str] = "IsolatedTrade"
    of: int
    difference: Difference
    outcome: "CellOutcome"


@dataclass(frozen=True, slots=True)
class Crowd:
    """The crowd of one venue. ``isolated``: empty where no wallet met anything else than the main one."""

    wire: ClassVar[str] = "Crowd"
    trades: tuple[CrowdTrade, ...]
    isolated: tuple[IsolatedTrade, ...] = ()


@dataclass(frozen=True, slots=True)
class VenueEvidence:
    """The evidence of one venue. ``told_on_buy`` and ``told_on_sell``: the token's refusal of the direct
    transfer behind a buy or a sell, because routers and pools swallow its reason. None: it did not refuse, or
    was not tried. ``carried`` is tried where a hook takes part in swaps; RefusedCall: the token refused the
    transfer. ``crossed``: the outcome of selling here what was bought on the cheapest venue, paid in that
    venue's quote; None: this venue is the cheapest, or nothing was bought elsewhere; ``crossed_large``: of
    the large buy. ``short_raw``: how much less than all arrived at a v3 pool when all was sent to it; None:
    not measured."""

    wire: ClassVar[str] = "VenueEvidence"
    venue: Venue
    facts: PoolFacts | Missing
    buys: tuple[EnvironmentBuy, ...] = ()
    cells: tuple[ProbeCell, ...] = ()
    told_on_buy: RefusedCall | Missing | None = None
    told_on_sell: RefusedCall | Missing | None = None
    carried: HookCarry | RefusedCall | Missing | None = None
    crossed: CellOutcome | None = None
    crowd: Crowd | Missing | None = None
    """None: no crowd traded here."""
    short_raw: int | None = None
    crossed_large: CellOutcome | None = None


Caller = Literal[
    "owner", "proxy admin", "deployer", "role", "storage", "code", "supply", "event", "contract",
    "contract owner", "contract account", "anyone",
]  # fmt: skip
"""Who makes a call: the owner or the proxy admin; the deployer; an account that an event gives a role; an
account in the token's storage, in its code, with supply, or in another event of it; a contract that it names;
such a contract's owner, or an account in its storage; a new wallet."""


@dataclass(frozen=True, slots=True)
class OwnerCall:
    """A function of an owner or of another account, called with one kind of values between a buy and the sell
    after it.

    ``function`` and ``passed`` (the last accepted values) are this service's own texts. ``calls``: the
    accepted calldata, in order, from ``sender``; then ``buyer`` sold. ``stand_in``: where a contract was
    passed, an address with code that has none of a token's functions. ``outcome``: of that sell; None: every
    call was refused. ``target``: the contract that was called; None: the token.
    """

    wire: ClassVar[str] = "OwnerCall"
    function: str
    passed: str
    by: Caller
    sender: Address
    buyer: Address
    calls: tuple[str, ...]
    outcome: CellOutcome | None
    stand_in: Address | None = None
    target: Address | None = None


@dataclass(frozen=True, slots=True)
class OwnerCalls:
    """What a token's owner could change, by trial. ``venue``: the number of the venue that was sold on.
    ``control``: the same trade without a call. ``tried``: the most hostile call first. ``left_out``: the
    number of functions that were found and not tried."""

    wire: ClassVar[str] = "OwnerCalls"
    venue: int
    control: CellOutcome
    tried: tuple[OwnerCall, ...]
    left_out: int = 0


RightsGap = Literal["events", "storage", "contracts", "calls"]
"""What a search for accounts with rights could not read or follow: all of the token's events, its storage, a
contract that a sale may call, the simulation of some calls."""


@dataclass(frozen=True, slots=True)
class AccountRights:
    """What accounts other than an owner could change, by trial. ``venue``, ``control``: as in ``OwnerCalls``.

    Each of ``functions`` functions was called by each of ``accounts`` accounts and by a new wallet.
    ``tried``: the functions that an account could call, and those of contracts that the token names, with
    hostile values. ``accounts_left_out``, ``left_out``: the numbers of accounts and functions that were found
    and not tried. ``beside_owner``: the token has an owner who can act.
    """

    wire: ClassVar[str] = "AccountRights"
    venue: int
    control: CellOutcome
    accounts: int
    functions: int
    tried: tuple[OwnerCall, ...]
    accounts_left_out: int = 0
    left_out: int = 0
    unread: tuple[RightsGap, ...] = ()
    beside_owner: bool = False


@dataclass(frozen=True, slots=True)
class HolderSell:
    """A wallet that bought according to the index, and its sell. ``held_raw``: its balance; None: not known.
    ``outcome`` has no payment: the wallet bought before. ``later``: the outcome of the same sell after a day;
    None: the first one succeeded, or was after a day already."""

    wire: ClassVar[str] = "HolderSell"
    holder: Address
    held_raw: int | None
    outcome: CellOutcome
    later: CellOutcome | None = None


@dataclass(frozen=True, slots=True)
class HolderSells:
    """Sells of real holders' tokens. ``venue``: the number of the venue that was sold on. ``control``: the
    sell of the check's own wallet there; each holder takes its place, after the same buy, and sells as many
    of its own tokens, or all that it has. ``known``: the number of known holders; those with code, behind the
    token or with too few tokens were not ``tried``, nor more than ``most_holders``."""

    wire: ClassVar[str] = "HolderSells"
    venue: int
    control: Sold
    known: int
    tried: tuple[HolderSell, ...]


CodeSign = Literal["balance", "gas_price", "code_hash", "block_hash", "origin"]
"""What a token's code can read in a transfer: another account's eth, the gas price, the hash of another
account's code, a block's hash, and the transaction's sender, unless it is only compared with the caller."""


NumberInstruction = Literal["COINBASE", "PREVRANDAO", "BLOBBASEFEE"]
"""An instruction whose value a simulation may set in each block."""


@dataclass(frozen=True, slots=True)
class NumberSubstitution:
    """How block numbers were advanced: later trades ran with copies of the code at ``addresses`` (keccak256
    in ``code_hashes``), in which ``instruction`` stands for NUMBER. ``number``: NUMBER at the pinned block.
    ``controls``: sales that the copies, given the original's number, made as the originals did."""

    wire: ClassVar[str] = "NumberSubstitution"
    instruction: NumberInstruction
    number: int
    addresses: tuple[Address, ...]
    code_hashes: tuple[str, ...]
    controls: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """All evidence of one check: judging this document again gives the same verdict.

    ``pools_found`` counts every pool; ``venues`` are the best of them by the amount bought, and every
    candidate whose state or buy is not known. ``candidates_complete``: False where only the standard pools
    were read (no index). ``left_out``: known pools that were not read, because there are too many.
    ``launch`` None: not launched on a launchpad, or the network has none. ``given``: quotes with a balance
    set in storage, because no swap brought them. ``deployer`` None: not known; requires an index.
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
    pools_found: int = 0
    left_out: int = 0
    launch: AnyLaunch | Missing | None = None
    given: tuple[Address, ...] = ()
    deployer: DeployerRecord | None = None
    owner_calls: OwnerCalls | Missing | None = None
    """None: not tried, or there is no owner, or nothing sells."""
    holder_sells: HolderSells | Missing | None = None
    """None: not tried, or no holder is known, or the buyer's wallet cannot sell."""
    code_signs: tuple[CodeSign, ...] = ()
    """Sorted; empty also where the code was not read."""
    account_rights: AccountRights | Missing | None = None
    """None: not tried, or the owner is not known."""
    numbers: NumberSubstitution | None = None
    """None: block numbers passed by themselves, or nothing of a trade reads them."""
    other_pools: tuple[OtherPool, ...] = ()
    """Some of the pools that no check trades in, for their quote is not money."""
