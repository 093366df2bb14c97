"""The pages of boards, and their live events."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import structlog
from starlette.responses import Response

from roundtrip.api.dispatch import Dispatch, TracedFailure
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import AnyOperation, Operation
from roundtrip.api.request.callers import CallerRequest
from roundtrip.console.support import moving_view
from roundtrip.console.support.moving_view import USUAL, MovingView, short_age
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.render import Templates
from roundtrip.domain.base.errors import CallerFault
from roundtrip.services.boards.graduating_soon import GraduatingPage, graduating_page
from roundtrip.services.boards.moving_page import MovingPage, moving_page
from roundtrip.services.boards.newest_verdicts import NewestVerdicts, newest_verdicts
from roundtrip.services.support.index_reader import Nothing

log = structlog.get_logger(__name__)
_UNCOUNTED_CALLER = CallerRequest("")


# Page-only: programs query the tools of the catalog.
MOVING = Operation(
    name="moving_page", title="What moves", description="", params=Nothing, answer=MovingPage, on_mcp=False,
    handler=lambda call: moving_page(call.ctx, call.params), shared_by=lambda params: "",
)  # fmt: skip
GRADUATING = Operation(
    name="graduating_page", title="What graduates", description="", params=Nothing, answer=GraduatingPage,
    handler=lambda call: graduating_page(call.ctx, call.params), on_mcp=False, shared_by=lambda params: "",
)  # fmt: skip
NEWEST_VERDICTS = Operation(
    name="newest_verdicts", title="Newest verdicts", description="", params=Nothing, answer=NewestVerdicts,
    handler=lambda call: newest_verdicts(call.ctx, call.params), on_mcp=False, counts="never",
    shared_by=lambda params: "",
)  # fmt: skip
_OPERATIONS: dict[str, AnyOperation] = {
    **{row.name: row for row in OPERATIONS}, "moving_now": MOVING, "graduating_soon": GRADUATING,
    "newest_verdicts": NEWEST_VERDICTS,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BoardPage:
    """A board's page: its name, which is that of the tool with the same rows if there is one, its title and
    its description."""

    tool: str
    title: str
    about: str

    @property
    def template(self) -> str:
        """The path of the template of its rows."""
        return f"boards/{self.tool}.html"

    @property
    def operation(self) -> AnyOperation:
        """The operation whose answer it shows."""
        return _OPERATIONS[self.tool]


BOARDS = (
    BoardPage(
        "moving_now", "Moving now", "Tokens with more eth going in than coming out over the last ten minutes."
    ),
    BoardPage(
        "graduating_soon",
        "Graduating soon",
        "Launches with a nearly full curve, the fullest first. Then trading moves to a pool.",
    ),
    BoardPage(
        "winners", "Winners", "Wallets with the most realised profit in the last day. Open one to follow it."
    ),
    BoardPage(
        "newest_verdicts", "New verdicts", "The tokens that were checked last, with what the checks found."
    ),
    BoardPage(
        "signals", "Warning signs", "What deployers, other insiders and large holders did in the last hour."
    ),
    BoardPage(
        "wallet_names", "Named wallets", "Names and marks that several independent people gave to a wallet."
    ),
    BoardPage(
        "proven_calls",
        "Flags that came true",
        "Flags that people put on a token before the chain proved them.",
    ),
)
_BY_TOOL = {board.tool: board for board in BOARDS}
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
    answer = await visit.ask(board.operation)
    return visit.show("rows_piece.html", **show_values(board, answer, MovingView.of(visit.query)))


def show_values(board: BoardPage, answer: Any, view: MovingView = USUAL) -> dict[str, Any]:
    """What the templates of a board's rows need. ``view``: how the reader looks at what moves."""
    values: dict[str, Any] = {"board": board, "answer": answer, "view": view, "short_age": short_age}
    if board.operation is MOVING:
        values |= {"groups": view.arrange(answer["rows"]), "looks": moving_view}
    return values


async def board_events(dispatch: Dispatch, templates: Templates, tool: str) -> Mapping[str, str]:
    """A board's texts by event name; only ``state`` if it cannot be read, so that its rows stay unchanged."""
    reply = await dispatch.run(_UNCOUNTED[tool], {}, _UNCOUNTED_CALLER, door="pages")
    if reply.error is not None:
        # Without the request id, which differs each time and would make every event new.
        why = reply.error.reason if isinstance(reply.error, TracedFailure) else reply.error.message
        return {"state": templates.render("boards/state.html", is_live=False, why=why)}
    try:
        answer = msgspec.json.decode(reply.body)
        return {
            "rows": templates.render(_BY_TOOL[tool].template, **show_values(_BY_TOOL[tool], answer)),
            "said": templates.render("boards/said.html", answer=answer),
            "as-of": templates.render("boards/as_of.html", answer=answer),
            "state": templates.render("boards/state.html", is_live=True, why=""),
        }
    except Exception:
        log.exception("a board could not be shown", board=tool)
        why = "An error on our side; the board tries again by itself."
        return {"state": templates.render("boards/state.html", is_live=False, why=why)}


async def _render_board(visit: Visit, board: BoardPage) -> Response:
    answer = await visit.ask(board.operation)
    values = show_values(board, answer, MovingView.of(visit.query))
    return visit.show("boards.html", boards=BOARDS, **values)


def find_board(visit: Visit) -> BoardPage:
    """The board that the path names. Raises CallerFault (not_found)."""
    board = _BY_TOOL.get(visit.path["board"])
    if board is None:
        raise CallerFault("not_found", f"There is no such board. The boards are: {', '.join(_BY_TOOL)}.")
    return board


async def show_league(visit: Visit) -> Response:
    """GET /league: the practice league's board of the week."""
    params = {name: visit.query[name] for name in ("who",) if name in visit.query}
    answer = await visit.ask("league", **params)
    mine = None if visit.session is None else (await visit.ask("my_mite"))["designation"]
    own_row = next((row for row in answer["rows"] if row["designation"] == mine), None)
    return visit.show("league.html", answer=answer, mine=mine, standing=own_row)
