"""The first page, and how the service is."""

from typing import Any

from starlette.responses import Response

from roundtrip.api.documents.about import STRANGERS, UNKNOWN, WHAT
from roundtrip.api.operations.catalog import tools
from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.metrics import NEWEST
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.system.status import SLOW_JOBS_S, ServiceStatus, service_status

_STATUS = Operation(
    name="service_status", title="How the service is", description="", params=Nothing, answer=ServiceStatus,
    handler=lambda call: service_status(call.ctx, call.params), on_mcp=False, counts="never",
)  # fmt: skip


async def front(visit: Visit) -> Response:
    """What this is."""
    url = visit.console.dispatch.ctx.public_url
    return visit.show(
        "front.html", what=WHAT, unknown=UNKNOWN, strangers=STRANGERS, tools=len(tools()), public_url=url
    )


async def _read_state(visit: Visit) -> tuple[Any, Any]:
    return await visit.ask("health"), await visit.ask(_STATUS)


async def status(visit: Visit) -> Response:
    """Whether it keeps up with the chain, what it undid, how long it takes, what waits, what it lacks. The
    page itself stands when nothing else does."""
    health, now = await visit.console.status.get(lambda: _read_state(visit))
    try:
        vitals = await visit.ask("chain_vitals")
    except RoundtripError:
        vitals = None
    return visit.show(
        "status.html",
        health=health,
        now=now,
        vitals=vitals,
        streams=visit.console.live.open(),
        newest=NEWEST,
        slow_s=SLOW_JOBS_S,
    )
