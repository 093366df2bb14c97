"""The answer that the measurement of the doors serves."""

import msgspec
from bench.doors import ANSWER

from roundtrip.services.support.check_answer import Check


def test_it_has_every_field_of_a_check() -> None:
    served = msgspec.to_builtins(msgspec.convert(ANSWER, Check))
    assert served.keys() == ANSWER.keys()
