"""A transaction that was sent, as the call that it made: to simulate it again on the newest block."""

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.wallet.transactions import read_transaction
from roundtrip.domain.base.errors import CallerFault
from roundtrip.services.lookup.explain import NOT_FOUND, ExplainParams
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.trade.simulate_params import SimulateParams


async def read_sent_call(ctx: Context, params: ExplainParams) -> UseCaseAnswer[SimulateParams]:
    """The call of this transaction, by its sender; ``to`` None: it created a contract. Raises CallerFault
    (not_found), and NodeFault where the node does not tell."""
    meter = Meter()
    ctx.heads.current()
    found = await read_transaction(ctx.node, params.tx_hash(), ctx.chain_id, meter)
    if found is None:
        raise CallerFault("not_found", NOT_FOUND)
    sent, _ = found
    call = SimulateParams(sent.sender, sent.to, "0x" + sent.data.hex(), str(sent.value_wei))
    return UseCaseAnswer(call, ttl_ms=ctx.policy.answer_ttl_ms, meter=meter)
