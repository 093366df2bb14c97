"""Error messages are whole sentences."""

import pytest

from roundtrip.chain.rpc.client import SimulationTooLong
from roundtrip.domain.base.errors import TOOK_TOO_LONG, NodeFault


@pytest.mark.parametrize(
    ("why", "message"),
    [
        ("it returned no balance", "The chain did not answer: it returned no balance."),
        (TOOK_TOO_LONG, "The chain did not answer in time."),
        (SimulationTooLong().message, "Simulating this token takes longer than this service allows."),
        (NodeFault("error 7").message, "The chain did not answer: error 7."),
    ],
)
def test_a_nodes_fault_ends_with_one_full_stop(why: str, message: str) -> None:
    assert NodeFault(why).message == message
