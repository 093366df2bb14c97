"""The claims of the answer under test. Only what is verified is read."""

from dataclasses import dataclass
from typing import Any, Literal

from . import json_reader
from .report import UnreadableClaim

BUY, SELL = "buy", "sell"
CURVE, LAUNCHED, V3, V4 = "launchpad_curve", "launchpad_pool", "amm_v3", "amm_v4"
ETH, WETH, USDG = "eth", "weth", "usdg"
MONEY_DECIMALS = {ETH: 18, WETH: 18, USDG: 6}

_STEP = {"n", "does", "to", "data", "value", "gas"}
_MAX_DECIMALS = 255
"""ERC-20 returns decimals in one byte."""


@dataclass(frozen=True, slots=True)
class TradeHead:
    """The claims that a refused answer makes, too."""

    chain_id: int
    side: str
    wallet: str
    token: str
    slippage_bps: int
    refused: bool


@dataclass(frozen=True, slots=True)
class ClaimedAmount:
    """``text`` is the decimal number beside ``raw`` base units of ``asset``."""

    text: str
    raw: int
    asset: str


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """One transaction to sign. ``strange``: fields that no step has, but a wallet might obey."""

    n: int
    does: str
    to: str
    data: bytes
    value: int
    gas: int
    strange: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TradeToVerify:
    """All other claims. ``money``: the side of the trade that is not the token."""

    head: TradeHead
    decimals: int
    kind: str
    at: str
    pays: str
    spend: ClaimedAmount
    expect: ClaimedAmount
    minimum: ClaimedAmount
    deadline_s: int
    prepared_s: int
    steps: tuple[PreparedStep, ...]
    already_done: int

    @property
    def buys(self) -> bool:
        return self.head.side == BUY

    @property
    def money(self) -> str:
        return self.spend.asset if self.buys else self.expect.asset

    @property
    def in_vault(self) -> bool:
        """True for pools that are not contracts of their own."""
        return self.kind in (LAUNCHED, V4)

    def decimals_of(self, asset: str) -> int:
        """Of a money, by its name, or else of the token."""
        return MONEY_DECIMALS.get(asset, self.decimals)


def read_head(body: dict[str, Any]) -> TradeHead:
    """Raises UnreadableClaim: the shape is wrong."""
    token = json_reader.mapping(json_reader.get(body, "token"), "token")
    return TradeHead(
        chain_id=json_reader.integer(json_reader.get(body, "chainId"), "chainId"),
        side=json_reader.one_of(json_reader.get(body, "side"), "side", BUY, SELL),
        wallet=json_reader.address(json_reader.get(body, "from"), "from"),
        token=json_reader.address(json_reader.get(token, "address"), "token.address"),
        slippage_bps=json_reader.integer(json_reader.get(body, "slippageBps"), "slippageBps"),
        refused=json_reader.boolean(json_reader.get(body, "refused"), "refused"),
    )


def read_trade(body: dict[str, Any], head: TradeHead) -> TradeToVerify:
    """Raises UnreadableClaim: the shape is wrong."""
    token = json_reader.mapping(json_reader.get(body, "token"), "token")
    venue = json_reader.mapping(json_reader.get(body, "venue"), "venue")
    decimals = json_reader.integer(json_reader.get(token, "decimals"), "token.decimals")
    if decimals > _MAX_DECIMALS:
        raise UnreadableClaim("token.decimals is higher than a token can have.")
    kind = json_reader.one_of(json_reader.get(venue, "kind"), "venue.kind", CURVE, LAUNCHED, V3, V4)
    expect = json_reader.mapping(json_reader.get(body, "expect"), "expect")
    steps = json_reader.items(json_reader.get(body, "steps"), "steps")
    done = [
        json_reader.text(approval, "alreadyDone")
        for approval in json_reader.items(json_reader.get(body, "alreadyDone"), "alreadyDone")
    ]
    if len(steps) > json_reader.MAX_STEPS:
        raise UnreadableClaim("The answer has more steps than any trade needs.")
    return TradeToVerify(
        head=head,
        decimals=decimals,
        kind=kind,
        at=_place(json_reader.get(venue, "at"), kind),
        pays=json_reader.one_of(json_reader.get(venue, "pays"), "venue.pays", ETH, WETH, USDG),
        spend=_amount(json_reader.mapping(json_reader.get(body, "spend"), "spend"), "spend"),
        expect=_amount(expect, "expect"),
        minimum=_amount(expect, "expect", "min", "minRaw"),
        deadline_s=json_reader.time_s(json_reader.get(body, "validUntil"), "validUntil"),
        prepared_s=json_reader.time_s(json_reader.get(body, "preparedAt"), "preparedAt"),
        steps=tuple(_step(json_reader.mapping(step, "a step"), at) for at, step in enumerate(steps, 1)),
        already_done=len(done),
    )


def _place(value: object, kind: str) -> str:
    """The venue's address, or its id in the vault, in lower case."""
    if kind in (V3, CURVE):
        return json_reader.address(value, "venue.at")
    pool_id = json_reader.hexadecimal(value, "venue.at")
    if len(pool_id) != 32:
        raise UnreadableClaim("venue.at is not a pool id, which has 32 bytes.")
    return "0x" + pool_id.hex()


def _amount(
    holder: dict[str, Any],
    label: str,
    amount: Literal["amount", "min"] = "amount",
    raw: Literal["raw", "minRaw"] = "raw",
) -> ClaimedAmount:
    asset = json_reader.text(json_reader.get(holder, "asset"), f"{label}.asset")
    return ClaimedAmount(
        text=json_reader.text(json_reader.get(holder, amount), f"{label}.{amount}"),
        raw=json_reader.digits(json_reader.get(holder, raw), f"{label}.{raw}"),
        asset=asset if asset in MONEY_DECIMALS else json_reader.address(asset, f"{label}.asset"),
    )


def _step(holder: dict[str, Any], at: int) -> PreparedStep:
    label = f"step {at}:"
    return PreparedStep(
        n=json_reader.integer(json_reader.get(holder, "n"), f"{label} n"),
        does=json_reader.text(json_reader.get(holder, "does"), f"{label} does"),
        to=json_reader.address(json_reader.get(holder, "to"), f"{label} to"),
        data=json_reader.hexadecimal(json_reader.get(holder, "data"), f"{label} data"),
        value=json_reader.digits(json_reader.get(holder, "value"), f"{label} value"),
        gas=json_reader.integer(json_reader.get(holder, "gas"), f"{label} gas"),
        strange=tuple(name for name in holder if name not in _STEP),
    )
