"""Which steps of a transaction are no more than parts of others. Pure.

What a trade, a launch or a change of liquidity is made of is no step of its own: tokens that go between whose
it is and pools or the network's machinery, eth that is wrapped on the way, rights that were used. Whatever
has an end elsewhere is told: a drain may stand beside a tiny trade."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import is_curve

from .account import TRADES, AllowanceGiven, KnownMarket, StepKind, TransactionFacts, TransactionStep
from .sums import Nets

_VENUES: frozenset[StepKind] = frozenset(
    {*TRADES, "launch", "pool_opened", "liquidity_added", "liquidity_taken"}
)
_WHOLES: frozenset[StepKind] = frozenset(
    {*TRADES, "launch", "graduation", "liquidity_added", "liquidity_taken"}
)


def insides(
    doing: TransactionFacts, steps: Iterable[TransactionStep], markets: Mapping[str, KnownMarket]
) -> set[Address]:
    """The network's machinery, and the pools and curves that are known to be such."""
    steps = list(steps)
    found = {*doing.machinery, *doing.entry_points}
    found |= {Address(step.at) for step in steps if step.at is not None and step.kind in _VENUES}
    moved = {step.token for step in steps if step.kind == "graduation"}
    return found | {Address(one.at) for one in markets.values() if is_curve(one.kind) and one.token in moved}


def without_parts(
    steps: list[TransactionStep],
    doing: TransactionFacts,
    nets: Nets,
    inside: set[Address],
    accounts: Collection[Address],
) -> list[TransactionStep]:
    """The steps that are to be told."""
    if not any(step.kind in _WHOLES for step in steps):
        return steps
    trades = [step for step in steps if step.kind in TRADES]
    parts = _Parts(
        inside=inside,
        actors={doing.sender, *accounts, *(step.who for step in trades if step.who is not None)},
        brought={(step.to, step.got.asset) for step in trades if step.got is not None},
        passing=_passing(steps, nets, inside),
        launched={step.token for step in steps if step.kind in ("launch", "graduation")},
        weth=doing.weth,
    )
    return [step for step in steps if not parts.has(step)]


def _passing(
    steps: Iterable[TransactionStep], nets: Nets, inside: set[Address]
) -> set[tuple[Address, Address]]:
    """Who only handed a token on, to or from a pool or the machinery; with the token."""
    found = set()
    for step in steps:
        if (
            step.kind == "transfer"
            and step.token is not None
            and step.who is not None
            and step.to is not None
        ):
            for end, other in ((step.who, step.to), (step.to, step.who)):
                if other in inside and end != ZERO_ADDRESS and not nets.get(end, {}).get(step.token):
                    found.add((end, step.token))
    return found


@dataclass(frozen=True, slots=True)
class _Parts:
    """``brought``: who has what a trade brought, with the token; ``passing``: who handed a token on."""

    inside: set[Address]
    actors: set[Address]
    brought: set[tuple[Address | None, Address]]
    passing: set[tuple[Address, Address]]
    launched: set[Address | None]
    weth: Address

    def has(self, step: TransactionStep) -> bool:
        """Whether the step is a part of another."""
        if step.kind in ("transfer", "item"):
            return self._has_moved(step)
        if step.kind in ("wrap", "unwrap"):
            return step.who in self.inside or (step.who, self.weth) in self.passing
        if step.kind == "approval":
            spends = step.to in self.inside
            return step.who in self.inside or (
                spends and isinstance(step.said, AllowanceGiven) and not step.said.is_unlimited()
            )
        return False

    def _has_moved(self, step: TransactionStep) -> bool:
        ends = step.who, step.to
        if step.kind == "item" and step.who == ZERO_ADDRESS and step.token in self.inside:
            # The position that was made of the liquidity.
            return True
        through = [end in self.inside or (end, step.token) in self.passing for end in ends]
        if not any(through):
            return False
        # A launched token goes from its curve, which the index may not know yet, to the launchpad's own.
        into_launchpad = step.token in self.launched and step.to in self.inside
        return into_launchpad or all(
            is_through or self._is_party(end, step.token)
            for end, is_through in zip(ends, through, strict=True)
        )

    def _is_party(self, end: Address | None, token: Address | None) -> bool:
        return end in self.actors or (token is not None and (end, token) in self.brought)
