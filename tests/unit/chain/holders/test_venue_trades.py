"""Whether venues had trades in a range, of nodes that give few blocks at once, or none."""

import contextlib
from collections.abc import Sequence

import pytest

from roundtrip.chain.blocks import block_ranges
from roundtrip.chain.blocks.spans import BlockTooLarge, HistoryPruned
from roundtrip.chain.holders.token_logs import IDS_A_CALL, LogSources, VenueSides, new_width
from roundtrip.chain.holders.venue_trades import CountedTrades, venue_trades
from roundtrip.chain.rpc.client import NodeAnswerTooLarge, RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault
from support.recording import filter_of
from support.scripted_chain import Answers, ScriptedChain
from unit.chain.token_chain import CURVE, CURVE_BUY, LOW_BUY, LOW_ID, MOVE, POOL, SOURCES, V3_BUY

LAST = 2_000


def chain() -> ScriptedChain:
    """Block 1,000 has a trade on the pool, one on the curve and one at the id; each block before it moves."""
    made = ScriptedChain(1, blocks=1, most_logs=0)
    for number in range(1, LAST + 1):
        made.mine([V3_BUY, CURVE_BUY, LOW_BUY] if number == 1_000 else [MOVE])
    return made


async def read(
    made: ScriptedChain,
    venues: Sequence[str],
    first: int = 1,
    last: int = LAST,
    sources: LogSources = SOURCES,
) -> list[CountedTrades]:
    stream = venue_trades(made, sources, venues, first, last, new_width())
    async with contextlib.aclosing(stream):
        return [one async for one in stream]


@pytest.mark.parametrize("venues", [[POOL], [CURVE], [LOW_ID], [POOL, LOW_ID]])
@pytest.mark.parametrize("most_blocks", [None, 7])
async def test_trades_are_told_of_the_range_that_has_them(venues: list[str], most_blocks: int | None) -> None:
    made = chain()
    made.most_blocks = most_blocks
    found = await read(made, venues)
    assert found[-1].last == LAST
    (traded,) = (one for one in found if one.trades)
    before = max((one.last for one in found if one.last < traded.last), default=0)
    assert (before < 1_000 <= traded.last, traded.trades) == (True, len(venues))
    assert not any(one.trades for one in await read(made, venues, 1_001))


async def test_ids_are_asked_for_some_at_a_time() -> None:
    ids = [f"0x{number:064x}" for number in range(IDS_A_CALL)]
    venues = {at: VenueSides("amm_v4", True, SOURCES.token) for at in [*ids, LOW_ID]}
    made = chain()
    assert (
        sum(
            one.trades
            for one in await read(
                made, list(venues), sources=LogSources(SOURCES.token, venues, SOURCES.contracts)
            )
        )
        == 1
    )
    asked = [filter_of(call)["topics"][1] for call in made.asked[0] if call.method == "eth_getLogs"]
    assert [len(one) for one in asked] == [IDS_A_CALL, 1]


async def test_what_is_gone_is_not_taken_for_empty() -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[0] = RpcError(4444, "pruned history unavailable")

    made.twist = twist
    with pytest.raises(HistoryPruned):
        await read(made, [POOL])


async def test_one_block_that_is_too_large_is_told_as_such() -> None:
    made = chain()

    async def before(calls: Sequence[RpcCall]) -> None:
        asked = filter_of(calls[0])
        if int(asked["fromBlock"], 16) <= 1_000 <= int(asked["toBlock"], 16):
            raise NodeAnswerTooLarge("the node's answer is too large to read")

    made.before = before
    with pytest.raises(BlockTooLarge):
        await read(made, [POOL])


@pytest.mark.parametrize("strange", ["7", None], ids=["no list", "no block"])
async def test_who_says_nothing_has_not_said_that_there_are_none(
    monkeypatch: pytest.MonkeyPatch, strange: str | None
) -> None:
    monkeypatch.setattr(block_ranges, "MAX_TRIES", 1)
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[0 if strange else -1] = strange

    made.twist = twist
    with pytest.raises(NodeFault):
        await read(made, [POOL], 5, 5)
