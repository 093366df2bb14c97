"""The scorecard: how often verdicts were right, the list of mistakes, and the form to report one."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.services.scorecard.page import Scorecard, ScorecardParams
from roundtrip.services.scorecard.page import scorecard as scorecard_of
from roundtrip.services.scorecard.report import MOST_NOTE, Reported, ReportParams, report_verdict

_SCORECARD = Operation(
    name="scorecard",
    title="Scorecard",
    description="",
    params=ScorecardParams,
    answer=Scorecard,
    handler=lambda call: scorecard_of(call.ctx, call.params),
    on_mcp=False,
    counts="minute",
    shared_by=lambda params: params.shared_as(),
)
_REPORT = Operation(
    name="report_verdict",
    title="Report a wrong verdict",
    description="",
    params=ReportParams,
    answer=Reported,
    handler=lambda call: report_verdict(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    on_mcp=False,
    counts="minute",
    errors=("bad_address", "no_such_tx"),
)
_MOST_DIGITS = 19


async def show_scorecard(visit: Visit) -> Response:
    """GET /scorecard: counts by code, and mistakes, newest first."""
    return visit.show("scorecard.html", card=await visit.ask_old(_SCORECARD, **_read_cursor(visit.query)))


def _read_cursor(query: Mapping[str, str]) -> dict[str, int]:
    """The cursor of a page of mistakes, from its link: the last mistake of the page before. Raises
    CallerFault."""
    texts = {"beforeS": query.get("s"), "beforeId": query.get("id")}
    if all(text is None for text in texts.values()):
        return {}
    cursor = {}
    for name, text in texts.items():
        if text is None or not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
            raise CallerFault(
                "bad_input", "There is no such page of the scorecard. Open /scorecard and follow its links."
            )
        cursor[name] = int(text)
    return cursor


async def show_report_form(visit: Visit) -> Response:
    """GET /scorecard/report: the form, for the token in the query string."""
    return _render_form(visit, {"token": visit.query.get("token", "")})


async def send_report(visit: Visit) -> Response:
    """POST /scorecard/report: sends the report, and shows the form with the result."""
    params = {name: visit.form.get(name, "").strip() for name in ("token", "hash", "note")}
    try:
        done = await visit.ask_old(_REPORT, **params)
    except CallerFault as fault:
        # The error is shown beside the form, which keeps the visitor's input.
        return _render_form(visit, params, fault=fault, status=fault.status)
    return _render_form(visit, {"token": params["token"]}, done=done)


def _render_form(
    visit: Visit,
    form: Mapping[str, str],
    done: Mapping[str, Any] | None = None,
    fault: RoundtripError | None = None,
    status: int = 200,
) -> Response:
    return visit.show("report_verdict.html", status, form=form, done=done, fault=fault, most_note=MOST_NOTE)
