"""The scorecard: how often verdicts were right, the list of mistakes, and the form to report one."""

import re
from collections.abc import Mapping

from starlette.responses import Response

from roundtrip.console.support.page_operations import own_operation, page_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.services.scorecard.page import ScorecardParams, scorecard
from roundtrip.services.scorecard.report import MAX_NOTE, Reported, report_verdict

_SCORECARD = page_operation(scorecard, counts="minute", shared_by=ScorecardParams.shared_as)
_REPORT = own_operation(
    report_verdict, method="POST", writes=True, counts="minute", errors=("bad_address", "no_such_tx")
)
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


async def show_report_form(visit: Visit) -> Response:
    """GET /scorecard/report: the form, for the token in the query string."""
    return _render_form(visit, {"token": visit.query.get("token", "")})


async def send_report(visit: Visit) -> Response:
    """POST /scorecard/report: sends the report, and shows the form with the result."""
    params = {name: visit.form.get(name, "").strip() for name in ("token", "hash", "note")}
    try:
        done = await visit.ask(_REPORT, params)
    except CallerFault as fault:
        # The error is shown beside the form, which keeps the visitor's input.
        return _render_form(visit, params, fault=fault, status=fault.status)
    return _render_form(visit, {"token": params["token"]}, done=done)


def _render_form(
    visit: Visit,
    form: Mapping[str, str],
    done: Reported | None = None,
    fault: RoundtripError | None = None,
    status: int = 200,
) -> Response:
    return visit.show("report_verdict.html", status, form=form, done=done, fault=fault, most_note=MAX_NOTE)
