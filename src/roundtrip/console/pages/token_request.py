"""The exact requests that simulated one wallet's trade."""

from starlette.responses import Response

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.page_request import Visit
from roundtrip.services.check.proof import ProofRequests, ProofRequestsParams, proof_requests

_REQUESTS = Operation(
    name="proof_requests",
    title="Requests of one simulated wallet, for their page",
    description="",
    params=ProofRequestsParams,
    answer=ProofRequests,
    handler=lambda call: proof_requests(call.ctx, call.params),
    on_mcp=False,
    bad_params="bad_address",
)


async def show_request(visit: Visit) -> Response:
    """GET /token/{address}/request: ``wallet`` traded last ``after`` seconds after the block."""
    address, wallet, after = visit.path["address"], visit.query.get("wallet"), visit.query.get("after", "0")
    seconds = int(after) if after.isdecimal() and len(after) < 8 else 0
    found = await visit.ask_old(_REQUESTS, address=address, wallet=wallet, after=seconds) if wallet else None
    return visit.show("token_request.html", address=address, wallet=wallet, found=found)
