"""The front page and the status page."""

from starlette.responses import Response

from roundtrip.api.documents.about import STRANGERS, UNKNOWN, WHAT
from roundtrip.api.operations.catalog import find_operation, tools
from roundtrip.api.operations.operation import A, Operation
from roundtrip.console.support.page_operations import page_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.metrics import NEWEST
from roundtrip.services.boards.chain_vitals import ChainVitals
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.system.status import SLOW_JOBS_S, Health, HealthParams, ServiceStatus, service_status

from .boards import BOARDS, MOVING, NEWEST_BOARD, NEWEST_VERDICTS, find_good, show_values

_STATUS = page_operation(service_status, counts="never")
_HEALTH = find_operation("health", HealthParams, Health)
_VITALS = find_operation("chain_vitals", Nothing, ChainVitals)


async def show_front(visit: Visit) -> Response:
    """GET /: what this service is."""
    (newest, newest_why), (moving, moving_why) = (
        await _try_to_ask(visit, NEWEST_VERDICTS),
        await _try_to_ask(visit, MOVING),
    )
    values = {} if moving is None else show_values(BOARDS[0], moving)
    strip = None if newest is None else show_values(NEWEST_BOARD, newest)
    return visit.show(
        "front.html",
        what=WHAT,
        unknown=UNKNOWN,
        strangers=STRANGERS,
        tools=len(tools()),
        newest=newest,
        example=find_good(newest),
        strip=strip,
        newest_why=newest_why,
        moving_why=moving_why,
        lag_s=0 if moving is None else visit.lag_s(moving.block_time),
        **({"answer": None} | values),
    )


async def _try_to_ask(visit: Visit, operation: Operation[Nothing, A]) -> tuple[A | None, str]:
    """The answer; or None, and why: the rest of the page is shown without it."""
    try:
        return await visit.ask(operation), ""
    except RoundtripError as error:
        return None, error.message


async def _read_state(visit: Visit) -> tuple[Health, ServiceStatus]:
    return await visit.ask(_HEALTH), await visit.ask(_STATUS)


async def show_status(visit: Visit) -> Response:
    """GET /status: sync lag, reorgs, durations, queues and degraded parts. It works if everything else
    fails."""
    health, state = await visit.console.status.get(lambda: _read_state(visit))
    try:
        vitals = await visit.ask(_VITALS)
    except RoundtripError:
        vitals = None
    return visit.show(
        "status.html",
        health=health,
        now=state,
        vitals=vitals,
        streams=visit.console.live.count_streams(),
        newest=NEWEST,
        slow_s=SLOW_JOBS_S,
    )
