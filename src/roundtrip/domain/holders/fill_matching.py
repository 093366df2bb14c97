"""Which of the tokens that left pools in one transaction were bought, and by which trades.

A pool pays the buyer of a trade; what a token with a fee, or a hook, sends elsewhere out of the same trade
was not bought. So the outflow of a venue is matched to the trades that it reports: single transfers of equal
amount, then runs of transfers that add up to one trade, then the rest altogether. Of a trade with several
transfers the largest was bought, the others are taxes. Outflow beyond all trades is liquidity taken out."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeVar

from roundtrip.domain.base.types import Address


class Move(NamedTuple):
    """One Transfer of the token."""

    sender: Address
    recipient: Address
    amount_raw: int


class VenueFill(NamedTuple):
    """A trade as a venue of the token reports it. ``at``: the address of a curve or v3 pool, the id of a v4
    pool. ``token_raw``, ``quote_raw``: never negative."""

    at: str
    buys: bool
    token_raw: int
    quote: Address
    quote_raw: int


HOOK_TAKES_BPS = 1_500
"""How much more than the reported swaps a sale may take out of wallets: for an exact output, a v4 hook takes
its fee in the token, on top; the launchpad's at most 11 % (its fee and the highest creator tax). For any
other sale a curve, a v3 pool or a v4 pool reports exactly what it received; for a buy at least what it paid
out, as a hook takes its fee from that. So nothing above the reported amount was bought."""

_MAX_RUNS = 10_000
"""The most trades times transfers that are searched for runs; larger products are matched altogether."""

_Key = TypeVar("_Key")

_MANAGER = ""
"""All v4 pools: the manager holds their tokens."""


class FillParcel(NamedTuple):
    """What was bought by ``fills``. ``raw``: their outflow without taxes, by the index of the transfer in the
    transaction."""

    fills: tuple[VenueFill, ...]
    raw: dict[int, int]


class PoolOutflow(NamedTuple):
    """What left pools, by the index of the transfer; what is in neither field was taken out without a trade.
    ``taxes``: parts of trades that went elsewhere than to their buyers."""

    parcels: list[FillParcel]
    taxes: dict[int, int]


def match_fills(moves: Sequence[Move], fills: Sequence[VenueFill], pools: Collection[Address]) -> PoolOutflow:
    """Matches all of one transaction. Transfers from pools to pools and burn addresses use up trades, too."""
    if len(fills) == 1 and not fills[0].buys:
        return PoolOutflow([], {})
    venues_in_pools = {fill.at for fill in fills if fill.at in pools}
    bought: dict[str, list[VenueFill]] = {}
    for fill in fills:
        if fill.buys and fill.token_raw:
            bought.setdefault(fill.at if fill.at in venues_in_pools else _MANAGER, []).append(fill)
    result = PoolOutflow([], {})
    if not bought:
        return result
    outflows: dict[str, dict[int, int]] = {}
    for number, (sender, recipient, amount) in enumerate(moves):
        if sender in pools and amount > 0 and sender != recipient:
            outflows.setdefault(sender if sender in venues_in_pools else _MANAGER, {})[number] = amount
    for at, fills_there in bought.items():
        if at in outflows:
            _match_venue(fills_there, outflows[at], at == _MANAGER, result)
    return result


def _match_venue(
    fills: list[VenueFill], outflows: dict[int, int], may_share: bool, result: PoolOutflow
) -> None:
    """Matches one venue. ``may_share``: one trade there can be paid out to several wallets."""
    if len(fills) == len(outflows) == 1:
        ((number, amount),) = outflows.items()
        result.parcels.append(FillParcel((fills[0],), {number: min(amount, fills[0].token_raw)}))
        return
    fills = _match_equal(fills, outflows, result)
    if len(fills) * len(outflows) <= _MAX_RUNS:
        fills = [fill for fill in fills if not _match_run(fill, outflows, may_share, result)]
    if not fills or not outflows:
        return
    chosen = _pick_buyers(outflows, len(fills), may_share)
    unmatched_raw = sum(fill.token_raw for fill in fills)
    raw = scale_to(chosen, unmatched_raw)
    result.parcels.append(FillParcel(tuple(fills), raw))
    unmatched_raw -= sum(raw.values())
    for number, amount in outflows.items():
        if number not in chosen and unmatched_raw > 0:
            result.taxes[number] = min(amount, unmatched_raw)
            unmatched_raw -= result.taxes[number]


def _match_equal(fills: list[VenueFill], outflows: dict[int, int], result: PoolOutflow) -> list[VenueFill]:
    """Removes trades that one transfer of equal amount paid, and returns the others."""
    places: dict[int, list[int]] = {}
    for number in reversed(outflows):
        places.setdefault(outflows[number], []).append(number)
    unmatched = []
    for fill in fills:
        equal = places.get(fill.token_raw)
        if equal:
            number = equal.pop()
            result.parcels.append(FillParcel((fill,), {number: outflows.pop(number)}))
        else:
            unmatched.append(fill)
    return unmatched


def _match_run(fill: VenueFill, outflows: dict[int, int], may_share: bool, result: PoolOutflow) -> bool:
    """Removes the first consecutive transfers that add up to the trade. False: there are none."""
    numbers = list(outflows)
    start = total = 0
    for end, number in enumerate(numbers):
        total += outflows[number]
        while total > fill.token_raw:
            total -= outflows[numbers[start]]
            start += 1
        if total == fill.token_raw:
            run = {place: outflows.pop(place) for place in numbers[start : end + 1]}
            raw = _pick_buyers(run, 1, may_share)
            result.parcels.append(FillParcel((fill,), raw))
            result.taxes.update((place, amount) for place, amount in run.items() if place not in raw)
            return True
    return False


def _pick_buyers(outflows: dict[int, int], limit: int, may_share: bool) -> dict[int, int]:
    """The ``limit`` largest, one per trade. If one trade may be paid out to several wallets, amounts above
    half of the largest are not taxes."""
    if len(outflows) <= limit:
        return dict(outflows)
    ranked = sorted(outflows, key=lambda number: -outflows[number])
    chosen = set(ranked[:limit])
    if may_share:
        chosen.update(number for number in ranked if 2 * outflows[number] > outflows[ranked[0]])
    return {number: amount for number, amount in outflows.items() if number in chosen}


def claimed_raw(moves: Sequence[Move], fills: Sequence[VenueFill], pools: Collection[Address]) -> int:
    """What was bought in v4 pools and neither left the manager nor was sold back in the transaction: it lies
    there as a claim of its buyer. Less what a hook may have kept as its fee."""
    bought_raw = sold_raw = 0
    for fill in fills:
        if fill.at not in pools:
            if fill.buys:
                bought_raw += fill.token_raw
            else:
                sold_raw += fill.token_raw
    if not bought_raw:
        return 0
    venues = {fill.at for fill in fills}
    inflow_raw = outflow_raw = 0
    for sender, recipient, amount in moves:
        if sender in pools and sender not in venues:
            outflow_raw += amount
        if recipient in pools and recipient not in venues:
            inflow_raw += amount
    return max(
        0, bought_raw - outflow_raw - max(0, sold_raw - inflow_raw) - bought_raw * HOOK_TAKES_BPS // 10_000
    )


def scale_to(sums: dict[_Key, int], limit: int) -> dict[_Key, int]:
    """The amounts scaled down in proportion to add up to at most ``limit``; the first ones get one unit each
    of what rounding leaves."""
    total = sum(sums.values())
    if total <= limit:
        return dict(sums)
    if not limit:
        return {}
    shares = {key: amount * limit // total for key, amount in sums.items()}
    remainder = limit - sum(shares.values())
    for key in list(shares)[:remainder]:
        shares[key] += 1
    return shares
