"""What is asked about one token."""

from roundtrip.api.operation import Operation
from roundtrip.services.check import check
from roundtrip.services.check_answer import Check, CheckParams
from roundtrip.services.proof import check_proof
from roundtrip.services.proof_answer import Proof

TOKENS: tuple[Operation, ...] = (
    Operation(
        name="check_token",
        title="Check a token",
        description=(
            "Buys the token with 0.1 eth and sells it straight back, inside a simulation of the latest "
            "block, and tells whether it can be sold, at once and later, and what the round trip costs. "
            "Nothing is sent on the chain. "
            "Level unknown means it could not be found out: treat it as a no. "
            "Losses are in hundredths of a percent; answers are shared for 15 seconds. "
            "Fails with bad_address, rate_limited, upstream, busy or budget_spent."
        ),
        params=CheckParams,
        answer=Check,
        handler=check,
        path="/v1/check/{address}",
        shared_by=lambda params: params.shared_as(),
        bad_params="bad_address",
        query=("deep",),
    ),
    Operation(
        name="check_proof",
        title="Prove a check",
        description=(
            "The newest check of a token of the last day, and one made now where there is none, with "
            "everything that is needed to make it again: its evidence, and the exact JSON-RPC requests that "
            "the evidence came of, trip by trip. "
            "roundtrip verify sends them to a node of your own and judges again. "
            "Fails with bad_address, rate_limited, upstream, busy or budget_spent."
        ),
        params=CheckParams,
        answer=Proof,
        handler=check_proof,
        path="/v1/check/{address}/proof",
        on_mcp=False,
        shared_by=lambda params: str(params.token()),
        bad_params="bad_address",
    ),
)
