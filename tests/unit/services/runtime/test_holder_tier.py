"""Whose wallet holds enough of the service's own token, under a clock that stands still until it is moved."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.rpc.client import RpcCall, RpcError, RpcNode
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.services.runtime.holder_tier import HolderTier
from support.clocks import Clock
from unit.chain.samples import raw, word

TOKEN = Address("0x" + "70" * 20)
WALLET = Address("0x" + "a1" * 20)
OTHER = Address("0x" + "b2" * 20)
REVERTED = RpcError(3, "execution reverted")
ENOUGH = 100_000 * 10**18


class Head:
    block = BlockRef(7, "0x" + "07" * 32, 1)


class BalanceNode:
    """A head, and a node that answers ``balance`` and ``decimals``; waits for ``gate``, and counts."""

    def __init__(self) -> None:
        self.balance: Any = ENOUGH
        self.decimals: Any = 18
        self.fault: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked: list[Sequence[RpcCall]] = []

    def current(self) -> Head:
        return Head()

    async def batch(self, calls: Sequence[RpcCall]) -> list[msgspec.Raw | RpcError]:
        self.asked.append(calls)
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return [_answer(self.balance), _answer(self.decimals)]


def _answer(value: Any) -> msgspec.Raw | RpcError:
    if isinstance(value, RpcError):
        return value
    return raw("0x" + (value if isinstance(value, bytes) else word(value)).hex())


@pytest.fixture
def chain() -> BalanceNode:
    return BalanceNode()


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def own(chain: BalanceNode, clock: Clock) -> HolderTier:
    node, heads = cast(RpcNode, chain), cast(Heads, chain)
    return HolderTier(TOKEN, 100_000, node, heads, 1_000_000, clock)


async def test_enough_is_enough_and_one_unit_less_is_not(own: HolderTier, chain: BalanceNode) -> None:
    assert await own.is_holder(WALLET)
    chain.balance -= 1
    assert not await own.is_holder(OTHER)
    balance, decimals = chain.asked[0]
    assert balance.params == [
        {"to": TOKEN, "data": "0x70a08231" + ("a1" * 20).rjust(64, "0"), "gas": hex(1_000_000)},
        {"blockHash": Head.block.hash},
    ]
    assert decimals.params[1] == {"blockHash": Head.block.hash}


@pytest.mark.parametrize(
    ("balance", "decimals"),
    [
        (REVERTED, 18),
        (ENOUGH, REVERTED),
        (b"", 18),
        (b"\x01", 18),
        (ENOUGH, b""),
        (2**256 - 1, 255),
        (2**256 - 1, 78),
        (2**256 - 1, 2**255),
        (0, 0),
    ],
)
async def test_a_token_that_does_not_tell_makes_nobody_a_holder(
    own: HolderTier, chain: BalanceNode, balance: Any, decimals: Any
) -> None:
    chain.balance, chain.decimals = balance, decimals
    assert not await own.is_holder(WALLET)
    assert await own.is_holder(WALLET) is False
    assert len(chain.asked) == 1


async def test_it_is_asked_once_a_minute_and_beside_the_call(
    own: HolderTier, chain: BalanceNode, clock: Clock
) -> None:
    for clock.now_s in (1000.0, 1030.0, 1059.9):
        assert await own.is_holder(WALLET)
    assert len(chain.asked) == 1
    clock.now_s, chain.balance = 1060.0, 0
    chain.gate.clear()
    assert await own.is_holder(WALLET)
    assert await own.is_holder(WALLET)
    chain.gate.set()
    await own.wait_for_reads()
    assert not await own.is_holder(WALLET)
    assert len(chain.asked) == 2


async def test_of_fifty_calls_at_once_one_asks(own: HolderTier, chain: BalanceNode) -> None:
    came = await asyncio.gather(*(own.is_holder(WALLET) for _ in range(50)))
    assert (came, len(chain.asked)) == ([True] * 50, 1)


async def test_a_node_that_takes_long_holds_up_nobody(own: HolderTier, chain: BalanceNode) -> None:
    """Until it answers nothing is held."""
    own.first_wait_s = 0.0
    chain.gate.clear()
    assert not await own.is_holder(WALLET)
    chain.gate.set()
    await own.wait_for_reads()
    assert await own.is_holder(WALLET)


async def test_a_node_that_fails_leaves_what_was_known_for_five_minutes(
    own: HolderTier, chain: BalanceNode, clock: Clock
) -> None:
    assert await own.is_holder(WALLET)
    chain.fault = NodeFault("it took too long")
    for clock.now_s in (1060.0, 1120.0, 1299.9):
        assert await own.is_holder(WALLET)
        await own.wait_for_reads()
    clock.now_s = 1300.0
    assert not await own.is_holder(WALLET)
    chain.fault = None
    clock.now_s = 1360.0
    assert await own.is_holder(WALLET)


async def test_a_node_that_never_answered_makes_nobody_a_holder(own: HolderTier, chain: BalanceNode) -> None:
    chain.fault = NodeFault("it is gone")
    assert [await own.is_holder(WALLET) for _ in range(5)] == [False] * 5
    assert len(chain.asked) == 1


async def test_only_so_many_are_asked_for_at_once(own: HolderTier, chain: BalanceNode) -> None:
    own.first_wait_s = 0.0
    chain.gate.clear()
    wallets = [Address(f"0x{n:040x}") for n in range(20)]
    assert [await own.is_holder(wallet) for wallet in wallets] == [False] * 20
    assert len(chain.asked) <= 16
    chain.gate.set()
    await own.wait_for_reads()
    own.first_wait_s = 10.0
    assert [await own.is_holder(wallet) for wallet in wallets] == [True] * 20
    assert len(chain.asked) == 20
