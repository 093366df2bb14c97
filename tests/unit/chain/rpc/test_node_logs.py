"""Logs as a node sends them: what decodes, and every form that does not."""

from typing import Any

import msgspec
import pytest

from roundtrip.chain.rpc.node_logs import UnverifiedBlockLog, UnverifiedLog, decode_number
from roundtrip.venues.base import Log

TOKEN, TOPIC = "0x" + "ab" * 20, "0x" + "cd" * 32
PLACE = {
    "blockNumber": "0x1",
    "blockHash": TOPIC,
    "transactionHash": TOPIC,
    "transactionIndex": "0x0",
    "logIndex": "0x0",
}


def decoded(**changes: Any) -> Log:
    raw = {"address": TOKEN, "topics": [TOPIC], "data": "0x0102"} | changes
    return msgspec.json.decode(msgspec.json.encode(raw), type=UnverifiedLog).decode()


def test_hex_is_read_in_lower_case() -> None:
    upper = decoded(address="0x" + "AB" * 20, topics=["0x" + "CD" * 32] * 4, data="0xFF")
    assert upper == Log(TOKEN, (TOPIC,) * 4, b"\xff")  # type: ignore[arg-type]
    assert decoded(topics=[], data="0x") == Log(TOKEN, (), b"")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"address": TOKEN[:-2]},
        {"address": TOKEN + "00"},
        {"address": "0x" + "zz" * 20},
        {"address": TOKEN[2:]},
        {"topics": [TOPIC[:-2]]},
        {"topics": [TOPIC + "\n"]},
        {"topics": [TOPIC] * 5},
        {"topics": [TOPIC[2:] + "00"]},
        {"data": "0x1"},
        {"data": "0x 01"},
        {"data": "01"},
        {"data": ""},
        {"data": "0xzz"},
        {"data": None},
    ],
)
def test_another_form_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decoded(**changes)


@pytest.mark.parametrize("text", ["", "0x", "1", "0x_1", "-0x1", " 0x1", "0x1\n", "0x" + "1" * 65])
def test_a_number_has_one_form(text: str) -> None:
    with pytest.raises(ValueError, match="hex digits"):
        decode_number(text)
    assert decode_number("0x1F") == 31


@pytest.mark.parametrize("name", PLACE)
def test_a_log_of_a_block_names_its_whole_place(name: str) -> None:
    raw = {"address": TOKEN, "topics": [], "data": "0x"} | PLACE
    assert not msgspec.convert(raw, UnverifiedBlockLog).removed
    del raw[name]
    with pytest.raises(msgspec.ValidationError, match=name):
        msgspec.convert(raw, UnverifiedBlockLog)
