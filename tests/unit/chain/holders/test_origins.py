"""A wallet's origin over scripted chains: the first block in which anything reached it, or nothing at all."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.blocks.block_ranges import between
from roundtrip.chain.blocks.state_witness import AccountState
from roundtrip.chain.holders import origins
from roundtrip.chain.holders.origins import NothingReached, find_origin
from roundtrip.chain.rpc.client import RpcCall
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.wallets.linked import FirstSeen
from unit.chain.origin_nodes import (
    BUSY,
    FUNDER,
    OTHER,
    SYSTEM,
    WALLET,
    Answer,
    FundedChain,
    OriginNode,
    Way,
    searched,
    state_at,
    tx,
    word,
)
from unit.chain.samples import raw

# --- what is found ---------------------------------------------------------------------------------


@st.composite
def chains(draw: st.DrawFn) -> FundedChain:
    """A thousand blocks or so in which a wallet is funded and spends. Somebody else comes before it: of a
    chain whose only blocks are its own and its bridge's nothing can be told."""
    chain = FundedChain()
    chain.pass_by(1)
    for _ in range(draw(st.integers(0, 6))):
        chain.pass_by(draw(st.integers(0, 300)))
        deed = draw(st.sampled_from(["plain", "internal", "bridge", "authorised", "spend", "nothing"]))
        if deed == "spend" and chain.at(len(chain.blocks) - 1).balance_wei:
            chain.spend_all()
        elif deed in ("plain", "internal", "bridge", "authorised"):
            chain.fund(deed)  # type: ignore[arg-type]
        chain.pass_by(draw(st.integers(0, 3)))
    chain.pass_by(1)
    return chain


@given(chains(), st.data())
async def test_the_true_first_block_is_found(chain: FundedChain, data: st.DataObject) -> None:
    first = chain.truth()
    high = data.draw(st.integers(1, len(chain.blocks) - 1))
    low = data.draw(st.integers(0, high if first is None else min(first, high)))
    found = await find_origin(OriginNode(chain), WALLET, low, chain.ref(high))
    if first is None or first > high:
        assert found == NothingReached(high)
        return
    plain = [one["from"] for one in chain.blocks[first] if one["to"] == WALLET and one["type"] != "0x64"]
    assert found == FirstSeen(first, 9000 + first // 10, plain[0] if plain else None)


@pytest.mark.parametrize(
    ("way", "funder"), [("plain", FUNDER), ("internal", None), ("bridge", None), ("authorised", None)]
)
async def test_only_the_sender_of_a_plain_transfer_is_a_funder(way: Way, funder: Address | None) -> None:
    chain = FundedChain()
    chain.pass_by(40)
    chain.fund(way)
    chain.pass_by(40)
    assert await searched(chain) == FirstSeen(41, 9004, funder)


async def test_the_first_transfer_with_a_value_counts_however_addresses_are_written() -> None:
    chain = FundedChain()
    chain.pass_by(20)
    mixed = "0x" + WALLET[2:].upper()
    chain.mine(
        chain.busy(),
        tx(OTHER, None, 9, 0),
        tx(OTHER, WALLET, 0, 1),
        tx("0x" + FUNDER[2:].upper(), mixed, 9, 0, None),
        tx(BUSY, WALLET, 9, 24),
        wallet=AccountState(0, 18),
    )
    chain.pass_by(20)
    assert await searched(chain) == FirstSeen(21, 9002, FUNDER)


@pytest.mark.parametrize(
    "before",
    [tx(WALLET, OTHER, 0, 0), tx(OTHER, WALLET, 1, 0, input="0x00"), tx(SYSTEM, WALLET, 1, 0, "0x64")],
)
async def test_who_pays_a_wallet_that_had_eth_already_is_no_funder(before: dict[str, Any]) -> None:
    chain = FundedChain()
    chain.pass_by(20)
    chain.mine(chain.busy(), before, tx(FUNDER, WALLET, 9, 0), wallet=AccountState(1, 10))
    chain.pass_by(20)
    assert await searched(chain) == FirstSeen(21, 9002, None)


@pytest.mark.parametrize(("code", "funder"), [("0x6001", None), ("0xef0100" + "ab" * 20, FUNDER)])
async def test_a_contract_has_no_funder_and_a_delegated_wallet_has(code: str, funder: Address | None) -> None:
    chain = FundedChain(code=code)
    chain.pass_by(20)
    chain.fund()
    chain.pass_by(5)
    assert await searched(chain) == FirstSeen(21, 9002, funder)


async def test_a_wallet_that_spent_all_is_found() -> None:
    chain = FundedChain()
    chain.pass_by(500)
    chain.fund()
    chain.spend_all()
    chain.pass_by(500)
    assert await searched(chain) == FirstSeen(501, 9050, FUNDER)


async def test_a_wallet_of_the_first_block_is_found() -> None:
    chain = FundedChain()
    chain.states[0][WALLET] = AccountState(0, 5)
    chain.pass_by(500)
    assert await searched(chain) == FirstSeen(0, 9000, None)


@pytest.mark.parametrize("number", [1, 2])
async def test_a_wallet_of_the_next_blocks_is_found(number: int) -> None:
    chain = FundedChain()
    chain.pass_by(number - 1)
    chain.fund()
    chain.pass_by(30)
    assert await searched(chain) == FirstSeen(number, 9000, FUNDER)


async def test_who_was_there_before_the_search_began_is_not_found_in_it() -> None:
    chain = FundedChain()
    chain.pass_by(50)
    chain.fund()
    chain.pass_by(50)
    assert await searched(chain, low=51) == FirstSeen(51, 9005, FUNDER)
    assert await searched(chain, low=52) is None
    assert await searched(chain, low=100) is None


async def test_a_search_that_ends_before_it_begins_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="ends before"):
        await searched(FundedChain(), low=1)


async def test_a_hundred_million_blocks_take_nine_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted chain stands for blocks far up: numbers below it are empty and told by nobody."""
    chain, far = FundedChain(), 99_999_000
    chain.pass_by(300)
    chain.fund()
    chain.pass_by(600)

    class Far(OriginNode):
        async def batch(self, calls: Sequence[RpcCall], *_: Any, **__: Any) -> list[Answer]:
            self.trips.append(list(calls))
            return [self.moved(call) for call in calls]

        def moved(self, call: RpcCall) -> Answer:
            at = state_at(call)
            if at is not None:
                return self.chain.answer(RpcCall(call.method, [call.params[0], hex(max(at - far, 0))]))
            if call.method == "eth_getCode":
                return raw("0x")
            there = RpcCall(call.method, [hex(int(str(call.params[0]), 16) - far), call.params[1]])
            answer = msgspec.json.decode(bytes(self.chain.answer(there)))  # type: ignore[arg-type]
            return raw(answer | {"number": hex(int(answer["number"], 16) + far)})

    node = Far(chain)
    high = BlockRef(far + 901, word(901), 10**6)
    assert await find_origin(node, WALLET, 0, high) == FirstSeen(far + 301, 9030, FUNDER)
    assert len(node.trips) <= 9
    assert max(len(trip) for trip in node.trips) <= 2 * origins.PROBES + 2


@given(st.integers(-1, 10**9), st.integers(1, 10**9), st.integers(0, 20))
def test_probes_stand_evenly_between(below: int, gap: int, most: int) -> None:
    found = between(below, below + gap, most)
    assert len(found) == min(most, gap - 1)
    steps = [b - a for a, b in zip([below, *found], [*found, below + gap], strict=True)]
    assert max(steps) - min(steps) <= 1
    assert min(steps) >= 1
