"""Which dialect an answer shows: samples as each kind of node gives them, written by us."""

from typing import Any

import pytest

from roundtrip.chain.rpc.client import RpcError
from roundtrip.chain.rpc.dialect import ANVIL, GETH, NITRO
from roundtrip.chain.rpc.dialect_probe import REVERTED_WITH, TELLER, number_call, probe_call, read_probe
from roundtrip.domain.base.errors import NodeFault
from unit.chain.samples import PINNED, raw

FIRST, LAST, TIME_S = PINNED.number + 1, PINNED.number + 4, PINNED.timestamp_s + 37
PARENT = 21_000_000


def words(*values: int) -> str:
    return "0x" + "".join(format(value, "064x") for value in values)


def told(number: int) -> dict[str, Any]:
    return {"status": "0x1", "gasUsed": "0x5300", "returnData": words(number, TIME_S), "logs": []}


def failed(code: int, message: str, data: str | None = None, returned: str = "0x") -> dict[str, Any]:
    error = {"code": code, "message": message} | ({"data": data} if data is not None else {})
    return {"status": "0x0", "gasUsed": "0x5208", "returnData": returned, "logs": [], "error": error}


def answer(last: list[dict[str, Any]], fillers: bool) -> list[dict[str, Any]]:
    blocks = [{"number": hex(FIRST), "timestamp": hex(PINNED.timestamp_s + 1), "calls": [last[0]]}]
    if fillers:
        blocks += [
            {"number": hex(FIRST + n), "timestamp": hex(PINNED.timestamp_s + 1 + n), "calls": []}
            for n in (1, 2)
        ]
    return [*blocks, {"number": hex(LAST), "timestamp": hex(TIME_S), "calls": last}]


ANVILS = answer(
    [told(LAST), failed(-3200, "execution failed", None, REVERTED_WITH), failed(-3200, "execution failed")],
    fillers=False,
)
GETHS = answer(
    [told(LAST), failed(3, "execution reverted", REVERTED_WITH), failed(-32015, "out of gas")], fillers=True
)
NITROS = answer(
    [told(PARENT), failed(3, "execution reverted", REVERTED_WITH), failed(-32015, "out of gas")], fillers=True
)


HERE, ABOVE = raw(words(PINNED.number, TIME_S)), raw(words(PARENT, TIME_S))


def test_the_request_is_of_two_blocks_with_a_gap_between() -> None:
    call = probe_call(PINNED, 100)
    assert call.method == "eth_simulateV1"
    blocks = call.params[0]["blockStateCalls"]  # type: ignore[index]
    assert [int(block["blockOverrides"]["number"], 16) for block in blocks] == [FIRST, LAST]
    assert [int(block["blockOverrides"]["time"], 16) for block in blocks] == [PINNED.timestamp_s + 1, TIME_S]
    assert call.params[1] == {"blockHash": PINNED.hash}


@pytest.mark.parametrize(
    ("sample", "dialect", "inside", "fills"),
    [(ANVILS, ANVIL, LAST, False), (GETHS, GETH, LAST, True), (NITROS, NITRO, PARENT, True)],
    ids=["anvil", "geth", "nitro"],
)
def test_a_dialect_is_known_by_its_answers(sample: Any, dialect: Any, inside: int, fills: bool) -> None:
    found = read_probe(raw(sample), ABOVE if dialect is NITRO else HERE, PINNED)
    assert (found.dialect, found.number_inside, found.timestamp_inside) == (dialect, inside, TIME_S)
    assert found.fills_gaps is fills


@pytest.mark.parametrize(
    "odd",
    [
        RpcError(-32601, "the method eth_simulateV1 does not exist"),
        raw([]),
        raw("0x"),
        raw(ANVILS[:1]),
        raw([{**ANVILS[1], "calls": ANVILS[1]["calls"][:2]}]),
        raw(answer([told(LAST), told(LAST), told(LAST)], fillers=False)),
        raw(answer([told(LAST), failed(3, "execution reverted"), failed(3, "out of gas")], fillers=False)),
    ],
)
def test_an_answer_of_another_kind_is_no_dialect(odd: Any) -> None:
    with pytest.raises(NodeFault):
        read_probe(odd, HERE, PINNED)


def test_a_node_that_tells_no_numbers_inside_is_not_taken_to_count_them() -> None:
    silent = failed(3, "execution reverted", "0x")
    found = read_probe(raw(answer([silent, *GETHS[-1]["calls"][1:]], fillers=True)), HERE, PINNED)
    assert (found.dialect, found.number_inside) == (NITRO, None)


@pytest.mark.parametrize("sample", [ANVILS, GETHS], ids=["anvil", "geth"])
@pytest.mark.parametrize("on_chain", [ABOVE, raw("0x"), RpcError(-32601, "no such method")])
def test_simulations_with_other_numbers_than_the_chain_are_not_trusted(sample: Any, on_chain: Any) -> None:
    with pytest.raises(NodeFault):
        read_probe(raw(sample), on_chain, PINNED)


def test_what_number_is_on_the_chain_is_asked_of_the_pinned_block() -> None:
    call = number_call(PINNED)
    assert (call.method, call.params[1]) == ("eth_call", {"blockHash": PINNED.hash})
    assert call.params[2].keys() == {TELLER}  # type: ignore[attr-defined]
