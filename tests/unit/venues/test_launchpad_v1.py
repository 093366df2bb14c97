"""The launchpad's first generation: its logs, its records, and what the house makes of them."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.chain.simulate.request import Results
from roundtrip.chain.simulate.token_facts import facts_plan, read_launch
from roundtrip.config.networks import ROBINHOOD
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import LaunchRecord, Missing, PoolLaunch
from roundtrip.venues import BY_KIND, amm_v3, launchpad_v1
from roundtrip.venues.base import Call, Contracts, Log, VenueListing
from unit.chain.launch_records import record as record_of_v2
from unit.chain.samples import ENVIRONMENT, did, refused
from unit.venues.network import ABOVE, BELOW, address
from unit.venues.network import CONTRACTS as BARE

FIRST, SECOND = address(0xF1), address(0xF2)
CONTRACTS = replace(BARE, launchpad_v1_factories=(FIRST, SECOND))
TOKEN, DEPLOYER = BELOW, address(0xDE)
ETH = 10**18

# The launchpad's own token on the real chain, with its pool.
PONS = parse_address("0x39dBED3a2bd333467115dE45665cC57F813C4571")
PONS_POOL = parse_address("0x10cc6bd38112cac182db90b6a71d8bb5939526ba")
NOXA = parse_address("0xd9ec2db5f3d1b236843925949fe5bd8a3836fccb")
TOPIC = "0xdb51ea9ad51ab453a65a4cb7e60c3cb378c9501bb002609f8f97778fb6c4235a"

RECORD = {
    "token": "address", "deployer": "address", "pairedToken": "address", "positionManager": "address",
    "positionId": "uint256", "dexId": "uint256", "launchConfigId": "uint256",
    "restrictionsEndBlock": "uint256", "supply": "uint256", "isToken0": "bool", "poolFee": "uint24",
    "exists": "bool", "initialBuyAmount": "uint256",
}  # fmt: skip
SAID: dict[str, Any] = {
    "token": TOKEN, "deployer": DEPLOYER, "pairedToken": CONTRACTS.weth,
    "positionManager": CONTRACTS.v3_position_manager, "positionId": 7, "dexId": 1, "launchConfigId": 2,
    "restrictionsEndBlock": 99, "supply": 10**27, "isToken0": True, "poolFee": 10_000, "exists": True,
    "initialBuyAmount": 5,
}  # fmt: skip
NOT_THERE = bytes(13 * 32)
LAUNCH = PoolLaunch(DEPLOYER, CONTRACTS.weth, 10_000, ETH, 42 * ETH // 10, False)


def record(**changes: Any) -> bytes:
    rows = SAID | changes
    return encode(list(RECORD.values()), [rows[name] for name in RECORD])


def status(principal: int = ETH, threshold: int = 42 * ETH // 10, graduated: int = 0) -> bytes:
    return encode(["uint256"] * 3, [principal, threshold, graduated])


def with_word(data: bytes, index: int, value: int) -> bytes:
    return data[: 32 * index] + value.to_bytes(32, "big") + data[32 * (index + 1) :]


def launched(
    token: Address = TOKEN,
    pair: Address = CONTRACTS.weth,
    pool: Address | None = None,
    factory: Address = FIRST,
    contracts: Contracts = CONTRACTS,
    fee: int = 10_000,
) -> Log:
    at = pool or amm_v3.pool_address(contracts.v3_factory, token, pair, fee)
    topics = (TOPIC, *(f"0x{int(one, 16):064x}" for one in (token, DEPLOYER, contracts.v3_factory)))
    data = encode(["address", "address", *["uint256"] * 5], [pair, at, 1, 2, 3, 4, 5])
    return Log(factory, topics, data)


# --- logs -----------------------------------------------------------------------------------------


def test_every_factory_tells_of_its_launches() -> None:
    arguments = ",".join(["address"] * 5 + ["uint256"] * 5)
    assert "0x" + keccak(text=f"TokenLaunched({arguments})").hex() == TOPIC
    assert launchpad_v1.listings(CONTRACTS) == ((FIRST, TOPIC), (SECOND, TOPIC))
    assert launchpad_v1.listings(BARE) == ()


def test_a_launch_is_the_pool_that_v3_knows_by_its_key() -> None:
    (found,) = launchpad_v1.decode_listings(launched(), CONTRACTS)
    assert found.token == TOKEN
    assert found.venue in amm_v3.candidates(TOKEN, CONTRACTS)
    assert (found.venue.kind, found.venue.quote, found.venue.fee_pips) == ("amm_v3", "weth", 10_000)
    assert BY_KIND[found.venue.kind] is amm_v3


def test_the_real_chains_own_launch_is_found_at_its_pool() -> None:
    contracts = ROBINHOOD.contracts
    log = launched(PONS, contracts.weth, PONS_POOL, contracts.launchpad_v1_factories[0], contracts)
    venue = Venue("amm_v3", "weth", contracts.weth, PONS_POOL, 10_000)
    assert launchpad_v1.decode_listings(log, contracts) == (VenueListing(PONS, venue),)


@pytest.mark.parametrize("fee", amm_v3.FEE_TIERS_PIPS)
def test_the_fee_is_the_one_whose_pool_it_is(fee: int) -> None:
    (found,) = launchpad_v1.decode_listings(launched(pair=CONTRACTS.usdg, fee=fee), CONTRACTS)
    assert (found.venue.quote, found.venue.fee_pips) == ("usdg", fee)


@pytest.mark.parametrize("pool", [address(0x11E), address(0), ABOVE])
def test_a_pool_that_v3_does_not_have_there_is_none(pool: Address) -> None:
    assert launchpad_v1.decode_listings(launched(pool=pool), CONTRACTS) == ()


def test_cut_and_dirty_logs_tell_nothing() -> None:
    log = launched()
    for size in range(len(log.data)):
        assert bool(launchpad_v1.decode_listings(log._replace(data=log.data[:size]), CONTRACTS)) is (
            size >= 64
        )
    for count in range(4):
        cut = log._replace(topics=log.topics[:count])
        assert bool(launchpad_v1.decode_listings(cut, CONTRACTS)) is (count >= 2)
    for index in (0, 1):
        dirty = with_word(log.data, index, 1 << 160 | int.from_bytes(log.data[32 * index :][:32], "big"))
        assert launchpad_v1.decode_listings(log._replace(data=dirty), CONTRACTS) == ()


@given(st.lists(st.integers(0, 2**256 - 1), max_size=5), st.binary(max_size=300))
def test_garbage_lists_nothing(words: list[int], data: bytes) -> None:
    topics = tuple(f"0x{word:064x}" for word in words)
    assert launchpad_v1.decode_listings(Log(FIRST, topics, data), CONTRACTS) == ()


def read_into_book(log: Log) -> tuple[Venue, ...]:
    book = VenueIndex(CONTRACTS)
    (call,) = book.calls(9)
    (wanted,) = call.params
    assert isinstance(wanted, dict)
    assert {FIRST, SECOND} <= set(wanted["address"])
    assert TOPIC in wanted["topics"][0]
    answer = {"address": log.address, "topics": log.topics, "data": "0x" + log.data.hex()}
    assert book.read(msgspec.Raw(msgspec.json.encode([answer])), 9)
    return book.venues_of(TOKEN)


@pytest.mark.parametrize("factory", [FIRST, SECOND])
def test_the_book_learns_of_a_launch_from_any_factory(factory: Address) -> None:
    (venue,) = read_into_book(launched(factory=factory))
    assert venue in amm_v3.candidates(TOKEN, CONTRACTS)


@pytest.mark.parametrize("emitter", [NOXA, TOKEN, CONTRACTS.v3_factory, CONTRACTS.launchpad_factory])
def test_the_same_event_of_anybody_else_is_no_launch(emitter: Address) -> None:
    assert read_into_book(launched(factory=emitter)) == ()


# --- records --------------------------------------------------------------------------------------


def test_every_factory_is_asked_for_its_record_and_how_far_it_is() -> None:
    tail = encode(["address"], [TOKEN])
    views = [keccak(text=f"{name}(address)")[:4] for name in ("getLaunchedToken", "graduationStatus")]
    expected = tuple(Call(f, "0x" + (view + tail).hex()) for f in (FIRST, SECOND) for view in views)
    assert launchpad_v1.launch_calls(TOKEN, CONTRACTS) == expected
    assert launchpad_v1.launch_calls(TOKEN, BARE) == ()
    assert launchpad_v1.read_launch(TOKEN, (), BARE) is None


def read(*answers: bytes | None) -> PoolLaunch | None:
    """From the first factory's answers; the second one knows nothing."""
    return launchpad_v1.read_launch(TOKEN, (*answers, NOT_THERE, None), CONTRACTS)


def test_a_launch_is_read_from_whichever_factory_has_it() -> None:
    assert read(record(), status()) == LAUNCH
    assert launchpad_v1.read_launch(TOKEN, (NOT_THERE, None, record(), status()), CONTRACTS) == LAUNCH
    assert launchpad_v1.read_launch(TOKEN, (None, None, None, None), CONTRACTS) is None
    assert read(record(), status(5 * ETH, graduated=1)) == replace(
        LAUNCH, principal_raw=5 * ETH, graduated=True
    )


def test_golden_words_of_a_record() -> None:
    """Word by word, as the factory's published interface has them."""
    words = [
        int(TOKEN, 16),
        int(DEPLOYER, 16),
        int(CONTRACTS.weth, 16),
        3,
        4,
        5,
        6,
        7,
        10**27,
        0,
        10_000,
        1,
        9,
    ]
    data = b"".join(word.to_bytes(32, "big") for word in words)
    assert read(data, status()) == LAUNCH
    assert read(data + bytes(64), status() + bytes(32)) == LAUNCH


@pytest.mark.parametrize(
    "data",
    [
        record(exists=False), record(token=ABOVE), NOT_THERE, b"", None, record()[:-1], record_of_v2(),
        with_word(record(), 11, 2), with_word(record(), 10, 2**24), with_word(record(), 0, 1 << 160),
        with_word(record(), 1, 1 << 160), with_word(record(), 2, 1 << 160),
    ],
    ids=[
        "not there", "another", "zeros", "nothing", "reverted", "cut", "a second generation's", "odd exists",
        "odd fee", "odd token", "odd deployer", "odd quote",
    ],
)  # fmt: skip
def test_what_has_no_record_was_not_launched(data: bytes | None) -> None:
    assert read(data, status()) is None


@pytest.mark.parametrize("answer", [None, b"", status()[:-1], status(graduated=2), status(graduated=2**255)])
def test_a_launch_whose_status_is_not_told_is_a_launch_all_the_same(answer: bytes | None) -> None:
    assert read(record(), answer) == replace(LAUNCH, principal_raw=None, threshold_raw=None)


@given(st.binary(max_size=500), st.binary(max_size=120))
def test_garbage_is_no_launch(one: bytes, two: bytes) -> None:
    assert read(one, two) is None
    found = read(record(), two)
    assert found is not None
    assert (found.deployer, found.pool_fee_pips) == (DEPLOYER, 10_000)


# --- among the facts ------------------------------------------------------------------------------


def launch_results(*of_first: Any, v2: Any = None) -> Results:
    answers = [*of_first, did(NOT_THERE), refused()]
    found: Results = {f"launch-1-{n}": answer for n, answer in enumerate(answers)}
    return found | {"launch-0-0": v2 or did(record_of_v2(exists=False)), "launch-0-1": did(100)}


def test_it_is_asked_in_the_first_trip() -> None:
    (block,) = facts_plan(TOKEN, (), CONTRACTS, ENVIRONMENT, POLICY).blocks
    asked = tuple(step.call for step in block.steps if step.label.startswith("launch-1-"))
    assert asked == launchpad_v1.launch_calls(TOKEN, CONTRACTS)


def test_the_facts_tell_of_the_launch() -> None:
    assert read_launch(launch_results(did(record()), did(status())), TOKEN, (), None, CONTRACTS) == LAUNCH
    lost = read_launch(launch_results(did(record()), refused(status())), TOKEN, (), None, CONTRACTS)
    assert lost == replace(LAUNCH, principal_raw=None, threshold_raw=None)
    assert read_launch(launch_results(refused(record()), refused()), TOKEN, (), None, CONTRACTS) is None


def test_where_it_is_the_only_launchpad_a_lost_simulation_is_a_gap() -> None:
    alone, gap = (
        replace(CONTRACTS, launchpad_hook=None),
        Missing("node", "the node did not run the simulation"),
    )
    assert read_launch(gap, TOKEN, (), None, alone) is gap
    assert read_launch(gap, TOKEN, (), None, replace(BARE, launchpad_hook=None)) is None


def test_a_launch_of_the_second_generation_comes_first() -> None:
    found = read_launch(
        launch_results(did(record()), did(status()), v2=did(record_of_v2())), TOKEN, (), None, CONTRACTS
    )
    assert isinstance(found, LaunchRecord)
