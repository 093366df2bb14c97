"""What a token and its pools tell of themselves, from hand-made answers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from roundtrip.chain.rpc.client import RpcError
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.request import Results, StepResult
from roundtrip.chain.simulate.token_facts import (
    BEACON_SLOT,
    ProxyFacts,
    code_call,
    facts_plan,
    implementation_of,
    proxy_call,
    read_code,
    read_pool_facts,
    read_proxy,
    read_simulated_code,
    read_slots,
    read_token_facts,
    slot_calls,
    with_code_read,
)
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BURN_ADDRESS, ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.evidence import Missing, TokenFacts
from roundtrip.venues import abi, amm_v3, erc20
from roundtrip.venues.base import Call
from unit.chain.samples import ENVIRONMENT, PINNED, did, raw, refused, word
from unit.venues.network import ABOVE, BELOW, CONTRACTS, address

TOKEN = BELOW
PLACES = tuple(VenuePlace(venue, amm_v3) for venue in amm_v3.candidates(TOKEN, CONTRACTS)[:2])
OWNER, OTHER_OWNER, ADMIN = address(0x0E), address(0x0F), address(0xAD)

CODE = bytes.fromhex("6001")
NO_ADMIN = ProxyFacts(None, None)
GAP = Missing("node", "the simulation was not run")

NAME = word(32) + word(5) + b"Plain".ljust(32, b"\0")
GOOD: Results = {
    "name": did(NAME),
    "symbol": did(b"PLN".ljust(32, b"\0")),
    "decimals": did(18),
    "totalSupply": did(10**27),
    "owner": did(int(OWNER, 16)),
    "getOwner": refused(),
    "balanceOf": did(0),
}
FACTS = TokenFacts(
    code_bytes=2,
    name_data="0x" + NAME.hex(),
    symbol_data="0x" + b"PLN".ljust(32, b"\0").hex(),
    decimals=18,
    total_supply_raw=10**27,
    balance_answers=True,
    owner=OWNER,
    proxy_admin=None,
)


def read_facts(
    results: Results | Missing | None = None,
    code: bytes | Missing = CODE,
    proxy: ProxyFacts | Missing = NO_ADMIN,
    **changes: StepResult,
) -> TokenFacts:
    return read_token_facts(GOOD | changes if results is None else results, code, proxy)


# --- what is asked ---------------------------------------------------------------------------------


def test_one_block_of_reads_asks_the_token_and_every_place() -> None:
    plan = facts_plan(TOKEN, PLACES, CONTRACTS, ENVIRONMENT, POLICY)
    (block,) = plan.blocks
    assert [step.label for step in block.steps] == [
        "name", "symbol", "decimals", "totalSupply", "owner", "getOwner", "balanceOf",
        "launch-0-0", "launch-0-1", "venue-0-0", "venue-0-1", "venue-0-2",
        "venue-1-0", "venue-1-1", "venue-1-2", "chain-id",
    ]  # fmt: skip
    assert {(step.sender, step.gas_limit, step.call.value_wei) for step in block.steps} == {
        (ENVIRONMENT.reader, POLICY.read_gas_limit, 0)
    }
    assert {step.call.to for step in block.steps[:7]} == {TOKEN}
    assert block.steps[6].call.data == abi.call(erc20.BALANCE_OF, ENVIRONMENT.reader)
    assert [step.call.to for step in block.steps[7:9]] == [
        CONTRACTS.launchpad_factory,
        CONTRACTS.launchpad_hook,
    ]
    expected = [call for place in PLACES for call in amm_v3.fact_calls(place.venue, CONTRACTS)]
    assert [step.call for step in block.steps[9:-1]] == expected
    assert block.steps[-1].call == Call(CONTRACTS.multicall3, "0x3408e470")
    assert dict(block.balances).keys() == {ENVIRONMENT.reader}


def test_code_and_proxy_are_read_at_the_pinned_block() -> None:
    pinned = {"blockHash": PINNED.hash}
    code, proxy = code_call(TOKEN, PINNED), proxy_call(TOKEN, PINNED)
    assert (code.method, code.params) == ("eth_getCode", [TOKEN, pinned])
    request: Any = proxy.params[0]
    codes: Any = proxy.params[2]
    assert (proxy.method, request["to"], proxy.params[1]) == ("eth_call", TOKEN, pinned)
    assert list(codes) == [TOKEN]


def test_the_code_is_returned_by_a_contract_that_nobody_else_calls() -> None:
    (block,) = facts_plan(TOKEN, PLACES, CONTRACTS, ENVIRONMENT, POLICY).blocks
    actual = with_code_read(block, TOKEN, ENVIRONMENT, POLICY)
    assert actual.steps[:-1] == block.steps
    step, ((at, code),) = actual.steps[-1], actual.codes
    assert (step.call.to, step.call.data) == (at, "0x" + TOKEN[2:].rjust(64, "0"))
    assert at not in {known.call.to for known in block.steps}
    assert code == "0x3d35803b803d3d843c3df3"


def test_the_code_is_missing_where_its_read_failed() -> None:
    gap = Missing("node", "timed out")
    assert read_simulated_code({"code": did(CODE)}) == CODE
    assert read_simulated_code(gap) == gap
    assert isinstance(read_simulated_code({"code": refused()}), Missing)


# --- the token -------------------------------------------------------------------------------------


def test_a_token_that_tells_everything() -> None:
    assert read_facts() == FACTS


@pytest.mark.parametrize(
    ("view", "field"),
    [
        ("name", "name_data"),
        ("symbol", "symbol_data"),
        ("decimals", "decimals"),
        ("totalSupply", "total_supply_raw"),
        ("owner", "owner"),
    ],
)
@pytest.mark.parametrize("answer", [refused(), refused(NAME), refused(out_of_gas=True), did(b"")])
def test_what_a_token_does_not_tell_is_none(view: str, field: str, answer: StepResult) -> None:
    facts = read_facts(GOOD | {view: answer})
    assert getattr(facts, field) is None
    assert sum(getattr(facts, f) != getattr(FACTS, f) for f in FACTS.__slots__) == 1


@pytest.mark.parametrize("view", ["decimals", "totalSupply"])
def test_less_than_a_word_is_no_number(view: str) -> None:
    facts = read_facts(GOOD | {view: did(bytes(31))})
    assert None in (facts.decimals, facts.total_supply_raw)


@pytest.mark.parametrize(("answer", "decimals"), [(0, 0), (255, 255), (256, None), (2**255, None)])
def test_decimals_are_a_byte(answer: int, decimals: int | None) -> None:
    assert read_facts(decimals=did(answer)).decimals == decimals


@pytest.mark.parametrize("answer", [refused(), refused(out_of_gas=True), did(b""), did(bytes(31))])
def test_a_balance_that_does_not_answer_is_known_not_to(answer: StepResult) -> None:
    assert read_facts(balanceOf=answer).balance_answers is False


def test_a_long_name_is_kept_cut() -> None:
    facts = read_facts(name=did(b"\xaa" * 370_000))
    assert facts.name_data == "0x" + "aa" * 512


@pytest.mark.parametrize(
    ("owner", "get_owner", "found"),
    [
        (did(int(OWNER, 16)), did(int(OTHER_OWNER, 16)), OWNER),
        (refused(), did(int(OTHER_OWNER, 16)), OTHER_OWNER),
        (did(2**200), did(int(OTHER_OWNER, 16)), OTHER_OWNER),
        (did(b""), did(int(OTHER_OWNER, 16)), OTHER_OWNER),
        (did(0), did(int(OTHER_OWNER, 16)), ZERO_ADDRESS),
        (did(0), refused(), ZERO_ADDRESS),
        (refused(), refused(), None),
        (did(2**160), did(2**160), None),
    ],
    ids=["both", "only getOwner", "no address", "nothing", "given up", "given up alone", "none", "junk"],
)
def test_the_owner_is_whom_the_token_names_first(
    owner: StepResult, get_owner: StepResult, found: Address | None
) -> None:
    assert read_facts(owner=owner, getOwner=get_owner).owner == found


# --- code and admin --------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "size"), [("0x", 0), ("0x00", 1), ("0x" + "ab" * 24_576, 24_576)])
def test_code_is_counted_in_bytes(code: str, size: int) -> None:
    assert read_facts(code=read_code(raw(code))).code_bytes == size


BAD_ANSWERS = pytest.mark.parametrize(
    "answer", [RpcError(-32000, "header not found"), RpcError(), raw(5), raw("0xzz"), raw("0x1"), raw([])]
)


@BAD_ANSWERS
def test_code_that_the_node_does_not_tell_is_missing_by_its_fault(answer: msgspec.Raw | RpcError) -> None:
    facts = read_facts(code=read_code(answer))
    assert isinstance(facts.code_bytes, Missing)
    assert facts.code_bytes.fault == "node"
    assert facts.proxy_admin is None
    assert facts.name_data == FACTS.name_data


@BAD_ANSWERS
def test_an_admin_that_the_node_does_not_tell_is_missing_by_its_fault(answer: msgspec.Raw | RpcError) -> None:
    facts = read_facts(proxy=read_proxy(answer, TOKEN, PROXY_CODE))
    assert isinstance(facts.proxy_admin, Missing)
    assert facts.proxy_admin.fault == "node"
    assert facts.code_bytes == 2


BEACON, LOGIC = address(0xBE), address(0x10)
BURN = int(BURN_ADDRESS, 16)
PROXY_CODE = bytes.fromhex("5f5f5f5f5f5ff4")


def proxy_answer(*words: int | str) -> msgspec.Raw:
    """Slots of admin, implementation and beacon; whether the beacon has an owner, and that; its logic."""
    return raw("0x" + b"".join(word(int(w, 16) if isinstance(w, str) else w) for w in words).hex())


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ((0, 0, 0, 0, 0, 0, 0), ProxyFacts(None, None)),
        ((ADMIN, LOGIC, 0, 0, 0, 0, 0), ProxyFacts(ADMIN, LOGIC)),
        ((2**256 - 1, 0, 0, 0, 0, 0, 0), ProxyFacts(Address("0x" + 40 * "f"), None)),
        ((0, 0, BEACON, 1, OWNER, 1, LOGIC), ProxyFacts(OWNER, LOGIC, BEACON, OWNER)),
        ((0, 0, BEACON, 1, 0, 1, LOGIC), ProxyFacts(None, LOGIC, BEACON)),
        ((0, 0, BEACON, 0, OWNER, 1, LOGIC), ProxyFacts(BEACON, LOGIC, BEACON, BEACON)),
        ((0, 0, BEACON, 1, int(OWNER, 16) + 2**160, 1, LOGIC), ProxyFacts(BEACON, LOGIC, BEACON, BEACON)),
        ((0, 0, int(BEACON, 16) + 2**160, 1, OWNER, 1, LOGIC), ProxyFacts(OWNER, LOGIC, BEACON, OWNER)),
        ((BURN, 0, BEACON, 1, OWNER, 1, LOGIC), ProxyFacts(OWNER, LOGIC, BEACON, OWNER)),
        ((BURN, 0, BEACON, 1, 0, 1, LOGIC), ProxyFacts(BURN_ADDRESS, LOGIC, BEACON)),
        ((0, LOGIC, BEACON, 1, OWNER, 1, LOGIC), ProxyFacts(OWNER, LOGIC, BEACON, OWNER)),
        ((ADMIN, 0, BEACON, 1, OWNER, 1, LOGIC), ProxyFacts(ADMIN, LOGIC, BEACON, OWNER)),
    ],
    ids=[
        "no proxy", "a proxy", "an admin below other bits", "a beacon", "a beacon that nobody owns",
        "a beacon without owner()", "a beacon whose owner is no address", "a beacon below other bits",
        "a burn address beside a beacon's owner", "a burn address beside a beacon that nobody owns",
        "a beacon and its logic", "an admin and a beacon",
    ],
)  # fmt: skip
def test_who_can_replace_the_code_is_an_admin_or_a_beacons_owner(
    words: tuple[int | str, ...], facts: ProxyFacts
) -> None:
    assert read_proxy(proxy_answer(*words), TOKEN, PROXY_CODE) == facts
    assert read_facts(proxy=facts).proxy_admin == facts.admin


@pytest.mark.parametrize("logic", [(0, LOGIC), (1, 0), (1, int(LOGIC, 16) + 2**160)])
def test_a_beacon_that_does_not_say_what_runs_is_no_token_without_a_proxy(logic: tuple[int, int]) -> None:
    proxy = read_proxy(proxy_answer(0, 0, BEACON, 1, OWNER, *logic), TOKEN, PROXY_CODE)
    gap = implementation_of(CODE, proxy)
    assert isinstance(gap, Missing)
    assert gap.fault == "token"


@pytest.mark.parametrize("logic", [(1, LOGIC), (0, 0)])
def test_an_implementation_beside_a_beacon_hides_no_other_one(logic: tuple[int, int]) -> None:
    proxy = read_proxy(proxy_answer(0, OTHER_OWNER, BEACON, 1, OWNER, *logic), TOKEN, PROXY_CODE)
    assert isinstance(implementation_of(CODE, proxy), Missing)


@pytest.mark.parametrize(
    ("code", "counts"),
    [
        (PROXY_CODE, True),
        (bytes.fromhex("5f5f5f5f5f5f5ff2"), True),
        (bytes.fromhex("7f" + BEACON_SLOT[2:] + "54"), True),
        (bytes.fromhex("ef0100" + 20 * "11"), True),
        (GAP, True),
        (bytes.fromhex("60f400"), False),
    ],
    ids=["DELEGATECALL", "CALLCODE", "the slot", "another's code", "not known", "0xf4 as data"],
)
def test_a_beacon_counts_where_the_code_can_ask_it(code: bytes | Missing, counts: bool) -> None:
    proxy = read_proxy(proxy_answer(0, 0, BEACON, 1, OWNER, 1, LOGIC), TOKEN, code)
    assert proxy == (ProxyFacts(OWNER, LOGIC, BEACON, OWNER) if counts else ProxyFacts(None, None))


def test_a_token_that_is_its_own_beacon_does_not_answer_in_that_call() -> None:
    proxy = read_proxy(proxy_answer(0, 0, TOKEN, 1, 0, 1, LOGIC), TOKEN, PROXY_CODE)
    assert isinstance(proxy, ProxyFacts)
    assert proxy.admin == TOKEN
    assert isinstance(proxy.implementation, Missing)


@pytest.mark.parametrize("answer", [raw("0x"), raw("0x00"), raw("0x" + "00" * 32)])
def test_an_answer_of_another_size_is_none(answer: msgspec.Raw) -> None:
    assert isinstance(read_proxy(answer, TOKEN, PROXY_CODE), Missing)


def stored(*words: int | str) -> list[msgspec.Raw | RpcError]:
    return [proxy_answer(word) for word in words]


@pytest.mark.parametrize(
    ("answers", "code", "facts"),
    [
        (stored(ADMIN, LOGIC, 0), PROXY_CODE, ProxyFacts(ADMIN, LOGIC)),
        (stored(0, 0, BEACON), CODE, ProxyFacts(None, None)),
        (stored(ADMIN, LOGIC, BEACON), PROXY_CODE, None),
        ([*stored(ADMIN, LOGIC), RpcError(-32000, "busy")], PROXY_CODE, None),
        ([*stored(ADMIN, LOGIC), raw("0x")], PROXY_CODE, None),
    ],
    ids=["a proxy", "a beacon that does not count", "a beacon", "not told", "nothing told"],
)
def test_slots_that_are_read_alone(
    answers: list[msgspec.Raw | RpcError], code: bytes, facts: ProxyFacts | None
) -> None:
    read = read_slots(answers, TOKEN, code)
    assert isinstance(read, Missing) if facts is None else read == facts
    calls = slot_calls(TOKEN, PINNED)
    assert {call.method for call in calls} == {"eth_getStorageAt"}
    assert len(calls) == len(answers)


def test_a_simulation_that_was_not_run_leaves_the_views_missing_and_the_rest_known() -> None:
    facts = read_facts(GAP, proxy=ProxyFacts(ADMIN, None))
    assert facts == TokenFacts(2, GAP, GAP, GAP, GAP, GAP, GAP, ADMIN)


# --- the pools -------------------------------------------------------------------------------------

POOL = PoolFacts(True, 2**96, 10**18, 5)


def pools(number: int) -> Results:
    return {
        f"venue-{number}-0": did(word(2**96) + bytes(192)),
        f"venue-{number}-1": did(10**18),
        f"venue-{number}-2": did(5),
    }


NOBODY: Results = {f"venue-{v}-{n}": did(b"") for v in range(2) for n in range(3)}


@pytest.mark.parametrize("number", [0, 1])
def test_a_pools_state_is_read_under_its_own_number(number: int) -> None:
    results = NOBODY | pools(number)
    found = [read_pool_facts(results, n, PLACES[n], TOKEN, CONTRACTS) for n in range(2)]
    assert found[number] == POOL
    assert found[1 - number] == PoolFacts(False, 0, 0, 0)


def test_what_a_reverted_call_returned_is_no_state() -> None:
    results = NOBODY | {"venue-0-0": refused(word(2**96))}
    assert read_pool_facts(results, 0, PLACES[0], TOKEN, CONTRACTS) == PoolFacts(False, 0, 0, 0)


def test_a_pool_in_a_simulation_that_was_not_run_is_missing() -> None:
    assert read_pool_facts(GAP, 0, PLACES[0], TOKEN, CONTRACTS) is GAP


@pytest.mark.parametrize("make", [lambda token: ABOVE, lambda token: CONTRACTS.weth])
def test_the_plan_has_three_reads_for_each_candidate(make: Callable[[Address], Address]) -> None:
    token = make(TOKEN)
    places = tuple(VenuePlace(venue, amm_v3) for venue in amm_v3.candidates(token, CONTRACTS))
    for contracts, own in ((CONTRACTS, 10), (replace(CONTRACTS, launchpad_hook=None), 8)):
        steps = facts_plan(token, places, contracts, ENVIRONMENT, POLICY).blocks[0].steps
        assert len(steps) == own + 3 * len(places)
        assert len({step.label for step in steps}) == len(steps)
