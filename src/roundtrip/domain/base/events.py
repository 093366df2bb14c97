"""Events on the chain, as decoded from its logs. Amounts are raw integers, in base units.

First what a venue's decoder reads from one log alone; then the same with its context: the pool, the token,
the trader. Named tuples, because one block can make ten thousand of them.
"""

from typing import Literal, NamedTuple

from .types import Address, HexBytes, Numeric, TxHash
from .venue import VenueKind

# --- read off one log ------------------------------------------------------------------------------


class PoolOpened(NamedTuple):
    """A pool of two currencies, the lower address first; the zero address is eth. ``at``: a v3 pool's
    address, a v4 pool's id. Both are recomputed from the key, not trusted. ``tick``: where the price of a v4
    pool begins; None: a v3 pool, which is priced by ``Priced``."""

    at: str
    kind: VenueKind
    currency0: Address
    currency1: Address
    fee_pips: int
    tick_spacing: int
    hook: Address | None
    tick: int | None = None


class Priced(NamedTuple):
    """A v3 pool was initialized with its first price."""

    at: str
    sqrt_price_x96: int
    tick: int


class Swapped(NamedTuple):
    """A swap as the pool sees it: a positive amount was paid in, a negative one paid out. ``sender``: the
    caller of the pool; ``recipient``: who was paid, where the log has it. Price, liquidity and tick are those
    after the swap. ``fee_pips``: what the pool's own fee took, where the log has it."""

    at: str
    amount0: int
    amount1: int
    sqrt_price_x96: int
    liquidity: int
    tick: int
    sender: Address
    recipient: Address | None
    fee_pips: int | None = None


class HookFeeTaken(NamedTuple):
    """What the launchpad's hook kept of the swap before it: fee and creator's tax, in ``currency``."""

    at: str
    currency: Address
    amount_raw: int


class LiquidityMoved(NamedTuple):
    """Liquidity added (positive) or removed. Amounts where the log has them, as the pool sees them: positive
    paid in, negative owed out. ``number``: the salt of a v4 position, which is the NFT's number if the owner
    is the position manager; 0: none, or a v3 position, which ``PositionNumbered`` numbers."""

    at: str
    owner: Address
    tick_lower: int
    tick_upper: int
    liquidity_delta: int
    amount0: int | None
    amount1: int | None
    number: int = 0


class PositionNumbered(NamedTuple):
    """The v3 position manager names the NFT of the liquidity that it has just moved, with the same amounts as
    in ``LiquidityMoved``."""

    manager: Address
    number: int
    liquidity_delta: int
    amount0: int
    amount1: int


class PositionMoved(NamedTuple):
    """A position manager's NFT was minted (from the zero address), given or burned (to it)."""

    manager: Address
    number: int
    sender: Address
    recipient: Address


class CurveTraded(NamedTuple):
    """A buy or a sell on a launchpad's curve ``at``. ``wallet``: the caller. ``quote_raw``: the amount paid,
    fees included, or paid out, after fees; ``fee_raw`` and ``tax_raw`` are parts of it."""

    at: str
    buys: bool
    wallet: Address
    recipient: Address
    quote_raw: int
    token_raw: int
    fee_raw: int
    tax_raw: int


class CurveBoughtBack(NamedTuple):
    """A launchpad's curve ``at`` bought its token with fees it had kept: its reserve grows by
    ``quote_raw``."""

    at: str
    quote_raw: int


class LaunchedToken(NamedTuple):
    """A launchpad's token. ``at``: its curve, or in the first generation (1) its v3 pool. ``threshold_raw``:
    what the curve raises before it graduates; None where the log does not have it."""

    token: Address
    deployer: Address
    quote: Address
    at: str
    generation: int
    threshold_raw: int | None


Step = Literal["swept", "pooled", "rescued"]
"""A step of a curve: emptied for its pool, turned into a pool, withdrawn by the launchpad's owner."""


class LaunchMoved(NamedTuple):
    """A curve took a step. Amounts that moved with it, where the log has them."""

    token: Address
    step: Step
    quote_raw: int | None
    token_raw: int | None


class Transferred(NamedTuple):
    """An ERC-20 Transfer."""

    token: Address
    sender: Address
    recipient: Address
    amount_raw: int


class OperationsBegin(NamedTuple):
    """An account-abstraction entry point has validated its operations and executes them from here on."""

    entry_point: Address


class Operated(NamedTuple):
    """An account-abstraction entry point has executed an operation of ``account``. The logs between this one
    and the same entry point's previous ``OperationsBegin`` or ``Operated`` in the transaction are that
    account's."""

    entry_point: Address
    account: Address


Event = (
    PoolOpened
    | Priced
    | Swapped
    | HookFeeTaken
    | LiquidityMoved
    | PositionNumbered
    | PositionMoved
    | CurveTraded
    | CurveBoughtBack
    | LaunchedToken
    | LaunchMoved
    | Transferred
    | OperationsBegin
    | Operated
)


# --- with context ----------------------------------------------------------------------------------


class Spot(NamedTuple):
    """A position on the chain; facts are sorted by it. ``log_index`` counts the logs of the block."""

    block_number: int
    log_index: int
    at_s: int
    tx_hash: TxHash


class PoolPlace(NamedTuple):
    """A curve or a pool where ``token`` may trade for ``quote``. ``in_money_from``: the block since which the
    quote is money (eth, weth, usdg, or what a launchpad launched against); None: it is not money, and the two
    sides are in the order of their addresses."""

    at: HexBytes
    kind: VenueKind
    token: Address
    quote: Address
    in_money_from: int | None
    fee_pips: int
    tick_spacing: int
    hook: Address | None
    spot: Spot


class LaunchEvent(NamedTuple):
    """A token was launched on a launchpad. ``sender``: the sender of that transaction."""

    spot: Spot
    launched: LaunchedToken
    sender: Address


class LaunchStep(NamedTuple):
    """A launch took a step."""

    spot: Spot
    moved: LaunchMoved


class TradeEvent(NamedTuple):
    """A buy or a sell of ``token`` for ``quote``. ``eth_wei``, ``micro_usd`` (millionths of a dollar): the
    value of the quote in that block; None: unknown. ``kept_raw``: what the launchpad kept, on a curve only:
    of a buy it is part of ``quote_raw``, of a sell in addition to it; None anywhere else."""

    spot: Spot
    at: str
    token: Address
    quote: Address
    trader: Address
    buys: bool
    token_raw: int
    quote_raw: int
    eth_wei: int | None
    micro_usd: int | None
    kept_raw: int | None = None


class Buyback(NamedTuple):
    """A curve bought its token with fees it had kept."""

    spot: Spot
    at: str
    quote_raw: int


class LiquidityChange(NamedTuple):
    """Liquidity added to a pool of money, or removed. ``sender``: the account of the operation, else the
    sender of the transaction. Amounts as in ``LiquidityMoved``. ``number``: the NFT of a position manager, or
    the salt of another owner in a v4 pool; 0: none. ``active_raw``: the pool's active liquidity just before
    the change; 0 also where the change lay out of range; None: not known."""

    spot: Spot
    at: str
    token: Address
    owner: Address
    sender: Address
    tick_lower: int
    tick_upper: int
    liquidity_delta: int
    token_raw: int | None
    quote_raw: int | None
    number: int = 0
    active_raw: int | None = None


class PositionTransfer(NamedTuple):
    """A position manager's NFT moved."""

    spot: Spot
    moved: PositionMoved


class ActiveDepth(NamedTuple):
    """A pool's tick, and its liquidity in range of it."""

    tick: int
    liquidity: Numeric


class Transfer(NamedTuple):
    """A launchpad's token moved. ``by``: the account of the operation, else the sender of the transaction."""

    spot: Spot
    moved: Transferred
    by: Address


class Deed(NamedTuple):
    """A wallet sold, moved or burned a launchpad's token. ``other``: the recipient; None: it was sold.
    ``eth_wei``: the proceeds, where known. ``own``: the wallet sold it, or the transaction or
    operation was its own."""

    what: Literal["sold", "moved", "burned"]
    spot: Spot
    token: Address
    wallet: Address
    other: Address | None
    token_raw: int
    eth_wei: int | None
    own: bool


class Price(NamedTuple):
    """The price of a quote at the end of a block: ``usdg_raw`` for 10^18 raw of it, according to the pool
    ``at``, which had ``depth_raw`` of usdg in range; 0: no price. The price of eth is weth's."""

    quote: Address
    block_number: int
    at_s: int
    at: HexBytes
    usdg_raw: Numeric
    depth_raw: Numeric


class WalletMet(NamedTuple):
    """The first appearance of a wallet, in the order of blocks."""

    wallet: Address
    block_number: int
    at_s: int


class WalletFunded(NamedTuple):
    """The sender of the first eth that reached a wallet in a plain transfer. ``funder`` None: the eth came
    otherwise, from a bridge or a contract, or the wallet was active before any was seen to arrive: it never
    gets a funder after that."""

    wallet: Address
    funder: Address | None
    block_number: int
    at_s: int
