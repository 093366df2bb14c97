"""Which dialect an answer shows, and what it measures: samples in the shape of recorded answers."""

from typing import Any

import pytest

from roundtrip.chain.rpc.client import RpcError
from roundtrip.chain.rpc.dialect import ANVIL, GETH, NITRO
from roundtrip.chain.rpc.dialect_probe import (
    REVERTED_WITH,
    TELLER,
    TELLER_GAS,
    ProbedDialect,
    number_call,
    probe_call,
    read_probe,
)
from roundtrip.domain.base.errors import NodeFault
from unit.chain.samples import PINNED, raw

FIRST, LAST, TIME_S = PINNED.number + 1, PINNED.number + 4, PINNED.timestamp_s + 37
PARENT = 21_000_000
BASE_FEE_WEI = 10**8
DATA_GAS = 22_780
"""What nitro's recorded answer to a call without calldata has for its data, at that base fee."""


def probed(answer: Any, on_chain: Any) -> ProbedDialect:
    return read_probe(answer, on_chain, PINNED, BASE_FEE_WEI)


def words(*values: int) -> str:
    return "0x" + "".join(format(value, "064x") for value in values)


def probe_answer(number: int, data_gas: int = 0) -> dict[str, Any]:
    gas = hex(TELLER_GAS + data_gas)
    return {"status": "0x1", "gasUsed": gas, "returnData": words(number, TIME_S, 70_000), "logs": []}


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
    [
        probe_answer(LAST),
        failed(-3200, "execution failed", None, REVERTED_WITH),
        failed(-3200, "execution failed"),
    ],
    fillers=False,
)
GETHS = answer(
    [probe_answer(LAST), failed(3, "execution reverted", REVERTED_WITH), failed(-32015, "out of gas")],
    fillers=True,
)
NITROS = answer(
    [
        probe_answer(PARENT, DATA_GAS),
        failed(-32000, "execution reverted", REVERTED_WITH),
        failed(-32015, "out of gas"),
    ],
    fillers=True,
)


POOL = 50_000_000
HERE, ABOVE = raw(words(PINNED.number, TIME_S, POOL)), raw(words(PARENT, TIME_S, POOL))


def test_the_request_is_of_two_blocks_with_a_gap_between() -> None:
    call = probe_call(PINNED, base_fee_wei=100)
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
    found = probed(raw(sample), ABOVE if dialect is NITRO else HERE)
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
        raw(answer([probe_answer(LAST), probe_answer(LAST), probe_answer(LAST)], fillers=False)),
        raw(
            answer(
                [probe_answer(LAST), failed(3, "execution reverted"), failed(3, "out of gas")], fillers=False
            )
        ),
        raw(answer([*GETHS[-1]["calls"][:2], failed(3, "out of gas")], fillers=True)),
        raw(answer([probe_answer(LAST), failed(3, "reverted"), GETHS[-1]["calls"][2]], fillers=True)),
    ],
)
def test_an_answer_of_another_kind_is_no_dialect(odd: Any) -> None:
    with pytest.raises(NodeFault):
        probed(odd, HERE)


def test_a_node_that_tells_no_numbers_inside_is_not_taken_to_count_them() -> None:
    silent = failed(3, "execution reverted", "0x")
    found = probed(raw(answer([silent, *GETHS[-1]["calls"][1:]], fillers=True)), HERE)
    assert (found.dialect, found.number_inside) == (NITRO, None)


@pytest.mark.parametrize("sample", [ANVILS, GETHS], ids=["anvil", "geth"])
@pytest.mark.parametrize("on_chain", [ABOVE, raw("0x"), RpcError(-32601, "no such method")])
def test_simulations_with_other_numbers_than_the_chain_are_not_trusted(sample: Any, on_chain: Any) -> None:
    with pytest.raises(NodeFault):
        probed(raw(sample), on_chain)


def test_what_number_is_on_the_chain_is_asked_of_the_pinned_block() -> None:
    call = number_call(PINNED)
    assert (call.method, call.params[1]) == ("eth_call", {"blockHash": PINNED.hash})
    assert call.params[2].keys() == {TELLER}  # type: ignore[attr-defined]


def test_no_limit_of_the_request_is_near_the_intrinsic_gas() -> None:
    """Nitro's has the fee for a call's data in it: at 50 gwei a unit 1.1 M."""
    blocks = probe_call(PINNED, base_fee_wei=100).params[0]["blockStateCalls"]  # type: ignore[index]
    assert min(int(call["gas"], 16) for block in blocks for call in block["calls"]) == 10_000_000
    assert "gas" not in number_call(PINNED).params[0]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("sample", "on_chain", "gas"),
    [(ANVILS, HERE, 0), (GETHS, HERE, 0), (NITROS, ABOVE, DATA_GAS)],
    ids=["anvil", "geth", "nitro"],
)
def test_the_fee_for_data_is_what_a_call_uses_beyond_its_instructions(
    sample: Any, on_chain: Any, gas: int
) -> None:
    fee = probed(raw(sample), on_chain).dialect.data_fee
    assert (fee.wei, fee.base_fee_wei) == (gas * BASE_FEE_WEI, BASE_FEE_WEI)


@pytest.mark.parametrize(
    ("dialect", "given", "pool"),
    [
        (GETH, 49_978_000, POOL),
        (GETH, 39_978_000, 39_000_000),
        (GETH, 24_000_000, 24_000_000),
        (GETH, 2**63 - 1, (2**63 - 1) // 10**6 * 10**6),
        (NITRO, 31_977_220, POOL),
        (NITRO, 24_300_000, 24_000_000),
    ],
)
def test_the_pool_is_the_usual_one_unless_a_plain_call_has_other_gas(
    dialect: Any, given: int, pool: int
) -> None:
    """Nitro gives one call 32 M at most."""
    number, sample = (PARENT, NITROS) if dialect is NITRO else (PINNED.number, GETHS)
    on_chain = raw(words(number, TIME_S, given))
    assert probed(raw(sample), on_chain).dialect.gas_pool == pool
    assert probed(raw(ANVILS), HERE).dialect.gas_pool is None


def test_a_node_whose_pool_is_too_small_for_a_trade_is_refused() -> None:
    with pytest.raises(NodeFault, match="gives one request 12,000,000 gas, and a check needs 20,000,000"):
        probed(raw(GETHS), raw(words(PINNED.number, TIME_S, 12_300_000)))
