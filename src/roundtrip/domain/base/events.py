"""What happened on the chain, as its logs tell it. Amounts are raw integers, in base units.

First what a venue's file reads off one log, knowing nothing else; then what that means once it is known which
pool, which token and whose money it was about. Named tuples: ten thousand of them are made in a block's time.
"""

from typing import Literal, NamedTuple

from .types import Address, TxHash
from .venue import VenueKind

# --- read off one log ------------------------------------------------------------------------------


class PoolOpened(NamedTuple):
    """A pool of two currencies, the lower address first; the zero address is eth. ``at``: a v3 pool's
    address, a v4 pool's id. Both are made again from the key, not believed."""

    at: str
    kind: VenueKind
    currency0: Address
    currency1: Address
    fee_pips: int
    tick_spacing: int
    hook: Address | None


class Priced(NamedTuple):
    """A v3 pool was given its first price."""

    at: str
    sqrt_price_x96: int


class Swapped(NamedTuple):
    """A swap as the pool sees it: an amount above zero was paid in, below zero paid out. ``sender``: who
    called the pool; ``recipient``: whom it paid, where it tells. Price, liquidity and tick: after it."""

    at: str
    amount0: int
    amount1: int
    sqrt_price_x96: int
    liquidity: int
    tick: int
    sender: Address
    recipient: Address | None


class HookFeeTaken(NamedTuple):
    """What the launchpad's hook kept of the swap before it: fee and creator's tax, of ``currency``."""

    at: str
    currency: Address
    amount_raw: int


class LiquidityMoved(NamedTuple):
    """Liquidity added (above zero) or taken away. Amounts where the log tells them, as the pool sees it:
    above zero paid in, below zero owed out."""

    at: str
    owner: Address
    tick_lower: int
    tick_upper: int
    liquidity_delta: int
    amount0: int | None
    amount1: int | None


class CurveTraded(NamedTuple):
    """A buy or a sell on a launchpad's curve ``at``. ``wallet``: who called it. ``quote_raw``: what was paid,
    fees in it, or what was paid out, fees off; ``fee_raw`` and ``tax_raw`` are of it."""

    at: str
    buys: bool
    wallet: Address
    recipient: Address
    quote_raw: int
    token_raw: int
    fee_raw: int
    tax_raw: int


class CurveBoughtBack(NamedTuple):
    """A launchpad's curve ``at`` bought its token with fees that it had kept: so much more lies in it."""

    at: str
    quote_raw: int


class LaunchedToken(NamedTuple):
    """A launchpad's token. ``at``: its curve, or of the first generation (1) its v3 pool. ``threshold_raw``:
    what the curve raises before it graduates; None where the log does not tell."""

    token: Address
    deployer: Address
    quote: Address
    at: str
    generation: int
    threshold_raw: int | None


Step = Literal["swept", "pooled", "rescued"]
"""What becomes of a curve: emptied for its pool, become a pool, taken off by the launchpad's owner."""


class LaunchMoved(NamedTuple):
    """A curve took a step. Amounts that moved with it, where the log tells them."""

    token: Address
    step: Step
    quote_raw: int | None
    token_raw: int | None


class Transferred(NamedTuple):
    """An ERC-20's Transfer."""

    token: Address
    sender: Address
    recipient: Address
    amount_raw: int


class OperationsBegin(NamedTuple):
    """An account-abstraction entry point has validated its operations and runs them from here on."""

    entry_point: Address


class Operated(NamedTuple):
    """An account-abstraction entry point has run an operation of ``account``: what stands between this and
    the same entry point's ``Executing`` or ``Operated`` before it in the transaction was that account's
    doing."""

    entry_point: Address
    account: Address


Event = (
    PoolOpened
    | Priced
    | Swapped
    | HookFeeTaken
    | LiquidityMoved
    | CurveTraded
    | CurveBoughtBack
    | LaunchedToken
    | LaunchMoved
    | Transferred
    | OperationsBegin
    | Operated
)


# --- with what else is known -----------------------------------------------------------------------


class Spot(NamedTuple):
    """Where on the chain: facts are in this order. ``log_index`` counts the logs of the block."""

    block_number: int
    log_index: int
    at_s: int
    tx_hash: TxHash


class PoolPlace(NamedTuple):
    """A place where ``token`` may trade for ``quote``: a curve or a pool. ``in_money_from``: the block since
    which the quote is money (eth, weth, usdg, or what a launchpad launched against); None: it is not, and the
    sides are in the order of their addresses."""

    at: str
    kind: VenueKind
    token: Address
    quote: Address
    in_money_from: int | None
    fee_pips: int
    tick_spacing: int
    hook: Address | None
    spot: Spot


class LaunchEvent(NamedTuple):
    """A token came onto the chain through a launchpad. ``sender``: who sent that transaction."""

    spot: Spot
    launched: LaunchedToken
    sender: Address


class LaunchStep(NamedTuple):
    """A launch took a step."""

    spot: Spot
    moved: LaunchMoved


class TradeEvent(NamedTuple):
    """Somebody bought or sold ``token`` for ``quote``. ``eth_wei``, ``micro_usd`` (millionths of a dollar):
    what the quote was worth in that block; None where that is not known. ``kept_raw``: of ``quote_raw`` of a
    buy on a curve, or beside that of a sell, what the launchpad kept; None anywhere else."""

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
    """A curve bought its token with what it had kept."""

    spot: Spot
    at: str
    quote_raw: int


class LiquidityChange(NamedTuple):
    """Liquidity added to a pool of money, or taken away. ``sender``: whose operation it was, else who sent
    the transaction. Amounts as in ``LiquidityMoved``."""

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


class Transfer(NamedTuple):
    """A launchpad's token moved. ``by``: whose transaction or operation that was."""

    spot: Spot
    moved: Transferred
    by: Address


class Deed(NamedTuple):
    """Somebody sold, moved or burned a launchpad's token. ``other``: whom it went to; None: it was sold.
    ``eth_wei``: what it brought, where that is known. ``own``: the wallet did it itself."""

    what: Literal["sold", "moved", "burned"]
    spot: Spot
    token: Address
    wallet: Address
    other: Address | None
    token_raw: int
    eth_wei: int | None
    own: bool


class Price(NamedTuple):
    """What a quote was worth at the end of a block: usdg raw for 10^18 raw of it, told by the pool ``at``,
    which had ``depth_raw`` of usdg in range; 0: nothing, and then it tells nothing. Of eth it is weth's."""

    quote: Address
    block_number: int
    at_s: int
    at: str
    usdg_raw: int
    depth_raw: int


class WalletMet(NamedTuple):
    """A wallet was met for the first time, as blocks pass."""

    wallet: Address
    block_number: int
    at_s: int


class WalletFunded(NamedTuple):
    """Who sent the first eth that reached a wallet, in a plain transfer. ``funder`` None: it came otherwise,
    out of a bridge or a contract, or the wallet did something before anybody was seen to send it any: nobody
    becomes its funder any more."""

    wallet: Address
    funder: Address | None
    block_number: int
    at_s: int
