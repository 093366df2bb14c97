"""Operations: lookups by transaction, address, name or symbol."""

from roundtrip.services.lookup.explain import ExplainParams, Explanation, explain
from roundtrip.services.lookup.look_up import find, shared_as
from roundtrip.services.lookup.look_up_answer import LookUpAnswer, LookUpParams

from .operation import AnyOperation, Operation

LOOKUPS: tuple[AnyOperation, ...] = (
    Operation(
        name="explain_transaction",
        title="Explain a transaction",
        description=(
            "Explains any transaction of the chain in plain words, failed and pending ones included: who "
            "paid what, what they got, on which pool or curve, with transfers, approvals and launches. "
            "Amounts are whole units, raw is in base units, the fee is in eth. Token amounts are as their "
            "contracts report them; the answer says what it could not find out."
        ),
        params=ExplainParams,
        answer=Explanation,
        handler=lambda call: explain(call.ctx, call.params),
        lane="checks",
        shared_by=lambda params: str(params.tx_hash()),
        from_replica=True,
        errors=("not_found", "upstream", "budget_spent"),
    ),
    Operation(
        name="look_up",
        title="Look up",
        description=(
            "Finds out what a symbol, wallet name, address, transaction hash or v4 pool id is. A symbol "
            "returns the newest launchpad token with it, how many others have it, and the oldest: identify "
            "a token by its address. A wallet's name, given by strangers, is searched where no launch has "
            "that symbol. Kind nothing means not found, and is not an error."
        ),
        params=LookUpParams,
        answer=LookUpAnswer,
        handler=lambda call: find(call.ctx, call.params),
        lane="checks",
        shared_by=shared_as,
        from_replica=True,
        errors=("upstream", "budget_spent"),
    ),
)
