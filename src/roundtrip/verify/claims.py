"""The answer under test, read into what it claims. Only what is verified is read."""

from dataclasses import dataclass
from typing import Any, Literal

from . import shape
from .report import Unreadable

BUY, SELL = "buy", "sell"
CURVE, LAUNCHED, V3, V4 = "launchpad_curve", "launchpad_pool", "amm_v3", "amm_v4"
ETH, WETH, USDG = "eth", "weth", "usdg"
MONEY_DECIMALS = {ETH: 18, WETH: 18, USDG: 6}

_STEP = {"n", "does", "to", "data", "value", "gas"}
_MOST_DECIMALS = 255
"""ERC-20 tells them in one byte."""


@dataclass(frozen=True, slots=True)
class Head:
    """What also a refused answer claims."""

    chain_id: int
    side: str
    wallet: str
    token: str
    slippage_bps: int
    refused: bool


@dataclass(frozen=True, slots=True)
class Amount:
    """``text`` is the decimal number that stands beside ``raw`` base units of ``asset``."""

    text: str
    raw: int
    asset: str


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction to sign. ``strange`` are fields that no step has: a wallet might heed them."""

    n: int
    does: str
    to: str
    data: bytes
    value: int
    gas: int
    strange: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trade:
    """Everything else. ``money`` is the side of the trade that is not the token."""

    head: Head
    decimals: int
    kind: str
    at: str
    pays: str
    spend: Amount
    expect: Amount
    least: Amount
    deadline_s: int
    prepared_s: int
    steps: tuple[Step, ...]
    already_done: int

    @property
    def buys(self) -> bool:
        return self.head.side == BUY

    @property
    def money(self) -> str:
        return self.spend.asset if self.buys else self.expect.asset

    @property
    def in_vault(self) -> bool:
        """True for pools that are no contract of their own."""
        return self.kind in (LAUNCHED, V4)

    def decimals_of(self, asset: str) -> int:
        """Of a money's name, or else of the token."""
        return MONEY_DECIMALS.get(asset, self.decimals)


def read_head(body: dict[str, Any]) -> Head:
    """Raises Unreadable."""
    token = shape.mapping(shape.get(body, "token"), "token")
    return Head(
        chain_id=shape.integer(shape.get(body, "chainId"), "chainId"),
        side=shape.one_of(shape.get(body, "side"), "side", BUY, SELL),
        wallet=shape.address(shape.get(body, "from"), "from"),
        token=shape.address(shape.get(token, "address"), "token.address"),
        slippage_bps=shape.integer(shape.get(body, "slippageBps"), "slippageBps"),
        refused=shape.boolean(shape.get(body, "refused"), "refused"),
    )


def read_trade(body: dict[str, Any], head: Head) -> Trade:
    """Raises Unreadable."""
    token = shape.mapping(shape.get(body, "token"), "token")
    venue = shape.mapping(shape.get(body, "venue"), "venue")
    decimals = shape.integer(shape.get(token, "decimals"), "token.decimals")
    if decimals > _MOST_DECIMALS:
        raise Unreadable("token.decimals is more than a token can have.")
    kind = shape.one_of(shape.get(venue, "kind"), "venue.kind", CURVE, LAUNCHED, V3, V4)
    expect = shape.mapping(shape.get(body, "expect"), "expect")
    steps = shape.items(shape.get(body, "steps"), "steps")
    done = [
        shape.text(one, "alreadyDone") for one in shape.items(shape.get(body, "alreadyDone"), "alreadyDone")
    ]
    if len(steps) > shape.MOST_STEPS:
        raise Unreadable("There are more steps than any trade has.")
    return Trade(
        head=head,
        decimals=decimals,
        kind=kind,
        at=_place(shape.get(venue, "at"), kind),
        pays=shape.one_of(shape.get(venue, "pays"), "venue.pays", ETH, WETH, USDG),
        spend=_amount(shape.mapping(shape.get(body, "spend"), "spend"), "spend"),
        expect=_amount(expect, "expect"),
        least=_amount(expect, "expect", "min", "minRaw"),
        deadline_s=shape.time_s(shape.get(body, "validUntil"), "validUntil"),
        prepared_s=shape.time_s(shape.get(body, "preparedAt"), "preparedAt"),
        steps=tuple(_step(shape.mapping(one, "a step"), at) for at, one in enumerate(steps, 1)),
        already_done=len(done),
    )


def _place(value: object, kind: str) -> str:
    """The venue's address, or its id in the vault, in lower case."""
    if kind in (V3, CURVE):
        return shape.address(value, "venue.at")
    found = shape.hexadecimal(value, "venue.at")
    if len(found) != 32:
        raise Unreadable("venue.at is no pool id: that has 32 bytes.")
    return "0x" + found.hex()


def _amount(
    holder: dict[str, Any],
    what: str,
    amount: Literal["amount", "min"] = "amount",
    raw: Literal["raw", "minRaw"] = "raw",
) -> Amount:
    asset = shape.text(shape.get(holder, "asset"), f"{what}.asset")
    return Amount(
        text=shape.text(shape.get(holder, amount), f"{what}.{amount}"),
        raw=shape.digits(shape.get(holder, raw), f"{what}.{raw}"),
        asset=asset if asset in MONEY_DECIMALS else shape.address(asset, f"{what}.asset"),
    )


def _step(holder: dict[str, Any], at: int) -> Step:
    what = f"step {at}:"
    return Step(
        n=shape.integer(shape.get(holder, "n"), f"{what} n"),
        does=shape.text(shape.get(holder, "does"), f"{what} does"),
        to=shape.address(shape.get(holder, "to"), f"{what} to"),
        data=shape.hexadecimal(shape.get(holder, "data"), f"{what} data"),
        value=shape.digits(shape.get(holder, "value"), f"{what} value"),
        gas=shape.integer(shape.get(holder, "gas"), f"{what} gas"),
        strange=tuple(name for name in holder if name not in _STEP),
    )
