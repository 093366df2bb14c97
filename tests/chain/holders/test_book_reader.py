"""The life of a read on the real local chain: begun, gone on with as a job or by others, begun anew."""

from dataclasses import replace

import msgspec
import pytest

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.rpc.client import RpcCall
from roundtrip.domain.base.errors import NodeFault, ReadFailed
from roundtrip.domain.holders.book import WINDOW_BLOCKS
from roundtrip.services.holders.handlers import launch_bundle, token_holders
from roundtrip.services.runtime import book_cache
from roundtrip.services.runtime.book_cache import ReadBounds
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.holding import HoldersStage
from support.reading import RANGE, ReadingService, launched, trade
from support.recording import filter_of

# --- a busy token ----------------------------------------------------------------------------------


async def test_of_a_busy_token_the_launch_is_told_at_once_and_all_of_it_later(
    service: ReadingService, busy: None
) -> None:
    held, one = launched(service.stage), service.process()
    first = await one.asked(held.token)
    assert first["status"] == "reading"
    assert first["launch"]["windowBlocks"] == WINDOW_BLOCKS
    assert (first["bundle"]["wallets"], first["bundle"]["sameTransaction"]) == (3, True)
    assert first["bundle"]["heldBps"] == first["bundle"]["boughtBps"] > 0
    assert (first["holders"], first["top"], first["snipers"], first["deployer"]) == (None, [], None, None)
    assert (first["smartMoney"], first["repeatCrowd"]) == (None, None)
    assert 0 < first["transfersRead"] < held.transfers()
    assert await service.jobs() == [("holders", held.token)]
    assert await service.done(one) > 1
    last = await one.asked(held.token)
    assert last["status"] == "complete"
    assert last["transfersRead"] == held.transfers()
    assert last == await service.fresh(held.token)
    assert {name: last[name] for name in ("launch", "bundle")} == {
        name: first[name] for name in ("launch", "bundle")
    }


async def test_a_process_that_dies_leaves_its_pieces_to_the_next(service: ReadingService, busy: None) -> None:
    held, one = launched(service.stage), service.process()
    await one.asked(held.token)
    await one.work()
    kept = await service.kept(held.token)
    assert kept is not None
    assert kept.state == "reading"
    other = service.process()
    assert (await other.asked(held.token))["transfersRead"] == kept.transfers
    assert await service.done(other) > 0
    assert min(first for first, _ in other.node.spans) == kept.block.number + 1
    found = await other.asked(held.token)
    assert found["status"] == "complete"
    assert found == await service.fresh(held.token)


async def test_what_another_process_has_read_is_told(service: ReadingService, busy: None) -> None:
    held, one, other = launched(service.stage), service.process(), service.process()
    assert (await one.asked(held.token))["status"] == "reading"
    await service.done(other)
    one.node.spans.clear()
    found = await one.asked(held.token)
    assert found["status"] == "complete"
    assert one.node.spans == []
    assert found == await service.fresh(held.token)


async def test_only_what_is_new_is_read(service: ReadingService) -> None:
    held, one = launched(service.stage), service.process()
    first = await one.asked(held.token)
    read_to = service.stage.number()
    trade(held, 3, "late")
    for process in (one, service.process()):
        process.node.spans.clear()
        found = await process.asked(held.token)
        assert found["transfersRead"] == held.transfers() > first["transfersRead"]
        assert min(block for block, _ in process.node.spans) == read_to + 1
        assert found == await one.asked(held.token)
    assert await one.asked(held.token) == await service.fresh(held.token)


async def test_of_a_launch_whose_window_is_not_read_nothing_is_told(
    service: ReadingService, busy: None
) -> None:
    service.limits.new_width = lambda: Width(2, 2)
    service.limits.at_once = ReadBounds(1, 60.0)
    held, one = launched(service.stage), service.process()
    found = await one.asked(held.token)
    assert (found["status"], found["launch"], found["bundle"]) == ("reading", None, None)
    bundle = await launch_bundle(one.ctx, TokenParams(held.token))
    assert (bundle.answer.launch, bundle.answer.buyers, bundle.answer.groups) == (None, None, [])
    assert "No wallet bought" not in bundle.answer.text
    await service.done(one)
    assert await one.asked(held.token) == await service.fresh(held.token)


# --- another history -------------------------------------------------------------------------------


@pytest.mark.parametrize("reading", [True, False], ids=["while it is read", "when it was read"])
async def test_what_was_read_of_a_chain_that_is_gone_is_thrown_away(
    service: ReadingService, busy: None, reading: bool
) -> None:
    stage = service.stage
    held, one = launched(stage), service.process()
    before = stage.rpc.call("evm_snapshot")
    trade(held, 20, "gone")
    stage.pass_blocks(2 * RANGE)
    trade(held, 6, "gone, too")
    await one.asked(held.token)
    if reading:
        while (kept := await service.kept(held.token)) and kept.transfers < 40:
            await one.work()
    else:
        await service.done(one)
    kept = await service.kept(held.token)
    assert kept is not None
    assert kept.state == ("reading" if reading else "whole")
    assert stage.rpc.call("evm_revert", before)
    trade(held, 2, "instead")
    stage.pass_blocks(300)
    other = service.process()
    for process in (one, other):
        first = await process.asked(held.token)
        assert first["status"] == "reading" or process == other
        await service.done(other)
        assert (await process.asked(held.token))["transfersRead"] == held.transfers()
    found = [await one.asked(held.token), await other.asked(held.token)]
    assert found == [await service.fresh(held.token)] * 2


@pytest.mark.parametrize("large", [True, False], ids=["large", "small"])
async def test_a_node_that_has_not_got_so_far_may_be_behind(service: ReadingService, large: bool) -> None:
    """A small book is read again as the chain is now; a large one waits until the node gets there."""
    stage = service.stage
    held, one = launched(stage), service.process()
    before = stage.rpc.call("evm_snapshot")
    trade(held, 3, "gone")
    await one.asked(held.token)
    assert stage.rpc.call("evm_revert", before)
    stage.pass_blocks(1)
    if large:
        service.limits.at_once = ReadBounds(held.transfers() - 1, 60.0)
        for process in (one, service.process()):
            with pytest.raises(NodeFault, match="it is behind the block up to which"):
                await process.asked(held.token)
        kept = await service.kept(held.token)
        assert kept is not None
        assert kept.transfers > held.transfers()
        stage.pass_blocks(10)
        service.limits.at_once = ReadBounds(10**9, 60.0)
    found = [await one.asked(held.token), await service.process().asked(held.token)]
    assert found == [await service.fresh(held.token)] * 2


def header_of(stage: HoldersStage, number: int) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(stage.rpc.call("eth_getBlockByNumber", hex(number), False)))


async def test_a_book_that_what_is_new_does_not_follow_is_begun_anew(service: ReadingService) -> None:
    """Of several nodes one may still say that its block is there."""
    stage = service.stage
    held, one = launched(stage), service.process()
    before = stage.rpc.call("evm_snapshot")
    trade(held, 5, "gone")
    await one.asked(held.token)
    number = stage.number()
    old = [header_of(stage, number)] * 2
    assert stage.rpc.call("evm_revert", before)
    trade(held, 2, "instead")
    stage.pass_blocks(5)
    trade(held, 2, "later")

    def stale(call: RpcCall) -> msgspec.Raw | None:
        is_it = call.method == "eth_getBlockByNumber" and call.params[0] == hex(number)
        return old.pop() if is_it and old else None

    one.node.instead = stale
    found = await one.asked(held.token)
    assert not old
    kept = await service.kept(held.token)
    assert kept is not None
    assert kept.block.number == stage.number()
    assert found == await service.fresh(held.token)


@pytest.mark.parametrize("again", [True, False], ids=["with what was read before", "from the beginning"])
async def test_a_chain_that_changes_while_it_is_read_is_not_mixed(
    service: ReadingService, again: bool
) -> None:
    # Where all else is slow, it is read to its end all the same.
    service.limits.at_once = ReadBounds(10**9, 60.0)
    stage = service.stage
    held, one = launched(stage), service.process()
    if again:
        await one.asked(held.token)
    before = stage.rpc.call("evm_snapshot")
    for part in range(6):
        trade(held, 3, f"gone {part}")
        stage.pass_blocks(RANGE)
    changes = [stage.number() - RANGE]

    def changing(call: RpcCall) -> None:
        """The chain becomes another one as its last range is asked for."""
        if (
            call.method == "eth_getLogs"
            and changes
            and f"{changes[0]:#x}" <= str(filter_of(call).get("toBlock"))
        ):
            changes.clear()
            assert stage.rpc.call("evm_revert", before)
            stage.pass_blocks(RANGE)
            trade(held, 4, "instead")
            stage.pass_blocks(7 * RANGE)

    one.node.instead = changing
    with pytest.raises(ReadFailed) as failed:
        await one.asked(held.token)
    assert not changes
    assert failed.value.code == "holders_failed"
    found = await one.asked(held.token)
    assert (found["status"], found["transfersRead"]) == ("complete", held.transfers())
    assert found == await service.fresh(held.token)


async def test_what_is_read_may_stay_behind_the_head(indexed: Context, rpc: SyncRpc, built: Built) -> None:
    """Of a chain whose nodes tell of a block before they have its logs."""
    rpc.call("anvil_mine", "0xa")
    await indexed.heads.refresh()
    head = indexed.heads.current().block.number
    ctx = replace(indexed, books=book_cache.BookCache(behind_blocks=5))
    answer = (await token_holders(ctx, TokenParams(built.tokens["curve"]))).answer
    assert (answer.status, answer.block) == ("complete", head - 5)
