"""What its wallet holds, what is wrong with it first."""

from collections.abc import Mapping
from typing import Any

from roundtrip.console.support.account_page import AccountForm, Answers, Room

_MUCH_SOLD_BPS, _MUCH_GONE_BPS, _MORE_FEES_BPS = 2_000, 5_000, 100


def warnings(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is to be known of a holding before anything else, the worst first: level and sentence."""
    changes, found = row["changes"], list[tuple[str, str]]()
    if row["sells"] == "refused":
        found.append(("danger", "It cannot be sold now."))
    elif row["sells"] == "unknown":
        found.append(("unknown", "Whether it can be sold could not be found out."))
    then, now = changes["then"], changes["now"]
    if now is not None and now["level"] != "ok":
        found.append((now["level"], f"The newest check says {now['code'].replace('_', ' ')}."))
    before_bps, fees_bps = (None if one is None else one["feesBps"] for one in (then, now))
    if before_bps is not None and fees_bps is not None and fees_bps > before_bps + _MORE_FEES_BPS:
        found.append(("warn", f"Fees rose from {_percent(before_bps)} to {_percent(fees_bps)}."))
    deployer, gone_bps = changes["deployer"], changes["liquidityLeftBps"]
    if deployer is not None and deployer["soldBps"] > 0:
        level = "danger" if deployer["soldBps"] >= _MUCH_SOLD_BPS else "warn"
        found.append((level, f"Its deployer sold {_percent(deployer['soldBps'])} of his since you bought."))
    if gone_bps:
        level = "danger" if gone_bps >= _MUCH_GONE_BPS else "warn"
        found.append((level, f"{_percent(gone_bps)} of its liquidity was taken out since you bought."))
    return sorted(found, key=lambda one: _ORDER.index(one[0]))


_ORDER = ("danger", "unknown", "warn")


def _percent(bps: int) -> str:
    return f"{bps / 100:.2f}".rstrip("0").rstrip(".") + " %"


def _also(answers: Answers, query: Mapping[str, str]) -> Answers:
    told = [(row, warnings(row)) for row in answers["bag"]["holdings"]]
    warned = sorted(((row, said) for row, said in told if said), key=lambda one: _ORDER.index(one[1][0][0]))
    return {"warned": warned, "said": {row["token"]["address"]: found for row, found in told}}


ROOM = Room("bag", "Bag", {"bag": "my_bag"}, _also)
ACTS: tuple[AccountForm, ...] = ()
