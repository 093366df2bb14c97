"""The actors that trade on the local chain, and their decisions: seeded, and without a chain.

``choose`` decides a turn, ``DevnetTrader`` performs its steps, ``record`` records the outcome of each. The
same random numbers and outcomes give the same steps.
"""

from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any, Literal

from .deploy import ETH_PRICE_USDG
from .launchpad import NATIVE_TERMS, USDG_TERMS

TRADERS = tuple(f"trader {number}" for number in range(16))
LAUNCHERS = tuple(f"launcher {number}" for number in range(7))
SNIPERS = tuple(f"sniper {number}" for number in range(3))
FUNDER, SERIAL, DUMPER = "sniper funder", "serial launcher", "dumping launcher"

Role = Literal["plain", "hot", "serial", "dumper"]
Kind = Literal["curve", "sold_out", "graduated", "pool_v3", "pool_v4", "dead"]

_FIRST = ("Amber", "Brave", "Cosmic", "Dapper", "Electric", "Frosty", "Golden", "Happy", "Iron", "Jolly")
_SECOND = ("Badger", "Comet", "Dragon", "Falcon", "Hamster", "Lantern", "Mango", "Otter", "Rocket", "Walrus")
_SMALL_MILLI = (20, 35, 50, 80, 120, 200, 350, 600)
_LARGE_MILLI = (200, 300, 450, 700, 1000)
_CAPS_BPS = (300, 800, 1500, 2500, 4000)
_SELL_PERCENT = {"curve": 38, "graduated": 45, "pool_v3": 48, "pool_v4": 48}
_LIVE_LAUNCH_PERCENT = 6


@dataclass(frozen=True, slots=True)
class PlannedLaunch:
    """A launch. Buyers stop at ``cap_raw`` of the quote; a cap above the threshold lets it graduate."""

    name: str
    symbol: str
    quote: str
    creator_tax_bps: int
    cap_raw: int


@dataclass(frozen=True, slots=True)
class ActorStep:
    """One action. ``token``: its index in the market, for a launch the one it will get. ``amount``: of a buy,
    or of a launch's own first buy, the quote raw; of a sell the share in hundredths of a percent."""

    actor: str
    action: Literal["launch", "buy", "sell", "graduate"]
    token: int
    amount: int = 0
    launch: PlannedLaunch | None = None


@dataclass(slots=True)
class TradedToken:
    """A token that actors trade. ``stakes``: the quote that each holder put in, raw."""

    kind: Kind
    quote: str
    cap_raw: int = 0
    token: str = ""
    curve: str = ""
    stakes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """The outcome of a step: a launch's addresses; whether a buy was the curve's last."""

    token: str = ""
    curve: str = ""
    sold_out: bool = False


@dataclass(slots=True)
class ActorMarket:
    """The actors' shared state: the tokens, the turns played, and the planned steps by turn."""

    tokens: list[TradedToken] = field(default_factory=list)
    turn: int = 0
    later: list[tuple[int, ActorStep]] = field(default_factory=list)

    def pack(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def unpack(cls, packed: dict[str, Any]) -> "ActorMarket":
        """The inverse of ``pack``, sharing nothing with its input. Planned steps are never launches."""
        later = [(turn, ActorStep(**step)) for turn, step in packed["later"]]
        tokens = [TradedToken(**{**token, "stakes": dict(token["stakes"])}) for token in packed["tokens"]]
        return cls(tokens, packed["turn"], later)


def choose(market: ActorMarket, rng: Random, role: Role | None = None) -> list[ActorStep]:
    """The steps of one turn, in order; none when there is nothing to trade. ``role``: a launch is due."""
    market.turn += 1
    if role is not None:
        return _launch(market, rng, role)
    for number, listed in enumerate(market.tokens):
        if listed.kind == "sold_out":
            return [ActorStep(rng.choice(TRADERS), "graduate", number)]
    for planned in market.later:
        turn, step = planned
        if turn <= market.turn:
            market.later.remove(planned)
            return [step] if _can(market, step) else []
    return _trade(market, rng)


def live_role(rng: Random) -> Role | None:
    """The launcher's role where a turn on the running chain is a launch, else None."""
    if rng.randrange(100) >= _LIVE_LAUNCH_PERCENT:
        return None
    roles: tuple[Role, ...] = ("plain", "plain", "plain", "hot", "hot", "serial", "dumper")
    return rng.choice(roles)


def record(market: ActorMarket, step: ActorStep, outcome: StepOutcome) -> None:
    """Records a step that went through."""
    if step.action == "launch":
        assert step.launch is not None
        listed = TradedToken("curve", step.launch.quote, step.launch.cap_raw, outcome.token, outcome.curve)
        market.tokens.append(listed)
    listed, stakes = market.tokens[step.token], market.tokens[step.token].stakes
    if step.action == "graduate":
        listed.kind = "graduated"
    elif step.action == "sell":
        stakes[step.actor] -= stakes[step.actor] * step.amount // 10_000
        if step.amount == 10_000:
            del stakes[step.actor]
    elif step.amount:
        stakes[step.actor] = stakes.get(step.actor, 0) + step.amount
        listed.kind = "sold_out" if outcome.sold_out else listed.kind


def give_up(market: ActorMarket, step: ActorStep) -> None:
    """Marks the token of a step that the chain refused: no actor tries it again."""
    if step.token < len(market.tokens):
        market.tokens[step.token].kind = "dead"


def _can(market: ActorMarket, step: ActorStep) -> bool:
    """Whether a sell that was planned earlier is still possible."""
    if step.token >= len(market.tokens):
        return False
    listed = market.tokens[step.token]
    return listed.kind not in ("sold_out", "dead") and step.actor in listed.stakes


def _launch(market: ActorMarket, rng: Random, role: Role) -> list[ActorStep]:
    number = len(market.tokens)
    launcher = {"serial": SERIAL, "dumper": DUMPER}.get(role) or rng.choice(LAUNCHERS)
    quote = "usdg" if role == "plain" and rng.randrange(5) == 0 else "eth"
    first, second = rng.choice(_FIRST), rng.choice(_SECOND)
    threshold = (USDG_TERMS if quote == "usdg" else NATIVE_TERMS)[1]
    cap_bps = {"hot": 20_000, "serial": 600}.get(role) or rng.choice(_CAPS_BPS)
    tax_bps = rng.choice((0, 0, 0, 100, 300))
    symbol = (first[:2] + second[:3]).upper()
    plan = PlannedLaunch(f"{first} {second}", symbol, quote, tax_bps, threshold * cap_bps // 10_000)
    first_buy_raw = _amount(rng, _LARGE_MILLI[2:], quote) if role == "dumper" else 0
    if role in ("plain", "hot") and quote == "eth" and rng.randrange(2):
        first_buy_raw = _amount(rng, _SMALL_MILLI, quote)
    steps = [ActorStep(launcher, "launch", number, first_buy_raw, plan)]
    if role == "dumper":
        market.later.append((market.turn + rng.randrange(8, 14), ActorStep(launcher, "sell", number, 10_000)))
    if role in ("plain", "hot") and quote == "eth" and rng.randrange(100) < 40:
        for sniper in SNIPERS:
            steps.append(ActorStep(sniper, "buy", number, _amount(rng, _SMALL_MILLI[4:], quote)))
            market.later.append(
                (market.turn + rng.randrange(4, 25), ActorStep(sniper, "sell", number, 10_000))
            )
    return steps


def _trade(market: ActorMarket, rng: Random) -> list[ActorStep]:
    weights = [_interest(market, number) for number in range(len(market.tokens))]
    if not any(weights):
        return []
    (number,) = rng.choices(range(len(weights)), weights)
    listed = market.tokens[number]
    hot = _is_hot(listed)
    # Snipers and dumpers sell as planned.
    sellers = [trader for trader in listed.stakes if trader in TRADERS]
    sell_percent = 8 if hot else _SELL_PERCENT[listed.kind]
    if sellers and (_is_full(listed) or rng.randrange(100) < sell_percent):
        return [ActorStep(rng.choice(sellers), "sell", number, rng.choice((2500, 5000, 10_000, 10_000)))]
    if _is_full(listed):
        return []
    trader = rng.choice(TRADERS)
    amount = _amount(rng, _LARGE_MILLI if hot else _SMALL_MILLI, listed.quote)
    return [ActorStep(trader, "buy", number, amount)]


def _interest(market: ActorMarket, number: int) -> int:
    """The weight of a token: young, hot, and pooled tokens draw more."""
    listed = market.tokens[number]
    if listed.kind in ("sold_out", "dead") or (_is_full(listed) and not listed.stakes):
        return 0
    if listed.kind != "curve":
        return 4
    return 1 + 24 // (len(market.tokens) - number) + (12 if _is_hot(listed) else 0)


def _is_hot(listed: TradedToken) -> bool:
    threshold = (USDG_TERMS if listed.quote == "usdg" else NATIVE_TERMS)[1]
    return listed.kind == "curve" and listed.cap_raw > threshold


def _is_full(listed: TradedToken) -> bool:
    return listed.kind == "curve" and sum(listed.stakes.values()) >= listed.cap_raw


def _amount(rng: Random, milli_eth: tuple[int, ...], quote: str) -> int:
    """An amount around one of these thousandths of an eth, raw in the quote."""
    wei = rng.choice(milli_eth) * 10**15 * rng.randrange(900, 1101) // 1000
    return wei * ETH_PRICE_USDG // 10**12 if quote == "usdg" else wei
