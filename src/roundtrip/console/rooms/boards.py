"""Boards of what moves, and the same rows again as they change."""

from dataclasses import dataclass

from starlette.responses import Response

from roundtrip.console.page import Visit
from roundtrip.domain.errors import CallerFault


@dataclass(frozen=True, slots=True)
class Board:
    """One board: the tool it stands on, and what it is called."""

    tool: str
    title: str

    @property
    def template(self) -> str:
        """Where its rows are written."""
        return f"boards/{self.tool}.html"


BOARDS = (
    Board("moving_now", "Moving now"),
    Board("graduating_soon", "Graduating soon"),
    Board("winners", "Winners"),
    Board("signals", "Odd things"),
    Board("wallet_names", "Names"),
    Board("proven_calls", "Proved right"),
)
_BY_TOOL = {board.tool: board for board in BOARDS}


async def boards(visit: Visit) -> Response:
    """The first of them."""
    return await _shown(visit, BOARDS[0])


async def board(visit: Visit) -> Response:
    """One of them."""
    return await _shown(visit, _named(visit))


async def rows(visit: Visit) -> Response:
    """Its rows alone, as they are now."""
    found = _named(visit)
    return visit.show(found.template, answer=await visit.ask(found.tool))


async def _shown(visit: Visit, one: Board) -> Response:
    return visit.show("boards.html", board=one, boards=BOARDS, answer=await visit.ask(one.tool))


def _named(visit: Visit) -> Board:
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
