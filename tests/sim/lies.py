"""How a node's answers are wrong: each fault takes a batch's calls and right answers and gives wrong ones.

A fault gives None where it does not apply to such a batch. What is left out, because nobody who reads blocks
and logs can see it: altered data of a log and altered contents of a transaction, an order of topics, and the
last log of a block left out where the block's bloom is the same without it. Whoever believes a node that
makes these up is lied to in a way that only receipts and signatures would tell.
"""

import copy
from collections.abc import Callable
from random import Random
from typing import Any

Batch = list[dict[str, Any]]
Lie = Callable[[Random, Batch, Batch], Batch | None]

FAR = 5000
"""Blocks by which a head is wrong at most."""


def _twisted(answers: Batch, place: int, result: Any) -> Batch:
    changed = list(answers)
    changed[place] = {**answers[place], "result": result}
    return changed


def _of(method: str, request: Batch, answers: Batch) -> list[int]:
    """The places of the answers to calls of ``method`` that have a result."""
    methods = {call["id"]: call["method"] for call in request}
    return [n for n, one in enumerate(answers) if one.get("result") and methods.get(one["id"]) == method]


def _logs(rng: Random, request: Batch, answers: Batch) -> tuple[int, list[Any]] | None:
    """Where logs stand, and a copy of them."""
    places = _of("eth_getLogs", request, answers)
    if not places:
        return None
    place = rng.choice(places)
    return place, copy.deepcopy(answers[place]["result"])


def _one_log(change: Callable[[Random, list[Any], int], None]) -> Lie:
    def lie(rng: Random, request: Batch, answers: Batch) -> Batch | None:
        if (found := _logs(rng, request, answers)) is None:
            return None
        place, logs = found
        change(rng, logs, rng.randrange(len(logs)))
        return _twisted(answers, place, logs)

    return lie


def _one_block(change: Callable[[Random, dict[str, Any]], None]) -> Lie:
    def lie(rng: Random, request: Batch, answers: Batch) -> Batch | None:
        places = [
            *_of("eth_getBlockByNumber", request, answers),
            *_of("eth_getBlockByHash", request, answers),
        ]
        if not places:
            return None
        place = rng.choice(places)
        block = dict(answers[place]["result"])
        change(rng, block)
        return _twisted(answers, place, block)

    return lie


def _word(rng: Random, length: int = 32) -> str:
    return "0x" + rng.randbytes(length).hex()


# --- logs ------------------------------------------------------------------------------------------


def _is_missed(log: dict[str, Any], logs: list[Any]) -> bool:
    """Whether a block's logs without this one are seen to be too few: by a gap, or by the bloom."""
    others = [one for one in logs if one["blockHash"] == log["blockHash"] and one is not log]
    if any(int(one["logIndex"], 16) > int(log["logIndex"], 16) for one in others):
        return True
    result = {one["address"] for one in others} | {topic for one in others for topic in one["topics"]}
    return not result.issuperset([log["address"], *log["topics"]])


def _log_missing(rng: Random, request: Batch, answers: Batch) -> Batch | None:
    if (found := _logs(rng, request, answers)) is None:
        return None
    place, logs = found
    gone = rng.choice(logs)
    if not _is_missed(gone, logs):
        return None
    return _twisted(answers, place, [log for log in logs if log is not gone])


def _logs_cut_short(rng: Random, request: Batch, answers: Batch) -> Batch | None:
    """As by a node that gives so many at once and no more: the last blocks have none."""
    if (found := _logs(rng, request, answers)) is None:
        return None
    place, logs = found
    last = int(rng.choice(logs)["blockNumber"], 16)
    return _twisted(answers, place, [log for log in logs if int(log["blockNumber"], 16) < last])


def _no_logs(rng: Random, request: Batch, answers: Batch) -> Batch | None:
    found = _logs(rng, request, answers)
    return _twisted(answers, found[0], []) if found else None


def _doubled(rng: Random, logs: list[Any], place: int) -> None:
    logs.insert(rng.randrange(len(logs) + 1), logs[place])


def _topic(rng: Random, logs: list[Any], place: int) -> None:
    if logs[place]["topics"]:
        logs[place]["topics"][rng.randrange(len(logs[place]["topics"]))] = _word(rng)
    else:
        logs[place]["address"] = _word(rng, 20)


def _address(rng: Random, logs: list[Any], place: int) -> None:
    logs[place]["address"] = _word(rng, 20)


def _transaction(rng: Random, logs: list[Any], place: int) -> None:
    logs[place]["transactionHash"] = _word(rng)


def _other_hash(rng: Random, logs: list[Any], place: int) -> None:
    logs[place]["blockHash"] = _word(rng)


def _next_block(rng: Random, logs: list[Any], place: int) -> None:
    logs[place]["blockNumber"] = hex(int(logs[place]["blockNumber"], 16) + 1)


def _removed(rng: Random, logs: list[Any], place: int) -> None:
    logs[place]["removed"] = True


# --- blocks ----------------------------------------------------------------------------------------


def _hash(rng: Random, block: dict[str, Any]) -> None:
    block["hash"] = _word(rng)


def _parent(rng: Random, block: dict[str, Any]) -> None:
    block["parentHash"] = _word(rng)


def _bloom(rng: Random, block: dict[str, Any]) -> None:
    block["logsBloom"] = _word(rng, 256)


def _number(rng: Random, block: dict[str, Any]) -> None:
    block["number"] = hex(int(block["number"], 16) + rng.choice((-1, 1)))


def _head(higher: bool) -> Lie:
    """Another head than there is. Its hash is made up, so that it stands on no fork."""

    def lie(rng: Random, request: Batch, answers: Batch) -> Batch | None:
        by_id = {call["id"]: call for call in request}
        for place, answer in enumerate(answers):
            call, found = by_id.get(answer["id"], {}), answer.get("result")
            far = rng.randrange(1, FAR) if higher else -rng.randrange(1, FAR)
            if call.get("method") == "eth_blockNumber" and found:
                return _twisted(answers, place, hex(max(0, int(found, 16) + far)))
            if call.get("method") == "eth_getBlockByNumber" and call["params"][0] == "latest" and found:
                block = {**found, "number": hex(max(0, int(found["number"], 16) + far)), "hash": _word(rng)}
                return _twisted(answers, place, block)
        return None

    return lie


# --- answers ---------------------------------------------------------------------------------------


def _null(rng: Random, request: Batch, answers: Batch) -> Batch:
    return _twisted(answers, rng.randrange(len(answers)), None)


def _error(code: int, message: str) -> Lie:
    def lie(rng: Random, request: Batch, answers: Batch) -> Batch:
        place = rng.randrange(len(answers))
        refused = {"jsonrpc": "2.0", "id": answers[place]["id"], "error": {"code": code, "message": message}}
        return [refused if n == place else one for n, one in enumerate(answers)]

    return lie


def _chain(rng: Random, request: Batch, answers: Batch) -> Batch | None:
    places = _of("eth_chainId", request, answers)
    return _twisted(answers, places[0], "0x1") if places else None


def _moved_on(rng: Random, request: Batch, answers: Batch) -> Batch | None:
    """Every answer under the next one's id."""
    ids = [answer["id"] for answer in answers]
    moved = [{**one, "id": other} for one, other in zip(answers, [*ids[1:], ids[0]], strict=True)]
    return moved if len(ids) > 1 else None


def _doubled_answer(rng: Random, request: Batch, answers: Batch) -> Batch:
    return [*answers, rng.choice(answers)]


def _one_id(rng: Random, request: Batch, answers: Batch) -> Batch | None:
    return [{**one, "id": answers[0]["id"]} for one in answers] if len(answers) > 1 else None


LIES: dict[str, Lie] = {
    "a log missing": _log_missing,
    "logs cut short": _logs_cut_short,
    "no logs": _no_logs,
    "a log doubled": _one_log(_doubled),
    "another topic": _one_log(_topic),
    "another address": _one_log(_address),
    "another transaction's log": _one_log(_transaction),
    "a log of a block that is no more": _one_log(_other_hash),
    "a log of the next block": _one_log(_next_block),
    "a removed log": _one_log(_removed),
    "another block hash": _one_block(_hash),
    "another parent": _one_block(_parent),
    "another bloom": _one_block(_bloom),
    "another number": _one_block(_number),
    "a head far too high": _head(higher=True),
    "a head far too low": _head(higher=False),
    "one null": _null,
    "all null": lambda rng, request, answers: [{**one, "result": None} for one in answers],
    "not found": _error(-32000, "header not found"),
    "a range too large": _error(-32005, "query returned more than 10000 results"),
    "internal error": _error(-32603, "internal error"),
    "another chain": _chain,
    "answers moved on": _moved_on,
    "an answer doubled": _doubled_answer,
    "one id for all": _one_id,
    "half the answers": lambda rng, request, answers: answers[::2] if len(answers) > 1 else None,
    "no answers": lambda rng, request, answers: [],
}
"""By name."""
