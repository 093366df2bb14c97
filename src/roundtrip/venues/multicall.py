"""Many reads in one call, through Multicall3."""

from collections.abc import Sequence

from . import abi
from .base import Call, Contracts

AGGREGATE3 = "0x82ad56cb"
"""aggregate3((address,bool,bytes)[]): every call may fail alone. Returns (bool,bytes)[]."""


def plan_reads(calls: Sequence[Call], contracts: Contracts) -> Call:
    """One call that makes all of these."""
    items = [
        abi.word(call.to) + abi.word(True) + abi.word(3 * abi.WORD) + abi.bytes_tail(call.data)
        for call in calls
    ]
    offsets, at = "", abi.WORD * len(items)
    for item in items:
        offsets += abi.word(at)
        at += len(item) // 2
    data = AGGREGATE3 + abi.word(abi.WORD) + abi.word(len(items)) + offsets + "".join(items)
    return Call(contracts.multicall3, data)


def read_answers(data: bytes, count: int) -> tuple[bytes | None, ...] | None:
    """The answers to ``count`` calls; None in place of one that failed. None: it is no such answer."""
    if abi.uint_at(data, 0) != abi.WORD or abi.uint_at(data, 1) != count:
        return None
    body, answers = data[2 * abi.WORD :], []
    for number in range(count):
        at = abi.uint_at(body, number)
        if at is None or at > len(body):
            return None
        item = body[at:]
        ok, size = abi.uint_at(item, 0), abi.uint_at(item, 2)
        if ok is None or size is None or size > len(item) - 3 * abi.WORD:
            return None
        answers.append(item[3 * abi.WORD : 3 * abi.WORD + size] if ok else None)
    return tuple(answers)
