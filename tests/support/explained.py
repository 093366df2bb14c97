"""What a transaction on the local chain was told to have done."""

from roundtrip.devnet.wire import SyncRpc
from roundtrip.services.context import Context
from roundtrip.services.explain import explain
from roundtrip.services.explain_answer import ExplainParams, Explanation

ETH = 10**18


def newest(rpc: SyncRpc) -> str:
    """The last transaction of the newest block."""
    return str(rpc.call("eth_getBlockByNumber", "latest", False)["transactions"][-1])


async def told(ctx: Context, tx_hash: str) -> Explanation:
    """Its account."""
    return (await explain(ctx, ExplainParams(tx_hash))).answer


def sums(answer: Explanation) -> tuple[dict[str, int], dict[str, int]]:
    """Paid and got, raw by asset."""
    return (
        {one.asset: int(one.raw) for one in answer.paid},
        {one.asset: int(one.raw) for one in answer.got},
    )


def kinds(answer: Explanation) -> list[str]:
    """Its steps in short."""
    return [step.kind for step in answer.steps]
