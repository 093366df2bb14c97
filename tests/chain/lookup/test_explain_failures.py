"""What failed, what is in no block yet, and what nobody knows."""

from dataclasses import replace
from typing import Any, cast

import pytest

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.explained import ETH, explain_tx, newest
from support.mining import by_hand
from support.nodes import nodes_of
from support.nodes import over as nodes_over
from support.wallet import PoolSpec, UnsignedStep, Wallet, calldata

BOB, EVIL = "0x" + "b0b0" * 10, "0x" + "e711" * 10


@pytest.fixture
def alice(rpc: SyncRpc, built: Built) -> Wallet:
    return Wallet(rpc, built.contracts, "alice fails")


async def test_a_failure_has_its_reason(indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet) -> None:
    plain = built.tokens["plain"]
    sent = alice.send(plain, calldata("transfer(address,uint256)", BOB, 10**40))
    assert not sent.ok
    answer = await explain_tx(indexed, newest(rpc))
    assert (answer.status, answer.kind, answer.reverts) == ("failed", "transfer", "balance too low")
    assert (answer.paid, answer.got, answer.steps) == ([], [], [])
    assert "It failed: only its fee was paid." in answer.text
    assert 'fails with "balance too low"' in answer.text
    assert answer.fee_eth == sent.gas_wei / ETH


async def test_a_routers_code_is_explained(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    """The wallet sells a token that it never had."""
    steps = alice.sell_steps(built.tokens["plain"], PoolSpec("weth", 3000), ETH)
    with by_hand(rpc):
        (tx_hash,) = alice.queue(steps[-1:], 500_000, 10**10, 10**9)
        rpc.call("evm_mine")
    answer = await explain_tx(indexed, tx_hash)
    assert (answer.status, answer.reverts) == ("failed", "STF")
    assert (
        'it fails with "STF", a code of routers and pools: the router could not take the token: the wallet '
        "holds too little of it, has not approved the router, or the token refuses the transfer."
    ) in answer.text


class _SilentHeads:
    """Those of a node that has not answered for a while."""

    def current(self) -> ChainHead:
        raise NodeFault("the node has not answered for 5 s")


async def test_a_node_that_has_not_answered_for_a_while_is_not_asked(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    """The caller would wait until the request times out."""
    alice.send(built.tokens["plain"], calldata("transfer(address,uint256)", BOB, 10**40))
    silent = replace(indexed, heads=cast(Any, _SilentHeads()), node=cast(Any, None))
    with pytest.raises(NodeFault, match="has not answered for 5 s"):
        await explain_tx(silent, newest(rpc))


async def test_a_failure_for_want_of_gas(indexed: Context, rpc: SyncRpc, alice: Wallet) -> None:
    rpc.call("anvil_setCode", BOB, "0x5b5f56")
    (tx_hash,) = alice.queue([UnsignedStep(BOB, "0x12345678")], 60_000, 10**10, 10**9)
    assert not alice.receipt(tx_hash).ok
    answer = await explain_tx(indexed, tx_hash)
    assert (answer.status, answer.reverts) == ("failed", "out of gas")
    assert "It ran out of gas: it used all of its gas limit." in answer.text


async def test_a_failure_that_cannot_be_repeated_is_said_to_be_that(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    """It fails by what comes before it in its own block: the same tokens are sent twice."""
    plain = built.tokens["plain"]
    assert alice.buy(plain, "weth", 3000, ETH // 100)
    held = alice.tokens(plain)
    pay = calldata("transfer(address,uint256)", BOB, held)
    template = alice.buy_steps(plain, PoolSpec("weth", 3000), 1)[0]
    with by_hand(rpc):
        twice = [replace(template, to=plain, data=pay, value_wei=0)] * 2
        _, tx_hash = alice.queue(twice, 200_000, 10**10, 10**9)
        rpc.call("evm_mine")
    answer = await explain_tx(indexed, tx_hash)
    assert (answer.status, answer.reverts) == ("failed", None)
    assert (
        "We could not find out why: on the state before its block it does not fail, or cannot be run."
        in answer.text
    )


async def test_what_is_in_no_block_yet(indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet) -> None:
    with by_hand(rpc):
        steps = alice.buy_steps(built.tokens["plain"], PoolSpec("weth", 3000), ETH // 10)
        (tx_hash,) = alice.queue(steps, 1_000_000, 10**10, 10**9)
        answer = await explain_tx(indexed, tx_hash)
        assert (answer.status, answer.kind) == ("pending", "trade")
        assert (answer.tx_block, answer.tx_time, answer.fee_eth) == (None, None, None)
        assert answer.text.startswith("It is not in a block yet")
        assert (answer.paid, answer.got, answer.steps) == ([], [], [])
        rpc.call("evm_mine")


async def test_a_hash_that_nobody_knows_is_not_found(indexed: Context) -> None:
    with pytest.raises(CallerFault) as raised:
        await explain_tx(indexed, "0x" + "77" * 32)
    assert raised.value.code == "not_found"


async def test_of_several_nodes_a_hash_is_asked_of_each(
    indexed: Context, rpc: SyncRpc, built: Built, alice: Wallet
) -> None:
    """And that nobody knows it is no fault of theirs."""
    both = nodes_over(indexed, rpc.url, rpc.url)
    await both.heads.refresh()
    alice.send(BOB, "0x", ETH)
    sound = await explain_tx(indexed, newest(rpc))
    for _ in range(3):
        with pytest.raises(CallerFault):
            await explain_tx(both, "0x" + "77" * 32)
        assert await explain_tx(both, newest(rpc)) == sound
    assert [state.condition for state in nodes_of(both).state()] == ["ok", "ok"]


async def test_an_instruction_that_takes_all_the_gas_is_no_want_of_it(
    indexed: Context, rpc: SyncRpc, alice: Wallet
) -> None:
    rpc.call("anvil_setCode", BOB, "0xfe")
    alice.send(BOB, "0x12345678", 5)
    answer = await explain_tx(indexed, newest(rpc))
    assert (answer.status, answer.reverts) == ("failed", None)
    assert "it ran out, or hit an instruction that takes all of it" in answer.text
    assert f"{alice.address} tried to call" in answer.text


async def test_what_failed_was_tried_and_what_is_pending_is_wanted(
    indexed: Context, rpc: SyncRpc, alice: Wallet
) -> None:
    rpc.call("anvil_setCode", BOB, "0x5f5ffd")
    alice.send(BOB, "0x", ETH)
    failed = await explain_tx(indexed, newest(rpc))
    assert f"{alice.address} tried to send 1 eth to {BOB}." in failed.text
    with by_hand(rpc):
        steps = [UnsignedStep(EVIL, "0x", ETH), UnsignedStep(BOB, "0xdeadbeef")]
        pending = [await explain_tx(indexed, one) for one in alice.queue(steps, 100_000, 10**10, 10**9)]
        rpc.call("evm_mine")
    assert f"{alice.address} wants to send 1 eth to {EVIL}." in pending[0].text
    assert f"{alice.address} wants to call the unknown contract {BOB}" in pending[1].text


@pytest.mark.parametrize("code", ["0x", "0xef0100" + "b0" * 20])
async def test_a_wallet_is_not_called_a_contract(
    indexed: Context, rpc: SyncRpc, alice: Wallet, code: str
) -> None:
    rpc.call("anvil_setCode", EVIL, code)
    with by_hand(rpc):
        (tx_hash,) = alice.queue([UnsignedStep(EVIL, "0xdeadbeef")], 100_000, 10**10, 10**9)
        pending = await explain_tx(indexed, tx_hash)
        rpc.call("evm_mine")
    assert f"wants to call the unknown address {EVIL}" in pending.text
    assert f"called the unknown address {EVIL}" in (await explain_tx(indexed, tx_hash)).text
