"""``signals``: suspicious events of the last hour on launchpad launches. The page of insider alerts: the
board's rows, each with the verdict of its token."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base.events import Price, Spot
from roundtrip.domain.base.figures import format_count, format_eth, format_percent
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
from roundtrip.services.support.answer_fields import Sentence, says
from roundtrip.services.support.index_reader import (
    IndexAnswer,
    Nothing,
    TokenNamed,
    eth,
    present_token,
    quote_token,
    reading,
    share_bps,
    when,
)
from roundtrip.services.support.shown_verdict import SHARED_MS, PageOfRows, ShownVerdict, present_stored
from roundtrip.store.boards import signals as store
from roundtrip.store.boards.moving import read_shown_checks
from roundtrip.store.boards.signals import MAX_DEEDS, DeedSum, NewestLaunch, PoolWithdrawal, SignalDeed
from roundtrip.store.index import deployers, vitals
from roundtrip.store.index.cursor import Cursor, newest_prices
from roundtrip.store.index.tokens import Label, addresses_of, ids_of, labels
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts

WITHIN_S = 3600
MAX_SHOWN = 50
MAX_SAID = 3
"""Rows that the text quotes; every row has its own sentence."""

Kind = Literal["insider_sold", "insider_moved", "liquidity_left", "serial_launcher", "large_burn"]
_DEEDS: Mapping[str, Kind] = {"sold": "insider_sold", "moved": "insider_moved", "burned": "large_burn"}
_DEED_BY_KIND: Mapping[Kind, str] = {kind: what for what, kind in _DEEDS.items()}
_NAMES: Mapping[Kind, str] = {
    "insider_sold": "insiders selling",
    "insider_moved": "insiders moving tokens",
    "liquidity_left": "liquidity leaving",
    "serial_launcher": "serial launchers",
    "large_burn": "large burns",
}


class SignalSize(msgspec.Struct, frozen=True, rename="camel"):
    """How much it was within the hour; null where it does not apply or is not known."""

    amount: Annotated[str | None, says("Whole tokens, a decimal number. null: does not apply or not known.")]
    supply_bps: Annotated[
        int | None,
        says("Share of the token's supply, in hundredths of a percent. null: does not apply or not known."),
    ]
    pool_bps: Annotated[
        int | None,
        says(
            "Share of the liquidity that the pool had before, in hundredths of a percent. "
            "null: does not apply or not known."
        ),
    ]
    eth: Annotated[
        float | None, says("What it brought or took out, in eth. null: does not apply or not known.")
    ]


class Signal(msgspec.Struct, frozen=True, rename="camel"):
    """Something odd that one wallet did to one launch, with its largest transaction as evidence."""

    kind: Annotated[
        Kind,
        says(
            "What happened. insider_sold, insider_moved: a wallet behind the launch sold "
            "or moved tokens; liquidity_left: liquidity was taken out; serial_launcher: a "
            "serial deployer launched again; large_burn: tokens were burned."
        ),
    ]
    token: Annotated[TokenNamed, says("The token that it happened to.")]
    wallet: Annotated[str, says("The wallet that did it.")]
    other: Annotated[str | None, says("The wallet that got the tokens. null: none, or several.")]
    recipients: Annotated[int | None, says("Number of wallets that got the tokens. null: none did.")]
    size: Annotated[SignalSize, says("How much it was within the hour.")]
    tx: Annotated[str, says("Its largest transaction.")]
    block: Annotated[int, says("Block of that transaction.")]
    time: Annotated[datetime, says("Time of that block.")]
    text: Sentence


class Signals(IndexAnswer, frozen=True, rename="camel"):
    """Odd things of the last hour, the newest first; where there are many, the largest of each kind."""

    signals: Annotated[list[Signal], says("At most 50 signals, the newest first.")]


@dataclass(frozen=True, slots=True)
class _PossibleSignal:
    """An event that may be suspicious. ``launches``: the wallet's launches within the hour. ``evidence`` is
    None until the signal is shown; then it is traced, together with ``recipients`` (how many got the tokens),
    ``most_id`` and ``most_raw`` (the largest recipient and its amount)."""

    kind: Kind
    token_id: int
    wallet_id: int
    facts: SignalFacts
    evidence: Spot | None = None
    launches: int = 0
    recipients: int = 0
    most_id: int | None = None
    most_raw: int = 0


async def signals(ctx: Context, params: Nothing) -> UseCaseAnswer[Signals]:
    """The answer. Raises ServiceFull."""
    async with reading(ctx) as (connection, index_cursor):
        now_s = index_cursor.block.timestamp_s
        odd_signals, unmeasured = await _find_signals(connection, index_cursor, ctx)
        traced = await _add_evidence(connection, now_s, _select_foremost(odd_signals))
        shown = await _present_signals(connection, traced)
        followed_s = await vitals.followed_from_s(connection, index_cursor)
    is_young = index_cursor.start_number > 0 and followed_s > now_s - WITHIN_S
    answer = Signals(
        text=_describe(shown, len(odd_signals), unmeasured, followed_s if is_young else None),
        chain_id=ctx.chain_id,
        block=index_cursor.block.number,
        block_time=when(now_s),
        signals=shown,
    )
    return UseCaseAnswer(answer, ctx.policy.answer_ttl_ms)


async def _find_signals(
    connection: Connection, index_cursor: Cursor, ctx: Context
) -> tuple[list[_PossibleSignal], int]:
    """The suspicious events, and the number of events that could not be judged."""
    await store.set_plan_mode(connection)
    now_s = index_cursor.block.timestamp_s
    after_s = now_s - WITHIN_S
    deeds = await store.deeds(connection, after_s, SUPPLY_BPS, SOLD_WEI)
    relaunches = await store.launchers(connection, after_s)
    careers = await deployers.graduations(connection, [row.deployer_id for row in relaunches])
    possible = [_from_deed(row) for row in deeds]
    possible += [_from_launch(row, *careers[row.deployer_id]) for row in relaunches]
    odd_signals, unmeasured = _judge_signals(possible, ctx.policy)
    withdrawals, withdrawals_unmeasured = await _read_withdrawals(connection, index_cursor, ctx)
    return odd_signals + withdrawals, unmeasured + withdrawals_unmeasured


def _judge_signals(possible: Iterable[_PossibleSignal], policy: Policy) -> tuple[list[_PossibleSignal], int]:
    """Those that are suspicious, and the number of those that could not be judged."""
    judged = [(signal, SIGNALS[signal.kind](signal.facts, policy)) for signal in possible]
    return [signal for signal, is_odd in judged if is_odd], sum(is_odd is None for _, is_odd in judged)


async def _read_withdrawals(
    connection: Connection, index_cursor: Cursor, ctx: Context
) -> tuple[list[_PossibleSignal], int]:
    """The suspicious withdrawals of liquidity, and the number of those that could not be judged. Only pools
    that matter count: the launch's own, and those with a good part of its trades. Keeps the largest
    withdrawal of each wallet from each token."""
    now_s, start = index_cursor.block.timestamp_s, index_cursor.start_number
    prices = await newest_prices(connection)
    quote_ids = await ids_of(connection, {ZERO_ADDRESS, ctx.contracts.weth, ctx.contracts.usdg, *prices})
    unit_wei = {
        quote_id: _convert_to_wei(quote, WEI_PER_ETH, prices, ctx.contracts)
        for quote, quote_id in quote_ids.items()
    }
    # Worth of one base unit of each quote.
    wei_each = {quote_id: wei / WEI_PER_ETH for quote_id, wei in unit_wei.items() if wei is not None}
    withdrawals = await store.liquidity_left(
        connection, now_s - WITHIN_S, now_s, start, NARROW_TICKS, wei_each
    )
    if not withdrawals:
        return [], 0
    labels_by_id = await labels(connection, {i for row in withdrawals for i in (row.token_id, row.quote_id)})
    by_pool: dict[int, list[_PossibleSignal]] = {}
    for row in withdrawals:
        wei = _convert_to_wei(labels_by_id[row.quote_id].address, row.quote_raw, prices, ctx.contracts)
        signal = _from_withdrawal(row, wei, labels_by_id[row.token_id].supply_raw)
        by_pool.setdefault(row.pool_id, []).append(signal)
    # The turnover decides only for pools with a withdrawal that may be shown.
    token_pools = {
        (row.token_id, row.pool_id)
        for row in withdrawals
        if not row.is_own
        and any(
            SIGNALS[signal.kind](signal.facts, ctx.policy) is not False for signal in by_pool[row.pool_id]
        )
    }
    eth_ids = [
        quote_id for quote, quote_id in quote_ids.items() if quote in (ZERO_ADDRESS, ctx.contracts.weth)
    ]
    turnovers = await store.turnovers(connection, token_pools, now_s, eth_ids)
    relevant = {row.pool_id for row in withdrawals if row.is_own}
    relevant |= {
        pool for token, pool in token_pools if is_traded_in(turnovers[token][pool], turnovers[token].values())
    }
    odd_signals, unmeasured = _judge_signals(
        [signal for pool in relevant for signal in by_pool[pool]], ctx.policy
    )
    largest: dict[tuple[int, int], _PossibleSignal] = {}
    for signal in sorted(odd_signals, key=_sort_key):
        largest[signal.token_id, signal.wallet_id] = signal
    return list(largest.values()), unmeasured


def _from_deed(deed: DeedSum) -> _PossibleSignal:
    facts = SignalFacts(deed.token_raw, deed.supply_raw, deed.eth_wei)
    return _PossibleSignal(_DEEDS[deed.deed.what], deed.deed.token_id, deed.deed.wallet_id, facts)


def _from_launch(launch: NewestLaunch, launches: int, graduated: int) -> _PossibleSignal:
    facts = SignalFacts(launches=launches, graduated=graduated)
    return _PossibleSignal(
        "serial_launcher", launch.token_id, launch.deployer_id, facts, launch.evidence, launch.launches
    )


def _from_withdrawal(
    withdrawal: PoolWithdrawal, eth_wei: int | None, supply_raw: int | None
) -> _PossibleSignal:
    before = withdrawal.before if withdrawal.before is not None and withdrawal.before > 0 else None
    share = share_bps(withdrawal.weight, before)
    facts = SignalFacts(withdrawal.token_raw, supply_raw, eth_wei, None if share is None else min(BPS, share))
    return _PossibleSignal(
        "liquidity_left", withdrawal.token_id, withdrawal.wallet_id, facts, withdrawal.evidence
    )


def _convert_to_wei(
    quote: Address, quote_raw: int | None, prices: Mapping[Address, Price], contracts: Contracts
) -> int | None:
    """An amount of a quote in wei, at the newest prices; None: not known."""
    if quote_raw is None or quote in (ZERO_ADDRESS, contracts.weth):
        return quote_raw
    eth_price, quote_price = prices.get(contracts.weth), prices.get(quote)
    if eth_price is None or not eth_price.usdg_raw or not eth_price.depth_raw:
        return None
    if quote == contracts.usdg:
        return worth_wei(quote_raw, eth_price.usdg_raw)
    if quote_price is None or not quote_price.depth_raw:
        return None
    return worth_wei(worth_usdg(quote_raw, quote_price.usdg_raw), eth_price.usdg_raw)


# --- which are shown -------------------------------------------------------------------------------


def _sort_key(signal: _PossibleSignal) -> tuple[int, int, int, int, int]:
    """Sort key: the larger signal is greater; of equal ones, the newer."""
    at = (signal.evidence.block_number, signal.evidence.log_index) if signal.evidence else (0, 0)
    return (*size(signal.facts), *at, signal.token_id)


def _select_foremost(odd_signals: Iterable[_PossibleSignal]) -> list[_PossibleSignal]:
    """At most ``MAX_SHOWN``, in turn from each kind, its largest first."""
    by_kind: dict[Kind, list[_PossibleSignal]] = {}
    for signal in sorted(odd_signals, key=_sort_key, reverse=True):
        by_kind.setdefault(signal.kind, []).append(signal)
    return interleave(by_kind.values(), MAX_SHOWN)


async def _add_evidence(
    connection: Connection, now_s: int, shown: list[_PossibleSignal]
) -> list[_PossibleSignal]:
    """The same signals with their evidence, the newest first."""
    deeds = {_to_deed(signal): signal for signal in shown if signal.evidence is None}
    traced = await store.trace_deeds(connection, now_s - WITHIN_S, deeds)
    evident = [signal for signal in shown if signal.evidence is not None]
    for deed, signal in deeds.items():
        trace = traced[deed]
        evident.append(
            replace(
                signal,
                evidence=trace.evidence,
                recipients=trace.recipients,
                most_id=trace.most_id,
                most_raw=trace.most_raw,
            )
        )
    return sorted(evident, key=_block_position, reverse=True)


def _to_deed(signal: _PossibleSignal) -> SignalDeed:
    return SignalDeed(_DEED_BY_KIND[signal.kind], signal.token_id, signal.wallet_id)


def _block_position(signal: _PossibleSignal) -> tuple[int, int]:
    assert signal.evidence is not None
    return signal.evidence.block_number, signal.evidence.log_index


async def _present_signals(connection: Connection, shown: list[_PossibleSignal]) -> list[Signal]:
    labels_by_id = await labels(connection, {signal.token_id for signal in shown})
    wallets = {signal.wallet_id for signal in shown} | {
        signal.most_id for signal in shown if signal.most_id is not None
    }
    addresses = await addresses_of(connection, wallets)
    return [
        _present_signal(
            signal,
            labels_by_id[signal.token_id],
            addresses[signal.wallet_id],
            addresses[signal.most_id]
            if signal.most_id is not None and signal.kind == "insider_moved"
            else None,
        )
        for signal in shown
    ]


def _present_signal(
    signal: _PossibleSignal, token: Label, wallet: Address, top_recipient: Address | None
) -> Signal:
    """``top_recipient``: the address that got most of the tokens, if any were sent."""
    facts, evidence = signal.facts, signal.evidence
    assert evidence is not None
    amount = None
    if facts.token_raw is not None and token.decimals is not None:
        amount = plain_decimal(facts.token_raw, token.decimals)
    return Signal(
        kind=signal.kind,
        token=present_token(token),
        wallet=wallet,
        other=top_recipient if signal.recipients == 1 else None,
        recipients=None if top_recipient is None else signal.recipients,
        size=SignalSize(
            amount=amount,
            supply_bps=facts.supply_bps(),
            pool_bps=facts.pool_bps,
            eth=None if facts.eth_wei is None else eth(facts.eth_wei),
        ),
        tx=evidence.tx_hash,
        block=evidence.block_number,
        time=when(evidence.at_s),
        text=_describe_signal(signal, quote_token(token), wallet, top_recipient),
    )


def _describe_signal(
    signal: _PossibleSignal, token: str, wallet: Address, top_recipient: Address | None
) -> str:
    facts = signal.facts
    supply, worth = facts.supply_bps(), facts.eth_wei
    much = f"{'an unknown share' if supply is None else format_percent(supply)} of the supply"
    brought = "" if worth is None else f" for {format_eth(worth)}"
    insider = f"{wallet}, the deployer of {token} or a wallet that it funded,"
    match signal.kind:
        case "insider_sold":
            return f"{insider} sold {much}{brought}."
        case "insider_moved":
            recipients = _describe_recipients(signal, top_recipient)
            return f"{insider} moved {much} to {recipients}."
        case "large_burn":
            return f"{wallet} burned {much} of {token}."
        case "liquidity_left":
            part = (
                "liquidity from"
                if facts.pool_bps is None
                else f"{format_percent(facts.pool_bps)} of the liquidity of"
            )
            with_eth = "" if worth is None else f", {format_eth(worth)} of it on the quote side"
            return f"{wallet} removed {part} a pool of {token}{with_eth}."
        case "serial_launcher":
            last = "" if signal.launches < 2 else f", the last of {signal.launches:,} within the hour"
            launches = format_count(facts.launches, "launch", "launches")
            return f"{wallet} launched {token}{last}. It made {launches}; {facts.graduated:,} became a pool."


def _describe_recipients(signal: _PossibleSignal, top_recipient: Address | None) -> str:
    if signal.recipients <= 1:
        return str(top_recipient)
    share = share_bps(signal.most_raw, signal.facts.supply_raw)
    of_supply = "" if share is None else f" ({format_percent(share)})"
    return f"{signal.recipients:,} addresses, the largest part to {top_recipient}{of_supply}"


def _describe(shown: list[Signal], odd: int, unmeasured: int, followed_s: int | None) -> str:
    """``followed_s``: since when the chain is followed, if that is within the hour."""
    if shown:
        counts = Counter(signal.kind for signal in shown)
        parts = ", ".join(f"{_NAMES[kind]} ({count})" for kind, count in counts.most_common())
        lines = [f"Unusual events on launches within the last hour: {parts}. The newest:"]
        lines += [f"{number}. {signal.text}" for number, signal in enumerate(shown[:MAX_SAID], 1)]
    elif followed_s is None:
        lines = ["We found no unusual event on launches within the last hour."]
    else:
        lines = ["We found no unusual event on launches."]
    notes = []
    if odd > len(shown):
        notes.append(f"Left out: {format_count(odd - len(shown), 'smaller event')}.")
    if followed_s is not None:
        since = f"{when(followed_s):%Y-%m-%d %H:%M:%S}"
        notes.append(f"The index begins at {since} UTC: earlier events are not counted.")
    if unmeasured:
        at_least = "at least " if unmeasured >= MAX_DEEDS else ""
        notes.append(
            f"Not measured: {at_least}{format_count(unmeasured, 'event')}, because the token's supply or the "
            "pool's liquidity is not known yet."
        )
    return "\n".join([*lines, *([" ".join(notes)] if notes else [])])


class SignalRow(Signal, frozen=True, rename="camel"):
    """The row with the verdict of its token; None: it is not checked. ``insiders_bps``: what insiders hold of
    the supply now; None: not known."""

    verdict: ShownVerdict | None
    insiders_bps: int | None = None


async def signals_page(ctx: Context, params: Nothing) -> UseCaseAnswer[PageOfRows[SignalRow]]:
    """The page's rows. Raises ServiceFull."""
    found = (await signals(ctx, params)).answer
    async with reading(ctx) as (connection, _):
        tokens = {Address(signal.token.address) for signal in found.signals}
        checks = await read_shown_checks(connection, tokens)
    now_s = ctx.now_s()
    rows = [
        SignalRow(
            **msgspec.structs.asdict(signal),
            verdict=present_stored(checks[Address(signal.token.address)], now_s),
            insiders_bps=checks[Address(signal.token.address)].exposure.insiders(now_s),
        )
        for signal in found.signals
    ]
    answer = PageOfRows(found.text, found.block, found.block_time, rows)
    return UseCaseAnswer(answer, SHARED_MS)
