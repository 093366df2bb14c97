"""How often verdicts were right, the list of our mistakes, and the form that tells of another."""

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
    title="This was wrong",
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


async def scorecard(visit: Visit) -> Response:
    """Counts by code, and mistakes, the newest first."""
    return visit.show("scorecard.html", card=await visit.ask(_SCORECARD, **_before(visit.query)))


def _before(query: Mapping[str, str]) -> dict[str, int]:
    """After which mistake a page goes on, by its link."""
    given = {"beforeS": query.get("s"), "beforeId": query.get("id")}
    if all(one is None for one in given.values()):
        return {}
    found = {}
    for name, text in given.items():
        if text is None or not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
            raise CallerFault("bad_input", "There is no such page of the scorecard.")
        found[name] = int(text)
    return found


async def report(visit: Visit) -> Response:
    """The form, for the token that the visitor comes from."""
    return _form(visit, {"token": visit.query.get("token", "")})


async def send_report(visit: Visit) -> Response:
    """What the form says, and what came of it."""
    given = {name: visit.form.get(name, "").strip() for name in ("token", "hash", "note")}
    try:
        done = await visit.ask(_REPORT, **given)
    except CallerFault as fault:
        # What the visitor wrote is put right beside the form.
        return _form(visit, given, fault=fault, status=fault.status)
    return _form(visit, {"token": given["token"]}, done=done)


def _form(
    visit: Visit,
    form: Mapping[str, str],
    done: Mapping[str, Any] | None = None,
    fault: RoundtripError | None = None,
    status: int = 200,
) -> Response:
    return visit.show("report_verdict.html", status, form=form, done=done, fault=fault, most_note=MOST_NOTE)
