"""The scorecard: how often verdicts were right, and the list of mistakes."""

import re
from collections.abc import Mapping

from starlette.responses import Response

from roundtrip.console.support.page_operations import page_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import CallerFault
from roundtrip.services.scorecard.page import ScorecardParams, scorecard

_SCORECARD = page_operation(scorecard, counts="minute", shared_by=ScorecardParams.shared_as)
_NUMBER = "[0-9]{1,19}"


async def show_scorecard(visit: Visit) -> Response:
    """GET /scorecard: counts by code, and mistakes, newest first."""
    return visit.show("scorecard.html", card=await visit.ask(_SCORECARD, _read_cursor(visit.query)))


def _read_cursor(query: Mapping[str, str]) -> ScorecardParams:
    """The cursor of a page of mistakes, from its link: the last mistake of the page before. Raises
    CallerFault."""
    texts = tuple(query.get(name) for name in ("s", "id"))
    if texts == (None, None):
        return ScorecardParams()
    if any(text is None or not re.fullmatch(_NUMBER, text) for text in texts):
        raise CallerFault(
            "bad_input", "There is no such page of the scorecard. Open /scorecard and follow its links."
        )
    return ScorecardParams(*(int(text or 0) for text in texts))
