"""A practice account: what is left, what is held, and what that would sell for at this block, in one trip."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.domain.practice import practice
from roundtrip.services.practice.ledger import AccountPage, moment, read_page
from roundtrip.services.practice.pricing import Valuing, why_missing, why_refused
from roundtrip.services.practice.schema import PositionListed, PracticeAccount, eth_of, token_named
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.valuation.holdings import HoldingToSell, Valued, worth
from roundtrip.store.practice import practice as store
from roundtrip.store.practice.practice import Slot, StoredPosition, WeekResult
from roundtrip.store.server.errors import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection


def holding_of(
    kept: StoredPosition, at: datetime, amount_raw: int, before_raw: int, slot: Slot | None
) -> HoldingToSell:
    """``amount_raw`` of a position at that time; whoever has to wait waits from his last buy on."""
    token, held_s = kept.position.token, max(0, int((at - kept.bought_at).total_seconds()))
    where = None if slot is None else BalanceSlot(token, slot.layout, slot.base)
    return HoldingToSell(token, amount_raw, None, where, before_raw, held_s, kept.at)


_DATABASE_S = 5.0


@dataclass(frozen=True, slots=True)
class _AccountRead:
    """What the database has of it."""

    page: AccountPage
    week: WeekResult
    symbols: dict[Address, str | None]


async def practice_account(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[PracticeAccount]:
    """Nothing is written. Raises NodeFault, ServiceFull."""
    meter = Meter()
    return UseCaseAnswer(await value_account(ctx, account, worth, meter), meter=meter)


async def value_account(ctx: Context, account: Account, valuing: Valuing, meter: Meter) -> PracticeAccount:
    """The account, its positions valued by ``valuing``. Raises as ``practice_account``."""
    head, at = ctx.heads.current(), moment(ctx)
    found = await _read(ctx, account, at, head.block.number)
    kept = found.page.kept
    valued: list[Valued] = []
    if kept:
        held = [holding_of(one, at, one.position.held_raw, 0, one.slot) for one in kept]
        valued = await valuing(ctx, head, held, meter)
    positions = [
        _present_position(one, value, found.symbols.get(one.position.token))
        for one, value in zip(kept, valued, strict=True)
    ]
    known_wei = sum(value.wei for value in valued if not isinstance(value, Missing | RefusedCall))
    eth_wei = found.page.account.eth_wei
    return PracticeAccount(
        text=_text(found, positions, eth_wei + known_wei),
        chain_id=ctx.chain_id,
        block=head.block.number,
        block_hash=head.block.hash,
        eth=eth_of(eth_wei),
        positions=positions,
        worth=eth_of(eth_wei + known_wei),
        given=eth_of(found.page.account.given_wei),
        set_apart=eth_of(found.page.account.apart_wei),
        week_begins=_monday(at),
        profit_this_week=eth_of(found.week.profit_wei),
        sells_this_week=found.week.sells,
    )


async def _read(ctx: Context, account: Account, at: datetime, block_number: int) -> _AccountRead:
    try:
        async with (
            ctx.pool.acquire(timeout=_DATABASE_S) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            return await _read_account(connection, account, at, block_number)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Accounts cannot be reached just now.", 5) from error


async def _read_account(
    connection: Connection, account: Account, at: datetime, block_number: int
) -> _AccountRead:
    page = await read_page(connection, account, None, at, block_number)
    week = await store.week(connection, account.id, _monday(at))
    return _AccountRead(
        page, week, await store.symbols(connection, [one.position.token for one in page.kept])
    )


def _monday(at: datetime) -> datetime:
    return datetime.fromtimestamp(practice.monday_s(int(at.timestamp())), UTC)


def _present_position(kept: StoredPosition, value: Valued, symbol: str | None) -> PositionListed:
    position, worth_wei, why = kept.position, None, None
    if isinstance(value, RefusedCall):
        why = why_refused(value)
    elif isinstance(value, Missing):
        why = why_missing(value)
    else:
        worth_wei = value.wei
    return PositionListed(
        token=token_named(position.token, symbol),
        amount=plain_decimal(position.held_raw, kept.decimals),
        raw=str(position.held_raw),
        cost=eth_of(position.cost_wei),
        worth=None if worth_wei is None else eth_of(worth_wei),
        gain=None if worth_wei is None else eth_of(worth_wei - position.cost_wei),
        why=why,
        opened_at=kept.opened_at,
        stuck_at=kept.stuck_at,
    )


def _text(found: _AccountRead, positions: Sequence[PositionListed], worth_wei: int) -> str:
    page, week = found.page, found.week
    count = "1 position is" if len(positions) == 1 else f"{len(positions)} positions are"
    open_ = [one for one in positions if one.worth is None]
    said = [f"{eth_of(page.account.eth_wei)} practice eth are left, and {count} open."]
    if positions:
        floor = f", {len(open_)} of them left out, which cannot be sold or valued now" if open_ else ""
        said.append(f"Sold at this block all of it would come to {eth_of(worth_wei)} eth{floor}.")
    took = f"took {eth_of(week.profit_wei)}" if week.profit_wei >= 0 else f"lost {eth_of(-week.profit_wei)}"
    sells = "1 sell" if week.sells == 1 else f"{week.sells} sells"
    said.append(f"This week {sells} {took} eth." if week.sells else "Nothing was sold this week.")
    if page.account.apart_wei:
        apart = eth_of(page.account.apart_wei)
        said.append(f"{apart} eth of gains that do not count are set apart and cannot be spent.")
    gifts = [one for one in page.turned.trades if one.side == "gift"]
    if gifts:
        said.append(f"Monday's gift of {eth_of(gifts[0].eth_wei)} eth is in it.")
    return " ".join(said)
