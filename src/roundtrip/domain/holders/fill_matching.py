"""Which of the tokens that left pools in one transaction were bought, and by which trades.

A pool that trades pays the buyer; what a token with a fee, or a hook, sends elsewhere out of the same trade
nobody bought. So what leaves a place is held against the trades it tells: transfer by transfer where the
amounts agree, or runs of transfers that add up to one trade; what is left, altogether. Of a trade with
several transfers the largest was bought, the others are taxes. What leaves pools beyond all trades is
liquidity taken out.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeVar

from roundtrip.domain.base.types import Address


class Move(NamedTuple):
    """One Transfer of the token."""

    sender: Address
    recipient: Address
    amount_raw: int


class VenueFill(NamedTuple):
    """A trade on one of the token's venues, as that tells it. ``at``: a curve's or v3 pool's address, a v4
    pool's id. ``token_raw``, ``quote_raw``: none is below zero."""

    at: str
    buys: bool
    token_raw: int
    quote: Address
    quote_raw: int


HOOK_TAKES_BPS = 1_500
"""So much more than the swaps tell a sale may have taken out of wallets: of a sale for an exact output a v4
hook takes its fee in the token, on top; the launchpad's at most 11 % (its fee and the highest creator tax).
What a curve, a v3 pool or a v4 pool tells of any other sale is to the last unit what it got; of a buy no less
than what it gave, as a hook takes its fee out of that. So nothing above what is told was bought."""

_MOST_RUNS = 10_000
"""Trades times transfers that are searched for runs: more are taken altogether."""

_Key = TypeVar("_Key")

_ELSEWHERE = ""
"""All v4 pools: their tokens lie in the manager."""


class FillParcel(NamedTuple):
    """What was bought by some fills: ``raw``, of what came out for them without taxes, by the place of its
    transfer in the transaction."""

    fills: tuple[VenueFill, ...]
    raw: dict[int, int]


class PoolOutflow(NamedTuple):
    """What left pools, by the places of its transfers: what is in neither was taken out without a trade.
    ``taxes``: parts of trades that went elsewhere than to their buyers."""

    parcels: list[FillParcel]
    taxes: dict[int, int]


def match_fills(moves: Sequence[Move], fills: Sequence[VenueFill], pools: Collection[Address]) -> PoolOutflow:
    """All of one transaction. Transfers from pools to pools and burn addresses use up trades, too."""
    if len(fills) == 1 and not fills[0].buys:
        return PoolOutflow([], {})
    told = {fill.at for fill in fills if fill.at in pools}
    bought: dict[str, list[VenueFill]] = {}
    for fill in fills:
        if fill.buys and fill.token_raw:
            bought.setdefault(fill.at if fill.at in told else _ELSEWHERE, []).append(fill)
    out = PoolOutflow([], {})
    if not bought:
        return out
    left: dict[str, dict[int, int]] = {}
    for number, (sender, recipient, amount) in enumerate(moves):
        if sender in pools and amount > 0 and sender != recipient:
            left.setdefault(sender if sender in told else _ELSEWHERE, {})[number] = amount
    for at, some in bought.items():
        if at in left:
            _match(some, left[at], at == _ELSEWHERE, out)
    return out


def _match(fills: list[VenueFill], left: dict[int, int], may_share: bool, out: PoolOutflow) -> None:
    """One place. ``may_share``: whoever trades there can have one trade paid out to several."""
    if len(fills) == len(left) == 1:
        ((number, amount),) = left.items()
        out.parcels.append(FillParcel((fills[0],), {number: min(amount, fills[0].token_raw)}))
        return
    fills = _equal(fills, left, out)
    if len(fills) * len(left) <= _MOST_RUNS:
        fills = [fill for fill in fills if not _run(fill, left, may_share, out)]
    if not fills or not left:
        return
    chosen = _buyers(left, len(fills), may_share)
    told = sum(fill.token_raw for fill in fills)
    raw = scale_to(chosen, told)
    out.parcels.append(FillParcel(tuple(fills), raw))
    told -= sum(raw.values())
    for number, amount in left.items():
        if number not in chosen and told > 0:
            out.taxes[number] = min(amount, told)
            told -= out.taxes[number]


def _equal(fills: list[VenueFill], left: dict[int, int], out: PoolOutflow) -> list[VenueFill]:
    """Takes out what one transfer paid exactly; what it was of the others is told."""
    places: dict[int, list[int]] = {}
    for number in reversed(left):
        places.setdefault(left[number], []).append(number)
    rest = []
    for fill in fills:
        equal = places.get(fill.token_raw)
        if equal:
            number = equal.pop()
            out.parcels.append(FillParcel((fill,), {number: left.pop(number)}))
        else:
            rest.append(fill)
    return rest


def _run(fill: VenueFill, left: dict[int, int], may_share: bool, out: PoolOutflow) -> bool:
    """Takes out the first transfers in a row that add up to the trade, if there are any."""
    numbers = list(left)
    start = total = 0
    for end, number in enumerate(numbers):
        total += left[number]
        while total > fill.token_raw:
            total -= left[numbers[start]]
            start += 1
        if total == fill.token_raw:
            run = {one: left.pop(one) for one in numbers[start : end + 1]}
            raw = _buyers(run, 1, may_share)
            out.parcels.append(FillParcel((fill,), raw))
            out.taxes.update((one, amount) for one, amount in run.items() if one not in raw)
            return True
    return False


def _buyers(left: dict[int, int], most: int, may_share: bool) -> dict[int, int]:
    """The largest, one for each trade. Where one trade may be paid out to several, whatever is more than half
    of the largest is no tax."""
    if len(left) <= most:
        return dict(left)
    ranked = sorted(left, key=lambda number: -left[number])
    chosen = set(ranked[:most])
    if may_share:
        chosen.update(number for number in ranked if 2 * left[number] > left[ranked[0]])
    return {number: amount for number, amount in left.items() if number in chosen}


def claimed_raw(moves: Sequence[Move], fills: Sequence[VenueFill], pools: Collection[Address]) -> int:
    """What was bought in v4 pools and never left the manager, nor was sold to them again in the transaction:
    it lies there as a claim of whoever bought it. A hook may have kept its fee so."""
    if len(fills) == 1 and (not fills[0].buys or fills[0].at in pools):
        return 0
    buys = sells = 0
    for fill in fills:
        if fill.at not in pools:
            if fill.buys:
                buys += fill.token_raw
            else:
                sells += fill.token_raw
    if not buys:
        return 0
    told = {fill.at for fill in fills}
    came = went = 0
    for sender, recipient, amount in moves:
        if sender in pools and sender not in told:
            went += amount
        if recipient in pools and recipient not in told:
            came += amount
    return max(0, buys - went - max(0, sells - came) - buys * HOOK_TAKES_BPS // 10_000)


def scale_to(sums: dict[_Key, int], most: int) -> dict[_Key, int]:
    """As much of it as there is of ``most``, everyone's in proportion; what rounding leaves goes to the first
    of them, one unit each."""
    total = sum(sums.values())
    if total <= most:
        return dict(sums)
    if not most:
        return {}
    shares = {key: amount * most // total for key, amount in sums.items()}
    left = most - sum(shares.values())
    for key in list(shares)[:left]:
        shares[key] += 1
    return shares
