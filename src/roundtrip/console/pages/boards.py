"""The pages of boards, and their live events."""

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec
import structlog
from markupsafe import Markup
from starlette.responses import Response

from roundtrip.api.dispatch import Dispatch, error_reply
from roundtrip.api.operations.catalog import find_operation
from roundtrip.api.operations.operation import A, Operation
from roundtrip.api.request.callers import CallerRequest
from roundtrip.api.request.failure_log import TracedFailure
from roundtrip.api.server.drain import ENDING, EndlessAnswers
from roundtrip.console.support import board_tables, render
from roundtrip.console.support.board_tables import BoardTable, BoardView
from roundtrip.console.support.live_stream import LiveResponse
from roundtrip.console.support.page_operations import page_operation
from roundtrip.console.support.page_request import Visit, index_lag_s, read_eth_usd
from roundtrip.console.support.render import Templates
from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.services.boards.graduating_soon import graduating_page
from roundtrip.services.boards.moving_now import moving_page
from roundtrip.services.boards.newest_verdicts import NewestVerdicts, newest_verdicts
from roundtrip.services.boards.signals import signals_page
from roundtrip.services.boards.winners import Winners
from roundtrip.services.community.proven_flags import ProvenCalls, ProvenParams
from roundtrip.services.practice.league import League, LeagueParams
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.wallets.names import WalletNames

from .account_sections.overview import MY_MITE
from .account_sections.watch import read_watched_tokens
from .chart import shorten_price

log = structlog.get_logger(__name__)
_UNCOUNTED_CALLER = CallerRequest("")


# Page-only: programs query the tools of the catalog.
MOVING = page_operation(moving_page, shared_by=lambda params: params.window, from_replica=True)
GRADUATING = page_operation(graduating_page, shared_by=lambda params: "", from_replica=True)
NEWEST_VERDICTS = page_operation(newest_verdicts, counts="never", shared_by=lambda params: "")
_OLDER_VERDICTS = page_operation(
    newest_verdicts, "older_verdicts", shared_by=lambda params: str(params.before)
)
SIGNALS = page_operation(signals_page, shared_by=lambda params: "")
WINNERS = find_operation("winners", Nothing, Winners)
WALLET_NAMES = find_operation("wallet_names", Nothing, WalletNames)
PROVEN_CALLS = find_operation("proven_calls", ProvenParams, ProvenCalls)
_LEAGUE = find_operation("league", LeagueParams, League)
R = TypeVar("R")
_FIRST = 10
"""Rows of what moves on the front page."""
_SOONEST_MS, _SPREAD_MS = 1_000, 4_000
"""Spreads reconnects of browsers that were disconnected together."""


@dataclass(frozen=True, slots=True)
class BoardPage(Generic[A, R]):
    """A board's page: its name, which is that of the tool with the same rows if there is one, its title, the
    words on its tab, and its description. ``operation``: whose answer it shows; ``rows``: the rows of that.
    ``repeats``: the answer's text repeats the rows, for programs. ``first``: the rows on the front page."""

    tool: str
    title: str
    tab: str
    about: str
    operation: Operation[Any, A]
    table: BoardTable[R]
    rows: Callable[[A], Sequence[R]]
    repeats: bool = False
    first: Callable[[A], Sequence[R]] = lambda answer: ()

    @property
    def template(self) -> str:
        """The path of the template of its rows."""
        return f"boards/{self.tool}.html"

    def view(self, query: Mapping[str, str] = MappingProxyType({})) -> BoardView[R]:
        """The view that this query string names; without one: the usual view."""
        return BoardView.of(self.table, query)


AnyBoard = BoardPage[Any, Any]


BOARDS: tuple[AnyBoard, ...] = (
    BoardPage(
        "moving_now",
        "Moving now",
        "Moving",
        "Net buying over the last ten minutes.",
        MOVING,
        board_tables.MOVING,
        lambda answer: answer.rows,
        first=lambda answer: [row for row in answer.rows if row.group == "listed"][:_FIRST],
    ),
    BoardPage(
        "graduating_soon",
        "Graduating soon",
        "Graduating",
        "Launches by how full their curve is, the fullest first. A full curve closes, and trading moves to "
        "a pool.",
        GRADUATING,
        board_tables.GRADUATING,
        lambda answer: answer.rows,
    ),
    BoardPage(
        "winners",
        "Top wallets 24 h",
        "Top wallets",
        "Wallets with the most realised profit in the last day. A token counts once it is a day old and 20 "
        "people bought it. Its deployer does not count, nor do wallets tied to him by their first eth. Open "
        "a wallet to follow it.",
        WINNERS,
        board_tables.WINNERS,
        lambda answer: answer.rows,
        repeats=True,
    ),
    BoardPage(
        "newest_verdicts",
        "New verdicts",
        "Verdicts",
        "The tokens that were checked last, with what the checks found.",
        NEWEST_VERDICTS,
        board_tables.NEWEST,
        lambda answer: answer.rows,
        first=lambda answer: answer.chosen,
    ),
    BoardPage(
        "signals",
        "Insider alerts",
        "Insiders",
        "What deployers, other insiders and large holders did in the last hour.",
        SIGNALS,
        board_tables.SIGNALS,
        lambda answer: answer.rows,
        repeats=True,
    ),
    BoardPage(
        "wallet_names",
        "Tagged wallets",
        "Tags",
        "Names and marks that several independent people gave to a wallet.",
        WALLET_NAMES,
        board_tables.NAMES,
        lambda answer: answer.rows,
        repeats=True,
    ),
    BoardPage(
        "proven_calls",
        "Calls that came true",
        "Calls",
        "Flags that people put on a token before the chain proved them.",
        PROVEN_CALLS,
        board_tables.PROVEN,
        lambda answer: answer.rows,
        repeats=True,
    ),
)
_BY_TOOL = {board.tool: board for board in BOARDS}
NEWEST_BOARD = _BY_TOOL["newest_verdicts"]


async def show_first_board(visit: Visit) -> Response:
    """GET /boards: the first board."""
    return await _render_board(visit, BOARDS[0])


async def show_board(visit: Visit) -> Response:
    """GET /boards/{board}."""
    return await _render_board(visit, find_board(visit))


async def show_rows(visit: Visit) -> Response:
    """GET /boards/{board}/rows: the rows only."""
    board = find_board(visit)
    view = board.view(visit.query)
    answer = await visit.ask(board.operation, view.params)
    values = show_values(board, answer, visit.eth_usd(), view)
    return visit.show("rows_piece.html", lag_s=visit.lag_s(answer.block_time), **values)


def show_values(
    board: BoardPage[A, R],
    answer: A,
    eth_usd: float | None,
    view: BoardView[R] | None = None,
    is_short: bool = False,
) -> dict[str, Any]:
    """What the templates of a board's rows need. ``eth_usd``: dollars for one eth; None: not known.
    ``view`` None: the usual one. ``is_short``: only some of the rows."""
    seen = board.view() if view is None else view
    return {
        "board": board,
        "answer": answer,
        "eth_usd": eth_usd,
        "view": seen,
        "groups": seen.arrange(board.rows(answer) if not is_short else board.first(answer)),
        "is_short": is_short,
        "looks": render,
        "shorten": _shorten_price,
        "signal_words": board_tables.SIGNAL_WORDS,
    }


def _shorten_price(value: float, prefix: str = "") -> Markup:
    """The price as the token's chart writes it."""
    return shorten_price(f"{Decimal(f'{value:.15g}'):f}", prefix)


def find_good(newest: NewestVerdicts | None) -> str | None:
    """The token of an ok verdict among the examples of the newest verdicts; None: there is none."""
    examples = [] if newest is None else newest.examples
    return next((row.token.address for row in examples if row.verdict.level == "ok"), None)


class _Rendered(NamedTuple):
    body: bytes
    answer: Any
    texts: Mapping[str, str]


_MAX_RENDERED = 32
"""Boards whose texts are kept: a large one takes 200 KB."""


class BoardReader:
    """Reads boards for streams, and keeps what it last rendered of each: an answer that is shared for some
    seconds is decoded and rendered once."""

    def __init__(self, dispatch: Dispatch, templates: Templates) -> None:
        self._dispatch, self._templates = dispatch, templates
        self._rendered: dict[str, _Rendered] = {}

    async def read_events(self, name: str) -> Mapping[str, str]:
        """The texts of a board by event name; only ``state`` if it cannot be read, so that its rows stay
        unchanged. ``name``: as ``_name_stream`` makes it."""
        tool, _, query = name.partition("?")
        board, given = _BY_TOOL[tool], dict(parse_qsl(query))
        view, is_short = board.view(given), "short" in given
        # Called once for all viewers, and uncounted: opening a stream has counted as one call of each viewer.
        # A board's usual rows are read anew each time. Other windows, and markets, cost more; the front
        # page's rows are of the same answer.
        is_shared = is_short or not view.is_at_usual_window or board is NEWEST_BOARD
        shared_by = board.operation.shared_by if is_shared else None
        operation = replace(board.operation, counts="never", shared_by=shared_by)
        reply = await self._dispatch.run(operation, view.params, _UNCOUNTED_CALLER, door="pages")
        if reply.error is not None:
            # Without the request id, which differs each time and would make every event new.
            why = reply.error.reason if isinstance(reply.error, TracedFailure) else reply.error.message
            return {"state": self._render_state(why)}
        try:
            kept = self._rendered.get(name)
            if kept is None or kept.body != reply.body:
                kept = self._keep(name, self._render(board, view, is_short, reply.body))
            # The lag is of this moment.
            lag_s = index_lag_s(self._dispatch.ctx, kept.answer.block_time)
            as_of = self._templates.render("boards/as_of.html", answer=kept.answer, lag_s=lag_s)
            return {**kept.texts, "as-of": as_of}
        except Exception:
            log.exception("a board could not be shown", board=name)
            return {"state": self._render_state("An error on our side; the board tries again by itself.")}

    def _keep(self, name: str, rendered: _Rendered) -> _Rendered:
        """Forgets the board that was rendered longest ago: a viewer chooses among very many names."""
        self._rendered.pop(name, None)
        self._rendered[name] = rendered
        if len(self._rendered) > _MAX_RENDERED:
            del self._rendered[next(iter(self._rendered))]
        return rendered

    def _render(self, board: AnyBoard, view: BoardView[Any], is_short: bool, body: bytes) -> _Rendered:
        answer = msgspec.json.decode(body, type=board.operation.answer)
        values = show_values(board, answer, read_eth_usd(self._dispatch.ctx), view, is_short)
        texts = {
            "rows": self._templates.render(board.template, **values),
            "said": self._templates.render("boards/said.html", **values),
            "state": self._templates.render("boards/state.html", is_live=True, why=""),
        }
        return _Rendered(body, answer, texts)

    def _render_state(self, why: str) -> str:
        return self._templates.render("boards/state.html", is_live=False, why=why)


async def stream_board(visit: Visit) -> Response:
    """GET /boards/{board}/live: the board's events. Opening a stream counts as one call. Errors are JSON."""
    try:
        board = find_board(visit)
        if visit.is_head():
            return Response(media_type=LiveResponse.media_type)
        return await _open_stream(visit, board)
    except RoundtripError as error:
        reply = error_reply(error)
        return Response(reply.body, reply.status, dict(reply.headers), media_type="application/json")


def _name_stream(board: AnyBoard, query: Mapping[str, str]) -> str:
    """What a stream shows: a board, and if it is not the usual one, of which window, or its first rows. So
    there are few, whatever viewers ask for."""
    view = board.view(query)
    chosen = {} if view.is_at_usual_window else view.params
    shown = {**chosen, **({"short": "1"} if query.get("short") == "1" else {})}
    return f"{board.tool}?{urlencode(shown)}" if shown else board.tool


async def _open_stream(visit: Visit, board: AnyBoard) -> Response:
    console = visit.console
    name = visit.caller_name()
    delay_ms = int.from_bytes(console.dispatch.ctx.entropy()[:2]) % _SPREAD_MS
    state: Mapping[str, EndlessAnswers] = visit.scope.get("state", {})
    with contextlib.ExitStack() as stack:
        stack.enter_context(console.live.reserve_stream(name))
        await visit.ask(board.operation, board.view(visit.query).params)
        reserved = stack.pop_all()
    return LiveResponse(
        console.live,
        _name_stream(board, visit.query),
        reserved,
        state.get(ENDING, EndlessAnswers()),
        _SOONEST_MS + delay_ms,
    )


async def _render_board(visit: Visit, board: AnyBoard) -> Response:
    view, before = board.view(visit.query), visit.query.get("before", "")
    if board is NEWEST_BOARD and before:
        answer = await visit.ask(_OLDER_VERDICTS, {"before": _read_id(before)})
        view = replace(view, before=before)
    else:
        before, answer = "", await visit.ask(board.operation, view.params)
    values = show_values(board, answer, visit.eth_usd(), view)
    lag_s, watched = visit.lag_s(answer.block_time), await read_watched_tokens(visit)
    return visit.show(
        "boards.html", boards=BOARDS, lag_s=lag_s, is_older=bool(before), watched=watched, **values
    )


def _read_id(text: str) -> int | str:
    """A check's id in an address; as it is where it is none, to be refused."""
    return int(text) if re.fullmatch("[0-9]{1,19}", text) else text


def find_board(visit: Visit) -> AnyBoard:
    """The board that the path names. Raises CallerFault (not_found)."""
    board = _BY_TOOL.get(visit.subject)
    if board is None:
        raise CallerFault("not_found", f"There is no such board. The boards are: {', '.join(_BY_TOOL)}.")
    return board


async def show_league(visit: Visit) -> Response:
    """GET /league: the practice league's board of the week."""
    params = {name: visit.query[name] for name in ("who",) if name in visit.query}
    answer = await visit.ask(_LEAGUE, params)
    mine = None if visit.session is None else (await visit.ask(MY_MITE)).designation
    own_row = next((row for row in answer.rows if row.designation == mine), None)
    view = BoardView.of(board_tables.LEAGUE, visit.query)
    rows = view.arrange(answer.rows)["listed"]
    return visit.show("league.html", answer=answer, rows=rows, view=view, mine=mine, standing=own_row)
