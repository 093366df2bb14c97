"""The bag: the wallet's holdings, those with warnings first."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.account_page import AccountForm, Answers, Room
from roundtrip.console.support.small_chart import draw_curve
from roundtrip.domain.base.figures import format_percent
from roundtrip.domain.verdicts.words import level_word
from roundtrip.services.portfolio.bag_page import BagPast, bag_past
from roundtrip.services.support.index_reader import Nothing

_MUCH_SOLD_BPS, _MUCH_GONE_BPS, _MORE_FEES_BPS = 2_000, 5_000, 100


def list_warnings(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A holding's warnings, worst first: level and sentence."""
    changes, warnings = row["changes"], list[tuple[str, str]]()
    if row["sells"] == "refused":
        warnings.append(("danger", "You cannot sell it now."))
    elif row["sells"] == "part":
        warnings.append(("warn", "You can sell only a part of it at once."))
    elif row["sells"] == "unknown":
        warnings.append(("unknown", "We could not find out whether you can sell it. This is not a pass."))
    at_buy, latest = changes["then"], changes["now"]
    if latest is not None and latest["level"] != "ok":
        warnings.append((latest["level"], f"Newest check: {level_word(latest['level'], latest['code'])}."))
    before_bps, fees_bps = (None if check is None else check["feesBps"] for check in (at_buy, latest))
    if before_bps is not None and fees_bps is not None and fees_bps > before_bps + _MORE_FEES_BPS:
        warnings.append(
            ("warn", f"Fees and taxes rose from {format_percent(before_bps)} to {format_percent(fees_bps)}.")
        )
    deployer, gone_bps = changes["deployer"], changes["liquidityLeftBps"]
    if deployer is not None and deployer["soldBps"] > 0:
        level = "danger" if deployer["soldBps"] >= _MUCH_SOLD_BPS else "warn"
        warnings.append(
            (
                level,
                f"Its deployer sold {format_percent(deployer['soldBps'])} of its tokens since you bought.",
            )
        )
    if gone_bps:
        level = "danger" if gone_bps >= _MUCH_GONE_BPS else "warn"
        warnings.append(
            (level, f"{format_percent(gone_bps)} of its liquidity was taken out since you bought.")
        )
    return sorted(warnings, key=lambda warning: _ORDER.index(warning[0]))


_ORDER = ("danger", "unknown", "warn")


_PAST = Operation(
    name="bag_past",
    title="The bag over time",
    description="",
    params=Nothing,
    answer=BagPast,
    handler=lambda call: bag_past(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="never",
)


def sum_past(
    holdings: Sequence[Mapping[str, Any]], past: Mapping[str, Any]
) -> list[tuple[datetime, Decimal | None]]:
    """The worth of all that can be sold now, at each time; None: a part of it is not known. Empty: nothing
    can be sold, or the past of nothing is known."""
    sold = {row["token"]["address"] for row in holdings if row["sells"] == "yes"}
    series = [token["values"] for token in past["tokens"] if token["address"] in sold]
    times = [datetime.fromisoformat(at) for at in past["times"]]
    return (
        [
            (at, None if None in values else sum(map(Decimal, values), Decimal(0)))
            for at, values in zip(times, zip(*series, strict=True), strict=True)
        ]
        if series
        else []
    )


def _rank_holdings(answers: Answers, query: Mapping[str, str]) -> Answers:
    past, holdings = answers["past"], answers["bag"]["holdings"]
    warned_rows = [(row, list_warnings(row)) for row in holdings]
    warned = sorted(
        ((row, warnings) for row, warnings in warned_rows if warnings),
        key=lambda entry: _ORDER.index(entry[1][0][0]),
    )
    values = sum_past(holdings, past)
    known = [(at, value) for at, value in values if value is not None]
    return {
        "warned": warned,
        "guards": {guard["address"]: guard for guard in past["guards"]},
        "values": values,
        "curve": draw_curve(known),
        "ends": (known[0][0].isoformat(), known[-1][0].isoformat()) if known else None,
        "left_out": len(holdings) - sum(row["sells"] == "yes" for row in holdings),
    }


ROOM = Room(
    "bag",
    "Bag",
    "See what the tokens in your wallet are worth, and which of them went bad.",
    {"bag": "my_bag", "past": _PAST},
    _rank_holdings,
)
ACTS: tuple[AccountForm, ...] = ()
