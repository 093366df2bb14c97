"""What is asked about one token."""

from collections.abc import Callable

from roundtrip.devnet.world import Built

from .base import Arguments, Bad, Good


def check_of(story: str) -> Callable[[Built], Arguments]:
    return lambda built: {"address": built.tokens[story]}


GOOD: Good = {
    "check_token": {
        story: check_of(story)
        for story in (
            "plain", "owner_only_sell", "paused", "usdg_pool", "no_pool", "strange_name", "not_a_token",
        )
    },
}  # fmt: skip

BAD: Bad = {
    "check_token": [
        ({"address": "0x12"}, "bad_address"),
        ({"address": "0x" + "g" * 40}, "bad_address"),
        ({"address": "0x" + "1" * 41}, "bad_address"),
        ({"address": "PLAIN"}, "bad_address"),
        ({"address": "0X" + "1" * 40}, "bad_address"),
        ({"address": "0x" + "1" * 40 + "\n"}, "bad_address"),
        ({"address": "%00"}, "bad_address"),
        ({"address": "\u0661" * 40}, "bad_address"),
    ],
}
