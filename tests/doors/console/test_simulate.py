"""The page of a simulation: its colour is the answer's level."""

import json
import re

from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.console_house import house_of
from support.keys import random_context

WALLET, STRANGER = "0x" + "2" * 40, "0x" + "d" * 40


async def test_the_colour_is_the_answers_level_and_pasted_calls_run_whole(
    indexed: Context, built: Built
) -> None:
    token, permit2 = built.tokens["plain"], built.contracts["permit2"]
    found = {}
    async with house_of(random_context(indexed, Clock()), Clock()) as house:
        for name, data in (
            ("a stranger", _approve(STRANGER)), ("Permit2", _approve(permit2)), ("nobody", "0xdeadbeef"),
        ):  # fmt: skip
            pasted = json.dumps([{"from": WALLET, "to": token, "input": data}])
            status, page, _ = await house.post("/simulate", {"from": WALLET, "calls": pasted, "fund": "1"})
            shown = re.search(r'class="verdict-md t-(\w+)"><p class="word"><svg.*?</svg> ([^<]+)<', page)
            found[name] = status, shown and shown.groups()
    assert found == {
        "a stranger": (200, ("warn", "Allows everything")),
        "Permit2": (200, ("ok", "Allows everything")),
        "nobody": (200, ("warn", "It would fail")),
    }


def _approve(spender: str) -> str:
    return "0x095ea7b3" + spender[2:].lower().rjust(64, "0") + "f" * 64
