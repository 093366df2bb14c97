"""Drops the steps of a transaction that are only parts of other steps. Pure.

A trade, a launch or a change of liquidity consists of smaller moves that are no steps of their own: token
transfers between its party and pools or the network's contracts, eth wrapped on the way, allowances that were
used. A move with an end outside of these is kept: a drain may accompany a tiny trade."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import is_curve

from .account import TRADES, AllowanceGiven, KnownMarket, StepKind, TransactionFacts, TransactionStep
from .sums import NetChanges

_VENUES: frozenset[StepKind] = frozenset(
    {*TRADES, "launch", "pool_opened", "liquidity_added", "liquidity_taken"}
)
_WHOLES: frozenset[StepKind] = frozenset(
    {*TRADES, "launch", "graduation", "liquidity_added", "liquidity_taken"}
)


def list_internal_addresses(
    facts: TransactionFacts, steps: Iterable[TransactionStep], markets: Mapping[str, KnownMarket]
) -> set[Address]:
    """The network's own contracts, and the known pools and curves that the steps use."""
    steps = list(steps)
    internal = {*facts.machinery, *facts.entry_points}
    internal |= {Address(step.at) for step in steps if step.at is not None and step.kind in _VENUES}
    graduated = {step.token for step in steps if step.kind == "graduation"}
    curves = (market for market in markets.values() if is_curve(market.kind) and market.token in graduated)
    return internal | {Address(curve.at) for curve in curves}


def drop_parts(
    steps: list[TransactionStep],
    facts: TransactionFacts,
    changes: NetChanges,
    internal: set[Address],
    accounts: Collection[Address],
) -> list[TransactionStep]:
    """The steps that are no parts of others. ``accounts``: those of the transaction's operations."""
    if not any(step.kind in _WHOLES for step in steps):
        return steps
    trades = [step for step in steps if step.kind in TRADES]
    parts = _Parts(
        internal=internal,
        actors={facts.sender, *accounts, *(step.actor for step in trades if step.actor is not None)},
        proceeds={(step.to, step.got.asset) for step in trades if step.got is not None},
        intermediaries=_find_intermediaries(steps, changes, internal),
        launched={step.token for step in steps if step.kind in ("launch", "graduation")},
        weth=facts.weth,
    )
    return [step for step in steps if not parts.contains(step)]


def _find_intermediaries(
    steps: Iterable[TransactionStep], changes: NetChanges, internal: set[Address]
) -> set[tuple[Address, Address]]:
    """(address, token) pairs that only passed the token on, to or from an internal address."""
    pairs = set()
    for step in steps:
        if (
            step.kind == "transfer"
            and step.token is not None
            and step.actor is not None
            and step.to is not None
        ):
            for end, other in ((step.actor, step.to), (step.to, step.actor)):
                if other in internal and end != ZERO_ADDRESS and not changes.get(end, {}).get(step.token):
                    pairs.add((end, step.token))
    return pairs


@dataclass(frozen=True, slots=True)
class _Parts:
    """Decides which steps are parts of others. ``proceeds``: (recipient, asset) of the trades;
    ``intermediaries``: (address, token) pairs that only passed the token on."""

    internal: set[Address]
    actors: set[Address]
    proceeds: set[tuple[Address | None, Address]]
    intermediaries: set[tuple[Address, Address]]
    launched: set[Address | None]
    weth: Address

    def contains(self, step: TransactionStep) -> bool:
        """Whether the step is a part of another."""
        if step.kind in ("transfer", "item"):
            return self._contains_move(step)
        if step.kind in ("wrap", "unwrap"):
            return step.actor in self.internal or (step.actor, self.weth) in self.intermediaries
        if step.kind == "approval":
            spends = step.to in self.internal
            return step.actor in self.internal or (
                spends and isinstance(step.log, AllowanceGiven) and not step.log.is_unlimited()
            )
        return False

    def _contains_move(self, step: TransactionStep) -> bool:
        ends = step.actor, step.to
        if step.kind == "item" and step.actor == ZERO_ADDRESS and step.token in self.internal:
            # The position NFT that was minted for the liquidity.
            return True
        passing = [end in self.internal or (end, step.token) in self.intermediaries for end in ends]
        if not any(passing):
            return False
        # A launched token goes from its curve, which the index may not know yet, to the launchpad's own.
        into_launchpad = step.token in self.launched and step.to in self.internal
        return into_launchpad or all(
            is_passing or self._is_party(end, step.token)
            for end, is_passing in zip(ends, passing, strict=True)
        )

    def _is_party(self, end: Address | None, token: Address | None) -> bool:
        return end in self.actors or (token is not None and (end, token) in self.proceeds)
