"""The book of pools: which blocks it asks for, and what it makes of the answers."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.chain.rpc.client import RpcError
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import MAX_VENUES_A_TOKEN
from roundtrip.venues import amm_v3, amm_v4, launchpad_curve
from roundtrip.venues.base import Contracts
from unit.chain.samples import raw
from unit.venues.network import ABOVE, BELOW, CONTRACTS, address

TOKEN, OTHER = ABOVE, address(0xAC << 152)
NOTHING = raw([])
CREATED = "0x" + keccak(text="PoolCreated(address,address,uint24,int24,address)").hex()
INITIALIZE = (
    "0x" + keccak(text="Initialize(bytes32,address,address,uint24,int24,address,uint160,int24)").hex()
)
LAUNCHED = "0x" + keccak(text="TokenLaunched(address,address,address,address,uint256,uint256)").hex()


def words(*values: int | str) -> list[str]:
    return [f"0x{int(value, 16) if isinstance(value, str) else value:064x}" for value in values]


def created(
    token: Address, quote: Address = CONTRACTS.weth, fee: int = 500, **changes: Any
) -> dict[str, Any]:
    low, high = sorted((token, quote))
    data = encode(["int24", "address"], [10, address(0x11E)])
    return {
        "address": CONTRACTS.v3_factory,
        "topics": [CREATED, *words(low, high, fee)],
        "data": "0x" + data.hex(),
        "blockNumber": "0x5",
        "removed": False,
    } | changes


def initialized(token: Address, hook: str = ZERO_ADDRESS) -> dict[str, Any]:
    data = encode(["uint24", "int24", "address", "uint160", "int24"], [3000, 60, hook, 2**96, 0])
    topics = [INITIALIZE, *words(1, ZERO_ADDRESS, token)]
    return {"address": CONTRACTS.v4_pool_manager, "topics": topics, "data": "0x" + data.hex()}


def launched(token: Address, curve: Address) -> dict[str, Any]:
    data = encode(["address", "uint256", "uint256"], [ZERO_ADDRESS, 1, 2])
    topics = [LAUNCHED, *words(token, curve, 9)]
    return {"address": CONTRACTS.launchpad_factory, "topics": topics, "data": "0x" + data.hex()}


def asked(book: VenueIndex, head: int) -> tuple[int, int] | None:
    """The range that the book asks for at this head."""
    calls = book.calls(head)
    if not calls:
        return None
    (call,) = calls
    assert call.method == "eth_getLogs"
    (wanted,) = call.params
    assert isinstance(wanted, dict)
    return int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)


def caught_up(
    head: int = 100, *logs: dict[str, Any], contracts: Contracts = CONTRACTS, **bounds: int
) -> VenueIndex:
    """A book that has read everything, in one range."""
    book = VenueIndex(contracts, **bounds)
    assert asked(book, head) == (0, head)
    assert book.read(raw(list(logs)), head)
    return book


# --- what is asked ---------------------------------------------------------------------------------


def test_the_logs_of_every_venue_are_asked_for_at_once() -> None:
    (wanted,) = VenueIndex(CONTRACTS).calls(5)[0].params
    assert isinstance(wanted, dict)
    senders = [CONTRACTS.v3_factory, CONTRACTS.v4_pool_manager, CONTRACTS.launchpad_factory]
    assert sorted(wanted["address"]) == sorted(str(sender) for sender in senders)
    assert [sorted(one) for one in wanted["topics"]] == [sorted([CREATED, INITIALIZE, LAUNCHED])]
    assert wanted.keys() == {"fromBlock", "toBlock", "address", "topics"}


def test_without_a_launchpad_it_is_not_asked() -> None:
    bare = replace(CONTRACTS, launchpad_factory=None, launchpad_hook=None)
    (wanted,) = VenueIndex(bare).calls(5)[0].params
    assert isinstance(wanted, dict)
    assert set(wanted["address"]) == {CONTRACTS.v3_factory, CONTRACTS.v4_pool_manager}
    assert set(wanted["topics"][0]) == {CREATED, INITIALIZE}


def test_a_long_chain_is_read_in_ranges_that_overlap() -> None:
    book, head, ranges = VenueIndex(CONTRACTS), 25_000, []
    while (found := asked(book, head)) is not None:
        ranges.append(found)
        assert book.read(NOTHING, head)
    assert ranges == [(0, 9_935), (9_872, 19_871), (19_808, 25_000)]
    assert asked(book, head) is None


@given(
    st.integers(0, 100_000), st.lists(st.integers(0, 30_000), max_size=4), st.none() | st.integers(0, 40_000)
)
def test_no_block_is_left_out_and_no_range_is_too_long(
    first: int, later: list[int], look_back: int | None
) -> None:
    book, head, covered = VenueIndex(CONTRACTS, look_back), first, -1
    start = 0 if look_back is None else max(0, first - look_back)
    for more in (0, *later):
        head += more
        while (found := asked(book, head)) is not None:
            low, high = found
            assert start <= low <= high <= head
            assert high - low < 10_000
            assert low == max(start, covered - 63) if covered >= 0 else low == start
            covered = high
            assert book.read(NOTHING, head)
        assert covered == head


def test_the_newest_blocks_are_read_again_with_the_next_head() -> None:
    book = caught_up(1_000)
    assert asked(book, 1_000) is None
    assert asked(book, 999) is None
    assert asked(book, 1_001) == (937, 1_001)
    assert book.read(NOTHING, 1_001)
    assert asked(book, 1_050) == (938, 1_050)


def test_a_head_that_never_was_is_gone_back_from() -> None:
    book = caught_up(1_000)
    while asked(book, 5_000) is not None:
        assert book.read(NOTHING, 5_000)
    assert asked(book, 1_001) is None
    assert asked(book, 1_010) == (938, 1_010)


def test_a_young_chain_is_read_again_from_its_beginning() -> None:
    assert asked(caught_up(10), 11) == (0, 11)


@pytest.mark.parametrize(("head", "first"), [(1_000, 700), (300, 0), (200, 0)])
def test_a_book_that_looks_back_begins_there_and_stays_there(head: int, first: int) -> None:
    book = VenueIndex(CONTRACTS, 300)
    assert asked(book, head) == (first, head)
    assert book.read(NOTHING, head)
    assert asked(book, head + 10) == (max(first, head + 1 - 64), head + 10)


def test_the_overlap_never_reaches_behind_where_it_began() -> None:
    book = VenueIndex(CONTRACTS, 20)
    assert asked(book, 1_000) == (980, 1_000)
    assert book.read(NOTHING, 1_000)
    assert asked(book, 1_001) == (980, 1_001)


# --- when it knows all -----------------------------------------------------------------------------


def test_it_is_complete_only_when_it_has_caught_up() -> None:
    book = VenueIndex(CONTRACTS)
    assert not book.complete(TOKEN)
    for _ in range(3):
        assert asked(book, 25_000) is not None
        assert not book.complete(TOKEN)
        assert book.read(NOTHING, 25_000)
    assert book.complete(TOKEN)


def test_while_a_new_head_is_unread_it_is_not_complete() -> None:
    book = caught_up(100)
    assert book.complete(TOKEN)
    assert asked(book, 101) is not None
    assert not book.complete(TOKEN)
    assert book.read(NOTHING, 101)
    assert book.complete(TOKEN)


def test_a_book_that_began_late_is_never_complete() -> None:
    book = VenueIndex(CONTRACTS, 20)
    assert asked(book, 1_000) is not None
    assert book.read(raw([created(TOKEN)]), 1_000)
    assert len(book.venues_of(TOKEN)) == 1
    assert not book.complete(TOKEN)
    assert not book.complete(OTHER)


def test_a_book_that_looks_back_to_the_beginning_is_complete() -> None:
    book = VenueIndex(CONTRACTS, 1_000)
    assert asked(book, 1_000) == (0, 1_000)
    assert book.read(NOTHING, 1_000)
    assert book.complete(TOKEN)


def log_with(**changes: Any) -> list[dict[str, Any]]:
    return [created(TOKEN, **changes)]


BAD: dict[str, msgspec.Raw | RpcError] = {
    "refused": RpcError(-32005, "query returned more than 10000 results"),
    "no answer": RpcError(),
    "a number": raw(5),
    "an object": raw({"logs": []}),
    "text": raw("0x"),
    "no json": msgspec.Raw(b"[{"),
    "a log that is none": raw([1]),
    "no topics": raw([{"address": CONTRACTS.v3_factory, "data": "0x"}]),
    "no address": raw(log_with(address="0x12")),
    "odd data": raw(log_with(data="0x123")),
    "data that is no hex": raw(log_with(data="0xzz")),
    "a topic that is no hex": raw(log_with(topics=["0xzz"])),
    "a topic that is null": raw(log_with(topics=[None])),
    "topics that are text": raw(log_with(topics=CREATED)),
    "nested too deep": msgspec.Raw(b"[" * 5_000),
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD.keys())
def test_after_a_failed_answer_the_same_range_is_asked_again(answer: msgspec.Raw | RpcError) -> None:
    book = caught_up(100, created(OTHER))
    again = asked(book, 150)
    assert again == (37, 150)
    assert not book.read(answer, 150)
    assert not book.complete(TOKEN)
    assert asked(book, 150) == again
    assert book.venues_of(TOKEN) == ()
    assert len(book.venues_of(OTHER)) == 1
    assert book.read(raw(log_with()), 150)
    assert book.complete(TOKEN)


@pytest.mark.parametrize("topics", [[], [CREATED], [CREATED, *words(1, 2)], [CREATED, *words(2**200, 1, 5)]])
def test_a_log_of_another_shape_is_passed_over(topics: list[str]) -> None:
    book = caught_up(100, created(BELOW, topics=topics), created(TOKEN))
    assert len(book.venues_of(TOKEN)) == 1


@pytest.mark.parametrize(
    "topics", [["0x"], [CREATED, "0x", "0x", "0x"], [CREATED, "", "", ""], ["0x12"], [CREATED + "00"]]
)
def test_an_answer_with_a_topic_that_is_no_word_is_no_answer(topics: list[str]) -> None:
    book = VenueIndex(CONTRACTS)
    asked(book, 100)
    assert not book.read(raw([created(BELOW, topics=topics), created(TOKEN)]), 100)
    assert not book.complete(TOKEN)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=8), lambda one: st.lists(one, max_size=3)))
def test_no_json_at_all_makes_it_raise(answer: Any) -> None:
    book = VenueIndex(CONTRACTS)
    assert asked(book, 10) == (0, 10)
    assert book.read(msgspec.Raw(msgspec.json.encode(answer)), 10) is (answer == [])


# --- what is taken in ------------------------------------------------------------------------------


def test_venues_of_a_token_are_known_oldest_first() -> None:
    curve = address(0xC0)
    book = caught_up(100, launched(TOKEN, curve), created(TOKEN, CONTRACTS.usdg), initialized(TOKEN))
    first, second, third = book.venues_of(TOKEN)
    assert first == launchpad_curve.curve(ZERO_ADDRESS, curve, CONTRACTS)
    assert second in amm_v3.candidates(TOKEN, CONTRACTS)
    assert third in amm_v4.candidates(TOKEN, CONTRACTS)
    assert book.venues_of(OTHER) == ()


def test_a_log_that_is_told_again_is_known_once() -> None:
    book = caught_up(100, created(TOKEN), created(TOKEN))
    assert asked(book, 101) is not None
    assert book.read(raw([created(TOKEN)]), 101)
    assert len(book.venues_of(TOKEN)) == 1


def test_capitals_in_a_log_change_nothing() -> None:
    loud = created(TOKEN)
    loud |= {
        "address": "0x" + CONTRACTS.v3_factory[2:].upper(),
        "data": loud["data"].upper().replace("X", "x"),
    }
    loud["topics"] = ["0x" + topic[2:].upper() for topic in loud["topics"]]
    assert caught_up(100, loud).venues_of(TOKEN) == caught_up(100, created(TOKEN)).venues_of(TOKEN)


def test_the_logs_of_strangers_are_passed_over() -> None:
    strange = created(TOKEN, address=address(0x66))
    swapped = created(TOKEN, address=CONTRACTS.v4_pool_manager)
    assert caught_up(100, strange, swapped).venues_of(TOKEN) == ()


def test_a_pool_of_two_tokens_is_counted_for_both_and_kept_for_none() -> None:
    # Seen twice, as the newest blocks are read again, it is counted once.
    book = caught_up(100, created(TOKEN, OTHER), created(TOKEN, OTHER))
    for token in (TOKEN, OTHER):
        assert book.venues_of(token) == ()
        (against,) = book.list_venues(token).others.values()
        assert {token, against} == {TOKEN, OTHER}
        assert book.complete(token)
    assert not book.list_venues(address(0xD0)).others


def test_any_number_of_pools_against_nobodys_money_hides_no_real_one() -> None:
    junk = [created(TOKEN, address(0xE000 + n)) for n in range(100)]
    book = caught_up(100, *junk, created(TOKEN))
    assert len(book.venues_of(TOKEN)) == 1
    assert list(book.list_venues(TOKEN).others.values()) == [address(0xE000 + n) for n in range(100)]
    assert book.complete(TOKEN)


def test_a_range_that_gets_no_answer_is_halved_and_grows_again() -> None:
    book, head = VenueIndex(CONTRACTS), 10**6
    spans = []
    for number in range(12):
        found = asked(book, head)
        assert found is not None
        first, last = found
        spans.append(last - first)
        if number < 9:
            assert not book.read(RpcError(-32005, "too many results"), head)
        else:
            assert book.read(raw([]), head)
    assert spans[:9] == sorted(spans[:9], reverse=True)
    assert spans[8] < 128
    assert spans[11] > spans[9]


@pytest.mark.parametrize("money", [CONTRACTS.weth, CONTRACTS.usdg, ZERO_ADDRESS])
def test_money_is_never_looked_up(money: Address) -> None:
    book = caught_up(100, created(CONTRACTS.usdg), created(TOKEN, CONTRACTS.usdg), initialized(TOKEN))
    assert book.venues_of(money) == ()
    assert len(book.venues_of(TOKEN)) == 2


def test_venues_found_another_way_are_known_too() -> None:
    book, venues = caught_up(100), amm_v4.candidates(TOKEN, CONTRACTS)[:3]
    book.add(TOKEN, venues)
    book.add(TOKEN, venues[1:])
    book.add(CONTRACTS.weth, venues)
    assert book.venues_of(TOKEN) == venues
    assert book.venues_of(CONTRACTS.weth) == ()


# --- when there is too much of it ------------------------------------------------------------------


def test_of_a_crowd_of_pools_the_first_are_kept_and_not_called_all() -> None:
    most = MAX_VENUES_A_TOKEN
    fees = range(1, most + 9)
    book = caught_up(100, *(created(TOKEN, fee=fee) for fee in fees[:most]), created(OTHER))
    assert book.complete(TOKEN)
    assert asked(book, 101) is not None
    assert book.read(raw([created(TOKEN, fee=fee) for fee in fees]), 101)
    assert [v.fee_pips for v in book.venues_of(TOKEN)] == list(fees[:most])
    assert not book.complete(TOKEN)
    assert book.complete(OTHER)


def test_the_oldest_token_is_forgotten_and_then_none_is_known_to_have_no_pool() -> None:
    tokens = [address((0xB0 << 152) + n) for n in range(5)]
    book = caught_up(100, *map(created, tokens[:3]), max_tokens=3)
    assert book.complete(tokens[0])
    assert asked(book, 101) is not None
    assert book.read(raw([created(tokens[0], fee=100), *map(created, tokens[3:])]), 101)
    assert [len(book.venues_of(token)) for token in tokens] == [0, 0, 1, 1, 1]
    assert not any(book.complete(token) for token in (*tokens, OTHER))
