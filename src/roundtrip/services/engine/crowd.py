"""The crowd of a venue: drawn wallets that differ as real ones do. They buy in the buy round and sell among
others in the sell round; the largest trades alone. The isolation round tries those alone that met something
else."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from roundtrip.chain.blocks import environments
from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.dialect import GAS_POOL
from roundtrip.chain.simulate import crowd_outcomes, crowd_plans
from roundtrip.chain.simulate.crowd_outcomes import CrowdBuys, MemberBuys
from roundtrip.chain.simulate.crowd_plans import CrowdTrader, Member
from roundtrip.chain.simulate.legs import VenuePlace, size_raw
from roundtrip.chain.simulate.probe_plans import main_wallet
from roundtrip.chain.simulate.request import PlannedBlock, Results
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.buy_math import outputs_of_buys
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    BuyOutcome,
    CompletedBuy,
    CrowdWallet,
    CrowdWay,
    Curve,
    LaunchRecord,
    Missing,
)
from roundtrip.domain.check.proof_input import MAIN_WALLET, RecalledWallet
from roundtrip.domain.check.venue_reading import is_filled
from roundtrip.venues.abi import keccak

from .session import CheckSession, VenueTrial

_PLAIN_AT = 12
"""The number of the wallet that differs from the main one only in that it sells last, after all others."""


# --- drawing ---------------------------------------------------------------------------------------


_OCTAVE = 2**32
"""So many steps of the scale of ``_Draw.spread`` double a number."""


class _Draw:
    """Numbers and addresses from a seed, each by its label."""

    def __init__(self, seed: bytes, name: str) -> None:
        self._prefix = seed + f"crowd {name} ".encode()

    def bytes_of(self, label: str) -> bytes:
        return keccak(self._prefix + label.encode())

    def address(self, label: str) -> Address:
        return Address("0x" + self.bytes_of(label)[12:].hex())

    def between(self, label: str, lowest: int, highest: int) -> int:
        return lowest + int.from_bytes(self.bytes_of(label)[:8], "big") % (highest - lowest + 1)

    def spread(self, label: str, lowest: int, highest: int, part: int = 0, parts: int = 1) -> int:
        """As often between 0.01 and 0.02 as between 0.1 and 0.2. The scale is cut into so many equal
        ``parts``, and the number is drawn in number ``part`` of them. Between powers of two the scale is
        linear, so that integers suffice, which give the same on every machine."""
        octaves = (highest // lowest).bit_length() - 1
        last = lowest << octaves
        length = octaves * _OCTAVE + (highest - last) * _OCTAVE // last
        at = self.between(label, length * part // parts, length * (part + 1) // parts)
        low = lowest << at // _OCTAVE
        return low + low * (at % _OCTAVE) // _OCTAVE

    def cover(self, label: str, lowest: int, highest: int, count: int) -> list[int]:
        """So many numbers, one in each of as many equal parts of the scale, lowest first."""
        return [self.spread(f"{label} {n}", lowest, highest, n, count) for n in range(count)]

    def shuffle(self, label: str, items: list[int]) -> list[int]:
        keys = {number: self.bytes_of(f"{label} {number}") for number in range(len(items))}
        return [items[number] for number in sorted(keys, key=lambda number: keys[number])]


def draw_gaps(seed: bytes, policy: Policy) -> tuple[int, ...]:
    """The seconds before each block of the crowd's buys, as often 1 to 2 as 30 to 60: one in each fifth of
    that scale, in any order."""
    draw, (lowest_s, highest_s) = _Draw(seed, ""), policy.crowd_gaps_s
    gaps = draw.cover("gap", lowest_s, highest_s, policy.crowd_buy_blocks + 1)
    return tuple(draw.shuffle("gaps", gaps))


def draw_crowd(seed: bytes, place: VenuePlace, head: ChainHead, policy: Policy) -> tuple[CrowdWallet, ...]:
    """The wallets, smallest first. The last one, the largest, trades alone; of the others one in four buys
    twice. The values of each property cover its scale evenly, and are dealt to the wallets at random."""
    draw = _Draw(seed, place.venue.at() or "")
    sizes = [
        size_wei
        for (lowest, highest), count in zip(policy.crowd_sizes_wei, policy.crowd_counts, strict=True)
        for size_wei in draw.cover(f"size {lowest}", lowest, highest, count)
    ]
    others = [number for number in range(len(sizes)) if number != _PLAIN_AT]
    count, quarter = len(others), len(sizes) // 4
    ways = _ways(draw, others, bool(place.venue.traits.second_route))
    # Pieces are sold at moments of others, so that wallet is last, and gets no time of its own.
    timed = sorted(draw.shuffle("times", others), key=lambda number: ways.get(number) == _PIECES)
    times = dict(zip(timed, _times(draw, count, policy), strict=True))
    takes_tips = head.dialect is None or not head.dialect.drops_tips
    first_approves = draw.between("approves", 0, 1)
    delegating = draw.shuffle("delegates", [number for number in others if number not in ways])[0]
    again = _deal(draw, "again", others, quarter, (1000, BPS))
    purses = _deal(draw, "purse", others, count, policy.crowd_purse_wei)
    tips = _deal(draw, "tip", others, 2 * count // 3, (10**6, policy.crowd_most_tip_wei))
    weth = _deal(draw, "weth", others, quarter, _WETH_WEI)
    usdg = _deal(draw, "usdg", others, quarter, _USDG_RAW)
    wallets = []
    for number, size_wei in enumerate(sizes):
        wallet, nonce = draw.address(f"wallet {number}"), draw.between(f"wallet {number} nonce", 1, 300)
        if number == _PLAIN_AT:
            last_s = policy.day_s + policy.later_s
            wallets.append(crowd_plans.plain_wallet(wallet, nonce, size_wei, last_s))
            continue
        way, share_bps = ways.get(number, _USUAL)
        wallets.append(
            CrowdWallet(
                wallet=wallet,
                nonce=nonce,
                size_wei=size_wei,
                again_wei=size_wei * again.get(number, 0) // BPS,
                purse_wei=purses[number],
                weth_wei=weth.get(number, 0),
                usdg_raw=usdg.get(number, 0),
                tip_wei=tips.get(number, 0) if takes_tips else 0,
                # Every other one, so that few wallets in a thin pool approve in both manners.
                approves_all=number % 2 == first_approves,
                after_s=times[number],
                share_bps=share_bps,
                way=way,
                delegates=number == delegating,
            )
        )
    largest_wei = policy.crowd_largest_wei * draw.between("largest size", 9000, BPS) // BPS
    nonce = draw.between("largest nonce", 1, 300)
    largest = crowd_plans.plain_wallet(draw.address("largest"), nonce, largest_wei, policy.later_s)
    return (*wallets, largest)


_WETH_WEI, _USDG_RAW = (10**16, 10**18), (10**6, 40 * 10**6)
"""The bounds of what a wallet holds of other money."""


def _deal(draw: _Draw, label: str, numbers: list[int], count: int, bounds: tuple[int, int]) -> dict[int, int]:
    """For ``count`` of the wallets, drawn, a number between ``bounds``, all covering the scale evenly."""
    return dict(zip(draw.shuffle(f"who {label}", numbers), draw.cover(label, *bounds, count), strict=False))


_SOON_TIMES, _LATE_TIMES = 7, 5
"""How many wallets sell at drawn times in the first hour, and after the third."""


def _times(draw: _Draw, count: int, policy: Policy) -> list[int]:
    """When each sells, in seconds after its last buy: at drawn times, which cover the first hour, the next
    two and the rest of the day, and else at the main wallet's."""
    later_s, hour_s = policy.later_s, policy.hour_s
    drawn = [
        *draw.cover("soon", later_s + 1, hour_s - 60, _SOON_TIMES),
        draw.between("second hour", hour_s + 100, 2 * hour_s),
        draw.between("third hour", 2 * hour_s + 1, 3 * hour_s),
        *draw.cover("late", 3 * hour_s + 1, _LAST_DRAWN_S, _LATE_TIMES),
    ]
    return (drawn + [later_s, hour_s, policy.day_s] * count)[:count]


_LAST_DRAWN_S = 84_000
"""The latest drawn time: forty minutes before the day ends."""
_USUAL: tuple[CrowdWay, int] = ("usual", BPS)
_PIECES: tuple[CrowdWay, int] = ("pieces", BPS)
_PARTS = 5
"""How many wallets sell only a share."""


def _ways(draw: _Draw, numbers: list[int], two_routes: bool) -> dict[int, tuple[CrowdWay, int]]:
    """How some of them sell, and which share; the others sell all of it by the usual route. So does the
    largest of them, which meets a cap on one sale first."""
    part: CrowdWay = "usual"
    ways = [_PIECES]
    ways += [(part, share_bps) for share_bps in draw.cover("share", 100, BPS - 1, _PARTS)]
    if two_routes:
        route: CrowdWay = "second route"
        ways += [(route, BPS)] * 3
    return dict(zip(draw.shuffle("ways", numbers[:-1]), ways, strict=False))


def can_trade(run: CheckSession, trial: VenueTrial) -> bool:
    """Whether the venue is deep enough for each of its wallets."""
    return all(
        member_trader(run, trial.place, number, wallet).spent_raw(wallet.size_wei) > 0
        for number, wallet in enumerate(trial.crowd_wallets)
    )


def fit_wallets(
    run: CheckSession, place: VenuePlace, wallets: Sequence[CrowdWallet], most_raw: int
) -> tuple[CrowdWallet, ...]:
    """The wallets. Where together they would buy for more than ``most_raw`` of the venue's quote, all sizes
    shrink by the same factor, so that every wallet trades; they are 0 where ``most_raw`` is."""
    total_raw = sum(
        trader.spent_raw(wallet.size_wei) + trader.spent_raw(wallet.again_wei)
        for number, wallet in enumerate(wallets)
        for trader in [member_trader(run, place, number, wallet)]
    )
    if total_raw <= most_raw:
        return tuple(wallets)
    return tuple(
        replace(
            wallet,
            size_wei=wallet.size_wei * most_raw // total_raw,
            again_wei=wallet.again_wei * most_raw // total_raw,
        )
        for wallet in wallets
    )


def room_raw(
    run: CheckSession,
    place: VenuePlace,
    facts: PoolFacts | Missing,
    launch: AnyLaunch | Missing | None,
    main: BuyOutcome,
) -> int:
    """The most that the crowd may buy for, in base units of the venue's quote: a part of the venue's depth.
    Where the main wallet's buy was larger than that and was filled, as in a pool that holds no money yet, the
    crowd may buy for as much. On a curve it may buy for at most a third of what is left after that buy, so
    that the curve stays open. 0: the depth is not known."""
    curve = launch.curve_state if isinstance(launch, LaunchRecord) else None
    divisor = run.means.policy.crowd_depth_divisor
    if place.venue.is_curve and isinstance(curve, Curve):
        main_raw = size_raw("probe", place, run.setting, run.environments[0])
        if isinstance(main_raw, Missing):
            return 0
        return min(curve.quote_raw // divisor, max(0, _until_closed_raw(curve) - main_raw) // 3)
    if not isinstance(facts, PoolFacts):
        return 0
    filled_raw = main.paid_raw if isinstance(main, CompletedBuy) and is_filled(main) else 0
    return max(facts.quote_reserve_raw // divisor, filled_raw)


def _until_closed_raw(curve: Curve) -> int:
    """The quote that sells the curve out, before fees."""
    sellable = max(0, curve.token_raw - curve.reserved_raw)
    return curve.quote_raw * sellable // max(1, curve.reserved_raw)


def recall_wallets(run: CheckSession, place: VenuePlace, most_raw: int) -> tuple[CrowdWallet, ...]:
    """The wallets that earlier checks keep for this venue, smallest first. They trade in a simulation of
    their own: earlier proofs show their addresses, and a token that meets one could behave for all others.
    Together they buy for at most half of ``most_raw``, which is what a crowd may buy for."""
    if run.crowd_seed is None:
        return ()
    known: dict[Address, CrowdWallet] = {}
    for recalled in run.recalled:
        if recalled.at == place.venue.at() and len(known) < run.means.policy.most_recalled:
            wallet = redraw_wallet(place, run.head, run.means.policy, recalled)
            known.setdefault(wallet.wallet, wallet)
    wallets = sorted(known.values(), key=lambda wallet: wallet.size_wei)
    return fit_wallets(run, place, wallets, most_raw // 2)


def redraw_wallet(
    place: VenuePlace, head: ChainHead, policy: Policy, recalled: RecalledWallet
) -> CrowdWallet:
    """The wallet as it was drawn in its own check."""
    seed = bytes.fromhex(recalled.seed[2:])
    if recalled.number != MAIN_WALLET:
        return draw_crowd(seed, place, head, policy)[recalled.number]
    main = main_wallet(environments.draw(seed, head, policy)[0])
    return crowd_plans.plain_wallet(main.buyer, main.nonce, policy.probe_wei, policy.later_s)


# --- parts of a crowd that one simulation has no gas for -------------------------------------------


@dataclass(frozen=True, slots=True)
class CrowdPart:
    """Every wallet from ``first`` on in steps of ``step``: wallets of all sizes."""

    first: int = 0
    step: int = 1

    def split(self, into: int) -> tuple["CrowdPart", ...]:
        """The part's own parts."""
        return tuple(CrowdPart(self.first + n * self.step, self.step * into) for n in range(into))

    def of(self, trial: VenueTrial) -> VenueTrial:
        """The venue with these wallets only, and with what is known of their buys."""
        chosen = slice(self.first, None, self.step)
        crowd = trial.crowd
        if isinstance(crowd, CrowdBuys):
            crowd = CrowdBuys(crowd.wallets[chosen], crowd.buys[chosen])
        return replace(trial, crowd_wallets=trial.crowd_wallets[chosen], crowd=crowd)


WHOLE_CROWD = CrowdPart()
MAX_PARTS = 6
"""So every wallet trades in the company of four others at least, the main wallet included: some tokens refuse
whoever sells after others. A token that uses too much gas for that is not judged. What data costs is not the
token's doing, and adds parts."""
_SMALL_CALLS, _SMALL_GAS = 8, 60_000
"""A wallet's calls beside its trades and its approval of the token, and what each uses."""
_POOL_USED_BPS = 8000
"""The share of a node's gas pool that plans count on: sells use other gas than buys."""


def crowd_parts(run: CheckSession, main: CompletedBuy, wallets: Sequence[CrowdWallet]) -> int:
    """In how many simulations the crowd trades, so that each fits the node's gas pool. A trade is estimated
    at the gas that the main wallet's buy used, at most the crowd's limit. One for ordinary tokens. 0: even as
    many as ``most_parts`` do not fit."""
    trade_gas = min(main.gas, run.means.policy.crowd_gas_limit + data_gas(run))
    small_gas = _SMALL_CALLS * (_SMALL_GAS + data_gas(run, "0x")) + main.approve_gas
    parts = min(max(1, len(wallets)), _count_parts(run, wallets, main.gas, trade_gas, small_gas))
    return parts if parts <= most_parts(run, wallets) else 0


def most_parts(run: CheckSession, wallets: Sequence[CrowdWallet]) -> int:
    """Into how many parts the crowd may be split: ``MAX_PARTS``, and as many more as its data's gas fills."""
    trade_gas, small_gas = data_gas(run), _SMALL_CALLS * data_gas(run, "0x")
    of_data = _count_parts(run, wallets, trade_gas, trade_gas, small_gas) if trade_gas else 0
    return min(max(1, len(wallets)), MAX_PARTS + of_data)


def _count_parts(
    run: CheckSession, wallets: Sequence[CrowdWallet], main_gas: int, trade_gas: int, small_gas: int
) -> int:
    gas = 0
    for wallet in wallets:
        sells_count = run.means.policy.pieces if wallet.way == "pieces" else 1
        gas += trade_gas * (sells_count + (2 if wallet.again_wei else 1)) + small_gas
    room = pool_gas(run) * _POOL_USED_BPS // BPS - main_gas - small_gas
    return -(-gas // max(1, room))


def fit_attempts(run: CheckSession) -> Policy:
    """The policy with as many rounds of attempts to sell nearly all as half of one simulation's gas allows,
    where a call's data costs gas; one at least."""
    policy, data = run.means.policy, data_gas(run)
    if not data:
        return policy
    # Those shares, all but ``nearly_kept_raw``, and half.
    attempts = len(policy.nearly_bps) + 2
    round_gas = attempts * (data + _ATTEMPT_GAS + data_gas(run, "0x") + _SMALL_GAS)
    rounds = min(policy.nearly_rounds, pool_gas(run) // 2 // round_gas)
    return replace(policy, nearly_rounds=max(1, rounds))


def fit_attempts_to(run: CheckSession, main: CompletedBuy, used_gas: int) -> CheckSession:
    """The session with as many rounds of attempts to sell nearly all as a node's gas pool has room for; it
    has one at least. ``used_gas``: what a refused sell used, which each attempt may use again."""
    policy = run.setting.policy
    attempts_gas = (len(policy.nearly_bps) + 2) * min(used_gas, policy.nearly_gas_limit)
    between_gas = 2 * min(used_gas, policy.company_gas_limit)
    room = pool_gas(run) * _POOL_USED_BPS // BPS - main.gas + between_gas
    rounds = max(1, min(policy.nearly_rounds, room // max(1, attempts_gas + between_gas)))
    if rounds == policy.nearly_rounds:
        return run
    return replace(run, setting=replace(run.setting, policy=replace(policy, nearly_rounds=rounds)))


def fits_small_pieces(run: CheckSession) -> bool:
    """Whether one simulation has the gas for ``small_pieces`` sales: where data costs much gas it has not."""
    return (
        run.means.policy.small_pieces * (data_gas(run) + _ATTEMPT_GAS)
        <= pool_gas(run) * _POOL_USED_BPS // BPS
    )


_ATTEMPT_GAS = 200_000
"""What an attempt to sell uses beside the gas for its data, of most tokens."""


def data_gas(run: CheckSession, calldata: str = "") -> int:
    """At most so much gas does a call's data cost; without ``calldata``, the data of a trade."""
    fee = run.head.known_dialect().data_fee
    return fee.gas(calldata or _TRADE_DATA, run.environments[0].base_fee_wei)


_TRADE_DATA = "0x" + "ff" * 300
"""As many bytes as are not zero in the calldata of a sale on a v4 pool."""


def pool_gas(run: CheckSession) -> int:
    """The gas of one simulation. A node without a limit gets the usual one, so that checks are the same."""
    return run.head.known_dialect().gas_pool or GAS_POOL


# --- what the buys bring ----------------------------------------------------------------------------


def quote_crowd_buys(
    run: CheckSession, trial: VenueTrial, launch: AnyLaunch | Missing | None, wallets: tuple[CrowdWallet, ...]
) -> CrowdBuys | None:
    """What each wallet's buys bring, by the venue's formula and by what of the main buy arrived. None where
    the formula does not explain the main buy: then the buys are to be measured."""
    main, given_raw, facts = trial.completed_buy("probe"), trial.main_given_raw, trial.facts
    if main is None or not given_raw or not isinstance(facts, PoolFacts):
        return None
    order = _buy_order(run, trial.place, wallets)
    amounts = [main.offered_raw, *(raw for _, raw in order)]
    given = outputs_of_buys(trial.place.venue, facts, launch, run.token, amounts)
    if given is None or given[0] != given_raw:
        return None
    by_wallet = dict.fromkeys(range(len(wallets)), 0)
    for (number, _), raw in zip(order, given[1:], strict=True):
        by_wallet[number] += raw
    buys = tuple(MemberBuys(raw, _arriving_raw(raw, main, given_raw), main.gas) for raw in by_wallet.values())
    return CrowdBuys(wallets, buys)


def _arriving_raw(raw: int, main: CompletedBuy, given_raw: int) -> int:
    """What arrives where the venue gives ``raw``, in the proportion of the main buy."""
    if main.received_raw == given_raw:
        return raw
    # Where a part is taken, rounding differs from wallet to wallet, and with the size.
    return max(0, raw * main.received_raw // given_raw - raw // given_raw - 2)


def _buy_order(
    run: CheckSession, place: VenuePlace, wallets: tuple[CrowdWallet, ...]
) -> list[tuple[int, int]]:
    """The buys in the order of ``crowd_plans.crowd_buy_blocks``: number of the wallet, and the amount."""
    size = crowd_plans.block_size(run.means.policy)
    order = []
    for number, wallet in enumerate(wallets):
        trader = member_trader(run, place, number, wallet)
        block = number // size
        order.append((block, 1, number, trader.spent_raw(wallet.size_wei)))
        if wallet.again_wei:
            order.append((block + 1, 0, number, trader.spent_raw(wallet.again_wei)))
    return [(number, raw) for _, _, number, raw in sorted(order)]


def crowd_blocks(
    run: CheckSession, place: VenuePlace, wallets: tuple[CrowdWallet, ...]
) -> list[PlannedBlock]:
    """The blocks of the buys, and in the last one reads of what each wallet holds."""
    env, setting = run.environments[0], run.setting
    members = [_buyer(run, place, number, wallet) for number, wallet in enumerate(wallets)]
    *blocks, last = crowd_plans.crowd_buy_blocks(place, setting, env, members)
    return [*blocks, structs.replace(last, steps=last.steps + crowd_plans.held_reads(setting, env, members))]


def _buyer(run: CheckSession, place: VenuePlace, number: int, wallet: CrowdWallet) -> Member:
    limit = member_trader(run, place, number, wallet).gas_limit()
    return Member(number, wallet, 0, limit, limit)


def member_trader(run: CheckSession, place: VenuePlace, number: int, wallet: CrowdWallet) -> CrowdTrader:
    """Where and how the wallet of this number trades in the crowd."""
    return CrowdTrader(place, run.setting, run.environments[0], wallet, f"m{number}")


def read_crowd_buys(run: CheckSession, trial: VenueTrial, results: Results) -> CrowdBuys:
    """Each wallet's measured buys."""
    wallets, buys = trial.crowd_wallets, []
    for number, wallet in enumerate(wallets):
        buys.append(crowd_outcomes.read_buys(results, member_trader(run, trial.place, number, wallet)))
    return CrowdBuys(wallets, tuple(buys))
