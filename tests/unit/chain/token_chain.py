"""A scripted chain with one token's transfers and trades."""

import contextlib
from collections.abc import Sequence

from roundtrip.chain.holders.token_logs import LogSources, TokenSpan, VenueSides, new_width, token_spans
from roundtrip.chain.rpc.client import RpcCall
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues.base import Log
from support.scripted_chain import FIRST_TIME_S, Answers, ScriptedChain
from unit.venues import logs
from unit.venues.logs import NETWORK
from unit.venues.network import address

TOKEN, CURVE, POOL, OTHER = address(0x70CE), address(0xC0), address(0xB3), address(0x07)


A, B, C, ZERO = address(0xABCDEF), address(0xBB), address(0xCC), address(0)


LOW_ID, HIGH_ID, STRANGE_ID = ("0x" + two * 32 for two in ("1d", "2d", "3d"))


HOOK, MANAGER = NETWORK.launchpad_hook, NETWORK.v4_pool_manager


SOURCES = LogSources(
    TOKEN,
    {
        CURVE: VenueSides("launchpad_curve", False, ZERO),
        POOL: VenueSides("amm_v3", True, NETWORK.weth),
        LOW_ID: VenueSides("amm_v4", True, NETWORK.usdg),
        HIGH_ID: VenueSides("launchpad_pool", False, ZERO),
    },
    NETWORK,
)


PRICE = 2**96


def moved(sender: Address, to: Address, raw: int, token: Address = TOKEN) -> Log:
    return logs.TRANSFER.log(token, sender, to, raw)


def v3(amount0: int, amount1: int, pool: Address = POOL, sender: Address = A) -> Log:
    return logs.V3_SWAP.log(pool, sender, A, amount0, amount1, PRICE, 1, 5)


def v4(at: str, amount0: int, amount1: int, sender: Address = A) -> Log:
    """Amounts as the swapper's."""
    return logs.V4_SWAP.log(MANAGER, bytes.fromhex(at[2:]), sender, amount0, amount1, PRICE, 1, 5, 3000)


MINT, MOVE, BACK = moved(ZERO, A, 1000), moved(A, B, 10), moved(B, A, 2**256 - 1)


CURVE_BUY = logs.CURVE_BUY.log(CURVE, A, B, 70, 7, 1, 2)


V3_BUY, V3_SELL = v3(-9, 90), v3(11, -110)


LOW_BUY, HIGH_SELL = v4(LOW_ID, 12, -120), v4(HIGH_ID, 130, -13)


def odd(*topics: str, data: bytes = b"", emitter: Address = TOKEN) -> Log:
    return Log(emitter, topics, data)


CURVE_SELL = logs.CURVE_SELL.log(CURVE, A, B, 8, 80, 1, 2)


NOISE = moved(A, B, 5, OTHER)


NOT_ASKED = odd("0x" + "77" * 32)


LAST = 5


def chain() -> ScriptedChain:
    """Blocks 0 to 5: the second has three transactions of the token, the fourth one, the last one another."""
    made = ScriptedChain(1, blocks=1)
    made.mine([NOISE])
    made.mine([NOISE, MINT, NOT_ASKED], [NOISE], [MOVE, V3_BUY, LOW_BUY, BACK], [CURVE_BUY, HIGH_SELL, MOVE])
    made.mine()
    made.mine([NOT_ASKED], [CURVE_SELL, V3_SELL])
    made.mine([BACK])
    return made


def ref(made: ScriptedChain, number: int) -> BlockRef:
    return BlockRef(number, made.hash_of(number), FIRST_TIME_S + number)


def silent(calls: Sequence[RpcCall], answers: Answers) -> None:
    """A node whose logs do not tell when their block was made."""
    for call, answer in zip(calls, answers, strict=True):
        for log in answer if call.method == "eth_getLogs" else ():
            del log["blockTimestamp"]


async def read_spans(
    made: ScriptedChain, first: int, last: BlockRef, parent: str | None = None
) -> list[TokenSpan]:
    stream = token_spans(made, SOURCES, first, last, new_width(), parent_hash=parent)
    async with contextlib.aclosing(stream):
        return [span async for span in stream]
