"""What a check knows: facts and probe cells, each perhaps Missing. The verdict is a reading of this.

Amounts are base units of the asset they name. ``_raw`` is the token's or the quote's smallest unit.
"""

from dataclasses import dataclass
from typing import Literal

from .types import BPS, Address, BlockRef

VenueKind = Literal["launchpad_curve", "launchpad_pool", "amm_v3", "amm_v4"]


@dataclass(frozen=True, slots=True)
class Missing:
    """Could not be found out. ``node``: asking again may help. ``token``: the token's own doing."""

    fault: Literal["node", "token"]
    why: str


@dataclass(frozen=True, slots=True)
class Environment:
    """The wallet and block conditions one run is made in: what a real block can have. ``prev_randao`` is
    what each block's own is drawn from, and the wallets what each probe's own are drawn from.

    What a contract can see of a wallet differs between environments as it does between people:
    ``gas_float_wei`` held beyond the trade, ``size_bps`` of the size bought, approvals of all or of exactly
    what is sold, the gas they carry, ``late_s`` later than the round delay, the gas limits that a sell is
    tried under in turn (none: the policy's).
    """

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
    late_s: int = 0
    sell_gas_ladder: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """What the token answered about itself. None: it gave no such answer."""

    code_bytes: int | Missing
    name_data: str | Missing | None
    symbol_data: str | Missing | None
    decimals: int | Missing | None
    total_supply_raw: int | Missing | None
    balance_answers: bool | Missing
    owner: Address | Missing | None
    proxy_admin: Address | Missing | None


@dataclass(frozen=True, slots=True)
class Market:
    """What one eth was worth at ``block_number``, from the deepest weth/usdg pool.

    ``usdg_per_eth_raw`` is in usdg base units for one whole eth; ``feed_usd_e8`` is the price feed's
    dollars times 1e8, where the network has a feed.
    """

    block_number: int
    usdg_per_eth_raw: int | Missing
    pool_fee_pips: int | None
    feed_usd_e8: int | None


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """The state a venue stands in. ``exists`` False: the other fields are zero."""

    exists: bool
    sqrt_price_x96: int
    liquidity: int
    quote_reserve_raw: int


Quote = Literal["eth", "weth", "usdg"] | Address
"""The money side of a venue: its short name, or the token's address where it has none."""


@dataclass(frozen=True, slots=True)
class Venue:
    """One place a token may trade. ``fee_pips`` are millionths of the input; ``quote_address`` is zero
    for eth itself. A pool that is a contract has ``pool``, one in a shared vault ``pool_id``."""

    kind: VenueKind
    quote: Quote
    quote_address: Address
    pool: Address | None
    fee_pips: int
    tick_spacing: int = 0
    hook: Address | None = None
    pool_id: str | None = None


Size = Literal["probe", "tenth", "hundredth", "thousandth", "large"]


@dataclass(frozen=True, slots=True)
class Bought:
    """A buy that went through: what left the wallet and what arrived, both read from balances.

    ``held_later_raw``: what the wallet is told it holds in a later block, an hour and a day later, with
    nothing done; empty where that was not asked. It differs for tokens that rebase.
    """

    paid_raw: int
    received_raw: int
    offered_raw: int
    gas: int
    held_later_raw: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """The chain said no. ``step`` names the leg; ``reason`` is a stranger's text, as decoded."""

    step: Literal["fund", "buy", "approve", "transfer", "sell"]
    reason: str | None
    gas: int


@dataclass(frozen=True, slots=True)
class Sold:
    """A buy and a later sell that both went through, read from balances.

    ``planned_raw`` is what the sell was asked to sell, ``sold_raw`` what left the wallet,
    ``held_raw`` what was held before the sell, which is what ``paid_raw`` had become; where a receiver
    sells, what the buyer had bought. ``back_raw`` is what came back.
    """

    paid_raw: int
    held_raw: int
    planned_raw: int
    sold_raw: int
    back_raw: int
    buy_gas: int
    sell_gas: int


BuyOutcome = Bought | Refused | Missing
CellOutcome = Sold | Refused | Missing


@dataclass(frozen=True, slots=True)
class Buy:
    """One buy of trip 1, alone on the pinned state."""

    size: Size
    environment: int
    outcome: BuyOutcome


@dataclass(frozen=True, slots=True)
class Probe:
    """One point of the grid: how much is bought, how long it is held, how much of it is sold by whom."""

    size: Size
    delay_s: int
    share_bps: int
    environment: int
    seller: Literal["buyer", "receiver"] = "buyer"


@dataclass(frozen=True, slots=True)
class Cell:
    """A probe and what came of it."""

    probe: Probe
    outcome: CellOutcome


@dataclass(frozen=True, slots=True)
class VenueEvidence:
    """Everything asked of one venue. ``told_on_buy`` and ``told_on_sell`` are what the token itself said
    to the move behind a buy or a sell, made directly: routers and pools swallow its reason. None: it did
    not object, or was not asked."""

    venue: Venue
    facts: PoolFacts | Missing
    buys: tuple[Buy, ...] = ()
    cells: tuple[Cell, ...] = ()
    told_on_buy: Refused | Missing | None = None
    told_on_sell: Refused | Missing | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One check, whole: re-judging this document gives the verdict again.

    ``pools_found`` counts every pool; ``venues`` are the best of them by what the buy brought, and every
    candidate whose state or buy could not be found out.
    """

    schema: int
    policy_version: str
    chain_id: int
    block: BlockRef
    block_base_fee_wei: int
    token: Address
    role: Literal["token", "weth", "usdg"]
    facts: TokenFacts
    market: Market
    environments: tuple[Environment, ...] = ()
    venues: tuple[VenueEvidence, ...] = ()
    candidates_complete: bool = False
    """False while only the standard pools were looked at (no index)."""
    pools_found: int = 0
