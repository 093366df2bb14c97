"""What cases are made of."""

from collections.abc import Callable
from typing import Any

from roundtrip_development.devnet.world import Built

Arguments = dict[str, Any]
Good = dict[str, dict[str, Callable[[Built], Arguments]]]
Bad = dict[str, list[tuple[Arguments, str]]]

WALLET, NOBODY = "0x" + "c0" * 20, "0x" + "ab" * 20
HERE, LONG = "0x" + "1" * 40, "0x" + "1" * 64
