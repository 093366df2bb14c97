"""Every event, argument by argument: what fits is read as eth_abi wrote it, and what does not is nothing."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from eth_utils.crypto import keccak
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.events import (
    CurveBoughtBack,
    CurveTraded,
    Event,
    HookFeeTaken,
    LaunchedToken,
    LaunchMoved,
    LiquidityMoved,
    Operated,
    OperationsBegin,
    PoolOpened,
    PositionMoved,
    PositionNumbered,
    Priced,
    Swapped,
    Transferred,
)
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.venues import DECODERS, amm_v3
from roundtrip.venues.base import Log
from roundtrip.venues.decode import Decoder
from roundtrip.venues.entry_point import ENTRY_POINTS
from unit.venues import logs
from unit.venues.logs import NETWORK, STRANGER, Shape
from unit.venues.network import address

QUICK = settings(max_examples=60, deadline=None)
READ = Decoder(NETWORK)
MANAGER, V3_FACTORY = NETWORK.v4_pool_manager, NETWORK.v3_factory
V3_POSITIONS, V4_POSITIONS = NETWORK.v3_position_manager, NETWORK.v4_position_manager
ENTRY_POINT = max(ENTRY_POINTS)
FACTORY, HOOK = NETWORK.launchpad_factory or ZERO_ADDRESS, NETWORK.launchpad_hook or ZERO_ADDRESS


def hexed(word: bytes) -> str:
    return "0x" + word.hex()


EXPECTED: dict[Shape, tuple[Address, Callable[..., Event | None]]] = {
    logs.V3_INITIALIZE: (STRANGER, lambda p, t: Priced(STRANGER, p, t) if p else None),
    logs.V3_SWAP: (STRANGER, lambda s, r, a, b, p, q, t: Swapped(STRANGER, a, b, p, q, t, s, r)),
    logs.V3_MINT: (STRANGER, lambda _, o, lo, up, *rest: LiquidityMoved(STRANGER, o, lo, up, *rest)),
    logs.V3_BURN: (STRANGER, lambda o, lo, up, *n: LiquidityMoved(STRANGER, o, lo, up, *(-x for x in n))),
    logs.V4_SWAP: (MANAGER, lambda i, s, a, b, p, q, t, f: Swapped(hexed(i), -a, -b, p, q, t, s, None, f)),
    logs.V4_MODIFY: (
        MANAGER,
        lambda i, s, lo, up, d, n: LiquidityMoved(
            hexed(i), s, lo, up, d, None, None, int.from_bytes(n, "big")
        ),
    ),
    logs.V3_INCREASED: (V3_POSITIONS, lambda *n: PositionNumbered(V3_POSITIONS, *n)),
    logs.V3_DECREASED: (
        V3_POSITIONS, lambda number, *n: PositionNumbered(V3_POSITIONS, number, *(-x for x in n)),
    ),
    logs.NFT_TRANSFER: (V4_POSITIONS, lambda s, r, number: PositionMoved(V4_POSITIONS, number, s, r)),
    logs.LAUNCHED: (FACTORY, lambda t, c, d, q, _, most: LaunchedToken(t, d, q, c, 2, most)),
    logs.CURVE_BUY: (STRANGER, lambda b, r, q, t, f, x: CurveTraded(STRANGER, True, b, r, q, t, f, x)),
    logs.CURVE_SELL: (STRANGER, lambda b, r, t, q, f, x: CurveTraded(STRANGER, False, b, r, q, t, f, x)),
    logs.BUYBACK: (STRANGER, lambda q, _: CurveBoughtBack(STRANGER, q)),
    logs.SWEPT: (FACTORY, lambda t, q, n: LaunchMoved(t, "swept", q, n)),
    logs.GRADUATED: (FACTORY, lambda t, _, n, q: LaunchMoved(t, "pooled", q, n)),
    logs.FORCE_SWEPT: (FACTORY, lambda t: LaunchMoved(t, "rescued", None, None)),
    logs.HOOK_FEE: (HOOK, lambda i, c, fee, tax: HookFeeTaken(hexed(i), c, fee + tax)),
    logs.V1_LAUNCHED: (logs.V1_FACTORIES[1], lambda t, d, _, q, p, *__: LaunchedToken(t, d, q, p, 1, None)),
    logs.TRANSFER: (STRANGER, lambda s, r, n: Transferred(STRANGER, s, r, n)),
    logs.EXECUTING: (ENTRY_POINT, lambda: OperationsBegin(ENTRY_POINT)),
    logs.AGGREGATOR: (ENTRY_POINT, lambda _: OperationsBegin(ENTRY_POINT)),
    logs.OPERATION: (ENTRY_POINT, lambda _, account, *__: Operated(ENTRY_POINT, account)),
}  # fmt: skip
"""Who sends each event here, and what its arguments say."""

LOW, HIGH = address(0x10), address(0x20)
POOL = logs.v3_pool(V3_FACTORY, LOW, HIGH, 500)
ID = logs.pool_id(LOW, HIGH, 500, -10, HOOK)
KEYED: dict[Shape, tuple[Log, Event]] = {
    logs.V3_CREATED: (
        logs.V3_CREATED.log(V3_FACTORY, LOW, HIGH, 500, -10, POOL),
        PoolOpened(POOL, "amm_v3", LOW, HIGH, 500, -10, None),
    ),
    logs.V4_INITIALIZE: (
        logs.V4_INITIALIZE.log(MANAGER, ID, LOW, HIGH, 500, -10, HOOK, 2**96, -1),
        PoolOpened(hexed(ID), "launchpad_pool", LOW, HIGH, 500, -10, HOOK, -1),
    ),
}
"""Events whose arguments hang together: one log of each, and what it says."""

SHAPES = (*EXPECTED, *KEYED)


def values_of(kind: str) -> st.SearchStrategy[Any]:
    """Values of a type, its bounds often."""
    if kind == "address":
        return st.integers(0, 2**160 - 1).map(address)
    if kind == "bytes32":
        return st.binary(min_size=32, max_size=32)
    if kind == "bool":
        return st.booleans()
    bits = int(re.sub(r"\D", "", kind))
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind.startswith("int") else (0, 2**bits - 1)
    return st.integers(low, high) | st.sampled_from([low, high])


def a_log(shape: Shape) -> Log:
    """One good log, its numbers as large as they can be."""
    if shape in KEYED:
        return KEYED[shape][0]
    ones: dict[str, Any] = {"address": address(1), "bytes32": bytes(32), "bool": True}
    numbers = {kind: 2 ** int(kind[4:]) - 1 for kind in shape.plain if kind.startswith("uint")}
    numbers |= {kind: -(2 ** (int(kind[3:]) - 1)) for kind in shape.plain if kind.startswith("int")}
    return shape.log(EXPECTED[shape][0], *((ones | numbers)[kind] for kind in shape.plain))


def wrong_words(kind: str) -> list[int]:
    """Words just out of a type's range, and with one bit too many."""
    if kind == "bytes32" or kind.endswith("256"):
        return []
    if kind.startswith("int"):
        bits = int(kind[3:])
        half = 2 ** (bits - 1)
        return [half, 2**256 - half - 1, 1 << bits, 1 << 254, 1 << 255]
    bits = {"address": 160, "bool": 1}.get(kind) or int(kind[4:])
    return [1 << bits, (1 << bits) + 1, 1 << 255, 2**256 - 1]


def with_argument(log: Log, shape: Shape, number: int, word: int) -> Log:
    """The log with one argument's word put in its place."""
    if number in shape.indexed:
        at = 1 + shape.indexed.index(number)
        return log._replace(topics=(*log.topics[:at], f"0x{word:064x}", *log.topics[at + 1 :]))
    at = 32 * shape.rest.index(number)
    return log._replace(data=log.data[:at] + word.to_bytes(32, "big") + log.data[at + 32 :])


def test_every_event_that_is_read_is_tried_here() -> None:
    assert {shape.topic for shape in SHAPES} == READ.topics
    # Two are Transfers.
    assert len(SHAPES) == len(READ.topics) + 1


@pytest.mark.parametrize("shape", EXPECTED, ids=lambda shape: f"{shape.name} {len(shape.types)}")
def test_any_arguments_are_read_as_they_were_written(shape: Shape) -> None:
    emitter, says = EXPECTED[shape]

    @QUICK
    @given(st.tuples(*map(values_of, shape.plain)))
    def check(values: tuple[Any, ...]) -> None:
        assert READ(shape.log(emitter, *values)) == says(*values)

    check()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.name} {len(shape.types)}")
def test_an_argument_out_of_its_range_makes_the_log_nothing(shape: Shape) -> None:
    good = a_log(shape)
    assert READ(good) is not None
    for number, kind in enumerate(shape.plain):
        for word in wrong_words(kind):
            assert READ(with_argument(good, shape, number, word)) is None, (kind, number, hex(word))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.name} {len(shape.types)}")
def test_a_log_of_another_length_is_nothing_but_for_more_data(shape: Shape) -> None:
    good = a_log(shape)
    says = READ(good)
    for size in range(len(good.data)):
        assert READ(good._replace(data=good.data[:size])) is None, size
    for more in (b"\0", b"\xff" * 31, b"\xff" * 64):
        assert READ(good._replace(data=good.data + more)) == says
    for count in range(len(good.topics)):
        assert READ(good._replace(topics=good.topics[:count])) is None, count
    assert READ(good._replace(topics=(*good.topics, f"0x{1:064x}"))) is None


@pytest.mark.parametrize("shape", KEYED, ids=lambda shape: shape.name)
def test_a_key_is_read_as_it_was_written(shape: Shape) -> None:
    log, says = KEYED[shape]
    assert READ(log) == says


@pytest.mark.parametrize(
    ("fee", "spacing", "hook"),
    [(2**24, 10, HOOK), (500, 2**23, HOOK), (500, -(2**23) - 1, HOOK), (500, 10, address(2**160))],
)
def test_a_key_too_wide_makes_no_pool_though_its_hash_is_right(fee: int, spacing: int, hook: Address) -> None:
    words = [int(LOW, 16), int(HIGH, 16), fee, spacing % 2**256, int(hook, 16)]
    raw = b"".join(word.to_bytes(32, "big") for word in words)
    good = KEYED[logs.V4_INITIALIZE][0]
    topics = (good.topics[0], hexed(keccak(raw)), *good.topics[2:])
    assert READ(Log(MANAGER, topics, raw[64:] + good.data[96:])) is None
    low, high, tier, *_ = words
    created = KEYED[logs.V3_CREATED][0]
    own = amm_v3.pool_address(V3_FACTORY, address(low), address(high), tier)
    for_fee = (*created.topics[:3], f"0x{tier:064x}")
    data = raw[96:128] + int(own, 16).to_bytes(32, "big")
    assert (READ(Log(V3_FACTORY, for_fee, data)) is None) is (tier != 500 or not -(2**23) <= spacing < 2**23)


# --- anything at all -------------------------------------------------------------------------------

any_word = st.integers(0, 2**256 - 1) | st.integers(0, 2**161) | st.integers(0, 2**24)
any_topic = any_word.map(lambda value: f"0x{value:064x}")
any_data = st.lists(any_word.map(lambda value: value.to_bytes(32, "big")), max_size=8).map(b"".join)
emitters = sorted({row.emitter for file in DECODERS for row in file.decoders(NETWORK) if row.emitter})


@settings(max_examples=1500, deadline=None)
@given(
    st.sampled_from([*emitters, STRANGER]),
    st.sampled_from(sorted(READ.topics)) | any_topic,
    st.lists(any_topic, max_size=4),
    any_data,
    st.binary(max_size=33),
)
@example(MANAGER, logs.V4_SWAP.topic, [], b"", b"")
def test_no_log_at_all_makes_the_reader_raise(
    emitter: Address, topic: str, rest: list[str], data: bytes, tail: bytes
) -> None:
    found = READ(Log(emitter, (topic, *rest), data + tail))
    for value in found or ():
        if isinstance(value, str) and value.startswith("0x"):
            assert re.fullmatch("0x([0-9a-f]{40}|[0-9a-f]{64})", value)
        assert value is None or isinstance(value, str | int)
