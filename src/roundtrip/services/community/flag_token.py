"""Flags on tokens: an act of the console."""

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
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.domain.community.flag_calls import (
    DAY_S,
    DEAD_WEI,
    MOST_A_DAY,
    MOST_OPEN,
    SETTLED_S,
    WEEK_S,
    Kind,
)
from roundtrip.domain.market.fairness import FAIRNESS
from roundtrip.services.accounts.database import accounts
from roundtrip.services.check.schema import AddressText
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import eth_text, quote_token, reading, when
from roundtrip.services.support.strangers_text import AnswerText
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.services.valuation.spot_quote import PRICES, TokenPricing
from roundtrip.store.boards import moving, reference_pools
from roundtrip.store.community import flag_facts, flags
from roundtrip.store.index.addresses import id_of, ids_of
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import labels
from roundtrip.store.server.rows import Connection

_DRAWS = 3
"""So many tokens are tried for a control: some cannot be sold, or nobody could tell."""
_SAYS = {
    "runs": "that a sell of what 0.1 eth buys now will pay 0.3 eth",
    "drains": "that half of its liquidity will leave, or its deployer sell half of what he holds",
    "dead": "that nobody will trade it for a day, and a sell of what 0.1 eth buys now pay 0.01 eth or less",
}
_FULL = {
    "same": "You have flagged it so already, and that still waits.",
    "open": f"You have {MOST_OPEN} flags waiting, which is all you can: each ends within a week.",
    "day": f"You made {MOST_A_DAY} flags today, which is all you can in a day of UTC.",
}


class FlagParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which token, and what will become of it."""

    token: Annotated[AddressText, msgspec.Meta(description="The token's address.")]
    kind: Annotated[Kind, msgspec.Meta(description="What will become of it within seven days.")]

    def address(self) -> Address:
        """The token, lower-cased. Raises CallerFault (bad_address)."""
        return WalletParams(self.token).wallet()


class Flagged(msgspec.Struct, frozen=True, rename="camel"):
    """A flag that waits to be proved."""

    text: AnswerText
    id: int
    token: str
    kind: Kind
    ends_at: Annotated[
        datetime, msgspec.Meta(description="By the chain's clock: what comes later proves nothing.")
    ]


class _CannotFlag(Exception):
    """The token cannot be flagged so; its text says why, to people."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """A token that is flagged, or drawn, with what facts tell. ``by``: the number of the account's wallet;
    None: nobody's, or it stands in no fact."""

    token: Address
    token_id: int
    by: int | None = None


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
        async with reading(ctx) as (connection, stands):
            _check_behind(head, stands)
            await flags.check_room(connection, account.id, token, kind, day)
            subject = await _subject(connection, token, account)
            said = quote_token((await labels(connection, [subject.token_id]))[subject.token_id])
            basis = await _by_facts(ctx, connection, subject, kind, stands)
            controls = await _controls(ctx, connection, kind, stands)
        basis = await pricing.price_basis(token, basis)
        control = await pricing.first_priced(controls)
        new = _new(token, kind, stands, basis)
        beside = None if control is None else _new(control[0], kind, stands, control[1])
        async with accounts(ctx) as connection:
            flag_id = await flags.add(connection, account.id, new, beside, now, day)
    except _CannotFlag as unfit:
        raise CallerFault("bad_input", str(unfit)) from None
    except flags.TooManyFlags as full:
        raise CallerFault("bad_input", _FULL[full.why]) from None
    ends_at = when(new.ends_s)
    text = (
        f"You say of {said} {_SAYS[kind]}, by {ends_at:%Y-%m-%d %H:%M} UTC. "
        "What your own wallets trade of it proves nothing."
    )
    return UseCaseAnswer(Flagged(text, flag_id, token, kind, ends_at), meter=meter)


def _new(token: Address, kind: Kind, stands: Cursor, basis: flags.FlagBasis) -> flags.NewFlag:
    at = stands.block
    return flags.NewFlag(token, kind, at.timestamp_s, at.number, at.timestamp_s + WEEK_S, basis)


def _check_behind(head: ChainHead, stands: Cursor) -> None:
    """What nobody has read yet would count as having come later."""
    if head.block.timestamp_s - stands.block.timestamp_s > SETTLED_S:
        raise ServiceFull("busy", "The index is too far behind the chain for a flag just now.", 60)


# --- by facts --------------------------------------------------------------------------------------


async def _subject(connection: Connection, token: Address, account: Account) -> _Subject:
    """The token, where it counts and the account has nothing to do with it. Raises _Unfit."""
    token_id = await id_of(connection, token)
    if token_id is None or not await flag_facts.is_counted(connection, token_id):
        raise _CannotFlag(
            "That token cannot be flagged: only those count that are older than a day and that "
            f"{FAIRNESS.least_buyers} different people bought, as far as can be told by who paid for their "
            "wallets, and of which somebody has sold out."
        )
    by = (await ids_of(connection, [account.wallet])).get(account.wallet)
    deployer_id, _ = await flag_facts.deployer_of(connection, token_id)
    if by is not None and deployer_id is not None:
        purses = await moving.purses_of(connection, {by, deployer_id})
        if purses.is_kin(by, deployer_id):
            raise _CannotFlag("That token is your own wallet's, or of one that shares money with it.")
    return _Subject(token, token_id, by)


async def _by_facts(
    ctx: Context, connection: Connection, subject: _Subject, kind: Kind, stands: Cursor
) -> flags.FlagBasis:
    """What a flag is held against, as far as facts tell. Raises _Unfit where it could not be proved, or is so
    already."""
    token_id = subject.token_id
    if kind == "drains":
        basis = await _drainable(ctx, connection, subject, stands)
        if basis == flags.FlagBasis():
            raise _CannotFlag(
                "That could not be proved: the index does not know of all the liquidity of the pool where it "
                "is traded most, or that pool is younger than a day; and its deployer holds none that he "
                "bought."
            )
        return basis
    if kind == "dead":
        traders = await flag_facts.traded_by(connection, token_id, stands.block.timestamp_s - DAY_S)
        deployer_id, _ = await flag_facts.deployer_of(connection, token_id)
        if traders is not None and not await others(connection, traders, deployer_id):
            raise _CannotFlag("That token is dead already: nobody traded it for a day.")
    place = await reference_pools.common(connection, token_id, stands.block.timestamp_s, ctx.contracts)
    if place is None:
        raise _CannotFlag(
            "That could not be proved: nobody traded it for a day, or the pool where it is traded most is "
            "younger than that."
        )
    return flags.FlagBasis(pool=place)


async def _drainable(
    ctx: Context, connection: Connection, subject: _Subject, stands: Cursor
) -> flags.FlagBasis:
    """Liquidity that is not the account's own, and what the deployer holds."""
    _, deployer_raw = await flag_facts.deployer_of(connection, subject.token_id)
    place = await flag_facts.main_pool(connection, subject.token_id, stands, ctx.contracts)
    liquidity = 0
    if place is not None:
        strangers = await others(connection, place.of_wallets, subject.by)
        liquidity = sum(place.of_wallets[wallet_id] for wallet_id in strangers)
    is_there = place is not None and liquidity > 0
    return flags.FlagBasis(
        pool=place.at if place is not None and is_there else None,
        liquidity=liquidity if is_there else None,
        deployer_raw=deployer_raw or None,
    )


async def others(connection: Connection, wallet_ids: Iterable[int], whose: int | None) -> set[int]:
    """Those of the wallets that are not kin of one; None: of nobody."""
    given = set(wallet_ids)
    if whose is None or not given:
        return given
    purses = await moving.purses_of(connection, given | {whose})
    return {one for one in given if not purses.is_kin(one, whose)}


async def _controls(
    ctx: Context, connection: Connection, kind: Kind, stands: Cursor
) -> list[tuple[Address, flags.FlagBasis]]:
    """Tokens drawn by chance that could be flagged so."""
    found = []
    drawn = await flag_facts.draw_tokens(connection, ctx.entropy(), stands.block.timestamp_s, _DRAWS)
    for token_id, token in drawn:
        with contextlib.suppress(_CannotFlag):
            basis = await _by_facts(ctx, connection, _Subject(token, token_id), kind, stands)
            found.append((token, basis))
    return found


# --- by price --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pricing:
    """How the tokens of one flag are priced."""

    ctx: Context
    head: ChainHead
    kind: Kind
    prices: TokenPricing
    meter: Meter

    async def price_basis(self, token: Address, basis: flags.FlagBasis) -> flags.FlagBasis:
        """With what 0.1 eth buys, where that is asked. Raises _Unfit, NodeFault."""
        if self.kind == "drains":
            return basis
        probed = await self.prices.probe_buy(self.ctx, self.head, token, self.meter, basis.pool)
        if isinstance(probed, Missing):
            raise NodeFault(probed.why)
        if isinstance(probed, RefusedCall):
            what = (
                "0.1 eth does not buy it"
                if probed.step in ("buy", "arrive")
                else "what 0.1 eth buys cannot be sold"
            )
            raise _CannotFlag(f"That could not be proved: {what} just now.")
        if self.kind == "dead" and probed.pays_wei <= DEAD_WEI:
            raise _CannotFlag(
                f"That is so already: selling what 0.1 eth buys pays {eth_text(probed.pays_wei)}."
            )
        slot = await self.prices.slot_of(self.ctx, self.head, token, self.meter)
        if slot is None:
            raise _CannotFlag("That could not be proved: where the token keeps its balances is not known.")
        return replace(basis, held_raw=probed.token_raw, slot=(slot.layout, slot.base))

    async def first_priced(
        self, drawn: Iterable[tuple[Address, flags.FlagBasis]]
    ) -> tuple[Address, flags.FlagBasis] | None:
        """The first that can be priced; None: none of them, and there is no control."""
        for token, basis in drawn:
            with contextlib.suppress(_CannotFlag, RoundtripError):
                return token, await self.price_basis(token, basis)
        return None
