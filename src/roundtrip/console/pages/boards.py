"""The pages of boards, and their live events."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import msgspec
import structlog
from markupsafe import Markup
from starlette.responses import Response

from roundtrip.api.dispatch import Dispatch, TracedFailure
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import AnyOperation, Operation
from roundtrip.api.request.callers import CallerRequest
from roundtrip.console.support import short_figures
from roundtrip.console.support.board_tables import LEAGUE, SIGNAL_WORDS, TABLES
from roundtrip.console.support.board_view import BoardView, Row
from roundtrip.console.support.page_request import Visit, index_lag_s
from roundtrip.console.support.render import Templates
from roundtrip.domain.base.errors import CallerFault
from roundtrip.services.boards.graduating_soon import GraduatingPage, graduating_page
from roundtrip.services.boards.moving_page import MovingPage, moving_page
from roundtrip.services.boards.newest_verdicts import NewestVerdicts, newest_verdicts
from roundtrip.services.boards.signals_page import SignalsPage, signals_page
from roundtrip.services.support.index_reader import Nothing

from .chart import shorten_price

log = structlog.get_logger(__name__)
_UNCOUNTED_CALLER = CallerRequest("")


# Page-only: programs query the tools of the catalog.
MOVING = Operation(
    name="moving_page", title="What moves", description="", params=Nothing, answer=MovingPage, on_mcp=False,
    handler=lambda call: moving_page(call.ctx, call.params), shared_by=lambda params: "",
    from_replica=True,
)  # fmt: skip
GRADUATING = Operation(
    name="graduating_page", title="What graduates", description="", params=Nothing, answer=GraduatingPage,
    handler=lambda call: graduating_page(call.ctx, call.params), on_mcp=False, shared_by=lambda params: "",
    from_replica=True,
)  # fmt: skip
NEWEST_VERDICTS = Operation(
    name="newest_verdicts", title="Newest verdicts", description="", params=Nothing, answer=NewestVerdicts,
    handler=lambda call: newest_verdicts(call.ctx, call.params), on_mcp=False, counts="never",
    shared_by=lambda params: "",
)  # fmt: skip
SIGNALS = Operation(
    name="signals_page", title="Insider alerts", description="", params=Nothing, answer=SignalsPage,
    handler=lambda call: signals_page(call.ctx, call.params), on_mcp=False, shared_by=lambda params: "",
)  # fmt: skip
_OPERATIONS: dict[str, AnyOperation] = {
    **{row.name: row for row in OPERATIONS}, "moving_now": MOVING, "graduating_soon": GRADUATING,
    "newest_verdicts": NEWEST_VERDICTS, "signals": SIGNALS,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BoardPage:
    """A board's page: its name, which is that of the tool with the same rows if there is one, its title, the
    words on its tab, and its description. ``repeats``: the answer's text tells the rows again, for
    programs."""

    tool: str
    title: str
    tab: str
    about: str
    repeats: bool = False

    @property
    def template(self) -> str:
        """The path of the template of its rows."""
        return f"boards/{self.tool}.html"

    @property
    def operation(self) -> AnyOperation:
        """The operation whose answer it shows."""
        return _OPERATIONS[self.tool]

    def view(self, query: Mapping[str, str] = MappingProxyType({})) -> BoardView:
        """How a reader with this query looks at it; without one: the usual view."""
        return BoardView.of(TABLES[self.tool], query)


BOARDS = (
    BoardPage(
        "moving_now",
        "Moving now",
        "Moving",
        "Tokens with more eth going in than coming out over the last ten minutes.",
    ),
    BoardPage(
        "graduating_soon",
        "Graduating soon",
        "Graduating",
        "Launches by how full their curve is, the fullest first. A full curve closes, and trading moves to "
        "a pool.",
    ),
    BoardPage(
        "winners",
        "Top wallets 24 h",
        "Top wallets",
        "Wallets with the most realised profit in the last day. A token counts once it is a day old and 20 "
        "people bought it. Its deployer does not count, nor do wallets tied to him by their first eth. Open "
        "a wallet to follow it.",
        repeats=True,
    ),
    BoardPage(
        "newest_verdicts",
        "New verdicts",
        "Verdicts",
        "The tokens that were checked last, with what the checks found.",
    ),
    BoardPage(
        "signals",
        "Insider alerts",
        "Insiders",
        "What deployers, other insiders and large holders did in the last hour.",
        repeats=True,
    ),
    BoardPage(
        "wallet_names",
        "Tagged wallets",
        "Tags",
        "Names and marks that several independent people gave to a wallet.",
        repeats=True,
    ),
    BoardPage(
        "proven_calls",
        "Calls that came true",
        "Calls",
        "Flags that people put on a token before the chain proved them.",
        repeats=True,
    ),
)
_BY_TOOL = {board.tool: board for board in BOARDS}
NEWEST_BOARD = _BY_TOOL["newest_verdicts"]
# Called once for all viewers, and uncounted: opening a stream has counted as one call of each viewer.
_UNCOUNTED = {board.tool: replace(board.operation, counts="never", shared_by=None) for board in BOARDS}


async def show_first_board(visit: Visit) -> Response:
    """GET /boards: the first board."""
    return await _render_board(visit, BOARDS[0])


async def show_board(visit: Visit) -> Response:
    """GET /boards/{board}."""
    return await _render_board(visit, find_board(visit))


async def show_rows(visit: Visit) -> Response:
    """GET /boards/{board}/rows: the rows only."""
    board = find_board(visit)
    answer = await visit.ask_old(board.operation)
    values = show_values(board, answer, board.view(visit.query))
    return visit.show("rows_piece.html", lag_s=visit.lag_s(answer["blockTime"]), **values)


def show_values(board: BoardPage, answer: Any, view: BoardView | None = None) -> dict[str, Any]:
    """What the templates of a board's rows need. ``view`` None: the usual one."""
    seen = board.view() if view is None else view
    return {
        "board": board,
        "answer": answer,
        "view": seen,
        "groups": seen.arrange(_read_rows(answer)),
        "looks": short_figures,
        "shorten": _shorten_price,
        "signal_words": SIGNAL_WORDS,
    }


def _shorten_price(value: float, prefix: str = "") -> Markup:
    """As the token's chart writes it."""
    return shorten_price(f"{Decimal(f'{value:.15g}'):f}", prefix)


def _read_rows(answer: Any) -> list[Row]:
    if "signals" in answer:
        verdicts = answer["verdicts"]
        return [row | {"verdict": verdicts.get(row["token"]["address"])} for row in answer["signals"]]
    if "curves" not in answer:
        return list(answer["rows"])
    rows = []
    for curve in answer["curves"]:
        token = curve["token"]["address"]
        verdict, insiders_bps = answer["verdicts"].get(token), answer["insiders"].get(token)
        is_danger = verdict is not None and verdict["level"] == "danger"
        group = "danger" if is_danger else "listed"
        rows.append(curve | {"verdict": verdict, "insidersBps": insiders_bps, "group": group})
    return rows


def find_good(newest: Any) -> str | None:
    """The token of the newest verdicts' good example; None: there is none."""
    examples = [] if newest is None else newest["examples"]
    good = (row["token"]["address"] for row in examples if row["verdict"]["level"] == "ok")
    return next(good, None)


async def board_events(dispatch: Dispatch, templates: Templates, tool: str) -> Mapping[str, str]:
    """A board's texts by event name; only ``state`` if it cannot be read, so that its rows stay unchanged."""
    reply = await dispatch.run(_UNCOUNTED[tool], {}, _UNCOUNTED_CALLER, door="pages")
    if reply.error is not None:
        # Without the request id, which differs each time and would make every event new.
        why = reply.error.reason if isinstance(reply.error, TracedFailure) else reply.error.message
        return {"state": templates.render("boards/state.html", is_live=False, why=why)}
    try:
        answer = msgspec.json.decode(reply.body)
        values = show_values(_BY_TOOL[tool], answer)
        return {
            "rows": templates.render(_BY_TOOL[tool].template, **values),
            "said": templates.render("boards/said.html", **values),
            "as-of": templates.render(
                "boards/as_of.html", answer=answer, lag_s=index_lag_s(dispatch.ctx, answer["blockTime"])
            ),
            "state": templates.render("boards/state.html", is_live=True, why=""),
        }
    except Exception:
        log.exception("a board could not be shown", board=tool)
        why = "An error on our side; the board tries again by itself."
        return {"state": templates.render("boards/state.html", is_live=False, why=why)}


async def _render_board(visit: Visit, board: BoardPage) -> Response:
    answer = await visit.ask_old(board.operation)
    values = show_values(board, answer, board.view(visit.query))
    return visit.show("boards.html", boards=BOARDS, lag_s=visit.lag_s(answer["blockTime"]), **values)


def find_board(visit: Visit) -> BoardPage:
    """The board that the path names. Raises CallerFault (not_found)."""
    board = _BY_TOOL.get(visit.path["board"])
    if board is None:
        raise CallerFault("not_found", f"There is no such board. The boards are: {', '.join(_BY_TOOL)}.")
    return board


async def show_league(visit: Visit) -> Response:
    """GET /league: the practice league's board of the week."""
    params = {name: visit.query[name] for name in ("who",) if name in visit.query}
    answer = await visit.ask_old("league", **params)
    mine = None if visit.session is None else (await visit.ask_old("my_mite"))["designation"]
    own_row = next((row for row in answer["rows"] if row["designation"] == mine), None)
    view = BoardView.of(LEAGUE, visit.query)
    rows = view.arrange(answer["rows"])["listed"]
    return visit.show("league.html", answer=answer, rows=rows, view=view, mine=mine, standing=own_row)
