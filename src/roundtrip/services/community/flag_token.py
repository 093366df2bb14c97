"""Flags a token: an action of the console. Lists an account's flags, waiting and settled. A flag is compared
with its control, the same flag on a token drawn at random, which shows what chance gives."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault, NodeFault, RoundtripError, ServiceFull
from roundtrip.domain.base.figures import format_eth
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.domain.community.flag_calls import (
    DAY_S,
    DEAD_WEI,
    MAX_A_DAY,
    MAX_OPEN,
    SETTLED_S,
    WEEK_S,
    Kind,
    State,
)
from roundtrip.domain.market.fairness import FAIRNESS
from roundtrip.services.community.proven_flags import ProvenParams
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import AddressText, AnswerText, WalletParams, says
from roundtrip.services.support.index_reader import (
    TokenNamed,
    accounts,
    eth,
    present_token,
    quote_token,
    reading,
    when,
)
from roundtrip.services.valuation.holdings import PRICES, TokenPricing
from roundtrip.store.boards import moving, reference_pools
from roundtrip.store.community import flag_facts, flags
from roundtrip.store.community import flags as store
from roundtrip.store.community.flags import OwnFlag
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import Label, id_of, ids_of, labels
from roundtrip.store.server.rows import Connection

_DRAWS = 3
"""How many random tokens are drawn for one control: some cannot be flagged, sold or priced."""
_CLAIMS = {
    "runs": "what 0.1 eth buys now will sell for 0.3 eth",
    "drains": "half of its liquidity will leave, or its deployer will sell half of what it holds",
    "dead": "it will have no trade for a day, and what 0.1 eth buys now will sell for 0.01 eth or less",
}
_FULL = {
    "same": "You have already flagged this token like this, and that flag is still waiting.",
    "open": f"You have {MAX_OPEN} flags waiting, the maximum: each ends within a week.",
    "day": f"You made {MAX_A_DAY} flags today, the maximum: flag again after 00:00 UTC.",
}


class FlagParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which token, and what will become of it."""

    token: Annotated[AddressText, says("The token's address.")]
    kind: Annotated[Kind, says("What will become of it within seven days.")]

    def address(self) -> Address:
        """The token, lower-cased. Raises CallerFault (bad_address)."""
        return WalletParams(self.token).wallet()


class Flagged(msgspec.Struct, frozen=True, rename="camel"):
    """A flag that waits to be proved."""

    text: AnswerText
    id: int
    token: str
    kind: Kind
    ends_at: Annotated[datetime, says("By the chain's clock: what comes later proves nothing.")]


class _CannotFlag(Exception):
    """The token cannot be flagged like this; the text, for the user, says why."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """A flagged token, or a random control. ``flagger_id``: the id of the account's wallet; None for a
    control, or where the index has no fact with the wallet."""

    token: Address
    token_id: int
    flagger_id: int | None = None


async def flag_token(
    ctx: Context, params: FlagParams, account: Account, prices: TokenPricing = PRICES
) -> UseCaseAnswer[Flagged]:
    """Flags a token, and draws its control. Raises CallerFault (bad_address, bad_input), ServiceFull,
    NodeFault."""
    token, kind, meter = params.address(), params.kind, Meter()
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    head = ctx.heads.current()
    pricing = _Pricing(ctx, head, kind, prices, meter)
    try:
        async with reading(ctx) as (connection, indexed):
            _check_index_is_near(head, indexed)
            await flags.check_room(connection, account.id, token, kind, day)
            subject = await _read_subject(connection, token, account)
            token_text = quote_token((await labels(connection, [subject.token_id]))[subject.token_id])
            basis = await _read_basis(ctx, connection, subject, kind, indexed)
            candidates = await _draw_controls(ctx, connection, kind, indexed)
        basis = await pricing.price_basis(token, basis)
        priced = await pricing.first_priced(candidates)
        new = _new_flag(token, kind, indexed, basis)
        control = None if priced is None else _new_flag(priced[0], kind, indexed, priced[1])
        async with accounts(ctx) as connection:
            flag_id = await flags.add(connection, account.id, new, control, now, day)
    except _CannotFlag as unfit:
        raise CallerFault("bad_input", str(unfit)) from None
    except flags.TooManyFlags as full:
        raise CallerFault("bad_input", _FULL[full.why]) from None
    ends_at = when(new.ends_s)
    text = (
        f"You flagged {token_text} as {kind}: until {ends_at:%Y-%m-%d %H:%M} UTC, {_CLAIMS[kind]}. "
        "Trades of your own wallets prove nothing."
    )
    return UseCaseAnswer(Flagged(text, flag_id, token, kind, ends_at), meter=meter)


def _new_flag(token: Address, kind: Kind, indexed: Cursor, basis: flags.FlagBasis) -> flags.NewFlag:
    block = indexed.block
    return flags.NewFlag(token, kind, block.timestamp_s, block.number, block.timestamp_s + WEEK_S, basis)


def _check_index_is_near(head: ChainHead, indexed: Cursor) -> None:
    """Blocks that are not indexed yet would count as coming after the flag. Raises ServiceFull."""
    if head.block.timestamp_s - indexed.block.timestamp_s > SETTLED_S:
        raise ServiceFull("busy", "The index is too far behind the chain to take a flag. Retry in 60 s.", 60)


# --- by facts --------------------------------------------------------------------------------------


async def _read_subject(connection: Connection, token: Address, account: Account) -> _Subject:
    """The token, if it counts and its deployer is no kin of the account. Raises _CannotFlag."""
    token_id = await id_of(connection, token)
    if token_id is None or not await flag_facts.is_counted(connection, token_id):
        raise _CannotFlag(
            "You cannot flag this token yet. A token must be older than a day, at least "
            f"{FAIRNESS.least_buyers} different people (wallets that one wallet funded count once) must have "
            "bought it, and at least one wallet must have sold out of it."
        )
    flagger_id = (await ids_of(connection, [account.wallet])).get(account.wallet)
    deployer_id, _ = await flag_facts.deployer_of(connection, token_id)
    if flagger_id is not None and deployer_id is not None:
        purses = await moving.read_origins(connection, {flagger_id, deployer_id})
        if purses.is_kin(flagger_id, deployer_id):
            raise _CannotFlag(
                "You cannot flag your own token: its deployer is your own wallet, or shares money with it."
            )
    return _Subject(token, token_id, flagger_id)


async def _read_basis(
    ctx: Context, connection: Connection, subject: _Subject, kind: Kind, indexed: Cursor
) -> flags.FlagBasis:
    """The state that the flag will be compared with, from facts. Raises _CannotFlag if the flag could not be
    proved, or has come true already."""
    token_id = subject.token_id
    if kind == "drains":
        basis = await _read_drainable(ctx, connection, subject, indexed)
        if basis == flags.FlagBasis():
            raise _CannotFlag(
                "This flag could not be proved. The index does not know all the liquidity of the token's "
                "most traded pool, or that pool is younger than a day; and the deployer holds no tokens that "
                "it bought."
            )
        return basis
    if kind == "dead":
        traders = await flag_facts.traded_by(connection, token_id, indexed.block.timestamp_s - DAY_S)
        deployer_id, _ = await flag_facts.deployer_of(connection, token_id)
        if traders is not None and not await without_kin(connection, traders, deployer_id):
            raise _CannotFlag(
                "This token is dead already: no wallet independent of its deployer traded it in the last day."
            )
    pool = await reference_pools.common(connection, token_id, indexed.block.timestamp_s, ctx.contracts)
    if pool is None:
        raise _CannotFlag(
            "This flag could not be proved: the token had no trade in the last day, or its most traded pool "
            "is younger than a day."
        )
    return flags.FlagBasis(pool=pool)


async def _read_drainable(
    ctx: Context, connection: Connection, subject: _Subject, indexed: Cursor
) -> flags.FlagBasis:
    """What could drain: the main pool's liquidity that does not belong to the flag's account or its kin, and
    what the deployer holds. Empty: neither is there."""
    _, deployer_raw = await flag_facts.deployer_of(connection, subject.token_id)
    main_pool = await flag_facts.main_pool(connection, subject.token_id, indexed, ctx.contracts)
    if main_pool is not None:
        pool, of_wallets = main_pool
        counted_ids = await without_kin(connection, of_wallets, subject.flagger_id)
        liquidity = sum(of_wallets[wallet_id] for wallet_id in counted_ids)
        if liquidity > 0:
            return flags.FlagBasis(pool=pool, liquidity=liquidity, deployer_raw=deployer_raw or None)
    return flags.FlagBasis(deployer_raw=deployer_raw or None)


async def without_kin(connection: Connection, wallet_ids: Iterable[int], wallet_id: int | None) -> set[int]:
    """The wallets that are not kin of ``wallet_id``, which means that they share no money with it; all of
    them if it is None."""
    ids = set(wallet_ids)
    if wallet_id is None or not ids:
        return ids
    purses = await moving.read_origins(connection, ids | {wallet_id})
    return {other_id for other_id in ids if not purses.is_kin(other_id, wallet_id)}


async def _draw_controls(
    ctx: Context, connection: Connection, kind: Kind, indexed: Cursor
) -> list[tuple[Address, flags.FlagBasis]]:
    """Random tokens that could be flagged in the same way."""
    controls = []
    drawn = await flag_facts.draw_tokens(connection, ctx.entropy(), indexed.block.timestamp_s, _DRAWS)
    for token_id, token in drawn:
        with contextlib.suppress(_CannotFlag):
            basis = await _read_basis(ctx, connection, _Subject(token, token_id), kind, indexed)
            controls.append((token, basis))
    return controls


# --- by price --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pricing:
    """Prices the tokens of one flag: the flagged token and its control."""

    ctx: Context
    head: ChainHead
    kind: Kind
    prices: TokenPricing
    meter: Meter

    async def price_basis(self, token: Address, basis: flags.FlagBasis) -> flags.FlagBasis:
        """The basis with what 0.1 eth buys, where the kind needs it. Raises _CannotFlag, NodeFault."""
        if self.kind == "drains":
            return basis
        probed = await self.prices.probe_buy(self.ctx, self.head, token, self.meter, basis.pool)
        if isinstance(probed, Missing):
            raise NodeFault(probed.why)
        if isinstance(probed, RefusedCall):
            reason = (
                "0.1 eth does not buy the token"
                if probed.step in ("buy", "arrive")
                else "what 0.1 eth buys cannot be sold"
            )
            raise _CannotFlag(f"This flag could not be proved: {reason} now.")
        if self.kind == "dead" and probed.pays_wei <= DEAD_WEI:
            raise _CannotFlag(
                f"This token is dead already: what 0.1 eth buys sells for {format_eth(probed.pays_wei)}."
            )
        slot = await self.prices.slot_of(self.ctx, self.head, token, self.meter)
        if slot is None:
            raise _CannotFlag(
                "This flag could not be proved: we could not find where the token stores its balances."
            )
        return replace(basis, held_raw=probed.token_raw, slot=(slot.layout, slot.base))

    async def first_priced(
        self, drawn: Iterable[tuple[Address, flags.FlagBasis]]
    ) -> tuple[Address, flags.FlagBasis] | None:
        """The first token that can be priced; None if there is none, and so no control."""
        for token, basis in drawn:
            with contextlib.suppress(_CannotFlag, RoundtripError):
                return token, await self.price_basis(token, basis)
        return None


SHOWN = 50


class FlagKept(msgspec.Struct, frozen=True, rename="camel"):
    """A flag of the account."""

    id: int
    token: TokenNamed
    kind: Kind
    state: Annotated[
        State,
        says(
            "open: it waits; seen: it came true and has to stay so for a while; proved; failed: "
            "its week ended; void: its result could not be found out near its end; it counts for nothing."
        ),
    ]
    flagged_at: Annotated[datetime, says("By the chain's clock.")]
    ends_at: Annotated[datetime, says("By the chain's clock.")]
    settled_at: Annotated[datetime | None, says("null: it waits.")]
    tx: Annotated[str | None, says("The largest transaction of what proved it.")]
    by: Annotated[str | None, says("What proved it: price, liquidity or deployer.")]
    paid_eth: Annotated[float | None, says("What a sell paid, where the price proved it.")]


class OwnFlags(msgspec.Struct, frozen=True, rename="camel"):
    """The account's flags, of one token or of all."""

    waiting: Annotated[list[FlagKept], says("The latest first.")]
    settled: Annotated[list[FlagKept], says(f"The last settled first, {SHOWN} at most.")]
    open_now: Annotated[int, says("Flags on any token that wait.")]
    made_today: Annotated[int, says("Made in this day of UTC.")]
    most_open: int
    most_a_day: int


async def own_flags(ctx: Context, params: ProvenParams, account: Account) -> UseCaseAnswer[OwnFlags]:
    """The account's flags on one token, or on all. Raises CallerFault (bad_address), ServiceFull."""
    token, now = params.token(), datetime.fromtimestamp(ctx.now_s(), UTC)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    async with accounts(ctx) as connection:
        waiting = await store.list_own_waiting(connection, account.id)
        settled = await store.list_own_settled(connection, account.id, token, SHOWN)
        made_today = await store.made_since(connection, account.id, day)
    return UseCaseAnswer(
        OwnFlags(
            waiting=[_present_flag(flag) for flag in waiting if token is None or flag.token == token],
            settled=[_present_flag(flag) for flag in settled],
            open_now=len(waiting),
            made_today=made_today,
            most_open=MAX_OPEN,
            most_a_day=MAX_A_DAY,
        )
    )


def _present_flag(flag: OwnFlag) -> FlagKept:
    return FlagKept(
        id=flag.id,
        token=present_token(Label(flag.token, flag.symbol, flag.name, None, None)),
        kind=flag.kind,
        state=flag.state,
        flagged_at=when(flag.at_s),
        ends_at=when(flag.ends_s),
        settled_at=None if flag.settled_s is None else when(flag.settled_s),
        tx=flag.tx_hash,
        by=flag.by,
        paid_eth=None if flag.wei is None else eth(flag.wei),
    )
