"""Draws the ties among a token's holders: wallets as dots in rows, beside the purse that they share."""

import math
from collections.abc import Mapping
from typing import Any

MOST_IN_PURSE, MOST_DRAWN = 6, 16
"""Wallets that are drawn of one purse, and in all. The table beneath has the rest."""
_ROW, _TOP, _DOT_X = 38, 24, 160
Answer = Mapping[str, Any]


def draw_ties(held: Answer, launched: Answer) -> dict[str, Any] | None:
    """The drawing, 360 wide: groups with their middle, and wallets with x, y and a radius that grows with
    their share. Wallets of one purse are neighbours, so that no line crosses a name. None: no tie is
    known."""
    purses = held["forensics"]["purses"]
    rows = purses["rows"] if purses else []
    wallets = sorted(
        _tied(held, launched, rows), key=lambda one: (one["purse"] or len(rows) + 1, -one["bps"])
    )
    groups: list[dict[str, Any]] = []
    most_bps = max([one["bps"] for one in wallets], default=0) or 1
    drawn = 0
    for number in (*range(1, len(rows) + 1), None):
        if number is not None and not rows[number - 1]["holding"]:
            continue  # Its wallets sold all: the table has them.
        members = [one for one in wallets if one["purse"] == number]
        shown = members[: min(MOST_IN_PURSE, MOST_DRAWN - drawn)]
        if not shown or (number is None and not groups):
            continue
        y = _TOP + _ROW * drawn
        dots = [
            one
            | {
                "x": _DOT_X,
                "y": y + _ROW * place,
                "radius": round(5 + 9 * math.sqrt(one["bps"] / most_bps), 1),
            }
            for place, one in enumerate(shown)
        ]
        # A purse's name needs the room of two rows.
        drawn += max(2, len(shown)) if number else len(shown)
        middle = (dots[0]["y"] + max(dots[-1]["y"], dots[0]["y"] + _ROW)) // 2
        purse = rows[number - 1] if number else None
        groups.append({"number": number, "purse": purse, "middle": middle, "dots": dots})
    if not groups:
        return None
    return {"groups": groups, "height": _TOP + _ROW * drawn, "wallets": wallets,
            "notDrawn": len(wallets) - sum(len(group["dots"]) for group in groups)}  # fmt: skip


def _tied(held: Answer, launched: Answer, rows: list[Any]) -> list[dict[str, Any]]:
    """The ten biggest, the deployer, and the launch buyers that have a purse."""
    found = {one["address"]: _wallet(one, one["supplyBps"]) for one in held["top"]}
    buyers = [*(one for group in launched["groups"] for one in group["wallets"]), *launched["others"]]
    for one in buyers:
        if one["purse"] and one["heldBps"] is not None:
            found.setdefault(one["address"], _wallet(one, one["heldBps"]))
    deployer = held["deployer"]
    if deployer is not None and deployer["address"] not in found:
        own = next((number for number, row in enumerate(rows, 1) if row["hasDeployer"]), None)
        one = {"address": deployer["address"], "purse": own, "tags": ["deployer"]}
        found[deployer["address"]] = _wallet(one, deployer["heldBps"])
    return list(found.values())


def _wallet(one: Answer, bps: int) -> dict[str, Any]:
    return {"address": one["address"], "bps": bps, "purse": one["purse"], "tags": one["tags"]}
