"""What a transaction on the local chain was told to have done."""

from roundtrip.services.lookup.explain import ExplainParams, Explanation, explain
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.mining import by_hand
from support.wallet import UnsignedStep, Wallet, calldata

ETH = 10**18
_SINGLE = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"
_NOBODY = "0x" + "e711" * 10


def newest(rpc: SyncRpc) -> str:
    """The last transaction of the newest block."""
    return str(rpc.call("eth_getBlockByNumber", "latest", False)["transactions"][-1])


async def explain_tx(ctx: Context, tx_hash: str) -> Explanation:
    """Its account."""
    return (await explain(ctx, ExplainParams(tx_hash))).answer


def sums(answer: Explanation) -> tuple[dict[str, int], dict[str, int]]:
    """Paid and got, raw by asset."""
    return ({one.asset: int(one.raw) for one in answer.paid}, {one.asset: int(one.raw) for one in answer.got})


def kinds(answer: Explanation) -> list[str]:
    """Its steps in short."""
    return [step.kind for step in answer.steps]


def swap(sold: str, bought: str, to: str, raw: int, fee_pips: int = 3000) -> str:
    """Calldata of an exact swap by the router."""
    return calldata(_SINGLE, (sold, bought, fee_pips, to, raw, 0, 0))


def curve_of(rpc: SyncRpc, built: Built, token: str) -> str:
    """The curve of a token."""
    asked = {"to": built.contracts["launchpadFactory"], "data": calldata("getLaunchedToken(address)", token)}
    return "0x" + str(rpc.call("eth_call", asked, "latest"))[2 + 64 + 24 : 2 + 128]


def in_one_block(rpc: SyncRpc, wallet: Wallet, step: UnsignedStep) -> str:
    """The first of two transactions of the wallet in one block: its eth cannot be measured."""
    with by_hand(rpc):
        first, _ = wallet.queue([step, UnsignedStep(_NOBODY, "0x", 1)], 1_000_000, 10**10, 10**9)
        rpc.call("evm_mine")
    return first
