"""Where a wallet comes from, where that cannot be found out."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.blocks import state_witness
from roundtrip.chain.blocks.state_witness import AccountState, NoArchive
from roundtrip.chain.holders.origins import NothingReached, find_origin, is_monotone, seek_origin
from roundtrip.chain.rpc.client import NO_ANSWER, RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.wallets.linked import FirstSeen
from unit.chain.origin_nodes import (
    BUSY,
    FUNDER,
    PRUNED,
    WALLET,
    Answer,
    FundedChain,
    OriginNode,
    searched,
    state_at,
    word,
)
from unit.chain.samples import raw


def funded_at_300() -> FundedChain:
    chain = FundedChain()
    chain.pass_by(299)
    chain.fund()
    chain.pass_by(300)
    return chain


FAULTS = pytest.mark.parametrize(
    "gone", [PRUNED, NO_ANSWER, raw("0x"), raw(12), raw("0xzz")], ids=["pruned", "null", "0x", "12", "zz"]
)


@FAULTS
async def test_without_an_archive_nothing_is_found(gone: Answer) -> None:
    chain = funded_at_300()
    node = OriginNode(chain, lambda call, trip: gone if (state_at(call) or 600) < 590 else None)
    assert await find_origin(node, WALLET, 0, chain.ref()) is None
    with pytest.raises(NoArchive):
        await seek_origin(node, WALLET, 0, chain.ref())


async def test_a_node_that_is_asked_too_much_may_have_an_archive() -> None:
    chain, limited = funded_at_300(), RpcError(429, "rate limit")
    node = OriginNode(chain, lambda call, trip: limited if (state_at(call) or 600) < 590 else None)
    with pytest.raises(NodeFault) as raised:
        await seek_origin(node, WALLET, 0, chain.ref())
    assert type(raised.value) is NodeFault


@given(st.integers(0, 600), st.booleans())
async def test_zeros_for_a_state_that_is_gone_are_not_believed(kept_from: int, everything: bool) -> None:
    """What it still has may be enough; else nothing is said."""
    chain = funded_at_300()
    if everything:
        chain.states = [{**states, WALLET: AccountState(0, 0)} for states in chain.states]
    node = OriginNode(
        chain,
        lambda call, trip: raw("0x0") if (at := state_at(call)) is not None and at < kept_from else None,
    )
    found = await find_origin(node, WALLET, 0, chain.ref())
    assert found in ((NothingReached(600) if everything else FirstSeen(300, 9030, FUNDER)), None)
    assert (found is None) == (kept_from > (600 if everything else 299))


async def test_zeros_for_everything_are_not_believed() -> None:
    chain = funded_at_300()
    node = OriginNode(chain, lambda call, trip: None if state_at(call) is None else raw("0x0"))
    assert await find_origin(node, WALLET, 0, chain.ref()) is None


async def test_the_newest_state_for_every_block_is_not_believed() -> None:
    chain = funded_at_300()

    def newest(call: RpcCall, trip: int) -> Answer | None:
        asks = state_at(call) is not None
        return chain.answer(RpcCall(call.method, [call.params[0], hex(600)])) if asks else None

    assert await find_origin(OriginNode(chain, newest), WALLET, 0, chain.ref()) is None
    assert await find_origin(OriginNode(chain, newest), WALLET, 200, chain.ref()) is None


async def test_the_state_of_an_older_block_is_not_believed() -> None:
    chain = funded_at_300()

    def late(call: RpcCall, trip: int) -> Answer | None:
        at = state_at(call)
        return None if not at else chain.answer(RpcCall(call.method, [call.params[0], hex(max(at - 10, 0))]))

    assert await find_origin(OriginNode(chain, late), WALLET, 0, chain.ref()) is None
    assert await find_origin(OriginNode(chain, late), WALLET, 0, chain.ref(305)) is None


@pytest.mark.parametrize("number", [37, 75, 150])
async def test_answers_that_contradict_each_other_are_none(number: int) -> None:
    """Something early, nothing later: a contract that destroyed itself, or nodes of two minds."""
    chain = funded_at_300()
    for at in range(number - 36, number + 2):
        chain.states[at][WALLET] = AccountState(0, 1)
    assert await searched(chain) is None


async def test_a_nonce_that_falls_is_none() -> None:
    chain = funded_at_300()
    for at in range(300, 450):
        chain.states[at][WALLET] = AccountState(5, 1)
    assert await searched(chain) is None


def test_what_goes_back_is_seen() -> None:
    empty, funded, used, spent = (
        AccountState(0, 0),
        AccountState(0, 4),
        AccountState(1, 2),
        AccountState(2, 0),
    )
    assert is_monotone({4: used, 1: empty, 2: funded, 5: spent})
    assert not is_monotone({1: empty, 2: funded, 3: empty})
    assert not is_monotone({1: used, 2: funded})
    assert not is_monotone({2: used, 1: spent})


async def test_another_answer_the_second_time_is_none() -> None:
    chain = funded_at_300()
    for number, text in ((299, "0x1"), (300, "0x0")):
        seen: list[int] = []

        def other(
            call: RpcCall, trip: int, number: int = number, said: str = text, seen: list[int] = seen
        ) -> Answer | None:
            if state_at(call) != number or call.params[0] != WALLET:
                return None
            seen.append(trip)
            return raw(said) if trip > seen[0] else None

        assert await find_origin(OriginNode(chain, other), WALLET, 0, chain.ref()) is None
        assert len(set(seen)) == 2, "it was asked for twice"


async def test_another_chain_by_now_is_none() -> None:
    chain = funded_at_300()
    high = chain.ref()
    assert await find_origin(OriginNode(chain), WALLET, 0, high) is not None
    assert await find_origin(OriginNode(chain), WALLET, 0, BlockRef(600, word(600, 7), 10**6)) is None
    empty = FundedChain()
    empty.pass_by(30)
    assert await find_origin(OriginNode(empty), WALLET, 0, BlockRef(30, word(30, 7), 10**6)) is None

    def later(call: RpcCall, trip: int) -> Answer | None:
        """The block itself is another one the second time."""
        if call.method == "eth_getBlockByNumber" and call.params == [hex(300), False]:
            return FundedChain(chain.blocks, chain.states, salt=5).answer(call)
        return None

    assert await find_origin(OriginNode(chain, later), WALLET, 0, high) is None


@pytest.mark.parametrize(
    "change",
    [
        {"number": "0x1"},
        {"timestamp": hex(9061)},
        {"parentHash": word(5, 5)},
        {"transactions": ["0x"]},
        {"transactions": None},
        None,
    ],
    ids=["number", "timestamp", "parent", "transactions", "none", "no block"],
)
async def test_blocks_that_are_not_those_asked_for_are_none(change: dict[str, Any] | None) -> None:
    chain = funded_at_300()

    def other(call: RpcCall, trip: int) -> Answer | None:
        if call.method != "eth_getBlockByNumber" or call.params != [hex(300), True]:
            return None
        if change is None:
            return NO_ANSWER
        return raw(msgspec.json.decode(bytes(chain.answer(call))) | change)  # type: ignore[arg-type]

    assert await find_origin(OriginNode(chain, other), WALLET, 0, chain.ref()) is None


@pytest.mark.parametrize("trip", [1, 2, 3, 4])
async def test_a_fault_on_any_trip_is_none(trip: int) -> None:
    chain = funded_at_300()

    def fault(call: RpcCall, now: int) -> Answer | None:
        if now == trip:
            raise NodeFault("the connection to the node failed")
        return None

    whole = OriginNode(chain)
    await find_origin(whole, WALLET, 0, chain.ref())
    assert len(whole.trips) >= trip
    assert await find_origin(OriginNode(chain, fault), WALLET, 0, chain.ref()) is None


async def test_a_spent_budget_is_told() -> None:
    def spent(call: RpcCall, trip: int) -> Answer | None:
        raise ServiceFull(
            "budget_spent", "Today's budget of chain calls is used up. It renews at 00:00 UTC.", 60
        )

    with pytest.raises(ServiceFull):
        await find_origin(OriginNode(FundedChain(), spent), WALLET, 0, FundedChain().ref())


async def test_where_nobody_sends_it_could_not_be_found_out() -> None:
    """A quiet chain shows nothing by which a node's zeros could be told from a state that is gone."""
    chain = FundedChain()
    chain.pass_by(30)
    for _ in range(state_witness.BEFORE + 1):
        chain.mine()
    assert await searched(chain) is None
    chain.pass_by(1)
    assert await searched(chain) == NothingReached(48)


async def test_witnesses_are_asked_for_at_the_edge_in_the_last_trip() -> None:
    chain = funded_at_300()
    node = OriginNode(chain)
    await find_origin(node, WALLET, 0, chain.ref())
    last = [(call.method, *call.params) for call in node.trips[-1]]
    for who, number in ((WALLET, 299), (WALLET, 300), (BUSY, 299)):
        assert ("eth_getTransactionCount", who, hex(number)) in last
        assert ("eth_getBalance", who, hex(number)) in last
    assert ("eth_getBlockByNumber", hex(600), False) in last
