"""The recorded examples: short, and without secrets."""

import msgspec
import pytest

from roundtrip_development.tour.examples import shorten, write_examples

KEY = "rt_" + "a1B2" * 10


def test_secrets_are_replaced_and_long_values_are_cut() -> None:
    answer = {
        "key": KEY,
        "channel": {"secret": "whsec_" + "c2VjcmV0" * 4},
        "rows": [{"data": "0x" + "ab" * 400}, {"data": "0x"}, {"data": "0x01"}],
        "claim": "ab" * 32,
        "nothing": None,
    }
    short = shorten(answer)
    assert KEY not in str(short)
    assert "c2VjcmV0" not in str(short)
    assert short["claim"] == "0" * 64
    assert [len(row["data"]) for row in short["rows"]] == [401, 2]
    assert short["nothing"] is None
    assert msgspec.json.decode(write_examples({"make_key": short})) == {"make_key": short}


def test_a_secret_in_another_place_is_refused() -> None:
    with pytest.raises(ValueError, match="secret"):
        write_examples({"make_key": {"text": f"Your key is {KEY}."}})
