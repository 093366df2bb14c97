"""``signals``: odd things in the last hour on launchpad launches."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import asyncpg
import msgspec

from roundtrip.domain.events import Price
from roundtrip.domain.policy import Policy
from roundtrip.domain.signals import NARROW_TICKS, SIGNALS, SOLD_WEI, SUPPLY_BPS, Seen
from roundtrip.domain.types import BPS, ZERO_ADDRESS, Address, plain_decimal
from roundtrip.domain.worth import worth_usdg, worth_wei
from roundtrip.store import deployers
from roundtrip.store import signals as store
from roundtrip.store.addresses import addresses_of
from roundtrip.store.chain import Cursor, newest_prices
from roundtrip.store.signals import DeedSum, Evidence, LaunchedAgain, Left
from roundtrip.store.tokens import Label, labels
from roundtrip.venues.base import Contracts

from .context import Answered, Context
from .index_answer import (
    IndexAnswer,
    Nothing,
    TokenNamed,
    called,
    eth,
    eth_text,
    named,
    reading,
    share_bps,
    when,
)

WITHIN_S = 3600
MOST_SHOWN = 50
MOST_SAID = 3
"""So many sentences stand in the text; each row has its own."""

Kind = Literal["insider_sold", "insider_moved", "liquidity_left", "serial_launcher", "large_burn"]
_DEEDS: Mapping[str, Kind] = {"sold": "insider_sold", "moved": "insider_moved", "burned": "large_burn"}
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
    other: Annotated[str | None, msgspec.Meta(description="Who got the tokens; null where nobody did.")]
    size: SignalSize
    tx: Annotated[str, msgspec.Meta(description="The largest transaction of it.")]
    block: Annotated[int, msgspec.Meta(description="That transaction's block.")]
    time: datetime
    text: Annotated[str, msgspec.Meta(description="What happened, in a plain sentence.")]


class Signals(IndexAnswer, frozen=True, rename="camel"):
    """Odd things of the last hour, the newest first."""

    signals: list[Signal]


@dataclass(frozen=True, slots=True)
class _Found:
    """One thing that may be odd. ``launches``: how often the wallet launched within the hour."""

    kind: Kind
    token_id: int
    wallet_id: int
    other_id: int | None
    seen: Seen
    evidence: Evidence
    launches: int = 0


async def signals(ctx: Context, params: Nothing) -> Answered[Signals]:
    """The answer. Raises ServiceFull."""
    async with reading(ctx) as (connection, stands):
        found = await _found(connection, stands, ctx.contracts)
        odd, untold = _odd(found, ctx.policy)
        shown = await _shown(connection, odd[:MOST_SHOWN])
    answer = Signals(
        text=_text(shown, len(odd), untold),
        chain_id=ctx.chain_id,
        block=stands.block.number,
        block_time=when(stands.block.timestamp_s),
        signals=shown,
    )
    return Answered(answer, ctx.policy.answer_ttl_ms)


async def _found(connection: asyncpg.Connection, stands: Cursor, contracts: Contracts) -> list[_Found]:
    """Everything that may be odd."""
    now_s = stands.block.timestamp_s
    after_s = now_s - WITHIN_S
    done = await store.deeds(connection, after_s, SUPPLY_BPS, SOLD_WEI)
    left = await store.liquidity_left(connection, after_s, now_s, stands.start_number, NARROW_TICKS)
    again = await store.launchers(connection, after_s)
    careers = await deployers.graduations(connection, [one.deployer_id for one in again])
    found = [_of_deed(one) for one in done]
    found += [_of_launch(one, *careers[one.deployer_id]) for one in again]
    if left:
        known = await labels(connection, {i for one in left for i in (one.token_id, one.quote_id)})
        prices = await newest_prices(connection)
        for one in left:
            wei = _worth(known[one.quote_id].address, one.quote_raw, prices, contracts)
            found.append(_of_left(one, wei, known[one.token_id].supply_raw))
    return found


def _of_deed(one: DeedSum) -> _Found:
    seen = Seen(one.token_raw, one.supply_raw, one.eth_wei)
    other_id = one.other_id if one.what == "moved" else None
    return _Found(_DEEDS[one.what], one.token_id, one.wallet_id, other_id, seen, one.evidence)


def _of_launch(one: LaunchedAgain, launches: int, graduated: int) -> _Found:
    seen = Seen(launches=launches, graduated=graduated)
    return _Found("serial_launcher", one.token_id, one.deployer_id, None, seen, one.evidence, one.launches)


def _of_left(one: Left, eth_wei: int | None, supply_raw: int | None) -> _Found:
    whole = one.before if one.before is not None and one.before > 0 else None
    share = share_bps(one.weight, whole)
    seen = Seen(one.token_raw, supply_raw, eth_wei, None if share is None else min(BPS, share))
    return _Found("liquidity_left", one.token_id, one.wallet_id, None, seen, one.evidence)


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


def _odd(found: Iterable[_Found], policy: Policy) -> tuple[list[_Found], int]:
    """Those that are odd, the newest first, one a kind, token and wallet; and of how many it cannot be
    told."""
    odd: dict[tuple[str, int, int], _Found] = {}
    untold = 0
    for one in sorted(
        found, key=lambda each: (each.evidence.block_number, each.evidence.log_index), reverse=True
    ):
        said = SIGNALS[one.kind](one.seen, policy)
        untold += said is None
        if said:
            odd.setdefault((one.kind, one.token_id, one.wallet_id), one)
    return list(odd.values()), untold


async def _shown(connection: asyncpg.Connection, odd: list[_Found]) -> list[Signal]:
    known = await labels(connection, {one.token_id for one in odd})
    wallets = {one.wallet_id for one in odd} | {one.other_id for one in odd if one.other_id is not None}
    addresses = await addresses_of(connection, wallets)
    return [
        _signal(
            one,
            known[one.token_id],
            addresses[one.wallet_id],
            None if one.other_id is None else addresses[one.other_id],
        )
        for one in odd
    ]


def _signal(one: _Found, token: Label, wallet: Address, other: Address | None) -> Signal:
    seen, evidence = one.seen, one.evidence
    amount = None
    if seen.token_raw is not None and token.decimals is not None:
        amount = plain_decimal(seen.token_raw, token.decimals)
    return Signal(
        kind=one.kind,
        token=named(token),
        wallet=wallet,
        other=other,
        size=SignalSize(
            amount=amount,
            supply_bps=seen.supply_bps(),
            pool_bps=seen.pool_bps,
            eth=None if seen.eth_wei is None else eth(seen.eth_wei),
        ),
        tx=evidence.tx_hash,
        block=evidence.block_number,
        time=when(evidence.at_s),
        text=_sentence(one, called(token), wallet, other),
    )


def _sentence(one: _Found, token: str, wallet: Address, other: Address | None) -> str:
    seen = one.seen
    supply, worth = seen.supply_bps(), seen.eth_wei
    much = "some" if supply is None else f"{_percent(supply)} of the supply"
    brought = "" if worth is None else f" for {eth_text(worth)}"
    match one.kind:
        case "insider_sold":
            return f"{wallet}, who is behind {token}, sold {much} of it{brought}."
        case "insider_moved":
            return f"{wallet}, who is behind {token}, moved {much} of it to {other}."
        case "large_burn":
            return f"{wallet} burned {much} of {token}."
        case "liquidity_left":
            part = "liquidity" if seen.pool_bps is None else f"{_percent(seen.pool_bps)} of the liquidity"
            with_eth = "" if worth is None else f", {eth_text(worth)} of its money side"
            return f"{wallet} took {part} out of a pool of {token}{with_eth}."
        case "serial_launcher":
            times = "" if one.launches < 2 else f", the newest of {one.launches} within the hour"
            return (
                f"{wallet} launched {token}{times}; of its {seen.launches} launches {seen.graduated} became "
                "a pool."
            )


def _text(shown: list[Signal], odd: int, untold: int) -> str:
    if shown:
        counts = Counter(one.kind for one in shown)
        parts = ", ".join(f"{_NAMES[kind]} ({count})" for kind, count in counts.most_common())
        said = [f"Odd things on launches within the last hour: {parts}."]
        said += ["The newest:", *(one.text for one in shown[:MOST_SAID])]
        if odd > len(shown):
            said.append(f"{odd - len(shown)} older ones are left out.")
    else:
        said = ["Nothing odd happened on launches within the last hour."]
    if untold:
        said.append(
            f"{untold} more could not be measured, since the token's supply or the pool's liquidity is not "
            "known yet."
        )
    return " ".join(said)


def _percent(bps: int) -> str:
    return f"{bps / 100:.2f} %"
