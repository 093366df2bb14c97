"""A query that is longer than a symbol: what somebody pasted."""

import pytest

from roundtrip.api.dispatch import read_params
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.domain.base.errors import ParamFault
from roundtrip.domain.base.pasted import MAX_CHARACTERS
from roundtrip.services.lookup.look_up_answer import LookUpParams

LOOK_UP = next(operation for operation in OPERATIONS if operation.name == "look_up")
A, B = "0x" + "1" * 40, "0x" + "2" * 40
LINK = f"https://robinhood.blockscout.example/token/{A}?tab=token_transfers&filter=to#page"


def read(query: object) -> LookUpParams:
    params = read_params(LOOK_UP, {"query": query})
    assert isinstance(params, LookUpParams)
    return params


@pytest.mark.parametrize(
    ("query", "short"),
    [
        ("PEPE", "PEPE"), (LINK[8:88], LINK[8:88]), (LINK, A), (LINK.ljust(MAX_CHARACTERS, "x"), A),
        (f"https://etherscan.io/token/{A}?" + "x" * 86, f"{A}@1"), (f"{A}\u200b" + "\u2060" * 99, A),
    ],
)  # fmt: skip
def test_of_a_long_link_the_address_is_looked_up(query: str, short: str) -> None:
    assert read(query) == LookUpParams(short)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("x" * 81, "query must be a text of 1 to 80 characters"),
        (LINK.ljust(MAX_CHARACTERS + 1, "x"), "The text has more than 8,192 characters."),
        (f"https://x.example/?a={A}&b={B}", "The text has 2 different addresses or hashes."),
        (["x" * 81], "query must be a text"),
    ],
)
def test_what_is_too_long_is_refused(query: object, says: str) -> None:
    with pytest.raises(ParamFault) as refused:
        read(query)
    assert (refused.value.code, refused.value.message[: len(says)]) == ("bad_input", says)
