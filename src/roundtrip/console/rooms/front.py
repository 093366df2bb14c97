"""The first page, and how the service is."""

from starlette.responses import Response

from roundtrip.api.about import STRANGERS, UNKNOWN, WHAT
from roundtrip.api.catalog import tools
from roundtrip.console.page import Visit


async def front(visit: Visit) -> Response:
    """What this is."""
    url = visit.console.dispatch.ctx.public_url
    return visit.show(
        "front.html", what=WHAT, unknown=UNKNOWN, strangers=STRANGERS, tools=len(tools()), public_url=url
    )


async def status(visit: Visit) -> Response:
    """Whether it keeps up with the chain, and what of the chain it knows."""
    health = await visit.ask("health")
    return visit.show("status.html", health=health, vitals=await visit.ask("chain_vitals"))
