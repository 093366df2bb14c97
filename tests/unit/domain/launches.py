"""Evidence of launches and of pools with hooks, for tests: sound by default, every piece replaceable."""

from dataclasses import replace

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import Venue, VenueKind
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    Curve,
    Evidence,
    LaunchRecord,
    Missing,
    PoolLaunch,
    VenueEvidence,
)

from .builders import EMPTY, OWNER, evidence, venue

SUPPLY_RAW = 10**27
PHANTOM_RAW = 168 * 10**16
THRESHOLD_RAW = 42 * 10**17
NOW_S = EMPTY.block.timestamp_s

CURVE_ADDRESS = Address("0x" + "55" * 20)
POOL_ID = "0x" + "77" * 32
SWAPPING = Address("0x" + "44" * 19 + "80")
"""A hook that is called before swaps."""
IDLE = Address("0x" + "44" * 19 + "33")
"""A hook that is asked about liquidity and donations, never about swaps."""

STATE = Curve(
    quote_raw=PHANTOM_RAW,
    token_raw=SUPPLY_RAW,
    real_quote_raw=0,
    reserved_raw=SUPPLY_RAW * PHANTOM_RAW // (PHANTOM_RAW + THRESHOLD_RAW),
    fee_bps=100,
    creator_tax_bps=0,
    closed=False,
    snipe_bps=0,
    launched_at_s=NOW_S - 1,
    snipe_seconds=3,
)
"""A curve of the usual make in the block after its launch."""

LAUNCH = LaunchRecord(
    phase="curve",
    curve=CURVE_ADDRESS,
    deployer=OWNER,
    quote_address=ZERO_ADDRESS,
    threshold_raw=THRESHOLD_RAW,
    pool_fee_pips=0,
    tick_spacing=200,
    creator_tax_bps=0,
    swept_at_s=0,
    hook_fee_bps=100,
    curve_state=STATE,
)

POOL_LAUNCH = PoolLaunch(
    deployer=OWNER,
    quote_address=venue().venue.quote_address,
    pool_fee_pips=10_000,
    principal_raw=THRESHOLD_RAW // 4,
    threshold_raw=THRESHOLD_RAW,
    graduated=False,
)
"""A launch straight into a pool, a quarter of the way."""

CURVE = Venue("launchpad_curve", "eth", ZERO_ADDRESS, CURVE_ADDRESS, 0)
LAUNCHPAD_POOL = Venue("launchpad_pool", "eth", ZERO_ADDRESS, None, 0, 200, SWAPPING, POOL_ID)


def state(**changes: object) -> Curve:
    """The curve with some of its views otherwise."""
    return replace(STATE, **changes)  # type: ignore[arg-type]


def launch(curve_state: Curve | Missing | None = STATE, **changes: object) -> LaunchRecord:
    """The launch with this state of its curve, and other fields otherwise."""
    return replace(LAUNCH, curve_state=curve_state, **changes)  # type: ignore[arg-type]


def gone(phase: str, swept_at_s: int = 0) -> LaunchRecord:
    """A launch that has left its curve behind."""
    return launch(None, phase=phase, swept_at_s=swept_at_s)


def v4(hook: Address | None = SWAPPING, fee_pips: int = 3000, kind: VenueKind = "amm_v4") -> Venue:
    """A v4 pool against eth; any other kind the same way."""
    return Venue(kind, "eth", ZERO_ADDRESS, None, fee_pips, 60, hook, POOL_ID)


def at(where: Venue, found: VenueEvidence | None = None, **changes: object) -> VenueEvidence:
    """What a venue showed, as if it had shown it at ``where``."""
    return replace(venue() if found is None else found, venue=where, **changes)  # type: ignore[arg-type]


def launched(known: AnyLaunch | Missing | None, *venues: VenueEvidence) -> Evidence:
    """A check of a launched token."""
    return replace(evidence(*venues), launch=known)
