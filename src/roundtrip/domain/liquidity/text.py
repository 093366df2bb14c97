"""The sentences about a token's liquidity, with the figures that matter."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_count, format_percent
from roundtrip.domain.base.types import BPS, Address

from .depth import HeldPosition, Lock, Party, TokenDepth

Tag = Literal[
    "deployer",
    "owner",
    "funded_by_deployer",
    "funded_by_owner",
    "creator",
    "sniper",
    "bundle",
    "fresh",
    "winner",
    "contract",
]
_WHOSE: Mapping[Tag, str] = {
    "deployer": "the deployer's",
    "owner": "the token owner's",
    "funded_by_deployer": "funded by the deployer",
    "funded_by_owner": "funded by the token's owner",
}


@dataclass(frozen=True, slots=True)
class ExitAfterWithdrawal:
    """A buy, the withdrawal of everything that a party can take, and the sell of what was bought, where that
    brings most. ``loss_bps`` None: no sell succeeds, and ``reason`` is the first one's, a stranger's text.
    ``now_bps``: the loss without the withdrawal. ``missing``: why it is not known; empty: it is."""

    party: Party
    now_bps: int | None
    loss_bps: int | None
    reason: str | None = None
    missing: str = ""


def describe(
    depth: TokenDepth, exit_after: ExitAfterWithdrawal | None, tags: Mapping[Address, tuple[Tag, ...]]
) -> tuple[str, ...]:
    """The sentences, the one that matters most first."""
    if not depth.pools:
        return (depth.absence or "It trades in no pool, so there is no liquidity to withdraw.",)
    if not any(pool.worth_wei or pool.liquidity for pool in depth.pools):
        return ("Its pools have no liquidity in range.",)
    sentences = [free_sentence(exit_after, tags)] if exit_after is not None else []
    unknown_bps = depth.totals_bps["unknown"]
    if depth.unread:
        sentences.append(f"{depth.unread}: this is not a pass.")
    elif unknown_bps:
        share = format_percent(unknown_bps)
        sentences.append(f"We could not find out who can withdraw {share} of its liquidity: this is no pass.")
    elif exit_after is None and not depth.totals_bps["free"]:
        sentences.append("We found nobody who can withdraw any of its liquidity now.")
    return (*sentences, *_kept_sentences(depth))


def free_sentence(exit_after: ExitAfterWithdrawal, tags: Mapping[Address, tuple[Tag, ...]]) -> str:
    """What the largest party can withdraw, and what a buyer would have left."""
    party = exit_after.party
    whose = next((_WHOSE[tag] for tag in tags.get(party.wallet, ()) if tag in _WHOSE), "")
    wallet = f"One wallet, {whose}," if whose else f"One wallet, {party.wallet},"
    through = next((held.withdrawal.function for _, held in party.positions if held.withdrawal), "")
    by = f" through {through}" if through else ""
    text = f"{wallet} can withdraw {format_percent(party.share_bps)} of the liquidity at any moment{by}"
    if exit_after.missing:
        return f"{text}; we could not find out what you would then get back: {exit_after.missing}."
    if exit_after.loss_bps is None:
        reason = names.reason(exit_after.reason or "")
        said = f' ("{reason}")' if reason else ""
        return f"{text}; you could then not sell at all{said}."
    left_bps = max(0, BPS - exit_after.loss_bps)
    return f"{text}; you would then get {format_percent(left_bps)} of your money back."


def _kept_sentences(depth: TokenDepth) -> list[str]:
    totals, texts = depth.totals_bps, []
    if totals["burned"]:
        texts.append(f"{format_percent(totals['burned'])} of the liquidity is at a burn address.")
    if totals["launchpad"]:
        texts.append(f"The launchpad keeps {format_percent(totals['launchpad'])} of the liquidity.")
    if totals["locked"]:
        locks = [held.lock for held in _positions_held_by(depth, "locked") if held.lock]
        until = f" until {format_time(min(lock.at_s for lock in locks))}" if locks else ""
        texts.append(f"{format_percent(totals['locked'])} of the liquidity is locked{until}.")
    if totals["contract"]:
        text = f"{format_percent(totals['contract'])} of the liquidity is in contracts that we do not know"
        end = _first_lock(_positions_held_by(depth, "contract"))
        told = "nobody that we tried can withdraw it now"
        if end is not None:
            when = format_time(end.at_s)
            told += f"; it can be withdrawn on {when}" if end.is_exact else f", nor before {when}"
        texts.append(f"{text}: {told}.")
    return texts


def _positions_held_by(depth: TokenDepth, held_by: str) -> list[HeldPosition]:
    return [held for pool in depth.pools for held in pool.positions if held.held_by == held_by]


def _first_lock(held: list[HeldPosition]) -> Lock | None:
    return min((one.lock for one in held if one.lock), key=lambda lock: lock.at_s, default=None)


def format_time(at_s: int) -> str:
    """A time in UTC: ``28 Nov 2026 14:00 UTC``."""
    at = datetime.fromtimestamp(min(at_s, _LAST_S), UTC)
    return f"{at.day} {at:%b %Y %H:%M} UTC"


_LAST_S = 253_402_300_799
"""The last second of the year 9999, which dates end with."""


def count_positions(depth: TokenDepth) -> str:
    """How many positions were read, and how many were not."""
    read, left_out = (
        sum(len(pool.positions) for pool in depth.pools),
        sum(pool.left_out for pool in depth.pools),
    )
    rest = f", and {left_out:,} smaller ones that we did not read" if left_out else ""
    return f"{format_count(read, 'position')}{rest}"
