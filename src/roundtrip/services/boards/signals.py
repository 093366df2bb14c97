"""``signals``: odd things in the last hour on launchpad launches."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base.events import Price
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, ZERO_ADDRESS, Address, plain_decimal
from roundtrip.domain.market.price_history import worth_usdg, worth_wei
from roundtrip.domain.market.signals import (
    NARROW_TICKS,
    SIGNALS,
    SOLD_WEI,
    SUPPLY_BPS,
    SignalFacts,
    interleave,
    is_traded_in,
    size,
)
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import (
    IndexAnswer,
    Nothing,
    TokenNamed,
    eth,
    eth_text,
    present_token,
    quote_token,
    reading,
    share_bps,
    when,
)
from roundtrip.services.support.strangers_text import Sentence
from roundtrip.store.boards import signals as store
from roundtrip.store.boards.signals import (
    MOST_DEEDS,
    ChainSpot,
    DeedSum,
    LaunchedAgain,
    PoolWithdrawal,
    SignalDeed,
)
from roundtrip.store.index import deployers, vitals
from roundtrip.store.index.addresses import addresses_of, ids_of
from roundtrip.store.index.cursor import Cursor, newest_prices
from roundtrip.store.index.tokens import Label, labels
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts

WITHIN_S = 3600
MOST_SHOWN = 50
MOST_SAID = 3
"""So many sentences stand in the text; each row has its own."""

Kind = Literal["insider_sold", "insider_moved", "liquidity_left", "serial_launcher", "large_burn"]
_DEEDS: Mapping[str, Kind] = {"sold": "insider_sold", "moved": "insider_moved", "burned": "large_burn"}
_WHAT: Mapping[Kind, str] = {kind: what for what, kind in _DEEDS.items()}
_NAMES: Mapping[Kind, str] = {
    "insider_sold": "insiders selling",
    "insider_moved": "insiders moving tokens",
    "liquidity_left": "liquidity leaving",
    "serial_launcher": "serial launchers",
    "large_burn": "large burns",
}


class SignalSize(msgspec.Struct, frozen=True, rename="camel"):
    """How much it was within the hour; null where it does not apply or is not known."""

    amount: Annotated[str | None, msgspec.Meta(description="Whole tokens, as a plain decimal.")]
    supply_bps: Annotated[
        int | None, msgspec.Meta(description="Share of the token's supply, in hundredths of a percent.")
    ]
    pool_bps: Annotated[
        int | None,
        msgspec.Meta(description="Share of the pool's liquidity before, in hundredths of a percent."),
    ]
    eth: Annotated[float | None, msgspec.Meta(description="What it brought or took out, in eth.")]


class Signal(msgspec.Struct, frozen=True, rename="camel"):
    """Something odd that one wallet did to one launch, with its largest transaction as evidence."""

    kind: Kind
    token: TokenNamed
    wallet: Annotated[str, msgspec.Meta(description="Who did it.")]
    other: Annotated[
        str | None, msgspec.Meta(description="Who got the tokens; null where nobody did, or several.")
    ]
    recipients: Annotated[
        int | None, msgspec.Meta(description="How many got the tokens; null where nobody did.")
    ]
    size: SignalSize
    tx: Annotated[str, msgspec.Meta(description="The largest transaction of it.")]
    block: Annotated[int, msgspec.Meta(description="That transaction's block.")]
    time: datetime
    text: Sentence


class Signals(IndexAnswer, frozen=True, rename="camel"):
    """Odd things of the last hour, the newest first; where there are many, the largest of each kind."""

    signals: list[Signal]


@dataclass(frozen=True, slots=True)
class _PossibleSignal:
    """One thing that may be odd. ``launches``: how often the wallet launched within the hour. ``evidence``
    None: it is looked up where it is shown, as ``recipients``, ``most_id`` and ``most_raw``: to how many its
    tokens went, to whom most of them."""

    kind: Kind
    token_id: int
    wallet_id: int
    seen: SignalFacts
    evidence: ChainSpot | None = None
    launches: int = 0
    recipients: int = 0
    most_id: int | None = None
    most_raw: int = 0


async def signals(ctx: Context, params: Nothing) -> UseCaseAnswer[Signals]:
    """The answer. Raises ServiceFull."""
    async with reading(ctx) as (connection, stands):
        now_s = stands.block.timestamp_s
        odd, untold = await _odd(connection, stands, ctx)
        foremost = await _evident(connection, now_s, _foremost(odd))
        shown = await _present_signals(connection, foremost)
        followed_s = await vitals.followed_from_s(connection, stands)
    is_young = stands.start_number > 0 and followed_s > now_s - WITHIN_S
    answer = Signals(
        text=_text(shown, len(odd), untold, followed_s if is_young else None),
        chain_id=ctx.chain_id,
        block=stands.block.number,
        block_time=when(now_s),
        signals=shown,
    )
    return UseCaseAnswer(answer, ctx.policy.answer_ttl_ms)


async def _odd(connection: Connection, stands: Cursor, ctx: Context) -> tuple[list[_PossibleSignal], int]:
    """All that is odd; and of how many it cannot be told."""
    await store.plan(connection)
    now_s = stands.block.timestamp_s
    after_s = now_s - WITHIN_S
    done = await store.deeds(connection, after_s, SUPPLY_BPS, SOLD_WEI)
    again = await store.launchers(connection, after_s)
    careers = await deployers.graduations(connection, [one.deployer_id for one in again])
    found = [_of_deed(one) for one in done]
    found += [_of_launch(one, *careers[one.deployer_id]) for one in again]
    odd, untold = _judge_signals(found, ctx.policy)
    left, left_untold = await _read_withdrawals(connection, stands, ctx)
    return odd + left, untold + left_untold


def _judge_signals(found: Iterable[_PossibleSignal], policy: Policy) -> tuple[list[_PossibleSignal], int]:
    """Those that are odd; and of how many it cannot be told."""
    said = [(one, SIGNALS[one.kind](one.seen, policy)) for one in found]
    return [one for one, is_odd in said if is_odd], sum(is_odd is None for _, is_odd in said)


async def _read_withdrawals(
    connection: Connection, stands: Cursor, ctx: Context
) -> tuple[list[_PossibleSignal], int]:
    """The same of liquidity, in pools that matter: the launch's own, and where a good part of its trades is
    made. Of one token and wallet the largest."""
    now_s, start = stands.block.timestamp_s, stands.start_number
    prices = await newest_prices(connection)
    quotes = await ids_of(connection, {ZERO_ADDRESS, ctx.contracts.weth, ctx.contracts.usdg, *prices})
    each = {one: _worth(quote, WEI_PER_ETH, prices, ctx.contracts) for quote, one in quotes.items()}
    wei_each = {one: wei / WEI_PER_ETH for one, wei in each.items() if wei is not None}
    left = await store.liquidity_left(connection, now_s - WITHIN_S, now_s, start, NARROW_TICKS, wei_each)
    if not left:
        return [], 0
    known = await labels(connection, {i for one in left for i in (one.token_id, one.quote_id)})
    found: dict[int, list[_PossibleSignal]] = {}
    for one in left:
        wei = _worth(known[one.quote_id].address, one.quote_raw, prices, ctx.contracts)
        found.setdefault(one.pool_id, []).append(_of_left(one, wei, known[one.token_id].supply_raw))
    # Weighed is only what would be told of.
    asked = {
        (one.token_id, one.pool_id)
        for one in left
        if not one.is_own
        and any(SIGNALS[each.kind](each.seen, ctx.policy) is not False for each in found[one.pool_id])
    }
    in_eth = [one for quote, one in quotes.items() if quote in (ZERO_ADDRESS, ctx.contracts.weth)]
    traded = await store.turnovers(connection, asked, now_s, in_eth)
    matter = {one.pool_id for one in left if one.is_own}
    matter |= {pool for token, pool in asked if is_traded_in(traded[token][pool], traded[token].values())}
    odd, untold = _judge_signals([one for pool in matter for one in found[pool]], ctx.policy)
    largest: dict[tuple[int, int], _PossibleSignal] = {}
    for each_one in sorted(odd, key=_order):
        largest[each_one.token_id, each_one.wallet_id] = each_one
    return list(largest.values()), untold


def _of_deed(one: DeedSum) -> _PossibleSignal:
    seen = SignalFacts(one.token_raw, one.supply_raw, one.eth_wei)
    return _PossibleSignal(_DEEDS[one.doing.what], one.doing.token_id, one.doing.wallet_id, seen)


def _of_launch(one: LaunchedAgain, launches: int, graduated: int) -> _PossibleSignal:
    seen = SignalFacts(launches=launches, graduated=graduated)
    return _PossibleSignal("serial_launcher", one.token_id, one.deployer_id, seen, one.evidence, one.launches)


def _of_left(one: PoolWithdrawal, eth_wei: int | None, supply_raw: int | None) -> _PossibleSignal:
    whole = one.before if one.before is not None and one.before > 0 else None
    share = share_bps(one.weight, whole)
    seen = SignalFacts(one.token_raw, supply_raw, eth_wei, None if share is None else min(BPS, share))
    return _PossibleSignal("liquidity_left", one.token_id, one.wallet_id, seen, one.evidence)


def _worth(
    quote: Address, quote_raw: int | None, prices: Mapping[Address, Price], contracts: Contracts
) -> int | None:
    """So much of a quote in wei, at the newest prices; None: not known."""
    if quote_raw is None or quote in (ZERO_ADDRESS, contracts.weth):
        return quote_raw
    of_eth, own = prices.get(contracts.weth), prices.get(quote)
    if of_eth is None or not of_eth.usdg_raw or not of_eth.depth_raw:
        return None
    if quote == contracts.usdg:
        return worth_wei(quote_raw, of_eth.usdg_raw)
    if own is None or not own.depth_raw:
        return None
    return worth_wei(worth_usdg(quote_raw, own.usdg_raw), of_eth.usdg_raw)


# --- which are shown -------------------------------------------------------------------------------


def _order(one: _PossibleSignal) -> tuple[int, int, int, int, int]:
    """The larger one is greater; of those alike, the newer."""
    at = (one.evidence.block_number, one.evidence.log_index) if one.evidence else (0, 0)
    return (*size(one.seen), *at, one.token_id)


def _foremost(odd: Iterable[_PossibleSignal]) -> list[_PossibleSignal]:
    by_kind: dict[Kind, list[_PossibleSignal]] = {}
    for one in sorted(odd, key=_order, reverse=True):
        by_kind.setdefault(one.kind, []).append(one)
    return interleave(by_kind.values(), MOST_SHOWN)


async def _evident(connection: Connection, now_s: int, found: list[_PossibleSignal]) -> list[_PossibleSignal]:
    """The same with their evidence, the newest first."""
    doings = {_doing(one): one for one in found if one.evidence is None}
    traced = await store.trace_doings(connection, now_s - WITHIN_S, doings)
    evident = [one for one in found if one.evidence is not None]
    for doing, one in doings.items():
        at = traced[doing]
        evident.append(
            replace(
                one,
                evidence=at.evidence,
                recipients=at.recipients,
                most_id=at.most_id,
                most_raw=at.most_raw,
            )
        )
    return sorted(evident, key=_place, reverse=True)


def _doing(one: _PossibleSignal) -> SignalDeed:
    return SignalDeed(_WHAT[one.kind], one.token_id, one.wallet_id)


def _place(one: _PossibleSignal) -> tuple[int, int]:
    assert one.evidence is not None
    return one.evidence.block_number, one.evidence.log_index


async def _present_signals(connection: Connection, odd: list[_PossibleSignal]) -> list[Signal]:
    known = await labels(connection, {one.token_id for one in odd})
    wallets = {one.wallet_id for one in odd} | {one.most_id for one in odd if one.most_id is not None}
    addresses = await addresses_of(connection, wallets)
    return [
        _signal(
            one,
            known[one.token_id],
            addresses[one.wallet_id],
            addresses[one.most_id] if one.most_id is not None and one.kind == "insider_moved" else None,
        )
        for one in odd
    ]


def _signal(one: _PossibleSignal, token: Label, wallet: Address, most: Address | None) -> Signal:
    """``most``: who got most of it, where somebody was given it."""
    seen, evidence = one.seen, one.evidence
    assert evidence is not None
    amount = None
    if seen.token_raw is not None and token.decimals is not None:
        amount = plain_decimal(seen.token_raw, token.decimals)
    return Signal(
        kind=one.kind,
        token=present_token(token),
        wallet=wallet,
        other=most if one.recipients == 1 else None,
        recipients=None if most is None else one.recipients,
        size=SignalSize(
            amount=amount,
            supply_bps=seen.supply_bps(),
            pool_bps=seen.pool_bps,
            eth=None if seen.eth_wei is None else eth(seen.eth_wei),
        ),
        tx=evidence.tx_hash,
        block=evidence.block_number,
        time=when(evidence.at_s),
        text=_sentence(one, quote_token(token), wallet, most),
    )


def _sentence(one: _PossibleSignal, token: str, wallet: Address, most: Address | None) -> str:
    seen = one.seen
    supply, worth = seen.supply_bps(), seen.eth_wei
    much = "some" if supply is None else f"{_percent(supply)} of the supply"
    brought = "" if worth is None else f" for {eth_text(worth)}"
    match one.kind:
        case "insider_sold":
            return f"{wallet}, who is behind {token}, sold {much} of it{brought}."
        case "insider_moved":
            return f"{wallet}, who is behind {token}, moved {much} of it to {_recipients(one, most)}."
        case "large_burn":
            return f"{wallet} burned {much} of {token}."
        case "liquidity_left":
            part = "liquidity" if seen.pool_bps is None else f"{_percent(seen.pool_bps)} of the liquidity"
            with_eth = "" if worth is None else f", {eth_text(worth)} of its money side"
            return f"{wallet} took {part} out of a pool of {token}{with_eth}."
        case "serial_launcher":
            times = "" if one.launches < 2 else f", the last of {one.launches} within the hour"
            return (
                f"{wallet} launched {token}{times}; of its {seen.launches} launches {seen.graduated} became "
                "a pool."
            )


def _recipients(one: _PossibleSignal, most: Address | None) -> str:
    if one.recipients <= 1:
        return str(most)
    share = share_bps(one.most_raw, one.seen.supply_raw)
    of_supply = "" if share is None else f" ({_percent(share)})"
    return f"{one.recipients:,} addresses, the most to {most}{of_supply}"


def _text(shown: list[Signal], odd: int, untold: int, followed_s: int | None) -> str:
    """``followed_s``: since when the chain is followed, where that is less than the hour."""
    if shown:
        counts = Counter(one.kind for one in shown)
        parts = ", ".join(f"{_NAMES[kind]} ({count})" for kind, count in counts.most_common())
        said = [f"Odd things on launches within the last hour: {parts}."]
        said += ["The newest:", *(one.text for one in shown[:MOST_SAID])]
        if odd > len(shown):
            said.append(f"{odd - len(shown)} smaller ones are left out.")
    elif followed_s is None:
        said = ["Nothing odd happened on launches within the last hour."]
    else:
        said = ["Nothing odd was seen on launches."]
    if followed_s is not None:
        since = f"{when(followed_s):%Y-%m-%d %H:%M:%S}"
        said.append(f"The chain is followed only since {since} UTC: there may have been more before that.")
    if untold:
        least = "At least " if untold >= MOST_DEEDS else ""
        said.append(
            f"{least}{untold} more could not be measured, since the token's supply or the pool's liquidity "
            "is not known yet."
        )
    return " ".join(said)


def _percent(bps: int) -> str:
    return f"{bps / 100:.2f} %"
