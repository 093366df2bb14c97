"""A practice account: its eth, its positions, and what they would sell for at this block; its last trades;
and its profit over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, cast

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.domain.practice import practice
from roundtrip.services.practice.ledger import AccountPage, now_of, read_page
from roundtrip.services.practice.pricing import (
    ValueHoldings,
    add_token_reasons,
    value_at_ages,
    why_missing,
    why_refused,
)
from roundtrip.services.practice.schema import (
    Eth,
    PositionListed,
    PracticeAccount,
    PracticeTrades,
    TradeListed,
    eth_of,
    practice_eth,
    token_named,
)
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import Nothing, accounts
from roundtrip.services.support.money import ETH_DECIMALS
from roundtrip.services.valuation.holdings import HoldingToSell, Valued, worth
from roundtrip.store.practice import practice as store
from roundtrip.store.practice.practice import KeptTrade, Slot, StoredPosition, WeekResult
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection


def holding_of(
    stored: StoredPosition, at: datetime, amount_raw: int, before_raw: int, slot: Slot | None
) -> HoldingToSell:
    """``amount_raw`` of a position to sell at time ``at``. A waiting time of the token runs from the last
    buy, and a time after which it stops selling may run from the first."""
    token = stored.position.token
    held_s, oldest_s = _age_s(at, stored.bought_at), _age_s(at, stored.opened_at)
    balance_slot = None if slot is None else BalanceSlot(token, slot.layout, slot.base)
    return HoldingToSell(token, amount_raw, None, balance_slot, before_raw, held_s, stored.at, oldest_s)


def _age_s(at: datetime, since: datetime) -> int:
    return max(0, int((at - since).total_seconds()))


_DATABASE_S = 5.0


@dataclass(frozen=True, slots=True)
class _AccountRead:
    """The account as read from the database."""

    page: AccountPage
    week: WeekResult
    symbols: dict[Address, str | None]


async def practice_account(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[PracticeAccount]:
    """The account with its positions valued; writes nothing. Raises NodeFault, ServiceFull."""
    meter = Meter()
    return UseCaseAnswer(await value_account(ctx, account, worth, meter), meter=meter)


async def value_account(
    ctx: Context, account: Account, value_holdings: ValueHoldings, meter: Meter
) -> PracticeAccount:
    """The account with its positions valued by ``value_holdings``. Raises as ``practice_account``."""
    head, at = await ctx.heads.read_now(), now_of(ctx)
    read = await _read(ctx, account, at, head.block.number)
    open_positions = read.page.positions
    values: list[Valued] = []
    if open_positions:
        holdings = [
            holding_of(stored, at, stored.position.held_raw, 0, stored.slot) for stored in open_positions
        ]
        values = await value_at_ages(ctx, head, holdings, value_holdings, meter)
        values = await add_token_reasons(ctx, head, holdings, values, meter)
    positions = [
        _present_position(stored, value, read.symbols.get(stored.position.token))
        for stored, value in zip(open_positions, values, strict=True)
    ]
    known_wei = sum(value.wei for value in values if not isinstance(value, Missing | RefusedCall))
    eth_wei = read.page.account.eth_wei
    return PracticeAccount(
        text=_text(read, positions, eth_wei + known_wei),
        chain_id=ctx.chain_id,
        block=head.block.number,
        block_hash=head.block.hash,
        eth=eth_of(eth_wei),
        positions=positions,
        worth=eth_of(eth_wei + known_wei),
        given=eth_of(read.page.account.given_wei),
        set_apart=eth_of(read.page.account.apart_wei),
        week_begins=_monday(at),
        profit_this_week=eth_of(read.week.profit_wei),
        sells_this_week=read.week.sells,
    )


async def _read(ctx: Context, account: Account, at: datetime, block_number: int) -> _AccountRead:
    try:
        async with (
            ctx.pool.acquire(timeout=_DATABASE_S) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            return await _read_account(connection, account, at, block_number)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Accounts are unavailable: ask again in 5 s.", 5) from error


async def _read_account(
    connection: Connection, account: Account, at: datetime, block_number: int
) -> _AccountRead:
    page = await read_page(connection, account, None, at, block_number)
    week = await store.week(connection, account.id, _monday(at))
    symbols = await store.symbols(connection, [stored.position.token for stored in page.positions])
    return _AccountRead(page, week, symbols)


def _monday(at: datetime) -> datetime:
    return datetime.fromtimestamp(practice.monday_s(int(at.timestamp())), UTC)


def _present_position(stored: StoredPosition, value: Valued, symbol: str | None) -> PositionListed:
    position, worth_wei, why = stored.position, None, None
    if isinstance(value, RefusedCall):
        why = why_refused(value)
    elif isinstance(value, Missing):
        why = why_missing(value)
    else:
        worth_wei = value.wei
    return PositionListed(
        token=token_named(position.token, symbol),
        amount=plain_decimal(position.held_raw, stored.decimals),
        raw=str(position.held_raw),
        cost=eth_of(position.cost_wei),
        worth=None if worth_wei is None else eth_of(worth_wei),
        gain=None if worth_wei is None else eth_of(worth_wei - position.cost_wei),
        why=why,
        opened_at=stored.opened_at,
        stuck_at=stored.stuck_at,
    )


def _text(read: _AccountRead, positions: Sequence[PositionListed], worth_wei: int) -> str:
    page, week = read.page, read.week
    count = format_count(len(positions), "open position") if positions else "no open position"
    unvalued = [position for position in positions if position.worth is None]
    sentences = [f"You have {practice_eth(page.account.eth_wei)} and {count}."]
    if positions:
        total = f"With all positions sold at this block you would have {practice_eth(worth_wei)}"
        left_out = f", not counting {len(unvalued)} that cannot be sold or valued now" if unvalued else ""
        sentences.append(f"{total}{left_out}.")
    if week.sells:
        result = f"{'made' if week.profit_wei >= 0 else 'lost'} {practice_eth(abs(week.profit_wei))}"
        sentences.append(f"This week {format_count(week.sells, 'sell')} {result}.")
    else:
        sentences.append("You have sold nothing this week.")
    if page.account.apart_wei:
        apart = practice_eth(page.account.apart_wei)
        sentences.append(f"{apart} of profit from sells that do not count is set apart: you cannot spend it.")
    gifts = [trade for trade in page.monday.trades if trade.side == "gift"]
    if gifts:
        sentences.append(f"This includes Monday's gift of {practice_eth(gifts[0].eth_wei)}.")
    return " ".join(sentences)


MAX_TRADES = 50


async def practice_trades(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[PracticeTrades]:
    """The last trades, the newest first. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        trades = await store.trades(connection, account.id, MAX_TRADES)
    return UseCaseAnswer(
        PracticeTrades(_describe_trades(trades), [_present_trade(trade) for trade in trades])
    )


def _present_trade(trade: KeptTrade) -> TradeListed:
    is_traded, is_closed = trade.side in ("buy", "sell"), trade.profit_wei is not None
    has_token = trade.token is not None
    return TradeListed(
        id=trade.id,
        side=trade.side,
        token=None if trade.token is None else token_named(trade.token, trade.symbol),
        amount=plain_decimal(trade.token_raw, trade.decimals) if has_token else None,
        raw=str(trade.token_raw) if has_token else None,
        eth=eth_of(trade.eth_wei),
        price=_price(trade) if is_traded else None,
        cost=eth_of(trade.cost_wei) if is_closed else None,
        profit=None if trade.profit_wei is None else eth_of(trade.profit_wei),
        block=trade.block_number,
        block_hash=trade.block_hash,
        venue=cast(VenueKind | None, trade.venue),
        sells_back=trade.sells_back,
        counted=trade.counted,
        why_not=trade.why_not,
        made_at=trade.made_at,
    )


def _price(trade: KeptTrade) -> str:
    """The eth for a whole token, as a decimal number."""
    wei_e18 = trade.eth_wei * 10 ** (trade.decimals + ETH_DECIMALS) // trade.token_raw
    return _short(plain_decimal(wei_e18, 2 * ETH_DECIMALS))


def _short(text: str) -> str:
    """Cuts the fraction to 18 digits, from its first digit that is not 0 where the whole part is 0."""
    whole, _, fraction = text.partition(".")
    zeros = len(fraction) - len(fraction.lstrip("0")) if whole == "0" else 0
    digits = fraction[: zeros + ETH_DECIMALS].rstrip("0")
    return f"{whole}.{digits}" if digits else whole


def _describe_trades(trades: list[KeptTrade]) -> str:
    if not trades:
        return "You have made no practice trade yet."
    sells = [trade for trade in trades if trade.side == "sell"]
    profit_wei = sum(trade.profit_wei or 0 for trade in sells)
    count = "entry" if len(trades) == 1 else f"{len(trades)} entries"
    text = f"Your last {count}, the newest first."
    if sells:
        result = f"{'made' if profit_wei >= 0 else 'lost'} {practice_eth(abs(profit_wei))}"
        text += f" The {format_count(len(sells), 'sell')} among them {result}."
    return text


MAX_CLOSINGS = 200


class ProfitPoint(msgspec.Struct, frozen=True):
    """``total``: what all sells and write-offs up to this one took, losses off."""

    at: datetime
    profit: Eth
    total: Eth


class PracticeHistory(msgspec.Struct, frozen=True, rename="camel"):
    """Profit that was taken, by time."""

    text: str
    points: Annotated[list[ProfitPoint], says(f"The newest {MAX_CLOSINGS}, the oldest first.")]
    is_all: bool
    now: datetime


async def practice_history(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[PracticeHistory]:
    """The profit of sells and write-offs over time. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        closings = await store.closings(connection, account.id, MAX_CLOSINGS + 1)
    shown = closings[:MAX_CLOSINGS]
    points = [ProfitPoint(c.at, eth_of(c.profit_wei), eth_of(c.total_wei)) for c in reversed(shown)]
    text = _history_text(shown[0].total_wei if shown else None)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    return UseCaseAnswer(PracticeHistory(text, points, len(shown) == len(closings), now))


def _history_text(total_wei: int | None) -> str:
    if total_wei is None:
        return "You have sold nothing yet."
    result = f"{'made' if total_wei >= 0 else 'lost'} {practice_eth(abs(total_wei))}"
    return f"All your sells and write-offs together {result}."
