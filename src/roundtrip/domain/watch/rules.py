"""Alert rules: what they watch for, their text, and whether a happening matches."""

from collections.abc import Set
from dataclasses import dataclass
from typing import Literal, NamedTuple

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, Numeric, plain_decimal
from roundtrip.domain.liquidity.unlocks import is_large

Verb = Literal["buying", "selling", "launching", "graduating", "moving", "draining", "removing"]
VERBS: tuple[Verb, ...] = (
    "buying", "selling", "launching", "graduating", "moving", "draining", "removing"
)  # fmt: skip
Unit = Literal["eth", "usd", "%"]
WhoKind = Literal["follow", "any", "wallet", "deployer", "creator"]

DECIMALS: dict[Unit, int] = {"eth": 18, "usd": 6, "%": 4}
"""Of a threshold: wei, millionths of a dollar, millionths of the whole."""
WITHOUT_SHARE: frozenset[Verb] = frozenset({"launching", "graduating"})
"""Verbs without a share: ``%`` is refused."""
FOLLOWED_VERBS: frozenset[Verb] = frozenset({"buying", "selling", "launching"})
"""Actions of a followed wallet that alert without a rule, as large removals do."""
_PPM = 1_000_000


class Happening(NamedTuple):
    """An event on the chain that a rule may match. ``wallet``: who acted; of a graduation, the token's
    deployer. ``eth_wei``, ``micro_usd``: the value of what moved; None: unknown. ``part_raw`` of
    ``whole_raw``: the share of the supply, of the pool's liquidity, or of its active liquidity; None:
    unknown. A part above the whole is no share: that supply is not, or no longer, the token's.
    ``by_deployer``: of a removal, whether a launchpad names the wallet as the token's deployer."""

    verb: Verb
    spot: Spot
    wallet: Address
    token: Address
    eth_wei: Numeric | None
    micro_usd: Numeric | None
    part_raw: Numeric | None
    whole_raw: Numeric | None
    by_deployer: bool = False

    def share_ppm(self) -> int | None:
        """The share in millionths, rounded down."""
        part = self._part()
        return None if part is None else part[0] * _PPM // part[1]

    def magnitude(self, unit: Unit) -> int | None:
        """The amount in the unit, rounded up: the happening exceeds exactly the thresholds below it. None:
        unknown, so it exceeds none."""
        if unit == "eth":
            return self.eth_wei
        if unit == "usd":
            return self.micro_usd
        part = self._part()
        # Rounded up: 5.00001 % is more than 5 %.
        return None if part is None else -(-part[0] * _PPM // part[1])

    def alerts_followers(self) -> bool:
        """Whether it alerts the wallet's followers, without a rule."""
        if self.verb == "removing":
            return is_large(self.part_raw, self.whole_raw, self.by_deployer)
        return self.verb in FOLLOWED_VERBS

    def _part(self) -> tuple[int, int] | None:
        if self.part_raw is None or not self.whole_raw or self.part_raw > self.whole_raw:
            return None
        return self.part_raw, self.whole_raw


@dataclass(frozen=True, slots=True)
class Who:
    """``address``: the wallet; for ``deployer`` and ``creator`` the token that was launched."""

    kind: WhoKind
    address: Address | None = None

    def text(self) -> str:
        """As written in a rule."""
        if self.kind == "wallet":
            return str(self.address)
        return self.kind if self.address is None else f"{self.kind}:{self.address}"


@dataclass(frozen=True, slots=True)
class Over:
    """More than ``raw``, in the units of ``DECIMALS``."""

    unit: Unit
    raw: Numeric

    def text(self) -> str:
        """As written in a rule."""
        return f"over {plain_decimal(self.raw, DECIMALS[self.unit])} {self.unit}"

    def holds(self, happening: Happening) -> bool:
        """Whether the happening exceeds the threshold. An unknown amount does not."""
        magnitude = happening.magnitude(self.unit)
        return magnitude is not None and self.raw < magnitude


@dataclass(frozen=True, slots=True)
class Rule:
    """``<who> <verb> [over <n> eth|usd|%] [on <token>]``."""

    who: Who
    verb: Verb
    over: Over | None = None
    token: Address | None = None

    def text(self) -> str:
        """The canonical text; parsing it gives this rule again."""
        on = f"on {self.token}" if self.token is not None else ""
        parts = (self.who.text(), self.verb, self.over.text() if self.over else "", on)
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Watch:
    """A rule with its resolved wallets. ``wallets``: who may have acted; None: any wallet."""

    rule: Rule
    wallets: Set[Address] | None

    def matches(self, happening: Happening) -> bool:
        """Whether the rule matches. The wallet of a launch, and of a graduation, is the token's deployer."""
        rule = self.rule
        return (
            happening.verb == rule.verb
            and (self.wallets is None or happening.wallet in self.wallets)
            and (rule.token is None or happening.token == rule.token)
            and (rule.over is None or rule.over.holds(happening))
        )
