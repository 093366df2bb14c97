"""What an owner could change, against owners who really do it and wallets who really sell then."""

import pytest

from conftest import PROJECT
from roundtrip.chain.rpc import Meter
from roundtrip.devnet.compile import compile_contract
from roundtrip.devnet.deploy import Deployer, calldata, put_token
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.policy import POLICY
from roundtrip.domain.types import Address
from roundtrip.domain.verdict import judge
from roundtrip.services.context import Context
from roundtrip.services.third_trip import gather_deep
from truth.test_zoo import V4, Animal

CASES = (
    Animal("pausable_owner"), Animal("blacklist_admin"), Animal("fee_admin"), Animal("fee_admin", pools=V4),
    Animal("pull_owner"), Animal("mintable"), Animal("../tokens/paused"), Animal("max_wallet", (100,)),
    Animal("owner_max_tx"), Animal("owner_sell_tax"), Animal("owner_sell_tax", pools=V4), Animal("owner_cooldown"),
    Animal("owner_close"), Animal("owner_close", calls=(("renounceOwnership()", ()),)), Animal("owner_unguessable"),
    Animal("owner_password"), Animal("owner_harmless"), Animal("owner_harmless", pools=V4), Animal("../tokens/plain"), Animal("whitelist_sell"),
)

@pytest.mark.parametrize("animal", CASES, ids=lambda a: f"{a.source}{a.pools[0].version}")
async def test_it(ctx: Context, rpc: SyncRpc, built: Built, animal: Animal) -> None:
    import time
    story = animal.story()
    deployer = Deployer(rpc, rpc.call("eth_accounts")[0])
    token = put_token(deployer, built.contracts, story, compile_contract(PROJECT / "contracts" / story.source))
    for signature, values in animal.calls:
        deployer.send(token, calldata(signature, *values))
    deployer.settle()
    await ctx.heads.refresh()
    meter = Meter()
    t = time.perf_counter()
    evidence = await gather_deep(ctx, Address(token), meter)
    t = time.perf_counter() - t
    print(story.source, f"{t*1000:.0f} ms", meter, judge(evidence, POLICY).verdict)
    k = evidence.owner_calls
    if hasattr(k, "tried"):
        for c in k.tried: print("    ", c.function, "|", c.passed, "|", len(c.calls), str(c.outcome)[:100])
    else: print(k)
