"""The launchpad's first generation: the whole supply is in a v3 pool from the first block on.

Several factories launched this way. Their tokens trade as in any v3 pool (``amm_v3``). The limits that a
token has in its first blocks are its own, and a simulated buy meets them. This module finds a launch's pool
and reads its factory's record.
"""

from roundtrip.domain.base.events import LaunchedToken
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import PoolLaunch

from . import abi, amm_v3
from .base import Call, Contracts, Log, LogDecoder, VenueListing

GET_LAUNCHED_TOKEN = "0x3cf28b5a"  # noqa: S105
"""The second generation's function of this name has another answer."""
GRADUATION_STATUS = "0x98d652f1"
TOKEN_LAUNCHED = "0xdb51ea9ad51ab453a65a4cb7e60c3cb378c9501bb002609f8f97778fb6c4235a"  # noqa: S105
"""TokenLaunched(address,address,address,address,address,uint256,uint256,uint256,uint256,uint256). A launchpad
of another project has the same event: only the emitter distinguishes them."""


def listings(contracts: Contracts) -> tuple[tuple[Address, str], ...]:
    """Every factory's TokenLaunched."""
    return tuple((factory, TOKEN_LAUNCHED) for factory in contracts.launchpad_v1_factories)


def decode_listings(log: Log, contracts: Contracts) -> tuple[VenueListing, ...]:
    """TokenLaunched(token, deployer, dexFactory indexed; pairToken, pool, ...). The log does not hold the
    pool's fee: it is the tier with a pool at the logged address. No tier fits a pool of another exchange."""
    token, quote, address = (
        abi.topic_address(log.topics, 1),
        abi.address_at(log.data, 0),
        abi.address_at(log.data, 1),
    )
    if token is None or quote is None or address is None:
        return ()
    pools = (amm_v3.pool(token, quote, fee, contracts) for fee in amm_v3.FEE_TIERS_PIPS)
    return tuple(VenueListing(token, venue) for venue in pools if venue.pool == address)


def decoders(contracts: Contracts) -> tuple[LogDecoder, ...]:
    """Every factory's TokenLaunched."""
    return tuple(LogDecoder(sender, topic, decode_launch) for sender, topic in listings(contracts))


def decode_launch(log: Log) -> LaunchedToken | None:
    """TokenLaunched(token, deployer, dexFactory indexed; pairToken, pool, dexId, launchConfigId, positionId,
    restrictionsEndBlock, initialBuyAmount). The pool may be of another exchange."""
    token, deployer, exchange = (abi.topic_address(log.topics, index) for index in (1, 2, 3))
    quote, address = abi.address_at(log.data, 0), abi.address_at(log.data, 1)
    if len(log.topics) != 4 or token is None or deployer is None or exchange is None:
        return None
    if quote is None or address is None or len(log.data) < 7 * abi.WORD:
        return None
    return LaunchedToken(token, deployer, quote, address, 1, None)


def launch_calls(token: Address, contracts: Contracts) -> tuple[Call, ...]:
    """Asks every factory for its record of ``token``, and how far it is from graduating."""
    return tuple(
        Call(factory, abi.call(view, token))
        for factory in contracts.launchpad_v1_factories
        for view in (GET_LAUNCHED_TOKEN, GRADUATION_STATUS)
    )


def read_launch(token: Address, answers: tuple[bytes | None, ...], contracts: Contracts) -> PoolLaunch | None:
    """The launch by the first factory that has a record of the token."""
    pairs = zip(answers[::2], answers[1::2], strict=True)
    launches = (_decode_record(token, record or b"", status or b"") for record, status in pairs)
    return next((launch for launch in launches if launch is not None), None)


def _decode_record(token: Address, record: bytes, status: bytes) -> PoolLaunch | None:
    """``record``: (token, deployer, pairedToken, positionManager, positionId, dexId, launchConfigId,
    restrictionsEndBlock, supply, isToken0, poolFee, exists, initialBuyAmount), all zeros for a token that
    the factory did not launch. ``status``: (pairedPrincipal, threshold, graduated)."""
    numbers = [abi.uint_at(record, index) for index in range(13)]
    deployer, quote, fee = abi.address_at(record, 1), abi.address_at(record, 2), numbers[10]
    if None in numbers or numbers[11] != 1 or abi.address_at(record, 0) != token:
        return None
    if deployer is None or quote is None or fee is None or fee >= 2**24:
        return None
    principal, threshold, graduated = (abi.uint_at(status, index) for index in range(3))
    if graduated not in (0, 1):
        principal = threshold = None
    return PoolLaunch(
        deployer=deployer,
        quote_address=quote,
        pool_fee_pips=fee,
        principal_raw=principal,
        threshold_raw=threshold,
        graduated=graduated == 1,
    )
