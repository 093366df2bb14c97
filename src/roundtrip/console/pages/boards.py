"""Boards of what moves, and the same rows again as they change."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec
import structlog
from starlette.responses import Response

from roundtrip.api.dispatch import Dispatch, TracedFailure
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.request.callers import CallerRequest
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.render import Templates
from roundtrip.domain.base.errors import CallerFault

log = structlog.get_logger(__name__)
_NOBODY = CallerRequest("")


@dataclass(frozen=True, slots=True)
class BoardPage:
    """One board: the tool it stands on, what it is called, and what it is for."""

    tool: str
    title: str
    about: str

    @property
    def template(self) -> str:
        """Where its rows are written."""
        return f"boards/{self.tool}.html"


BOARDS = (
    BoardPage(
        "moving_now", "Moving now", "Tokens that more eth goes into than comes out of, over ten minutes."
    ),
    BoardPage(
        "graduating_soon", "Graduating soon", "Launches whose curve is nearly full, the fullest first."
    ),
    BoardPage("winners", "Winners", "Wallets that closed the most profit in the last day."),
    BoardPage("signals", "Odd things", "What those behind launches, and whales, did in the last hour."),
    BoardPage("wallet_names", "Names", "What several people who do not know each other say of a wallet."),
    BoardPage(
        "proven_calls", "Proved right", "Flags that somebody put on a token before the chain proved them."
    ),
)
_BY_TOOL = {board.tool: board for board in BOARDS}
# Asked for nobody, once for all who look: those pay when they begin to.
_UNCOUNTED = {
    row.name: replace(row, counts="never", shared_by=None) for row in OPERATIONS if row.name in _BY_TOOL
}


async def boards(visit: Visit) -> Response:
    """The first of them."""
    return await _show_board(visit, BOARDS[0])


async def board(visit: Visit) -> Response:
    """One of them."""
    return await _show_board(visit, board_of(visit))


async def rows(visit: Visit) -> Response:
    """Its rows alone, as they are now."""
    found = board_of(visit)
    return visit.show("rows_piece.html", board=found, answer=await visit.ask(found.tool))


async def board_events(dispatch: Dispatch, templates: Templates, tool: str) -> Mapping[str, str]:
    """What a board says now, by event. Where it cannot be read that alone is told: rows stay as they were."""
    reply = await dispatch.run(_UNCOUNTED[tool], {}, _NOBODY, door="pages")
    if reply.error is not None:
        # Without the request's id: it is another one each time, and nothing else would be new.
        why = reply.error.reason if isinstance(reply.error, TracedFailure) else reply.error.message
        return {"state": templates.render("boards/state.html", is_live=False, why=why)}
    try:
        answer = msgspec.json.decode(reply.body)
        return {
            "rows": templates.render(_BY_TOOL[tool].template, answer=answer),
            "said": templates.render("boards/said.html", answer=answer),
            "as-of": templates.render("boards/as_of.html", answer=answer),
            "state": templates.render("boards/state.html", is_live=True, why=""),
        }
    except Exception:
        log.exception("a board could not be shown", board=tool)
        why = "Something failed on our side."
        return {"state": templates.render("boards/state.html", is_live=False, why=why)}


async def _show_board(visit: Visit, one: BoardPage) -> Response:
    return visit.show("boards.html", board=one, boards=BOARDS, answer=await visit.ask(one.tool))


def board_of(visit: Visit) -> BoardPage:
    """The board that the path names. Raises CallerFault (not_found)."""
    found = _BY_TOOL.get(visit.path["board"])
    if found is None:
        raise CallerFault("not_found", "There is no such board.")
    return found


async def league(visit: Visit) -> Response:
    """The week's board of who practises."""
    who = {name: visit.query[name] for name in ("who",) if name in visit.query}
    answer = await visit.ask("league", **who)
    mine = None if visit.session is None else (await visit.ask("my_mite"))["designation"]
    standing = next((row for row in answer["rows"] if row["designation"] == mine), None)
    return visit.show("league.html", answer=answer, mine=mine, standing=standing)
