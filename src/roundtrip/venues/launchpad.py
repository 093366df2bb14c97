"""The launchpad's factory, which records its launches, and its hook, which takes fees in its pools."""

from dataclasses import dataclass

from roundtrip.domain.base.events import HookFeeTaken, LaunchMoved
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import LaunchPhase, LaunchRecord

from . import abi
from .base import Call, Contracts, Log, LogDecoder

GET_LAUNCHED_TOKEN = "0x3cf28b5a"  # noqa: S105
HOOK_FEE_BPS = "0xea26abcf"
GRADUATE = "0xff6d8d05"
CREATE_GRADUATED_POOL = "0x2f53ef2f"

LAUNCH_SWEPT = "0xcdb72f157fd3666758a6ce201387ffb52038c7562e4fff352828da1096c4b6b4"
"""LaunchSwept(address,uint256,uint256)."""
POOL_GRADUATED = "0x0a44ef75df69c534f43cd6c1aa3ef8983065fe5fe79ef9e79f6494e6f258c259"
"""PoolGraduated(address,uint256,uint256,uint256)."""
LAUNCH_FORCE_SWEPT = "0x52c1a28345695afc7f6b7629133124dec5d61ee745affd65e4fd2a776bc05840"
"""LaunchForceSwept(address)."""
HOOK_FEE_COLLECTED = "0xc532c43b3423e14ef72748f1c8291238829ca0af8ba9b67975ad1483485a4b4d"
"""HookFeeCollected(bytes32,address,uint256,uint256)."""

_PHASES: tuple[LaunchPhase, ...] = ("curve", "swept", "pooled", "rescued")
_INT24_SIGN = 2**23


@dataclass(frozen=True, slots=True)
class FactoryRecord:
    """The fields of the factory's record of one launch that are used here."""

    curve: Address
    deployer: Address
    creator: Address
    """The recipient of the creator's tax."""
    quote_address: Address
    threshold_raw: int
    pool_fee_pips: int
    tick_spacing: int
    creator_tax_bps: int
    phase: LaunchPhase
    swept_at_s: int


def launch_calls(token: Address, contracts: Contracts) -> tuple[Call, ...]:
    """Asks the factory for its record of ``token``, and the hook for its own fee."""
    addresses = factory_and_hook(contracts)
    if addresses is None:
        return ()
    factory, hook = addresses
    return Call(factory, abi.call(GET_LAUNCHED_TOKEN, token)), Call(hook, HOOK_FEE_BPS)


def read_launch(
    token: Address, answers: tuple[bytes | None, ...], contracts: Contracts
) -> LaunchRecord | None:
    """The launch, without the state that only the curve itself knows."""
    record_answer, fee = answers if answers else (None, None)
    record = read_record(token, record_answer)
    if record is None:
        return None
    return LaunchRecord(
        phase=record.phase,
        curve=record.curve,
        deployer=record.deployer,
        quote_address=record.quote_address,
        threshold_raw=record.threshold_raw,
        pool_fee_pips=record.pool_fee_pips,
        tick_spacing=record.tick_spacing,
        creator_tax_bps=record.creator_tax_bps,
        swept_at_s=record.swept_at_s,
        hook_fee_bps=abi.uint_at(fee or b"", 0),
        curve_state=None,
    )


def steps(contracts: Contracts) -> tuple[tuple[Address, str], ...]:
    """The contract that logs the later steps of a launch, with each topic. Empty: the network has no
    launchpad."""
    addresses = factory_and_hook(contracts)
    topics = LAUNCH_SWEPT, POOL_GRADUATED, LAUNCH_FORCE_SWEPT
    return () if addresses is None else tuple((addresses[0], topic) for topic in topics)


def decoders(contracts: Contracts) -> tuple[LogDecoder, ...]:
    """The later steps of the factory's launches, and the fees that the hook keeps."""
    addresses = factory_and_hook(contracts)
    if addresses is None:
        return ()
    factory, hook = addresses
    return (
        LogDecoder(factory, LAUNCH_SWEPT, decode_sweep),
        LogDecoder(factory, POOL_GRADUATED, decode_graduation),
        LogDecoder(factory, LAUNCH_FORCE_SWEPT, decode_rescue),
        LogDecoder(hook, HOOK_FEE_COLLECTED, decode_hook_fee),
    )


def decode_sweep(log: Log) -> LaunchMoved | None:
    """LaunchSwept(token indexed; quoteOut, tokenOut)."""
    token = abi.topic_address(log.topics, 1)
    quote, tokens = abi.uint_at(log.data, 0), abi.uint_at(log.data, 1)
    if len(log.topics) != 2 or token is None or quote is None or tokens is None:
        return None
    return LaunchMoved(token, "swept", quote, tokens)


def decode_graduation(log: Log) -> LaunchMoved | None:
    """PoolGraduated(token indexed; positionId, tokenAmount, pairAmount)."""
    token = abi.topic_address(log.topics, 1)
    tokens, quote = abi.uint_at(log.data, 1), abi.uint_at(log.data, 2)
    if len(log.topics) != 2 or token is None or quote is None or tokens is None:
        return None
    return LaunchMoved(token, "pooled", quote, tokens)


def decode_rescue(log: Log) -> LaunchMoved | None:
    """LaunchForceSwept(token indexed)."""
    token = abi.topic_address(log.topics, 1)
    if len(log.topics) != 2 or token is None:
        return None
    return LaunchMoved(token, "rescued", None, None)


def decode_hook_fee(log: Log) -> HookFeeTaken | None:
    """HookFeeCollected(poolId indexed; currency, fee, tax)."""
    currency, fee, tax = abi.address_at(log.data, 0), abi.uint_at(log.data, 1), abi.uint_at(log.data, 2)
    if len(log.topics) != 2 or currency is None or fee is None or tax is None:
        return None
    return HookFeeTaken(log.topics[1], currency, fee + tax)


def graduation_calls(token: Address, factory: Address) -> tuple[Call, Call]:
    """The two transactions that anyone may send once a curve is sold out: empty the curve, open the pool."""
    return Call(factory, abi.call(GRADUATE, token)), Call(factory, abi.call(CREATE_GRADUATED_POOL, token))


def read_record(token: Address, answer: bytes | None) -> FactoryRecord | None:
    """(token, curve, deployer, creatorFeeRecipient, pairToken, graduationThreshold, poolFee, tickSpacing,
    creatorTaxBps, buybackEnabled, phase, sweptQuote, sweptTokens, sweptAt, exists). None: the token was
    never launched, or the answer is no such record."""
    data = answer or b""
    numbers = [abi.uint_at(data, index) for index in range(15)]
    curve, deployer, creator, quote = (abi.address_at(data, index) for index in (1, 2, 3, 4))
    if None in numbers or numbers[14] != 1 or abi.address_at(data, 0) != token:
        return None
    phase, spacing = numbers[10] or 0, numbers[7] or 0
    if curve is None or deployer is None or creator is None or quote is None or phase >= len(_PHASES):
        return None
    return FactoryRecord(
        curve=curve,
        deployer=deployer,
        creator=creator,
        quote_address=quote,
        threshold_raw=numbers[5] or 0,
        pool_fee_pips=numbers[6] or 0,
        tick_spacing=spacing % 2**24 - (2**24 if spacing % 2**24 >= _INT24_SIGN else 0),
        creator_tax_bps=numbers[8] or 0,
        phase=_PHASES[phase],
        swept_at_s=numbers[13] or 0,
    )


def factory_and_hook(contracts: Contracts) -> tuple[Address, Address] | None:
    """Factory and hook; None where the network has no launchpad."""
    if contracts.launchpad_factory is None or contracts.launchpad_hook is None:
        return None
    return contracts.launchpad_factory, contracts.launchpad_hook
