"""What a wallet's calls need before they are run: guesses which assets they move and which allowances they
set; the tokens that trade at the addresses and pool ids that they name; gas limits, and the gas that all
their simulations may use.

A guess costs one read and proves nothing. The events of the run, and the access lists of nodes that return
them, find what is missed here."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.legs import Setting
from roundtrip.chain.wallet.calls import GAS_SLACK, PLENTY_WEI, Pair, Via, WalletCalls, WatchedAssets
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.base.venue import is_curve
from roundtrip.domain.check.evidence import Environment, Missing
from roundtrip.domain.trade.judge import RunResult
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.runtime.context import Context
from roundtrip.services.trade.simulate_params import OwnFees
from roundtrip.store.check.token_index import IndexedPlace, read_places
from roundtrip.venues import abi, erc20, permit2
from roundtrip.venues.base import Call, Contracts

MAX_AT_FIRST, MAX_IN_ALL = 48, 256
"""The most tokens, and the most allowances, that the first run and a rerun read."""
_SELECTOR = 10
"""Characters of a function's selector, with ``0x``."""
_ADDRESS_BYTES, _ID_BYTES = 20, 32
_MIN_ADDRESS = 2**64
"""A smaller word is a number: an address with that many leading zeros cannot be made, and precompiles hold no
assets."""
_MAX_MARKS, _PADDING = 2048, "00" * 8


@dataclass(frozen=True, slots=True)
class KnownPlaces:
    """Tokens by their own address, and by the pools and curves where they trade. ``listed``: by the logs of
    this process; ``others``: by the index and by checks."""

    listed: VenueIndex | None
    others: Mapping[str, IndexedPlace]

    def token_at(self, place: str) -> Address | None:
        """The token that trades at a pool's or curve's address, or under a pool's id; a token's own address
        returns itself. None: unknown."""
        token = None if self.listed is None else self.listed.token_at(place)
        known = self.others.get(place)
        return token or (None if known is None else known.token)

    def is_curve(self, place: Address) -> bool:
        """Whether the launchpad's curve of a token is there."""
        known, token = self.others.get(place), self.token_at(place)
        if known is not None and is_curve(known.kind):
            return True
        curves = () if self.listed is None or token is None else self.listed.venues_of(token)
        return any(venue.is_curve and venue.pool == place for venue in curves)

    def name_of(self, spender: Address, contracts: Contracts) -> str:
        """The name of an exchange's contract that needs allowances, or of a launchpad's curve; else empty."""
        names_by_address = {
            contracts.permit2: "Permit2",
            contracts.swap_router02: "the swap router",
            contracts.universal_router: "the Universal Router",
            contracts.v3_position_manager: "the v3 position manager",
            contracts.v4_position_manager: "the v4 position manager",
            contracts.launchpad_router: "the launchpad's router",
        }
        return names_by_address.get(spender) or ("the launchpad's curve" if self.is_curve(spender) else "")

    def with_checks(self, checks: Iterable[BuyRoundResult | object]) -> "KnownPlaces":
        """These, and the venues that checks tried."""
        tried = {
            place: IndexedPlace(check.run.token, venue.kind)
            for check in checks
            if isinstance(check, BuyRoundResult)
            for venue in check.candidates.venues
            if (place := venue.at()) is not None
        }
        return replace(self, others={**tried, **self.others})


@dataclass(frozen=True, slots=True)
class AssetsToWatch:
    """The assets to read, and the rest that exceeds the limit: then ``overlooked`` is True."""

    watched: WatchedAssets
    rest: WatchedAssets
    overlooked: bool


def list_assets(calls: tuple[Call, ...], contracts: Contracts, places: KnownPlaces) -> AssetsToWatch:
    """Lists weth and usdg, the indexed tokens of venues that the calls name, the calls' targets, and every
    address in their calldata."""
    tokens = dict.fromkeys((contracts.weth, contracts.usdg))
    for call in calls:
        tokens |= dict.fromkeys(indexed_tokens(call, places))
    tokens |= dict.fromkeys(call.to for call in calls)
    for call in calls:
        tokens |= dict.fromkeys(address_words(call.data))
    pairs = dict.fromkeys(pair for call in calls for pair in _pairs(call, contracts))
    return _cut(tuple(tokens), tuple(pairs), MAX_AT_FIRST)


def widen_assets(
    watched: AssetsToWatch, tokens: tuple[Address, ...], pairs: tuple[Pair, ...]
) -> AssetsToWatch:
    """Adds tokens and allowances; returns the same object where none is new."""
    at_first, rest = watched.watched, watched.rest
    all_tokens = dict.fromkeys((*at_first.tokens, *tokens, *rest.tokens))
    all_pairs = dict.fromkeys((*at_first.pairs, *pairs, *rest.pairs))
    if len(all_tokens) == len(at_first.tokens) and len(all_pairs) == len(at_first.pairs):
        return watched
    return _cut(tuple(all_tokens), tuple(all_pairs), MAX_IN_ALL)


def _cut(tokens: tuple[Address, ...], pairs: tuple[Pair, ...], limit: int) -> AssetsToWatch:
    rest = WatchedAssets(tokens[limit:], pairs[limit:])
    return AssetsToWatch(WatchedAssets(tokens[:limit], pairs[:limit]), rest, bool(rest.tokens or rest.pairs))


def indexed_tokens(call: Call, places: KnownPlaces) -> Iterator[Address]:
    """Indexed tokens that the call names anywhere in its calldata, packed or not, by their own address or by
    a pool's or curve's address or id."""
    for place in (call.to, *_windows(call.data)):
        token = places.token_at(place)
        if token is not None:
            yield token


def _windows(data: str) -> Iterator[str]:
    """Every run of bytes of the calldata as long as an address or a pool's id."""
    body = data[2:].lower()
    for at in range(0, len(body) - 2 * _ADDRESS_BYTES + 1, 2):
        for size in (_ADDRESS_BYTES, _ID_BYTES):
            yield "0x" + body[at : at + 2 * size]


def marks(call: Call) -> Iterator[str]:
    """What the call may name a pool, a curve or a token by: its target, and the first ``_MAX_MARKS`` runs of
    bytes without the zeros that pad numbers."""
    yield call.to
    ends = (2 + 2 * _ADDRESS_BYTES, 2 + 2 * _ID_BYTES)
    likely = (window for window in _windows(call.data) if len(window) in ends and _PADDING not in window)
    yield from islice(likely, _MAX_MARKS)


def drop_known(
    addresses: tuple[Address, ...], contracts: Contracts, places: KnownPlaces
) -> tuple[Address, ...]:
    """The addresses that may be tokens: not the exchanges' contracts, nor known pools and curves."""
    known = contracts.all_addresses()
    return tuple(
        address
        for address in addresses
        if address not in known
        and int(address, 16) >= _MIN_ADDRESS
        and places.token_at(address) in (None, address)
    )


def address_words(data: str) -> Iterator[Address]:
    """The words of the calldata that may be addresses."""
    body = bytes.fromhex(data[_SELECTOR:])
    for index in range(len(body) // abi.WORD):
        address = abi.address_at(body, index)
        if address is not None and int(address, 16) >= _MIN_ADDRESS:
            yield address


def _pairs(call: Call, contracts: Contracts) -> Iterator[Pair]:
    """The call's target may be a token, and any address in its calldata a spender. Events show the allowances
    that are set inside the calls."""
    head, words = call.data[:_SELECTOR], list(address_words(call.data))
    if call.to == contracts.permit2:
        if head == permit2.APPROVE and len(words) > 1:
            yield Pair(words[0], words[1], "permit2")
        return
    vias: dict[str, Via] = {erc20.SET_APPROVAL_FOR_ALL: "all", erc20.SET_OPERATOR: "operator"}
    yield from (Pair(call.to, word, vias.get(head, "erc20")) for word in words)


async def read_known_places(ctx: Context, calls: tuple[Call, ...]) -> KnownPlaces:
    """What is known of the places that the calls name."""
    indexed = await read_places(
        ctx.pool, {mark for call in calls for mark in marks(call)}, ctx.index_patience_s
    )
    money = ctx.contracts.weth, ctx.contracts.usdg
    others = {at: place for at, place in indexed.items() if place.token not in money}
    return KnownPlaces(ctx.heads.venue_index, others)


_FIRST_GAS, _FIRST_GAS_OF_ALL = 3_000_000, 9_000_000
"""The first gas limit of one call, and of all together: enough for any ordinary trade. Only if a call fails
are they run with the full limit."""
ESTIMATE_GAS = 600_000
"""Gas limit of an estimate: nodes run a call many times to estimate it."""
TOO_DEAR = Missing("token", "the calls use more gas than one request may use")


@dataclass(slots=True)
class GasBudget:
    """The gas that the caller's calls may still use, in all simulations of one request together."""

    remaining: int

    def take(self, gas: int) -> bool:
        """Takes gas from the budget; False where there is not enough."""
        if gas > self.remaining:
            return False
        self.remaining -= gas
        return True

    def plan(
        self, variants: list[WalletCalls], exit_gas: int, other_gas: int = 0
    ) -> tuple[list[WalletCalls], int] | None:
        """The variants of the calls that fit, and the gas for the sells. ``exit_gas``: of the sells of each
        token on one venue; ``other_gas``: of those on the other venues, which go before all variants but the
        first, as far as there is gas. None: there is not enough for the first variant and ``exit_gas``."""
        remaining, chosen = self.remaining - exit_gas, list[WalletCalls]()
        if not variants or sum(variants[0].gas_limits) > remaining:
            return None
        other_gas = min(other_gas, remaining - sum(variants[0].gas_limits))
        remaining -= other_gas
        for variant in variants:
            if (limit := sum(variant.gas_limits)) <= remaining:
                remaining -= limit
                chosen.append(variant)
        # A quarter is reserved for a rerun, where the calls touch assets that were not read.
        return chosen, exit_gas + other_gas + remaining * 3 // 4 if exit_gas else 0


@dataclass(frozen=True, slots=True)
class WalletCase:
    """One wallet's calls. ``environment`` is a block like the next one, with the wallet in it. ``fund``: the
    wallet gets plenty of eth. ``own_gas``: the gas limit that the wallet sets for each call; empty: for none.
    ``own_fees``: likewise."""

    ctx: Context
    head: ChainHead
    environment: Environment
    setting: Setting
    wallet: Address
    calls: tuple[Call, ...]
    places: KnownPlaces
    fund: bool
    meter: Meter
    gas: GasBudget
    own_gas: tuple[int | None, ...] = ()
    own_fees: tuple[OwnFees | None, ...] = ()

    def asks_wei(self, number: int, gas_used: int, gas_price_wei: int) -> int:
        """What a wallet must hold for the gas of a call: its own limit at its own highest fee, where it sets
        them."""
        limit = self.own_gas[number] if self.own_gas else None
        fees = self.own_fees[number] if self.own_fees else None
        price_wei = fees.most_wei if fees is not None and fees.most_wei is not None else gas_price_wei
        return (gas_used if limit is None else limit) * price_wei

    def first_gas(self) -> int:
        """The gas limit of one call when the calls are first run."""
        return min(_FIRST_GAS, _FIRST_GAS_OF_ALL // len(self.calls))

    def most_gas(self) -> int:
        """The highest gas limit that one call is given."""
        policy = self.ctx.policy
        return min(policy.buy_gas_limit, policy.trade_gas_budget // len(self.calls))


def gas_of(result: RunResult | Missing) -> int:
    """The gas that all calls used."""
    return sum(call.gas_used for call in result.calls) if isinstance(result, RunResult) else 0


def is_cut_short(result: RunResult, case: WalletCase) -> bool:
    """Whether a call ran out of gas below the limit that a wallet could set."""
    max_gas = case.most_gas()
    failed = [call for call in result.calls if not call.ok and call.gas_used * 10 >= max_gas * 9]
    starved = any(call.reason == "out of gas" for call in failed)
    return starved and max_gas < case.ctx.policy.buy_gas_limit


def allow_gas(case: WalletCase, gas_limit: int) -> WalletCalls:
    """The calls with plenty of eth and ``gas_limit`` each, to measure what they need. A later run with the
    wallet's own eth and gas limits gives the result."""
    limits = (gas_limit,) * len(case.calls)
    return WalletCalls(case.wallet, case.calls, limits, 2 * PLENTY_WEI)


def allow_used_gas(case: WalletCase, result: RunResult) -> WalletCalls:
    """The calls with plenty of eth and three times the gas that they used."""
    return WalletCalls(case.wallet, case.calls, _limits(case, result, 30_000, GAS_SLACK), 2 * PLENTY_WEI)


def with_gas_limits(
    case: WalletCase, estimated_gas: int, result: RunResult, balance_wei: int
) -> list[WalletCalls]:
    """Variants of the calls with the wallet's eth, each with other gas limits that wallets set: 1.5 times the
    gas used, the other usual shares, the node's estimate of the first call, then more, up to the maximum."""
    policy, usual_gas = case.ctx.policy, usual_limits(case, result)
    drawn_bps = 10_200 + int(case.environment.prev_randao, 16) % 25_000
    ladder = [usual_gas, *(_limits(case, result, bps) for bps in (*_USUAL_GAS_BPS, drawn_bps))]
    if 0 < estimated_gas <= case.most_gas():
        ladder.append((estimated_gas, *usual_gas[1:]))
    higher = [min(limit, case.most_gas()) for limit in policy.sell_gas_ladder if limit > max(usual_gas)]
    ladder += [tuple(max(limit, gas) for gas in usual_gas) for limit in higher]
    variants = [WalletCalls(case.wallet, case.calls, limits, None) for limits in dict.fromkeys(ladder)]
    if case.fund:
        return [variant.with_plenty() for variant in variants]
    return [variant.as_sent(result, balance_wei, case.environment, policy) for variant in variants]


_USUAL_GAS_BPS = (10_160, 11_000, 12_000, 12_500, 13_000, 20_000, 30_000)
"""Shares of the gas that a call uses; one more share is drawn at random, so it cannot be predicted."""


def usual_limits(case: WalletCase, result: RunResult) -> tuple[int, ...]:
    """The gas limits that most wallets would set: 1.5 times the gas used."""
    return _limits(case, result, 15_000, GAS_SLACK)


def _limits(case: WalletCase, result: RunResult, bps: int, slack: int = 1) -> tuple[int, ...]:
    max_gas = case.most_gas()
    return tuple(min(max_gas, call.gas_used * bps // BPS + slack) for call in result.calls)
