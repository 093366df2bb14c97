"""What is asked about one token."""

from collections.abc import Callable

from roundtrip_development.devnet.world import Built

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
    "token_holders": {
        story: check_of(story)
        for story in ("plain", "usdg_pool", "no_pool", "strange_name", "curve", "graduated", "first_fresh")
    },
    "smart_money": {story: check_of(story) for story in ("plain", "curve")},
    "launch_bundle": {story: check_of(story) for story in ("plain", "curve", "no_pool")},
}  # fmt: skip

_NO_ADDRESSES = [
    ({"address": "0x12"}, "bad_address"),
    ({"address": "0x" + "g" * 40}, "bad_address"),
    ({"address": "0x" + "1" * 41}, "bad_address"),
    ({"address": "PLAIN"}, "bad_address"),
    ({"address": "%00"}, "bad_address"),
    # Nobody's address, and nobody's code.
    ({"address": "0x" + "1" * 40}, "not_a_token"),
]

BAD: Bad = {
    "token_holders": _NO_ADDRESSES,
    "smart_money": _NO_ADDRESSES,
    "launch_bundle": _NO_ADDRESSES,
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
