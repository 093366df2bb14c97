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
            "A plain-words account of any transaction of the chain, also one that failed or is in no "
            "block yet: who paid what, what they got, on which pool or curve; transfers, approvals, "
            "launches. Amounts are decimal strings with their raw base units; the fee is in eth. Token "
            "amounts are as their contracts tell; what could not be found out is said."
        ),
        params=ExplainParams,
        answer=Explanation,
        handler=lambda call: explain(call.ctx, call.params),
        lane="checks",
        shared_by=lambda params: str(params.tx_hash()),
        errors=("not_found", "upstream", "budget_spent"),
    ),
    Operation(
        name="look_up",
        title="Look up",
        description=(
            "Takes a symbol, a wallet's name, an address, a transaction's hash or a v4 pool's id and works "
            "out what it is. "
            "A symbol finds the token of the launchpad by that symbol that was launched last, with how "
            "many others bear it and the oldest of them: identify a token by its address. Kind nothing, "
            "and no error, where it is nothing that is known; a wallet's name, which strangers gave it, is "
            "looked for where no launch bears that symbol."
        ),
        params=LookUpParams,
        answer=LookUpAnswer,
        handler=lambda call: find(call.ctx, call.params),
        lane="checks",
        shared_by=shared_as,
        errors=("upstream", "budget_spent"),
    ),
)
