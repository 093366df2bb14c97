"""The bag: the wallet's holdings, those with warnings first."""

from collections.abc import Mapping
from typing import Any

from roundtrip.console.support.account_page import AccountForm, Answers, Room
from roundtrip.domain.base.figures import format_percent
from roundtrip.domain.verdicts.words import code_text

_MUCH_SOLD_BPS, _MUCH_GONE_BPS, _MORE_FEES_BPS = 2_000, 5_000, 100


def list_warnings(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A holding's warnings, worst first: level and sentence."""
    changes, warnings = row["changes"], list[tuple[str, str]]()
    if row["sells"] == "refused":
        warnings.append(("danger", "You cannot sell it now."))
    elif row["sells"] == "unknown":
        warnings.append(("unknown", "We could not find out whether you can sell it. This is not a pass."))
    at_buy, latest = changes["then"], changes["now"]
    if latest is not None and latest["level"] != "ok":
        text = code_text(latest["level"], latest["code"])
        warnings.append((latest["level"], f"The newest check says {latest['code']}{text}."))
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


def _rank_holdings(answers: Answers, query: Mapping[str, str]) -> Answers:
    warned_rows = [(row, list_warnings(row)) for row in answers["bag"]["holdings"]]
    warned = sorted(
        ((row, warnings) for row, warnings in warned_rows if warnings),
        key=lambda entry: _ORDER.index(entry[1][0][0]),
    )
    return {"warned": warned, "said": {row["token"]["address"]: warnings for row, warnings in warned_rows}}


ROOM = Room(
    "bag",
    "Bag",
    "See what the tokens in your wallet are worth, and which of them went bad.",
    {"bag": "my_bag"},
    _rank_holdings,
)
ACTS: tuple[AccountForm, ...] = ()
