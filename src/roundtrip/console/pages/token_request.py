"""The exact requests that simulated one wallet's trade."""

from starlette.responses import Response

from roundtrip.console.support.page_operations import page_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.services.check.proof import ProofRequestsParams, proof_requests

_REQUESTS = page_operation(proof_requests, bad_params="bad_address")


async def show_request(visit: Visit) -> Response:
    """GET /token/{address}/request: ``wallet`` traded last ``after`` seconds after the block."""
    address, wallet, after = visit.address, visit.query.get("wallet"), visit.query.get("after", "0")
    seconds = int(after) if after.isdecimal() and len(after) < 8 else 0
    found = await visit.ask(_REQUESTS, ProofRequestsParams(address, wallet, seconds)) if wallet else None
    return visit.show("token_request.html", address=address, wallet=wallet, found=found)
