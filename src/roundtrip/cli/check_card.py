"""A check as a card or a line of a terminal. Names, symbols and reasons were written by strangers: every text
is cleaned before it is drawn, so that none of it can move the cursor or colour anything."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from roundtrip.domain.base.errors import CallerFault, NodeFault, RoundtripError
from roundtrip.domain.base.figures import format_count, format_duration, format_percent, format_sold_loss
from roundtrip.domain.base.names import clean
from roundtrip.domain.base.types import Address
from roundtrip.domain.market.look_alikes import ListedToken, find_listed
from roundtrip.domain.verdicts.risks import format_tax
from roundtrip.domain.verdicts.words import is_tradable, level_word

if TYPE_CHECKING:
    from roundtrip.services.check.card import CheckCard
    from roundtrip.services.check.probe_grid import CheckGrid, GridCell
    from roundtrip.services.support.check_answer import Check

_COLOURS = {"ok": "green", "warn": "yellow", "danger": "red", "unknown": "magenta"}
_LONGEST = 4000
"""Characters of one text."""
_NOT_KNOWN = "not known"


def draw_line(answer: "Check", card: "CheckCard") -> Text:
    """The level in its colour, the token, the loss and the reason in one line."""
    level, verdict = answer.verdict.level, answer.verdict
    loss = "" if answer.trade is None else _percent(answer.trade.round_trip_loss_bps, "")
    if card.figure is not None:
        loss = _percent(card.figure.bps)
    symbol = _plain(answer.token.symbol or "")
    line = Text(f"{level:<8}", style=f"bold {_COLOURS[level]}")
    return line.append(
        f"{answer.address}  {symbol:<12.12}  {loss:>9}  {_plain(verdict.text)}", style="not bold default"
    )


def draw_failure(token: str, error: RoundtripError, is_single: bool) -> Text:
    """A check that gave no verdict: unknown, which is no pass. It says to ask again only where that may
    help."""
    has_remedy = isinstance(error, NodeFault) and error.remedy
    is_final = has_remedy or isinstance(error, CallerFault)
    no_pass = "This is not a pass." if is_final else "This is not a pass: ask again."
    line = Text("UNKNOWN  " if is_single else f"{'unknown':<8}", style=f"bold {_COLOURS['unknown']}")
    return line.append(f"{token}  {_plain(error.message)} {no_pass}", style="not bold default")


def draw_card(answer: "Check", card: "CheckCard", listed: tuple[ListedToken, ...] = ()) -> RenderableType:
    """Everything that a person needs of one check, the verdict first. ``listed``: tokens that the symbol is
    compared with."""
    level, verdict = answer.verdict.level, answer.verdict
    colour, word = _COLOURS[level], level_word(level, verdict.code)
    title = Text(f"{level.upper()}  {word}", style=f"bold white on {colour}")
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in _facts(answer, card, listed):
        facts.add_row(name, Text(_plain(text)))
    parts: list[RenderableType] = [
        Padding(title, (1, 2), style=f"on {colour}"),
        Padding(Text(_plain(verdict.text), style="bold"), (1, 0)),
        facts,
    ]
    if card.grid.rows:
        parts += [Text(), _draw_grid(card.grid)]
    return Group(*parts)


def draw_narrow_card(
    answer: "Check", card: "CheckCard", listed: tuple[ListedToken, ...] = ()
) -> Iterator[Text]:
    """``draw_card`` in lines that a narrow terminal wraps itself: an address stays one word to copy."""
    level, verdict = answer.verdict.level, answer.verdict
    yield Text(
        f"{level.upper()}  {level_word(level, verdict.code)}", style=f"bold white on {_COLOURS[level]}"
    )
    yield Text(_plain(verdict.text), style="bold")
    for name, text in _facts(answer, card, listed):
        yield Text(f"{name}: ", style="dim").append(_plain(text), style="not dim")
    for row in card.grid.rows:
        yield Text(_plain(row.label))
        for delay_s, cell in zip(card.grid.delays_s, row.cells, strict=True):
            if cell is not None:
                yield Text(f"  {_when(delay_s)}: ").append(_draw_cell(cell))


def _when(delay_s: int) -> str:
    return f"after {format_duration(delay_s)}" if delay_s else "at once"


def _facts(answer: "Check", card: "CheckCard", listed: tuple[ListedToken, ...]) -> list[tuple[str, str]]:
    token, trade, cost = answer.token, answer.trade, card.cost
    named = f"{token.name or 'no name'} ({token.symbol or 'no symbol'})"
    rows = [("token", f"{named}, {answer.address}")]
    original = find_listed(Address(answer.address.lower()), token.symbol, listed)
    if original is not None:
        rows.append(("looks like", f"{original.symbol}, a listed token at {original.address}; it is another"))
    if card.figure is not None and card.figure.kind != "round_trip":
        rows.append(("decided by", card.figure.text))
    if trade is not None:
        size = f"of a round trip of {trade.paid.amount} {trade.paid.asset}"
        loss = _describe_part_loss(card.grid)
        if trade.round_trip_loss_bps is not None:
            loss = f"{format_sold_loss(trade.round_trip_loss_bps, card.sold_bps)} {size}"
        rows.append(("loss", loss))
        fees = _percent(trade.fees_bps)
        if cost is not None:
            tax = format_tax(cost.tax_bps, cost.buy_tax_bps, cost.sell_tax_bps)
            fees += f": pool {_percent(cost.pool_bps)}, token's tax {tax}"
        rows.append(("fees", fees))
        rows.append(("impact", _percent(trade.price_impact_bps)))
    rows.append(("venue", _venue(answer)))
    rows.append(("flags", ", ".join(answer.flags) or "none"))
    risks = (
        [risk.text for risk in card.risks if risk.level != "ok"] if is_tradable(answer.verdict.code) else []
    )
    if risks:
        rows.append(("risks", "; ".join(risks)))
    if answer.launchpad is not None:
        pad = answer.launchpad
        taxes = f"takes {_percent(pad.buy_tax_bps)} of a buy, {_percent(pad.sell_tax_bps)} of a sell"
        rows.append(("launchpad", f"{pad.phase}, {taxes}"))
    rows.append(("owner", _owner(answer)))
    rows.append(("as of", f"block {card.block:,}, {card.block_at:%Y-%m-%d %H:%M:%S} UTC"))
    return rows


def _describe_part_loss(grid: "CheckGrid") -> str:
    """The loss where it is not known for the whole amount: the first one in the grid, and what it is of."""
    sold = []
    for row in grid.rows:
        cell = next((cell for cell in row.cells if cell is not None and cell.loss_bps is not None), None)
        if cell is not None:
            sold.append((row.label, _when(cell.delay_s), _percent(cell.loss_bps)))
    if not sold:
        return "not known: it was not sold"
    label, after, loss = sold[0]
    return f"not known for the whole; {loss} in: {label[0].lower()}{label[1:]}, {after}"


def _venue(answer: "Check") -> str:
    venue = answer.venue
    if venue is None:
        return _NOT_KNOWN if answer.verdict.code == "unproven" else "none"
    fee = "a fee that its hook sets swap by swap" if venue.dynamic_fee else f"fee {_fee(venue.pool_fee_bps)}"
    parts = [f"{venue.kind} {venue.pool or venue.pool_id or ''}".rstrip(), f"against {venue.quote}", fee]
    if venue.hook is not None:
        parts.append(f"hook {venue.hook}")
    return ", ".join([*parts, f"{format_count(venue.pools_found, 'pool')} found"])


def _fee(bps: float | None) -> str:
    return _NOT_KNOWN if bps is None else f"{bps / 100:g} %"


def _owner(answer: "Check") -> str:
    token = answer.token
    if token.owner is None:
        return "none found"
    return f"{token.owner}, a burn address: nobody can act as it" if token.owner_renounced else token.owner


def _draw_grid(grid: "CheckGrid") -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("tried", overflow="fold")
    for delay_s in grid.delays_s:
        table.add_column(_when(delay_s), overflow="fold")
    for row in grid.rows:
        table.add_row(Text(_plain(row.label)), *(_draw_cell(cell) for cell in row.cells))
    return table


def _draw_cell(cell: "GridCell | None") -> Text:
    if cell is None:
        return Text("")
    text = f"sells, loss {_percent(cell.loss_bps)}" if cell.came == "sells" else cell.came
    if cell.why:
        text += f": {_plain(cell.why)}"
    return Text(text, style=_COLOURS[cell.level])


def _percent(bps: int | None, absent: str = _NOT_KNOWN) -> str:
    return absent if bps is None else format_percent(bps)


def _plain(text: str) -> str:
    return clean(text, _LONGEST)
