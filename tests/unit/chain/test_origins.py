"""A wallet's origin over scripted chains: the first block in which anything reached it, or nothing at all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain import origins, witnesses
from roundtrip.chain.between import between
from roundtrip.chain.origins import Found, Never, find_origin, is_monotone, seek_origin
from roundtrip.chain.rpc import NO_ANSWER, Meter, RpcCall, RpcError
from roundtrip.chain.witnesses import NoArchive, State
from roundtrip.domain.errors import NodeFault, ServiceFull
from roundtrip.domain.types import Address, BlockRef
from unit.chain.samples import raw
from unit.venues.network import address

WALLET, FUNDER, BUSY, OTHER = (address(0xA0 + number) for number in range(4))
SYSTEM = address(0xA4B05)
PRUNED = RpcError(-32000, "missing trie node 01ab (path )")
Answer = msgspec.Raw | RpcError
Way = Literal["plain", "internal", "bridge", "authorised"]


def tx(
    sender: str, to: str | None, value: int, nonce: int, type_: str | None = "0x2", **more: Any
) -> dict[str, Any]:
    found = {"from": sender, "to": to, "value": hex(value), "nonce": hex(nonce), "input": "0x", **more}
    return found if type_ is None else found | {"type": type_}


def word(number: int, salt: int = 0) -> str:
    return f"0x{salt:032x}{number:032x}"


@dataclass
class Chain:
    """Blocks, and the state of everybody when each is over. A busy sender is in most blocks."""

    blocks: list[list[dict[str, Any]]] = field(default_factory=lambda: [[]])
    states: list[dict[str, State]] = field(
        default_factory=lambda: [{BUSY: State(3, 10**18), FUNDER: State(0, 10**20)}]
    )
    code: str = "0x"
    salt: int = 0

    def mine(self, *transactions: dict[str, Any], **changed: State) -> None:
        """A block with these transactions, after which ``changed`` is so (names: wallet, funder). The chain's
        own transaction opens it, and raises no nonce."""
        now = dict(self.states[-1])
        for one in transactions:
            known = now.get(one["from"], State(0, 0))
            if one.get("type", "0x0") < "0x64" or one.get("type") is None:
                now[one["from"]] = State(int(one["nonce"], 16) + 1, known.balance_wei)
        for name, state in changed.items():
            now[{"wallet": WALLET, "funder": FUNDER}[name]] = state
        self.blocks.append([tx(SYSTEM, SYSTEM, 0, 0, "0x6a"), *transactions])
        self.states.append(now)

    def busy(self) -> dict[str, Any]:
        return tx(BUSY, OTHER, 5, self.states[-1][BUSY].nonce)

    def pass_by(self, count: int) -> None:
        for _ in range(count):
            self.mine(self.busy())

    def fund(self, way: Way = "plain", wei: int = 7) -> None:
        nonce = self.states[-1][FUNDER].nonce
        reached = State(self.at(len(self.blocks) - 1).nonce, self.at(len(self.blocks) - 1).balance_wei + wei)
        if way == "plain":
            self.mine(self.busy(), tx(FUNDER, WALLET, wei, nonce), wallet=reached)
        elif way == "internal":
            self.mine(self.busy(), tx(FUNDER, OTHER, wei, nonce), wallet=reached)
        elif way == "bridge":
            self.mine(tx(FUNDER, WALLET, wei, 0, "0x64"), wallet=reached)
        else:
            self.mine(tx(FUNDER, OTHER, 0, nonce, "0x4"), wallet=State(reached.nonce + 1, 0))

    def spend_all(self) -> None:
        state = self.at(len(self.blocks) - 1)
        self.mine(tx(WALLET, OTHER, state.balance_wei, state.nonce), wallet=State(state.nonce + 1, 0))

    def at(self, number: int, who: str = WALLET) -> State:
        return self.states[number].get(who, State(0, 0))

    def ref(self, number: int | None = None) -> BlockRef:
        number = len(self.blocks) - 1 if number is None else number
        return BlockRef(number, word(number, self.salt), 9000 + number // 10)

    def truth(self) -> int | None:
        return next((n for n in range(len(self.blocks)) if self.at(n) != (0, 0)), None)

    def answer(self, call: RpcCall) -> Answer:
        if call.method == "eth_getCode":
            return raw(self.code)
        if call.method == "eth_getBlockByNumber":
            number = int(str(call.params[0]), 16)
            ref, parent = self.ref(number), self.ref(number - 1).hash if number else word(0, 99)
            found = {"number": hex(number), "hash": ref.hash, "timestamp": hex(ref.timestamp_s)}
            every = self.blocks[number] if call.params[1] else [word(1)]
            return raw(found | {"parentHash": parent, "miner": SYSTEM, "transactions": every})
        state = self.at(int(str(call.params[1]), 16), str(call.params[0]))
        return raw(hex(state.nonce if call.method == "eth_getTransactionCount" else state.balance_wei))


@dataclass
class Scripted:
    """Asked, it answers as the chain does, but for what ``said`` says otherwise."""

    chain: Chain
    said: Callable[[RpcCall, int], Answer | None] = lambda call, trip: None
    trips: list[list[RpcCall]] = field(default_factory=list)

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Answer]:
        self.trips.append(list(calls))
        found = []
        for call in calls:
            said = self.said(call, len(self.trips))
            found.append(self.chain.answer(call) if said is None else said)
        return found

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[Answer] | NodeFault]:
        raise AssertionError("one trip after another")


async def searched(chain: Chain, low: int = 0) -> Found | Never | None:
    return await find_origin(Scripted(chain), WALLET, low, chain.ref())


def state_at(call: RpcCall) -> int | None:
    """The block a state is asked for."""
    asks = call.method in ("eth_getTransactionCount", "eth_getBalance")
    return int(str(call.params[1]), 16) if asks else None


# --- what is found ---------------------------------------------------------------------------------


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """A thousand blocks or so in which a wallet is funded and spends. Somebody else comes before it: of a
    chain whose only blocks are its own and its bridge's nothing can be told."""
    chain = Chain()
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
async def test_the_true_first_block_is_found(chain: Chain, data: st.DataObject) -> None:
    first = chain.truth()
    high = data.draw(st.integers(1, len(chain.blocks) - 1))
    low = data.draw(st.integers(0, high if first is None else min(first, high)))
    found = await find_origin(Scripted(chain), WALLET, low, chain.ref(high))
    if first is None or first > high:
        assert found == Never(high)
        return
    plain = [one["from"] for one in chain.blocks[first] if one["to"] == WALLET and one["type"] != "0x64"]
    assert found == Found(first, 9000 + first // 10, plain[0] if plain else None)


@pytest.mark.parametrize(
    ("way", "funder"), [("plain", FUNDER), ("internal", None), ("bridge", None), ("authorised", None)]
)
async def test_only_the_sender_of_a_plain_transfer_is_a_funder(way: Way, funder: Address | None) -> None:
    chain = Chain()
    chain.pass_by(40)
    chain.fund(way)
    chain.pass_by(40)
    assert await searched(chain) == Found(41, 9004, funder)


async def test_the_first_transfer_with_a_value_counts_however_addresses_are_written() -> None:
    chain = Chain()
    chain.pass_by(20)
    mixed = "0x" + WALLET[2:].upper()
    chain.mine(
        chain.busy(),
        tx(OTHER, None, 9, 0),
        tx(OTHER, WALLET, 0, 1),
        tx("0x" + FUNDER[2:].upper(), mixed, 9, 0, None),
        tx(BUSY, WALLET, 9, 24),
        wallet=State(0, 18),
    )
    chain.pass_by(20)
    assert await searched(chain) == Found(21, 9002, FUNDER)


@pytest.mark.parametrize(
    "before",
    [
        tx(WALLET, OTHER, 0, 0),
        tx(OTHER, WALLET, 1, 0, input="0x00"),
        tx(SYSTEM, WALLET, 1, 0, "0x64"),
    ],
)
async def test_who_pays_a_wallet_that_had_eth_already_is_no_funder(before: dict[str, Any]) -> None:
    chain = Chain()
    chain.pass_by(20)
    chain.mine(chain.busy(), before, tx(FUNDER, WALLET, 9, 0), wallet=State(1, 10))
    chain.pass_by(20)
    assert await searched(chain) == Found(21, 9002, None)


@pytest.mark.parametrize(("code", "funder"), [("0x6001", None), ("0xef0100" + "ab" * 20, FUNDER)])
async def test_a_contract_has_no_funder_and_a_delegated_wallet_has(code: str, funder: Address | None) -> None:
    chain = Chain(code=code)
    chain.pass_by(20)
    chain.fund()
    chain.pass_by(5)
    assert await searched(chain) == Found(21, 9002, funder)


async def test_a_wallet_that_spent_all_is_found() -> None:
    chain = Chain()
    chain.pass_by(500)
    chain.fund()
    chain.spend_all()
    chain.pass_by(500)
    assert await searched(chain) == Found(501, 9050, FUNDER)


async def test_a_wallet_of_the_first_block_is_found() -> None:
    chain = Chain()
    chain.states[0][WALLET] = State(0, 5)
    chain.pass_by(500)
    assert await searched(chain) == Found(0, 9000, None)


@pytest.mark.parametrize("number", [1, 2])
async def test_a_wallet_of_the_next_blocks_is_found(number: int) -> None:
    chain = Chain()
    chain.pass_by(number - 1)
    chain.fund()
    chain.pass_by(30)
    assert await searched(chain) == Found(number, 9000, FUNDER)


async def test_who_was_there_before_the_search_began_is_not_found_in_it() -> None:
    chain = Chain()
    chain.pass_by(50)
    chain.fund()
    chain.pass_by(50)
    assert await searched(chain, low=51) == Found(51, 9005, FUNDER)
    assert await searched(chain, low=52) is None
    assert await searched(chain, low=100) is None


async def test_a_search_that_ends_before_it_begins_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="ends before"):
        await searched(Chain(), low=1)


async def test_a_hundred_million_blocks_take_nine_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted chain stands for blocks far up: numbers below it are empty and told by nobody."""
    chain, far = Chain(), 99_999_000
    chain.pass_by(300)
    chain.fund()
    chain.pass_by(600)

    class Far(Scripted):
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
    assert await find_origin(node, WALLET, 0, high) == Found(far + 301, 9030, FUNDER)
    assert len(node.trips) <= 9
    assert max(len(trip) for trip in node.trips) <= 2 * origins.PROBES + 2


@given(st.integers(-1, 10**9), st.integers(1, 10**9), st.integers(0, 20))
def test_probes_stand_evenly_between(below: int, gap: int, most: int) -> None:
    found = between(below, below + gap, most)
    assert len(found) == min(most, gap - 1)
    steps = [b - a for a, b in zip([below, *found], [*found, below + gap], strict=True)]
    assert max(steps) - min(steps) <= 1
    assert min(steps) >= 1


# --- what could not be found out -------------------------------------------------------------------


def funded_at_300() -> Chain:
    chain = Chain()
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
    node = Scripted(chain, lambda call, trip: gone if (state_at(call) or 600) < 590 else None)
    assert await find_origin(node, WALLET, 0, chain.ref()) is None
    with pytest.raises(NoArchive):
        await seek_origin(node, WALLET, 0, chain.ref())


async def test_a_node_that_is_asked_too_much_may_have_an_archive() -> None:
    chain, limited = funded_at_300(), RpcError(429, "rate limit")
    node = Scripted(chain, lambda call, trip: limited if (state_at(call) or 600) < 590 else None)
    with pytest.raises(NodeFault) as raised:
        await seek_origin(node, WALLET, 0, chain.ref())
    assert type(raised.value) is NodeFault


@given(st.integers(0, 600), st.booleans())
async def test_zeros_for_a_state_that_is_gone_are_not_believed(kept_from: int, everything: bool) -> None:
    """What it still has may be enough; else nothing is said."""
    chain = funded_at_300()
    if everything:
        chain.states = [{**states, WALLET: State(0, 0)} for states in chain.states]
    node = Scripted(
        chain,
        lambda call, trip: raw("0x0") if (at := state_at(call)) is not None and at < kept_from else None,
    )
    found = await find_origin(node, WALLET, 0, chain.ref())
    assert found in ((Never(600) if everything else Found(300, 9030, FUNDER)), None)
    assert (found is None) == (kept_from > (600 if everything else 299))


async def test_zeros_for_everything_are_not_believed() -> None:
    chain = funded_at_300()
    node = Scripted(chain, lambda call, trip: None if state_at(call) is None else raw("0x0"))
    assert await find_origin(node, WALLET, 0, chain.ref()) is None


async def test_the_newest_state_for_every_block_is_not_believed() -> None:
    chain = funded_at_300()

    def newest(call: RpcCall, trip: int) -> Answer | None:
        asks = state_at(call) is not None
        return chain.answer(RpcCall(call.method, [call.params[0], hex(600)])) if asks else None

    assert await find_origin(Scripted(chain, newest), WALLET, 0, chain.ref()) is None
    assert await find_origin(Scripted(chain, newest), WALLET, 200, chain.ref()) is None


async def test_the_state_of_an_older_block_is_not_believed() -> None:
    chain = funded_at_300()

    def late(call: RpcCall, trip: int) -> Answer | None:
        at = state_at(call)
        return None if not at else chain.answer(RpcCall(call.method, [call.params[0], hex(max(at - 10, 0))]))

    assert await find_origin(Scripted(chain, late), WALLET, 0, chain.ref()) is None
    assert await find_origin(Scripted(chain, late), WALLET, 0, chain.ref(305)) is None


@pytest.mark.parametrize("number", [37, 75, 150])
async def test_answers_that_contradict_each_other_are_none(number: int) -> None:
    """Something early, nothing later: a contract that destroyed itself, or nodes of two minds."""
    chain = funded_at_300()
    for at in range(number - 36, number + 2):
        chain.states[at][WALLET] = State(0, 1)
    assert await searched(chain) is None


async def test_a_nonce_that_falls_is_none() -> None:
    chain = funded_at_300()
    for at in range(300, 450):
        chain.states[at][WALLET] = State(5, 1)
    assert await searched(chain) is None


def test_what_goes_back_is_seen() -> None:
    empty, funded, used, spent = State(0, 0), State(0, 4), State(1, 2), State(2, 0)
    assert is_monotone({4: used, 1: empty, 2: funded, 5: spent})
    assert not is_monotone({1: empty, 2: funded, 3: empty})
    assert not is_monotone({1: used, 2: funded})
    assert not is_monotone({2: used, 1: spent})


async def test_another_answer_the_second_time_is_none() -> None:
    chain = funded_at_300()
    for number, said in ((299, "0x1"), (300, "0x0")):
        seen: list[int] = []

        def other(
            call: RpcCall, trip: int, number: int = number, said: str = said, seen: list[int] = seen
        ) -> Answer | None:
            if state_at(call) != number or call.params[0] != WALLET:
                return None
            seen.append(trip)
            return raw(said) if trip > seen[0] else None

        assert await find_origin(Scripted(chain, other), WALLET, 0, chain.ref()) is None
        assert len(set(seen)) == 2, "it was asked for twice"


async def test_another_chain_by_now_is_none() -> None:
    chain = funded_at_300()
    high = chain.ref()
    assert await find_origin(Scripted(chain), WALLET, 0, high) is not None
    assert await find_origin(Scripted(chain), WALLET, 0, BlockRef(600, word(600, 7), 10**6)) is None
    empty = Chain()
    empty.pass_by(30)
    assert await find_origin(Scripted(empty), WALLET, 0, BlockRef(30, word(30, 7), 10**6)) is None

    def later(call: RpcCall, trip: int) -> Answer | None:
        """The block itself is another one the second time."""
        if call.method == "eth_getBlockByNumber" and call.params == [hex(300), False]:
            return Chain(chain.blocks, chain.states, salt=5).answer(call)
        return None

    assert await find_origin(Scripted(chain, later), WALLET, 0, high) is None


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

    assert await find_origin(Scripted(chain, other), WALLET, 0, chain.ref()) is None


@pytest.mark.parametrize("trip", [1, 2, 3, 4])
async def test_a_fault_on_any_trip_is_none(trip: int) -> None:
    chain = funded_at_300()

    def fault(call: RpcCall, now: int) -> Answer | None:
        if now == trip:
            raise NodeFault("the connection failed")
        return None

    whole = Scripted(chain)
    await find_origin(whole, WALLET, 0, chain.ref())
    assert len(whole.trips) >= trip
    assert await find_origin(Scripted(chain, fault), WALLET, 0, chain.ref()) is None


async def test_a_spent_budget_is_told() -> None:
    def spent(call: RpcCall, trip: int) -> Answer | None:
        raise ServiceFull("budget_spent", "Today's budget of chain calls is used up.", 60)

    with pytest.raises(ServiceFull):
        await find_origin(Scripted(Chain(), spent), WALLET, 0, Chain().ref())


async def test_where_nobody_sends_it_could_not_be_found_out() -> None:
    """A quiet chain shows nothing by which a node's zeros could be told from a state that is gone."""
    chain = Chain()
    chain.pass_by(30)
    for _ in range(witnesses.BEFORE + 1):
        chain.mine()
    assert await searched(chain) is None
    chain.pass_by(1)
    assert await searched(chain) == Never(48)


async def test_witnesses_are_asked_for_at_the_edge_in_the_last_trip() -> None:
    chain = funded_at_300()
    node = Scripted(chain)
    await find_origin(node, WALLET, 0, chain.ref())
    last = [(call.method, *call.params) for call in node.trips[-1]]
    for who, number in ((WALLET, 299), (WALLET, 300), (BUSY, 299)):
        assert ("eth_getTransactionCount", who, hex(number)) in last
        assert ("eth_getBalance", who, hex(number)) in last
    assert ("eth_getBlockByNumber", hex(600), False) in last
