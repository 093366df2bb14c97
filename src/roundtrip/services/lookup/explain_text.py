"""The account of a whole transaction in plain sentences, out of its steps."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from roundtrip.chain.wallet.transactions import BlockAround, MinedTransaction, SentTransaction
from roundtrip.domain.base.events import CurveTraded, LaunchedToken, LaunchMoved, PoolOpened
from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address, plain_decimal
from roundtrip.domain.base.venue import TRAITS
from roundtrip.domain.transaction.account import (
    TRADES,
    AllowanceGiven,
    CollectionAllowed,
    ItemMoved,
    MovedAsset,
    OperationEnded,
    StepKind,
    TransactionAccount,
    TransactionStep,
)
from roundtrip.services.lookup.entities import KnownEntities
from roundtrip.services.support.index_reader import quote_token, when
from roundtrip.venues.base import Contracts
from roundtrip.venues.entry_point import ENTRY_POINTS
from roundtrip.venues.known_calls import KNOWN_CALLS, KnownCall

_MOST_DIGITS = 30
"""A number of whole tokens with more of them means nothing but that its contract says so."""
_DIGITS = 6
"""As many significant digits of a number of tokens as a sentence has."""

EthBy = Literal["balance", "events"]


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


MOST_TOLD = 6
"""Steps in the text; the answer has more."""
_SORTS = (
    "launch", "graduation", "trade", "approval", "transfer", "item", "liquidity_taken", "liquidity_added",
    "contract_made", "pool_opened", "wrap", "unwrap", "operation", "call",
)  # fmt: skip
"""In which order they are told where not all can be."""
_LEAST_FEE_WEI = 10**12
"""Of a fee that is less nobody wants the digits."""
_BY_TOKENS: tuple[StepKind, ...] = ("transfer", "item", "approval")
"""Steps that tokens' contracts tell of."""


@dataclass(frozen=True, slots=True)
class WalletEffect:
    """What it comes to for ``whose``: above zero came to it. ``incomplete``: eth may be missing."""

    whose: Address | None
    moved: dict[Address, int]
    eth_by: EthBy
    incomplete: bool


def sentences(
    words: StepsText,
    sent: SentTransaction,
    account: TransactionAccount,
    comes_to: WalletEffect,
    mined: MinedTransaction,
    around: BlockAround,
) -> str:
    """The whole of it."""
    said = [_operations_text(sent, account)] if account.accounts else []
    if sent.is_the_chains_own():
        said.append("The chain itself made this transaction, such as for a deposit by its bridge.")
    if account.steps[0].kind == "call":
        said.append(call_text(words, sent, "did"))
    else:
        times = Counter(account.steps)
        shown = _told_first(list(times))
        for step in shown:
            often = f" ({times[step]:,} times)" if times[step] > 1 else ""
            said.append(f"{upper(words.step(step))}{often}.")
        left = len(account.steps) - sum(times[step] for step in shown)
        if left:
            said.append(f"{left:,} more {'step is' if left == 1 else 'steps are'} not told here.")
    if account.strange_swaps:
        said.append(_strange_text(account.strange_swaps, words.known.unasked))
    said += _altogether(words, account, comes_to)
    said += _eth_text(sent, account, comes_to, around)
    if comes_to.eth_by == "balance" and not sent.value_wei and _brought_money(words, account, comes_to):
        said.append("What the pool paid did not come to it.")
    said.append(fee_text(sent, mined, around))
    told = {*comes_to.moved, *(step.token for step in account.steps if step.kind in _BY_TOKENS)}
    if any(not words.is_money(token) for token in told if token is not None):
        said.append("Amounts of tokens are as their contracts tell them.")
    return " ".join(one for one in said if one)


def _told_first(steps: Sequence[TransactionStep]) -> list[TransactionStep]:
    """The weightiest, in order. The first of each sort goes before the others: many trades push no transfer
    out."""
    seen: Counter[str] = Counter()
    weighed = []
    for number, step in enumerate(steps):
        sort = "trade" if step.kind in TRADES else step.kind
        weighed.append((seen[sort] > 0, _SORTS.index(sort), seen[sort], number))
        seen[sort] += 1
    return [steps[number] for number in sorted(number for *_, number in sorted(weighed)[:MOST_TOLD])]


def _operations_text(sent: SentTransaction, account: TransactionAccount) -> str:
    shown = ", ".join(account.accounts[:MOST_TOLD])
    more = len(account.accounts) - MOST_TOLD
    beside = f" and {more:,} more" if more > 0 else ""
    if len(account.accounts) == 1:
        return f"{sent.sender} carried operations of the account {shown} (account abstraction)."
    return f"{sent.sender} carried operations of the accounts {shown}{beside} (account abstraction)."


How = Literal["did", "tried", "wants"]
_SEND: dict[How, str] = {"did": "sent", "tried": "tried to send", "wants": "wants to send"}
_CALL: dict[How, str] = {"did": "called", "tried": "tried to call", "wants": "wants to call"}
_MAKE: dict[How, str] = {"did": "made", "tried": "tried to make", "wants": "wants to make"}


def call_text(words: StepsText, sent: SentTransaction, how: How) -> str:
    """What is told of a call that did nothing that its logs tell, that failed, or is in no block yet."""
    paid = f" with {wei_text(sent.value_wei)}" if sent.value_wei else ""
    if sent.to is None:
        return f"{sent.sender} {_MAKE[how]} a contract{paid}."
    target = words.who(sent.to)
    if not sent.data:
        return f"{sent.sender} {_SEND[how]} {wei_text(sent.value_wei)} to {target}."
    known, did = known_call(sent), _CALL[how]
    if known is not None:
        return f"{sent.sender} {did} {known.name} on {target}{paid}."
    if target != sent.to:
        return f"{sent.sender} {did} {target}{paid}: selector {_selector(sent)}."
    return f"{sent.sender} {did} a contract that we do not know, {sent.to}{paid}: selector {_selector(sent)}."


def known_call(sent: SentTransaction) -> KnownCall | None:
    return KNOWN_CALLS.get(_selector(sent)) if len(sent.data) >= 4 else None


def _selector(sent: SentTransaction) -> str:
    return "0x" + sent.data[:4].hex()


def _strange_text(count: int, unasked: int) -> str:
    left = f" {unasked:,} of those contracts were not looked at." if unasked else ""
    if count == 1:
        one = "A contract that is no pool we know told of a trade, too: nothing it says is believed here."
        return one + left
    many = f"Contracts that are no pools we know told of {count:,} trades: nothing they say is believed here."
    return many + left


def _altogether(words: StepsText, account: TransactionAccount, comes_to: WalletEffect) -> list[str]:
    """What it comes to, where one step does not say it already."""
    whose = comes_to.whose
    if whose is None:
        return ["What each account paid and got is told for itself."]
    paid = [MovedAsset(asset, -raw) for asset, raw in comes_to.moved.items() if raw < 0]
    got = [MovedAsset(asset, raw) for asset, raw in comes_to.moved.items() if raw > 0]
    unknown = _unknown_eth(words, account, comes_to)
    if not (paid or got or unknown) or _says_all(account.steps, whose, paid, got):
        return []
    along = [one for one in paid if one.asset == ZERO_ADDRESS and comes_to.incomplete]
    paid = [one for one in paid if one not in along]
    parts = [f"paid {words.amounts(paid)}"] if paid else []
    # What was sent along need not have been kept.
    parts += [f"sent along {words.amounts(along)}"] if along else []
    kept = ", for the rest was kept on the way" if _is_less(account, comes_to) else ""
    parts += [f"got {words.amounts(got)}{kept}"] if got else []
    parts += [unknown] if unknown else []
    shown = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
    return [f"Altogether {whose} {shown}, its fee left out."]


def _is_less(account: TransactionAccount, comes_to: WalletEffect) -> bool:
    """Whether of a token that it bought less came than pools gave out, and it gave none away itself."""
    bought: Counter[Address] = Counter()
    given = {step.token for step in account.steps if step.kind == "transfer" and step.who == comes_to.whose}
    for step in account.steps:
        if step.kind in TRADES and step.who == comes_to.whose and step.paid and step.got and step.to is None:
            bought[step.got.asset] += step.got.raw
            given.add(step.paid.asset)
    return any(0 < comes_to.moved.get(asset, 0) < raw for asset, raw in bought.items() if asset not in given)


def _unknown_eth(words: StepsText, account: TransactionAccount, comes_to: WalletEffect) -> str:
    """That a sell brought eth which nobody measured. Empty where nothing is missing."""
    brought = _brought_money(words, account, comes_to)
    if not comes_to.incomplete or not brought:
        return ""
    told = words.amounts([MovedAsset(asset, raw) for asset, raw in brought.items()])
    return f"got eth, how much could not be told (the {'pool' if len(brought) == 1 else 'pools'} paid {told})"


def _brought_money(words: StepsText, account: TransactionAccount, comes_to: WalletEffect) -> Counter[Address]:
    """Eth and weth that its sells brought, where none is known to have come to it. Where it bought with
    either it need not have come."""
    money = (ZERO_ADDRESS, words.contracts.weth)
    brought: Counter[Address] = Counter()
    if any(comes_to.moved.get(asset, 0) > 0 for asset in money):
        return brought
    for step in account.steps:
        if step.kind not in TRADES or step.who != comes_to.whose or step.who is None:
            continue
        if step.paid is not None and step.paid.asset in money:
            return Counter()
        if step.got is not None and step.got.asset in money and step.to is None:
            brought[step.got.asset] += step.got.raw
    return brought


def _eth_text(
    sent: SentTransaction, account: TransactionAccount, comes_to: WalletEffect, around: BlockAround
) -> list[str]:
    """How its eth is known, where that matters."""
    if comes_to.eth_by == "balance":
        if around.others and ZERO_ADDRESS in comes_to.moved:
            return ["Its eth is measured over the whole block, in which others acted, too."]
        is_own = comes_to.whose == sent.sender != sent.to
        if sent.value_wei and is_own and ZERO_ADDRESS not in comes_to.moved:
            return ["As much eth came back to it as it sent along."]
        return []
    likely = sent.value_wei or any(step.kind in TRADES or step.kind == "unwrap" for step in account.steps)
    if not comes_to.incomplete or not likely:
        return []
    if comes_to.whose != sent.sender:
        return ["Eth that contracts handed out inside of it could not be told."]
    why = "it sent more transactions in that block" if around.by_sender else "the node has not that state"
    return [f"Whether contracts also sent it eth, or sent some back, is not known ({why})."]


def _says_all(
    steps: Sequence[TransactionStep], whose: Address, paid: list[MovedAsset], got: list[MovedAsset]
) -> bool:
    """Whether the only step says what the wallet paid and got."""
    step = steps[0]
    if len(steps) > 1 or step.who != whose or step.kind not in ("transfer", "buy", "sell", "swap"):
        return False
    return [step.paid] == paid and ([] if step.got is None else [step.got]) == got


def fee_text(sent: SentTransaction, mined: MinedTransaction, around: BlockAround) -> str:
    at = f"It is in block {around.ref.number} of {when(around.ref.timestamp_s):%Y-%m-%d %H:%M:%S} UTC"
    if sent.is_the_chains_own():
        return f"{at}."
    fee_wei = mined.fee_wei()
    fee = "under 0.000001 eth" if 0 < fee_wei < _LEAST_FEE_WEI else wei_text(fee_wei)
    return f"{at}; its fee was {fee}."


def upper(text: str) -> str:
    return text if text.startswith("0x") else text[:1].upper() + text[1:]
