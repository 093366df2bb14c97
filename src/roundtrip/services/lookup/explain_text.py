"""Describes a whole transaction in plain sentences, from its steps."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from roundtrip.chain.wallet.transactions import OUT_OF_GAS, BlockAround, MinedTransaction, SentTransaction
from roundtrip.domain.base.events import CurveTraded, LaunchedToken, LaunchMoved, PoolOpened
from roundtrip.domain.base.figures import format_about, format_count, format_eth
from roundtrip.domain.base.router_codes import quote_reason
from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import TRAITS
from roundtrip.domain.transaction.account import (
    TRADES,
    AllowanceGiven,
    CollectionAllowed,
    ItemMoved,
    MovedAsset,
    OperationEnded,
    StepKind,
    TransactionStep,
    TransactionSummary,
)
from roundtrip.services.lookup.entities import KnownEntities
from roundtrip.services.support.index_reader import quote_token, when
from roundtrip.venues.base import Contracts
from roundtrip.venues.entry_point import ENTRY_POINTS
from roundtrip.venues.known_calls import find_known_call

_MAX_DIGITS = 30
"""Whole tokens with more digits are an invention of their contract."""

EthBy = Literal["balance", "events"]


@dataclass(frozen=True, slots=True)
class StepsText:
    """Describes steps in words, for one network and its known tokens. ``actors``: the transaction's sender,
    the called contract, and the accounts of its operations. What a token logs about any other address is only
    that token's claim. ``is_contract``: whether the transaction's target is known to be a contract."""

    contracts: Contracts
    known: KnownEntities
    actors: frozenset[Address] = frozenset()
    is_contract: bool = False

    def is_money(self, asset: Address) -> bool:
        """True for eth, weth and usdg."""
        return asset in (ZERO_ADDRESS, self.contracts.weth, self.contracts.usdg)

    def name_asset(self, asset: Address) -> str:
        """An asset in a sentence."""
        money = {ZERO_ADDRESS: "eth", self.contracts.weth: "weth", self.contracts.usdg: "usdg"}
        return money.get(asset) or quote_token(self.known.label(asset))

    def find_decimals(self, asset: Address) -> int | None:
        """The asset's decimals; None: not known."""
        if asset in (ZERO_ADDRESS, self.contracts.weth):
            return 18
        return 6 if asset == self.contracts.usdg else self.known.label(asset).decimals

    def format_amount(self, moved: MovedAsset) -> str:
        """An amount of an asset, such as "0.1 eth"."""
        if moved.asset == ZERO_ADDRESS:
            return format_eth(moved.raw)
        decimals = self.find_decimals(moved.asset)
        if abs(moved.raw) >= 10 ** (_MAX_DIGITS + (decimals or 0)):
            return f"an impossible amount of {self.name_asset(moved.asset)}"
        if decimals is None:
            return f"{moved.raw:,} base units of {self.name_asset(moved.asset)}"
        return f"{format_about(moved.raw, decimals)} {self.name_asset(moved.asset)}"

    def format_amounts(self, moved: list[MovedAsset]) -> str:
        """A list of amounts, the first five of them."""
        shown = [self.format_amount(asset) for asset in moved[:5]]
        if len(moved) > len(shown):
            shown.append(format_count(len(moved) - len(shown), "more token"))
        return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]

    def name_address(self, address: Address | None) -> str:
        """An address in a sentence; the network's own contracts by their role."""
        if address is None:
            return "an unknown account"
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

    def name_place(self, step: TransactionStep) -> str:
        """The step's pool or curve in a sentence."""
        return f"the {TRAITS[step.venue].label} {step.at}" if step.venue is not None else str(step.at)

    def describe(self, step: TransactionStep) -> str:
        """One step as a sentence in the third person, without the full stop."""
        say = {
            "buy": self._describe_trade,
            "sell": self._describe_trade,
            "swap": self._describe_trade,
            "transfer": self._describe_transfer,
            "item": self._describe_item,
            "approval": self._describe_approval,
            "launch": self._describe_launch,
            "graduation": self._describe_graduation,
            "pool_opened": self._describe_pool_opened,
            "operation": self._describe_operation,
        }.get(step.kind)
        return say(step) if say is not None else self._describe_plain(step)

    def _describe_plain(self, step: TransactionStep) -> str:
        actor, at = self.name_address(step.actor), self.name_place(step)
        if step.kind in ("wrap", "unwrap"):
            assert step.paid is not None
            verb = "wrapped" if step.kind == "wrap" else "unwrapped"
            into = "weth" if step.kind == "wrap" else "eth"
            asset = ZERO_ADDRESS if into == "weth" else self.contracts.weth
            return f"{actor} {verb} {self.format_amount(MovedAsset(asset, step.paid.raw))} into {into}"
        if step.kind in ("liquidity_added", "liquidity_taken"):
            sides = [side for side in (step.paid, step.got) if side is not None and side.raw]
            action = "added to" if step.kind == "liquidity_added" else "taken from"
            much = f" of {self.format_amounts(sides)}" if sides else ""
            return f"Liquidity{much} was {action} {at}"
        if step.kind == "contract_made":
            return f"{actor} deployed the contract {step.at}"
        paid = f" with {self.format_amount(step.paid)}" if step.paid is not None else ""
        return f"{actor} called {self.name_address(step.to)}{paid}"

    def _describe_trade(self, step: TransactionStep) -> str:
        assert step.paid is not None
        assert step.got is not None
        paid, got = self.format_amount(step.paid), self.format_amount(step.got)
        at = f"{_find_preposition(step)} {self.name_place(step)}"
        log = step.log
        if isinstance(log, CurveTraded) and log.wallet == self.contracts.launchpad_router:
            return f"{got} was bought for {self.name_address(log.recipient)} with {paid} {at}"
        if step.to is not None:
            at += f", delivered to {self.name_address(step.to)}"
        if step.kind == "buy":
            if step.actor is None:
                return f"{got} was bought for {paid} {at}"
            return f"{self.name_address(step.actor)} bought {got} for {paid} {at}"
        verb = "sold" if step.kind == "sell" else "swapped"
        if step.actor is None:
            return f"{paid} was {verb} for {got} {at}"
        return f"{self.name_address(step.actor)} {verb} {paid} for {got} {at}"

    def _describe_transfer(self, step: TransactionStep) -> str:
        assert step.paid is not None
        amount, claimed = self.format_amount(step.paid), self._attribute(step)
        if not step.paid.raw:
            trick = "" if step.actor in self.actors else _ZERO_TRICK
            sent = f"{self.name_address(step.actor)} sent {amount} to {self.name_address(step.to)}"
            return f"{claimed}{sent}: nothing moved{trick}"
        if step.paid.asset != ZERO_ADDRESS and step.actor == ZERO_ADDRESS:
            return f"{claimed}{amount} was minted to {self.name_address(step.to)}"
        if step.to in BURN_ADDRESSES:
            return f"{claimed}{self.name_address(step.actor)} burned {amount} (sent it to {step.to})"
        return f"{claimed}{self.name_address(step.actor)} sent {amount} to {self.name_address(step.to)}"

    def _attribute(self, step: TransactionStep) -> str:
        """Names the token as the source where the actor is not among ``actors``: any contract can log any
        event about any address. Empty otherwise."""
        if step.token is None or self.is_money(step.token) or step.actor in self.actors:
            return ""
        return f"{step.token} says that "

    def _describe_item(self, step: TransactionStep) -> str:
        assert isinstance(step.log, ItemMoved)
        count = "" if step.log.pieces == 1 else f"{step.log.pieces:,} of "
        claimed = self._attribute(step)
        item = f"{count}item {step.log.item} of the collection {step.log.collection}"
        if step.actor == ZERO_ADDRESS:
            return f"{claimed}{item} was minted to {self.name_address(step.to)}"
        return f"{claimed}{self.name_address(step.actor)} sent {item} to {self.name_address(step.to)}"

    def _describe_approval(self, step: TransactionStep) -> str:
        spender, log = self.name_address(step.to), step.log
        # The owner signed what Permit2 logs; anything else is a token's claim.
        claimed = "" if isinstance(log, AllowanceGiven) and log.by_permit2 else self._attribute(step)
        owner = f"{claimed}{self.name_address(step.actor)}"
        if isinstance(log, CollectionAllowed):
            if log.allowed:
                return f"{owner} allowed {spender} to take all its items of the collection {log.collection}"
            return f"{owner} revoked the right of {spender} to its items of the collection {log.collection}"
        assert isinstance(log, AllowanceGiven)
        token = self.name_asset(log.token)
        condition = "" if not log.by_permit2 else ", through Permit2"
        if log.by_permit2 and log.until_s is not None and log.until_s < 2**33:
            condition += f", until {when(log.until_s):%Y-%m-%d %H:%M} UTC"
        if log.amount_raw == 0:
            return f"{owner} revoked the right of {spender} to take its {token}{condition}"
        if log.is_unlimited():
            return f"{owner} allowed {spender} to take any amount of its {token}{condition}"
        limit = self.format_amount(MovedAsset(log.token, log.amount_raw))
        return f"{owner} allowed {spender} to take up to {limit}{condition}"

    def _describe_launch(self, step: TransactionStep) -> str:
        assert isinstance(step.log, LaunchedToken)
        at = f"{_find_preposition(step)} {self.name_place(step)}"
        launched = f"{self.name_address(step.actor)} launched {self.name_asset(step.log.token)} {at}"
        return f"{launched}, paired with {self.name_asset(step.log.quote)}"

    def _describe_graduation(self, step: TransactionStep) -> str:
        log = step.log
        assert isinstance(log, LaunchMoved)
        token = self.name_asset(log.token)
        if log.step == "swept":
            return f"The curve of {token} is sold out and was emptied for its pool"
        if log.step == "pooled":
            return f"The pool of {token} was opened: the token has graduated"
        return f"The launchpad's owner withdrew what was in the curve of {token}"

    def _describe_pool_opened(self, step: TransactionStep) -> str:
        assert isinstance(step.log, PoolOpened)
        pair = f"{self.name_asset(step.log.currency0)} and {self.name_asset(step.log.currency1)}"
        return f"{self.name_place(step)[:1].upper()}{self.name_place(step)[1:]} of {pair} was opened"

    def _describe_operation(self, step: TransactionStep) -> str:
        assert isinstance(step.log, OperationEnded)
        ending = "succeeded" if step.log.succeeded else "failed"
        return f"An operation of the account {step.actor} {ending}"


def _find_preposition(step: TransactionStep) -> str:
    return TRAITS[step.venue].preposition if step.venue is not None else "in"


MAX_SHOWN = 6
"""Steps in the text; the answer has more."""
_SORTS = (
    "launch", "graduation", "trade", "approval", "transfer", "item", "liquidity_taken", "liquidity_added",
    "contract_made", "pool_opened", "wrap", "unwrap", "operation", "call",
)  # fmt: skip
"""Kinds of steps, the most important first: their order where the text cannot hold all steps."""
_ZERO_TRICK = " (a transfer of 0 is a known trick to put a false address into your history)"
_MIN_FEE_WEI = 10**12
"""A smaller fee is shown without digits."""
_BY_TOKENS: tuple[StepKind, ...] = ("transfer", "item", "approval")
"""Steps that tokens' contracts log."""


@dataclass(frozen=True, slots=True)
class WalletEffect:
    """The wallet's net changes by asset, above zero received. ``incomplete``: eth may be missing."""

    wallet: Address | None
    moved: dict[Address, int]
    eth_by: EthBy
    incomplete: bool


def describe_transaction(
    texts: StepsText,
    sent: SentTransaction,
    summary: TransactionSummary,
    effect: WalletEffect,
    mined: MinedTransaction,
    around: BlockAround,
) -> str:
    """The text of the whole transaction. Where it has several steps, each has its own line."""
    head = [_describe_operations(sent, summary)] if summary.accounts else []
    if sent.is_the_chains_own():
        head.append("The chain itself made this transaction, for example for a bridge deposit.")
    steps, sentences = _describe_steps(texts, sent, summary), list[str]()
    if len(steps) == 1:
        sentences, steps = [*head, *steps], []
        head = []
    if summary.strange_swaps:
        sentences.append(_describe_strange_swaps(summary.strange_swaps, texts.known.unasked))
    sentences += _describe_effect(texts, summary, effect)
    sentences += _describe_eth(sent, summary, effect, around)
    if effect.eth_by == "balance" and not sent.value_wei and _sum_money_proceeds(texts, summary, effect):
        sentences.append("It did not receive what the pool paid.")
    sentences.append(describe_fee(sent, mined, around))
    named_assets = {*effect.moved, *(step.token for step in summary.steps if step.kind in _BY_TOKENS)}
    if any(not texts.is_money(token) for token in named_assets if token is not None):
        sentences.append("Token amounts are as their contracts report them.")
    return "\n".join([*([" ".join(head)] if head else []), *steps, " ".join(sentences)])


def _describe_steps(texts: StepsText, sent: SentTransaction, summary: TransactionSummary) -> list[str]:
    """The most important steps, each as a sentence, and how many are left out."""
    if summary.steps[0].kind == "call":
        return [describe_call(texts, sent, "did")]
    times = Counter(summary.steps)
    shown = _select_steps(list(times))
    rows = []
    for step in shown:
        times_text = f" ({times[step]:,} times)" if times[step] > 1 else ""
        rows.append(f"{capitalize(texts.describe(step))}{times_text}.")
    unshown = len(summary.steps) - sum(times[step] for step in shown)
    if unshown:
        rows.append(f"{format_count(unshown, 'more step is', 'more steps are')} not shown here.")
    return rows


def _select_steps(steps: Sequence[TransactionStep]) -> list[TransactionStep]:
    """The most important steps, in their own order. The first step of each sort goes before further ones, so
    many trades cannot displace a transfer."""
    seen: Counter[str] = Counter()
    weighed = []
    for number, step in enumerate(steps):
        sort = "trade" if step.kind in TRADES else step.kind
        weighed.append((seen[sort] > 0, _SORTS.index(sort), seen[sort], number))
        seen[sort] += 1
    return [steps[number] for number in sorted(number for *_, number in sorted(weighed)[:MAX_SHOWN])]


def _describe_operations(sent: SentTransaction, summary: TransactionSummary) -> str:
    shown = ", ".join(summary.accounts[:MAX_SHOWN])
    unshown = len(summary.accounts) - MAX_SHOWN
    rest = f" and {unshown:,} more" if unshown > 0 else ""
    if len(summary.accounts) == 1:
        return f"{sent.sender} submitted operations of the account {shown} (account abstraction)."
    return f"{sent.sender} submitted operations of the accounts {shown}{rest} (account abstraction)."


CallState = Literal["did", "tried", "wants"]
_SEND: dict[CallState, str] = {"did": "sent", "tried": "tried to send", "wants": "wants to send"}
_CALL: dict[CallState, str] = {"did": "called", "tried": "tried to call", "wants": "wants to call"}
_DEPLOY: dict[CallState, str] = {"did": "deployed", "tried": "tried to deploy", "wants": "wants to deploy"}


def describe_call(texts: StepsText, sent: SentTransaction, state: CallState) -> str:
    """Describes a call that logged nothing, failed, or is pending."""
    paid = f" with {format_eth(sent.value_wei)}" if sent.value_wei else ""
    if sent.to is None:
        return f"{sent.sender} {_DEPLOY[state]} a contract{paid}."
    target = texts.name_address(sent.to)
    if not sent.data:
        return f"{sent.sender} {_SEND[state]} {format_eth(sent.value_wei)} to {target}."
    known, verb = find_known_call(sent.data), _CALL[state]
    if known is not None:
        return f"{sent.sender} {verb} {known.name} on {target}{paid}."
    selector = "0x" + sent.data[:4].hex()
    if target != sent.to:
        return f"{sent.sender} {verb} {target}{paid} (function selector {selector})."
    unknown = "contract" if texts.is_contract else "address"
    return f"{sent.sender} {verb} the unknown {unknown} {sent.to}{paid} (function selector {selector})."


def _describe_strange_swaps(count: int, unasked: int) -> str:
    note = f" We did not examine {unasked:,} of those contracts." if unasked else ""
    if count == 1:
        return f"A contract that is not a pool we know reported a trade: we ignored it.{note}"
    return f"Contracts that are not pools we know reported {count:,} trades: we ignored them.{note}"


def _describe_effect(texts: StepsText, summary: TransactionSummary, effect: WalletEffect) -> list[str]:
    """The wallet's net changes, unless the only step says them already."""
    wallet = effect.wallet
    if wallet is None:
        return ["What each account paid and got is listed separately."]
    paid = [MovedAsset(asset, -raw) for asset, raw in effect.moved.items() if raw < 0]
    got = [MovedAsset(asset, raw) for asset, raw in effect.moved.items() if raw > 0]
    unknown = _describe_unknown_eth(texts, summary, effect)
    if not (paid or got or unknown) or _says_all(summary.steps, wallet, paid, got):
        return []
    sent_along = [moved for moved in paid if moved.asset == ZERO_ADDRESS and effect.incomplete]
    paid = [moved for moved in paid if moved not in sent_along]
    parts = [f"paid {texts.format_amounts(paid)}"] if paid else []
    # Contracts may have returned a part of the eth that was sent along.
    parts += [f"sent along {texts.format_amounts(sent_along)}"] if sent_along else []
    shortfall = ", less than the pools paid out" if _is_less(summary, effect) else ""
    parts += [f"got {texts.format_amounts(got)}{shortfall}"] if got else []
    parts += [unknown] if unknown else []
    shown = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
    return [f"In total {wallet} {shown}, not counting the fee."]


def _is_less(summary: TransactionSummary, effect: WalletEffect) -> bool:
    """Whether the wallet received less of a bought token than the pools paid out, without giving any away."""
    bought: Counter[Address] = Counter()
    given = {step.token for step in summary.steps if step.kind == "transfer" and step.actor == effect.wallet}
    for step in summary.steps:
        if step.kind in TRADES and step.actor == effect.wallet and step.paid and step.got and step.to is None:
            bought[step.got.asset] += step.got.raw
            given.add(step.paid.asset)
    return any(0 < effect.moved.get(asset, 0) < raw for asset, raw in bought.items() if asset not in given)


def _describe_unknown_eth(texts: StepsText, summary: TransactionSummary, effect: WalletEffect) -> str:
    """Says that a sell brought an unknown amount of eth. Empty if no amount is missing."""
    brought = _sum_money_proceeds(texts, summary, effect)
    if not effect.incomplete or not brought:
        return ""
    amounts = texts.format_amounts([MovedAsset(asset, raw) for asset, raw in brought.items()])
    return (
        "got an amount of eth that we could not find out "
        f"(the {'pool' if len(brought) == 1 else 'pools'} paid {amounts})"
    )


def _sum_money_proceeds(
    texts: StepsText, summary: TransactionSummary, effect: WalletEffect
) -> Counter[Address]:
    """Eth and weth that pools paid for the wallet's sells, if it is not known to have received any. Empty if
    it bought with either, because then the proceeds may have paid for that."""
    money = (ZERO_ADDRESS, texts.contracts.weth)
    brought: Counter[Address] = Counter()
    if any(effect.moved.get(asset, 0) > 0 for asset in money):
        return brought
    for step in summary.steps:
        if step.kind not in TRADES or step.actor != effect.wallet or step.actor is None:
            continue
        if step.paid is not None and step.paid.asset in money:
            return Counter()
        if step.got is not None and step.got.asset in money and step.to is None:
            brought[step.got.asset] += step.got.raw
    return brought


def _describe_eth(
    sent: SentTransaction, summary: TransactionSummary, effect: WalletEffect, around: BlockAround
) -> list[str]:
    """Says how the wallet's eth is known, where that matters."""
    if effect.eth_by == "balance":
        if around.others and ZERO_ADDRESS in effect.moved:
            return ["We measured its eth over the whole block, in which others also acted."]
        is_own = effect.wallet == sent.sender != sent.to
        if sent.value_wei and is_own and ZERO_ADDRESS not in effect.moved:
            return ["It got back as much eth as it sent."]
        return []
    likely = sent.value_wei or any(step.kind in TRADES or step.kind == "unwrap" for step in summary.steps)
    if not effect.incomplete or not likely:
        return []
    if effect.wallet != sent.sender:
        return ["Contracts may have sent it eth inside the transaction: we could not find out."]
    why = (
        "it sent more transactions in that block" if around.by_sender else "the node does not have that state"
    )
    return [f"We do not know whether contracts also sent it eth, or sent some back ({why})."]


def _says_all(
    steps: Sequence[TransactionStep], wallet: Address, paid: list[MovedAsset], got: list[MovedAsset]
) -> bool:
    """Whether the transaction's only step says what the wallet paid and got."""
    step = steps[0]
    if len(steps) > 1 or step.actor != wallet or step.kind not in ("transfer", "buy", "sell", "swap"):
        return False
    return [step.paid] == paid and ([] if step.got is None else [step.got]) == got


def describe_fee(sent: SentTransaction, mined: MinedTransaction, around: BlockAround) -> str:
    """Block, time and fee, as sentences."""
    at = f"It is in block {around.ref.number:,} of {when(around.ref.timestamp_s):%Y-%m-%d %H:%M:%S} UTC"
    if sent.is_the_chains_own():
        return f"{at}."
    fee_wei = mined.fee_wei()
    fee = "under 0.000001 eth" if 0 < fee_wei < _MIN_FEE_WEI else format_eth(fee_wei)
    return f"{at}; its fee was {fee}."


def describe_failure(sent: SentTransaction, mined: MinedTransaction, reason: str | None) -> str:
    """Why a transaction failed, as a sentence. ``reason``: as ``read_reason`` returns it."""
    ended = mined.gas_used >= sent.gas_limit
    if reason == OUT_OF_GAS and ended:
        return "It ran out of gas: it used all of its gas limit."
    if reason:
        return f"We ran it again on the state before its block: it fails with {quote_reason(reason)}."
    if ended:
        return "It used all of its gas limit: it ran out, or hit an instruction that takes all of it."
    if reason == "":
        return "We ran it again on the state before its block: it fails and gives no reason."
    return "We could not find out why: on the state before its block it does not fail, or cannot be run."


def capitalize(text: str) -> str:
    """The text with a capital first letter, unless it starts with an address."""
    return text if text.startswith("0x") else text[:1].upper() + text[1:]
