"""A transaction that was sent, as the call that it made: to simulate it again on the newest block."""

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.services.lookup.explain import ExplainParams, find_transaction
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
    sent, _ = await find_transaction(ctx, params, meter)
    call = SentCall(sent.sender, sent.to, "0x" + sent.data.hex(), str(sent.value_wei))
    return UseCaseAnswer(call, ttl_ms=ctx.policy.answer_ttl_ms, meter=meter)
