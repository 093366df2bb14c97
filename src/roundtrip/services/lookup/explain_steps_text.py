"""The account of a transaction in plain sentences."""

from dataclasses import dataclass

from roundtrip.domain.base.events import CurveTraded, LaunchedToken, LaunchMoved, PoolOpened
from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address, plain_decimal
from roundtrip.domain.base.venue import TRAITS
from roundtrip.domain.transaction.account import (
    AllowanceGiven,
    CollectionAllowed,
    ItemMoved,
    MovedAsset,
    OperationEnded,
    TransactionStep,
)
from roundtrip.services.support.index_reader import quote_token, when
from roundtrip.venues.base import Contracts
from roundtrip.venues.entry_point import ENTRY_POINTS

from .entities import KnownEntities

_MOST_DIGITS = 30
"""A number of whole tokens with more of them means nothing but that its contract says so."""
_DIGITS = 6
"""As many significant digits of a number of tokens as a sentence has."""


@dataclass(frozen=True, slots=True)
class StepsText:
    """Says what steps are, of one network and with what is known of its tokens. ``actors``: who sent the
    transaction, what was called, and accounts of its operations: of anybody else a token's word is no more
    than that."""

    contracts: Contracts
    known: KnownEntities
    actors: frozenset[Address] = frozenset()

    def is_money(self, asset: Address) -> bool:
        """True for eth, weth and usdg."""
        return asset in (ZERO_ADDRESS, self.contracts.weth, self.contracts.usdg)

    def token(self, asset: Address) -> str:
        """An asset in a sentence."""
        money = {ZERO_ADDRESS: "eth", self.contracts.weth: "weth", self.contracts.usdg: "usdg"}
        return money.get(asset) or quote_token(self.known.label(asset))

    def decimals(self, asset: Address) -> int | None:
        """None: nobody knows."""
        if asset in (ZERO_ADDRESS, self.contracts.weth):
            return 18
        return 6 if asset == self.contracts.usdg else self.known.label(asset).decimals

    def amount(self, moved: MovedAsset) -> str:
        """So much of an asset."""
        if moved.asset == ZERO_ADDRESS:
            return wei_text(moved.raw)
        decimals = self.decimals(moved.asset)
        if abs(moved.raw) >= 10 ** (_MOST_DIGITS + (decimals or 0)):
            return f"more {self.token(moved.asset)} than any token has"
        if decimals is None:
            return f"{moved.raw:,} base units of {self.token(moved.asset)}"
        return f"{short(moved.raw, decimals)} {self.token(moved.asset)}"

    def amounts(self, moved: list[MovedAsset]) -> str:
        """Several in a row, the first few of them."""
        shown = [self.amount(one) for one in moved[:5]]
        if len(moved) > len(shown):
            shown.append(f"{len(moved) - len(shown)} more tokens")
        return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]

    def who(self, address: Address | None) -> str:
        """A wallet or contract; the network's own machinery by what it is."""
        if address is None:
            return "nobody"
        if address in ENTRY_POINTS:
            return f"the account-abstraction entry point ({address})"
        if address == self.contracts.permit2:
            return f"Permit2 ({address})"
        if address in self.known.markets:
            return f"the {TRAITS[self.known.markets[address].kind].label} {address}"
        for name, known in self.contracts.by_name().items():
            if known != address:
                continue
            if name.startswith("launchpad_v1_factories"):
                return f"a first-generation launchpad factory ({address})"
            if not name.startswith("beside"):
                return f"the {name.replace('_', ' ')} ({address})"
        return address

    def place(self, step: TransactionStep) -> str:
        """The pool or curve."""
        return f"the {TRAITS[step.venue].label} {step.at}" if step.venue is not None else str(step.at)

    def step(self, step: TransactionStep) -> str:
        """One step as a sentence without its stop, in the third person."""
        say = {
            "buy": self._trade,
            "sell": self._trade,
            "swap": self._trade,
            "transfer": self._transfer,
            "item": self._item,
            "approval": self._approval,
            "launch": self._launch,
            "graduation": self._graduation,
            "pool_opened": self._pool_opened,
            "operation": self._operation,
        }.get(step.kind)
        return say(step) if say is not None else self._plain(step)

    def _plain(self, step: TransactionStep) -> str:
        who, at = self.who(step.who), self.place(step)
        if step.kind in ("wrap", "unwrap"):
            assert step.paid is not None
            made = "wrapped" if step.kind == "wrap" else "unwrapped"
            into = "weth" if step.kind == "wrap" else "eth"
            asset = ZERO_ADDRESS if into == "weth" else self.contracts.weth
            return f"{who} {made} {self.amount(MovedAsset(asset, step.paid.raw))} into {into}"
        if step.kind in ("liquidity_added", "liquidity_taken"):
            sides = [side for side in (step.paid, step.got) if side is not None and side.raw]
            how = "added to" if step.kind == "liquidity_added" else "taken from"
            much = f" of {self.amounts(sides)}" if sides else ""
            return f"Liquidity{much} was {how} {at}"
        if step.kind == "contract_made":
            return f"{who} made the contract {step.at}"
        paid = f" with {self.amount(step.paid)}" if step.paid is not None else ""
        return f"{who} called {self.who(step.to)}{paid}"

    def _trade(self, step: TransactionStep) -> str:
        assert step.paid is not None
        assert step.got is not None
        paid, got = self.amount(step.paid), self.amount(step.got)
        at = f"{_preposition(step)} {self.place(step)}"
        said = step.said
        if isinstance(said, CurveTraded) and said.wallet == self.contracts.launchpad_router:
            return f"{got} was bought for {self.who(said.recipient)}, with {paid} {at}"
        if step.to is not None:
            at += f", for {self.who(step.to)} to have"
        if step.kind == "buy":
            if step.who is None:
                return f"{got} was bought for {paid} {at}"
            return f"{self.who(step.who)} bought {got} for {paid} {at}"
        verb = "sold" if step.kind == "sell" else "swapped"
        if step.who is None:
            return f"{paid} was {verb} for {got} {at}"
        return f"{self.who(step.who)} {verb} {paid} for {got} {at}"

    def _transfer(self, step: TransactionStep) -> str:
        assert step.paid is not None
        amount, says = self.amount(step.paid), self._says(step)
        if not step.paid.raw:
            trick = "" if step.who in self.actors else ", and a transfer of 0 is a known trick"
            sent = f"{self.who(step.who)} sent {amount} to {self.who(step.to)}"
            return f"{says}{sent}: nothing moved{trick}"
        if step.paid.asset != ZERO_ADDRESS and step.who == ZERO_ADDRESS:
            return f"{says}{amount} was made for {self.who(step.to)}"
        if step.to in BURN_ADDRESSES:
            return f"{says}{self.who(step.who)} burned {amount} (sent it to {step.to})"
        return f"{says}{self.who(step.who)} sent {amount} to {self.who(step.to)}"

    def _says(self, step: TransactionStep) -> str:
        """Whose word it is, where nobody who took part is said to have done it: any contract can tell any
        such tale of anybody."""
        if step.token is None or self.is_money(step.token) or step.who in self.actors:
            return ""
        return f"{step.token} says that "

    def _item(self, step: TransactionStep) -> str:
        assert isinstance(step.said, ItemMoved)
        count = "" if step.said.pieces == 1 else f"{step.said.pieces:,} of "
        says = self._says(step)
        what = f"{count}item {step.said.item} of the collection {step.said.collection}"
        if step.who == ZERO_ADDRESS:
            return f"{says}{what} was made for {self.who(step.to)}"
        return f"{says}{self.who(step.who)} sent {what} to {self.who(step.to)}"

    def _approval(self, step: TransactionStep) -> str:
        spender, said = self.who(step.to), step.said
        # What Permit2 tells was signed; anything else is a token's word.
        says = "" if isinstance(said, AllowanceGiven) and said.by_permit2 else self._says(step)
        owner = f"{says}{self.who(step.who)}"
        if isinstance(said, CollectionAllowed):
            if said.allowed:
                return f"{owner} let {spender} take everything it holds of the collection {said.collection}"
            return f"{owner} took back from {spender} the right to all of the collection {said.collection}"
        assert isinstance(said, AllowanceGiven)
        token = self.token(said.token)
        how = "" if not said.by_permit2 else ", by Permit2"
        if said.by_permit2 and said.until_s is not None and said.until_s < 2**33:
            how += f", until {when(said.until_s):%Y-%m-%d %H:%M} UTC"
        if said.amount_raw == 0:
            return f"{owner} took back from {spender} the right to take its {token}{how}"
        if said.is_unlimited():
            return f"{owner} let {spender} take any amount of its {token}{how}"
        return f"{owner} let {spender} take up to {self.amount(MovedAsset(said.token, said.amount_raw))}{how}"

    def _launch(self, step: TransactionStep) -> str:
        assert isinstance(step.said, LaunchedToken)
        at = f"{_preposition(step)} {self.place(step)}, against {self.token(step.said.quote)}"
        return f"{self.who(step.who)} launched {self.token(step.said.token)} {at}"

    def _graduation(self, step: TransactionStep) -> str:
        said = step.said
        assert isinstance(said, LaunchMoved)
        token = self.token(said.token)
        if said.step == "swept":
            return f"The curve of {token} was emptied for its pool: it is sold out"
        if said.step == "pooled":
            return f"The pool of {token} was opened: it has graduated"
        return f"The launchpad's owner took what lay in the curve of {token} off it"

    def _pool_opened(self, step: TransactionStep) -> str:
        assert isinstance(step.said, PoolOpened)
        pair = f"{self.token(step.said.currency0)} and {self.token(step.said.currency1)}"
        return f"{self.place(step)[:1].upper()}{self.place(step)[1:]} of {pair} was opened"

    def _operation(self, step: TransactionStep) -> str:
        assert isinstance(step.said, OperationEnded)
        ending = "ran" if step.said.succeeded else "failed"
        return f"An operation of the account {step.who} {ending}"


def short(raw: int, decimals: int) -> str:
    """A number of tokens cut, not rounded, to as many digits as a sentence can bear."""
    whole, _, fraction = plain_decimal(raw, decimals).partition(".")
    negative = whole.startswith("-")
    digits = whole.lstrip("-")
    if digits != "0":
        fraction = fraction[: max(0, _DIGITS - len(digits))]
    else:
        zeros = len(fraction) - len(fraction.lstrip("0"))
        fraction = fraction[: zeros + _DIGITS]
    fraction = fraction.rstrip("0")
    shown = f"{int(digits):,}" + (f".{fraction}" if fraction else "")
    return f"-{shown}" if negative else shown


def wei_text(wei: int) -> str:
    """Wei as eth in a sentence, also of amounts that are next to nothing."""
    return f"{short(wei, 18)} eth"


def _preposition(step: TransactionStep) -> str:
    return TRAITS[step.venue].preposition if step.venue is not None else "in"
