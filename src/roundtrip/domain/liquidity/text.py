"""The sentences about a token's liquidity, with the figures that matter."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_percent
from roundtrip.domain.base.router_codes import find_meaning
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
    is_refused: bool = False
    """Whether the party's withdrawal itself is refused now, by a hook or by the token."""


def describe(
    depth: TokenDepth, exit_after: ExitAfterWithdrawal | None, tags: Mapping[Address, tuple[Tag, ...]]
) -> tuple[str, ...]:
    """The sentences, the one that matters most first."""
    if not depth.pools:
        return (depth.absence or "No v3 or v4 pool trades it, so there is no liquidity to withdraw.",)
    if depth.is_out_of_range() and not any(depth.totals_bps.values()):
        return ("Its pools have no liquidity in range.",)
    dangers = _dangers(depth, exit_after, tags)
    if not dangers:
        locks = [held.lock for held in _positions_held_by(depth, "locked") if held.lock]
        when = f"before {format_time(min(lock.at_s for lock in locks))}" if locks else "now"
        dangers = [f"We found nobody who can withdraw any of its liquidity {when}."]
    return (*dangers, *_kept_sentences(depth))


def _dangers(
    depth: TokenDepth, exit_after: ExitAfterWithdrawal | None, tags: Mapping[Address, tuple[Tag, ...]]
) -> list[str]:
    """What is no pass, the largest share first."""
    totals, money, dangers = depth.totals_bps, depth.money_bps, list[tuple[int, str]]()
    if exit_after is not None:
        dangers.append((max(totals["free"], money["free"]), _free_sentences(depth, exit_after, tags)))
    if depth.unread:
        # What was not read may be most of it, and is not among the totals.
        dangers.append((max(totals["unknown"], BPS // 2), f"{depth.unread}: this is not a pass."))
    elif largest_bps := max(totals["unknown"], money["unknown"]):
        share = _share(totals["unknown"], money["unknown"], "its")
        dangers.append((largest_bps, f"We could not find out who can withdraw {share}: this is not a pass."))
    if largest_bps := max(totals["contract"], money["contract"]):
        dangers.append((largest_bps, _contract_sentence(depth)))
    return [text for _, text in sorted(dangers, key=lambda danger: -danger[0])]


def _share(depth_bps: int, money_bps: int, whose: str = "the") -> str:
    """A share of the liquidity; of the money, where that is much more than its depth shows."""
    if money_bps <= depth_bps + _APART_BPS:
        return f"{format_percent(depth_bps)} of {whose} liquidity"
    share = f"{format_percent(depth_bps)} of the liquidity in range"
    return f"{format_percent(money_bps)} of the money in its pools ({share})"


_APART_BPS = 500
"""A larger difference between the two shares is named."""


def _contract_sentence(depth: TokenDepth) -> str:
    share = _share(depth.totals_bps["contract"], depth.money_bps["contract"])
    result = "nobody that we tried can withdraw it now"
    if (end := _first_lock(_positions_held_by(depth, "contract"))) is not None:
        when = format_time(end.at_s)
        result += f"; it can be withdrawn on {when}" if end.is_exact else f", nor before {when}"
    return f"{share} is in contracts that we do not know: {result}. This is not a pass."


def _free_sentences(
    depth: TokenDepth, exit_after: ExitAfterWithdrawal, tags: Mapping[Address, tuple[Tag, ...]]
) -> str:
    """What all can withdraw who can, where they are several, and what the largest can."""
    wallets, share = len(depth.free_parties()), _share(depth.totals_bps["free"], depth.money_bps["free"])
    if wallets == 1:
        return free_sentence(exit_after, tags, "One wallet")
    every = f"{wallets:,} wallets can withdraw {share} at any moment."
    return f"{every} {free_sentence(exit_after, tags, 'The largest')}"


def free_sentence(exit_after: ExitAfterWithdrawal, tags: Mapping[Address, tuple[Tag, ...]], who: str) -> str:
    """What the largest party can withdraw, and what a buyer would have left."""
    party = exit_after.party
    whose = next((_WHOSE[tag] for tag in tags.get(party.wallet, ()) if tag in _WHOSE), party.wallet)
    through = next((held.withdrawal.function for _, held in party.positions if held.withdrawal), "")
    via = "the contract's function " if "(" in through else ""
    by = f" through {via}{through}" if through else ""
    text = f"{who}, {whose}, can withdraw {_share(party.share_bps, party.money_bps)} at any moment{by}"
    if exit_after.is_refused:
        share = _share(party.share_bps, party.money_bps)
        now = "We simulated its withdrawal, which is refused now: a hook or the token may let it pass later."
        return f"{who}, {whose}, has {share}. {now}"
    if exit_after.missing:
        return f"{text}; we could not find out what you would then get back: {exit_after.missing}."
    if exit_after.loss_bps is None:
        reason = names.reason(exit_after.reason or "")
        why = find_meaning(reason)
        in_brackets = f' ("{reason}"{"" if why is None else f": {why}"})' if reason else ""
        return f"{text}; you could then not sell at all{in_brackets}."
    left_bps = max(0, BPS - exit_after.loss_bps)
    return f"{text}; you would then get {format_percent(left_bps)} of your money back."


def _kept_sentences(depth: TokenDepth) -> list[str]:
    totals, texts = depth.totals_bps, list[str]()
    if depth.is_out_of_range() and not any(pool.is_curve for pool in depth.pools):
        texts.append("None of it is in range at the price now: the next trade may reach it.")
    is_apart = any(bps > totals[held_by] + _APART_BPS for held_by, bps in depth.money_bps.items())
    liquidity = "the liquidity in range" if is_apart else "the liquidity"
    if totals["burned"]:
        texts.append(f"{format_percent(totals['burned'])} of {liquidity} is at a burn address.")
    if totals["launchpad"]:
        texts.append(f"The launchpad keeps {format_percent(totals['launchpad'])} of {liquidity}.")
    if totals["locked"]:
        locks = [held.lock for held in _positions_held_by(depth, "locked") if held.lock]
        until = f"until {format_time(min(lock.at_s for lock in locks))}" if locks else "for ever"
        texts.append(f"{format_percent(totals['locked'])} of {liquidity} is locked {until}.")
    return texts


def _positions_held_by(depth: TokenDepth, held_by: str) -> list[HeldPosition]:
    return [held for pool in depth.pools for held in pool.positions if held.held_by == held_by]


def _first_lock(held: list[HeldPosition]) -> Lock | None:
    locks = (position.lock for position in held if position.lock)
    return min(locks, key=lambda lock: lock.at_s, default=None)


def format_time(at_s: int) -> str:
    """A time in UTC: ``28 Nov 2026 14:00 UTC``."""
    at = datetime.fromtimestamp(min(at_s, _LAST_S), UTC)
    return f"{at.day} {at:%b %Y %H:%M} UTC"


_LAST_S = 253_402_300_799
"""The last second of the year 9999, which dates end with."""
