"""``graduating_soon``: the launches that are closest to filling their curve."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import msgspec

from roundtrip.domain.base.figures import format_count, format_percent
from roundtrip.domain.base.types import BPS, Address, plain_decimal
from roundtrip.domain.check.curve import raised_bps
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import DeployerWallet, Graduated, SoldOwn, says
from roundtrip.services.support.index_reader import (
    IndexAnswer,
    Nothing,
    TokenNamed,
    present_token,
    quote_token,
    reading,
    when,
)
from roundtrip.services.support.shown_verdict import SHARED_MS, PageOfRows, ShownVerdict, present_verdict
from roundtrip.store.boards import market_figures
from roundtrip.store.boards.market_figures import PriceLine
from roundtrip.store.boards.moving import read_shown_checks
from roundtrip.store.index import curves, deployers
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.curves import CurveProgress
from roundtrip.store.index.deployers import DeployerLaunches
from roundtrip.store.index.tokens import Label, addresses_of, labels
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts, quote_name

from .token_market import PricedMoney, read_money

MAX_SHOWN = 20
MAX_NAMED = 3
"""Launches that the text names, of those still filling and of the full ones; the rows hold all of them."""
TRADED_WITHIN_S = 86_400
"""A launch without a trade for a day does not graduate soon, however full its curve is."""
BUYS_WITHIN_S = 600
"""Buys of so many seconds are counted."""
_ETH_DECIMALS, _USDG_DECIMALS = 18, 6


class LaunchDeployer(msgspec.Struct, frozen=True, rename="camel"):
    """Who launched it, and how that wallet's launches went, this one counted."""

    address: DeployerWallet
    launches: Annotated[
        int, says("Launches of that wallet, this one included; counted up to the newest 200.")
    ]
    graduated: Graduated
    sold_own: SoldOwn
    sold: Annotated[bool, says("Whether this launch is one of them.")]


class CurveFilling(msgspec.Struct, frozen=True, rename="camel"):
    """A launch on its curve."""

    token: Annotated[TokenNamed, says("The token on the curve.")]
    curve: Annotated[str, says("The curve's address.")]
    quote: Annotated[str, says("What the curve is paid in: eth, weth, usdg or a token's address.")]
    fill_bps: Annotated[
        int,
        says("How full the curve is, in hundredths of a percent. 10000: sold out, its pool is not open yet."),
    ]
    raised: Annotated[
        str | None,
        says(
            "What the curve has raised, in whole units of the quote. null: the quote's "
            "decimals are not known."
        ),
    ]
    threshold: Annotated[
        str | None,
        says(
            "What it must raise to graduate, in whole units of the quote. null: the "
            "quote's decimals are not known."
        ),
    ]
    raised_raw: Annotated[str, says("What the curve has raised, in base units.")]
    threshold_raw: Annotated[str, says("What it must raise to graduate, in base units.")]
    buys: Annotated[int, says("Buys in the last ten minutes.")]
    buyers: Annotated[int, says("Wallets that made those buys.")]
    launched_at: Annotated[datetime, says("When the token was launched.")]
    age_s: Annotated[int, says("Seconds since the launch.")]
    last_trade_at: Annotated[datetime | None, says("When it was last traded. null: never.")]
    deployer: Annotated[LaunchDeployer, says("The wallet that launched it, with its record.")]


class GraduatingSoon(IndexAnswer, frozen=True, rename="camel"):
    """The fullest curves that were launched or traded within a day, the fullest first."""

    curves: Annotated[list[CurveFilling], says("At most 20 curves, the fullest first.")]


class FillingRow(CurveFilling, frozen=True, rename="camel"):
    """The row of the page. ``verdict`` None: no check is young enough. ``insiders_bps``: the insiders' share
    of the supply; ``change1h``: of the price, in hundredths of a percent. None: not known."""

    verdict: ShownVerdict | None
    insiders_bps: int | None
    price_eth: float | None = None
    price_usd: float | None = None
    cap_usd: float | None = None
    change1h: int | None = None


class _ReadCurve(NamedTuple):
    """A curve, its row, and its token's label as the deployer wrote it."""

    curve: CurveProgress
    filling: CurveFilling
    label: Label


async def graduating_soon(ctx: Context, params: Nothing) -> UseCaseAnswer[GraduatingSoon]:
    """The answer. Raises ServiceFull."""
    async with reading(ctx) as (connection, index_cursor):
        shown = await _read_curves(connection, index_cursor, ctx.contracts)
    answer = GraduatingSoon(
        text=_describe([(one.label, one.filling) for one in shown], index_cursor),
        chain_id=ctx.chain_id,
        block=index_cursor.block.number,
        block_time=when(index_cursor.block.timestamp_s),
        curves=[one.filling for one in shown],
    )
    return UseCaseAnswer(answer, ctx.policy.answer_ttl_ms)


async def graduating_page(ctx: Context, params: Nothing) -> UseCaseAnswer[PageOfRows[FillingRow]]:
    """The page's rows. Raises ServiceFull."""
    async with reading(ctx) as (connection, index_cursor):
        shown = await _read_curves(connection, index_cursor, ctx.contracts)
        checks = await read_shown_checks(connection, [one.label.address for one in shown])
        lines = await market_figures.read_prices(
            connection, [one.curve for one in shown], index_cursor.block.timestamp_s, 0, ctx.contracts
        )
        money = await read_money(ctx, connection, index_cursor, [])
    now_s = ctx.now_s()
    rows = [
        FillingRow(
            **msgspec.structs.asdict(one.filling),
            verdict=present_verdict(checks[one.label.address], now_s),
            insiders_bps=checks[one.label.address].exposure.insiders(now_s),
            **_present_price(lines[one.curve.token_id], money, one.label),
        )
        for one in shown
    ]
    answer = PageOfRows(
        text=" ".join(_describe_caveats(shown, index_cursor)),
        block=index_cursor.block.number,
        block_time=when(index_cursor.block.timestamp_s),
        rows=rows,
    )
    return UseCaseAnswer(answer, SHARED_MS)


def _present_price(line: PriceLine, money: PricedMoney, label: Label) -> dict[str, Any]:
    market = money.market(line.newest, None, label)
    fields = {name: market[name] for name in ("price_eth", "price_usd", "cap_usd")}
    return {**fields, "change1h": line.change_bps(3600)}


async def _read_curves(
    connection: Connection, index_cursor: Cursor, contracts: Contracts
) -> list[_ReadCurve]:
    now_s = index_cursor.block.timestamp_s
    fullest = await curves.fullest(connection, now_s - TRADED_WITHIN_S, MAX_SHOWN)
    buys = await curves.buys_since(connection, {curve.pool_id for curve in fullest}, now_s - BUYS_WITHIN_S)
    records = await deployers.records(connection, {curve.deployer_id for curve in fullest})
    sold = await curves.sold_half(connection, {(curve.deployer_id, curve.token_id) for curve in fullest})
    labels_by_id = await labels(
        connection, {i for curve in fullest for i in (curve.token_id, curve.quote_id)}
    )
    wallets = await addresses_of(connection, records)

    def present(curve: CurveProgress) -> _ReadCurve:
        deployer = _present_deployer(
            wallets[curve.deployer_id],
            records[curve.deployer_id],
            (curve.deployer_id, curve.token_id) in sold,
        )
        quote, label = _Quote.of(labels_by_id[curve.quote_id], contracts), labels_by_id[curve.token_id]
        bought = buys.get(curve.pool_id, (0, 0))
        return _ReadCurve(curve, _present_filling(curve, label, quote, bought, deployer, now_s), label)

    return [present(curve) for curve in fullest]


class _Quote(msgspec.Struct, frozen=True):
    """What a curve is paid in. ``decimals`` None: not known."""

    name: str
    decimals: int | None

    @staticmethod
    def of(label: Label, contracts: Contracts) -> "_Quote":
        """The quote; decimals of eth, weth and usdg are fixed, those of others come from the label."""
        name = quote_name(label.address, contracts)
        known = {"eth": _ETH_DECIMALS, "weth": _ETH_DECIMALS, "usdg": _USDG_DECIMALS}
        return _Quote(name, known.get(name, label.decimals))

    def plain(self, raw: int) -> str | None:
        """A raw amount in whole units, as a plain decimal; None if the decimals are not known."""
        return None if self.decimals is None else plain_decimal(raw, self.decimals)


def _present_filling(
    curve: CurveProgress,
    token: Label,
    quote: _Quote,
    buys: tuple[int, int],
    deployer: LaunchDeployer,
    now_s: int,
) -> CurveFilling:
    # ``last_s`` is the time of the launch until the first trade.
    was_traded = curve.raised_raw != 0 or curve.last_s != curve.launched_s
    return CurveFilling(
        token=present_token(token),
        curve=curve.curve,
        quote=quote.name,
        fill_bps=raised_bps(curve.raised_raw, curve.threshold_raw),
        raised=quote.plain(curve.raised_raw),
        threshold=quote.plain(curve.threshold_raw),
        raised_raw=str(curve.raised_raw),
        threshold_raw=str(curve.threshold_raw),
        buys=buys[0],
        buyers=buys[1],
        launched_at=when(curve.launched_s),
        age_s=now_s - curve.launched_s,
        last_trade_at=when(curve.last_s) if was_traded else None,
        deployer=deployer,
    )


def _present_deployer(address: Address, record: DeployerLaunches, sold: bool) -> LaunchDeployer:
    return LaunchDeployer(address, record.launches, record.graduated, record.sold_own, sold)


def _describe(shown: Sequence[tuple[Label, CurveFilling]], index_cursor: Cursor) -> str:
    lines = ["No launch on a curve was launched or traded within the last day."]
    if shown:
        rows = [(quote_token(label), filling) for label, filling in shown]
        filling = [f"{name}: {_describe_filling(curve)}." for name, curve in rows if curve.fill_bps < BPS]
        full = [name for name, curve in rows if curve.fill_bps >= BPS]
        lines = _list_rows("Closest to filling their curve:", filling)
        lines += _list_rows("Already full, their pool is not open yet:", full)
    notes = _describe_caveats(shown, index_cursor)
    return "\n".join([*lines, *([" ".join(notes)] if notes else [])])


def _describe_caveats(shown: Sequence[object], index_cursor: Cursor) -> list[str]:
    notes = []
    if shown:
        notes.append(
            "A full curve is closed and then becomes a pool; until the pool is open, the token cannot be "
            "traded. A full curve does not show that you can sell the token later: check it."
        )
    if index_cursor.start_number > 0:
        notes.append(f"Launches before block {index_cursor.start_number:,} are not counted.")
    return notes


def _list_rows(heading: str, rows: list[str]) -> list[str]:
    """The heading and the first rows, numbered from 1, one a line; empty where there are none."""
    numbered = [f"{number}. {row}" for number, row in enumerate(rows[:MAX_NAMED], 1)]
    rest = [f"The rows hold {len(rows) - MAX_NAMED} more."] if len(rows) > MAX_NAMED else []
    return [heading, *numbered, *rest] if rows else []


def _describe_filling(curve: CurveFilling) -> str:
    buys, buyers = format_count(curve.buys, "buy"), format_count(curve.buyers, "wallet")
    recent = f"{buys} by {buyers} in ten minutes" if curve.buys else "no buy in ten minutes"
    launches, graduated = curve.deployer.launches, curve.deployer.graduated
    record = f"{graduated} of its deployer's newest {launches} launches graduated"
    if launches == 1:
        record = "no other launch of its deployer is known"
    return f"{format_percent(curve.fill_bps)} full, {recent}; {record}"
