"""A transaction that was sent, as the call that it made: to simulate it again on the newest block."""

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.wallet.transactions import read_transaction
from roundtrip.domain.base.errors import CallerFault
from roundtrip.services.lookup.explain import NOT_FOUND, ExplainParams
from roundtrip.services.runtime.context import Context, UseCaseAnswer


class SentCall(msgspec.Struct, frozen=True):
    """The call of a transaction. ``to`` None: it created a contract."""

    sender: str
    to: str | None
    data: str
    value: str


async def read_sent_call(ctx: Context, params: ExplainParams) -> UseCaseAnswer[SentCall]:
    """The call of this transaction. Raises CallerFault (not_found), and NodeFault where the node does not
    tell."""
    meter = Meter()
    ctx.heads.current()
    found = await read_transaction(ctx.node, params.tx_hash(), ctx.chain_id, meter)
    if found is None:
        raise CallerFault("not_found", NOT_FOUND)
    sent, _ = found
    call = SentCall(sent.sender, sent.to, "0x" + sent.data.hex(), str(sent.value_wei))
    return UseCaseAnswer(call, ttl_ms=ctx.policy.answer_ttl_ms, meter=meter)
