"""What a deep check says other accounts than the owner could change, against accounts who really do it and
wallets who really sell then."""

import pytest

from chain.check.test_account_rights import CASES, RightsCase, deep, put, put_controller
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.evidence import AccountRights, Evidence
from roundtrip.domain.check.owner_calls import change
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.deploy import ContractDeployer
from roundtrip_development.devnet.stories import PoolPlan
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from truth.check.test_owner_calls import really_is


def really(rpc: SyncRpc, built: Built, token: str, evidence: Evidence) -> None:
    rights = evidence.account_rights
    assert isinstance(rights, AccountRights)
    assert change(rights, POLICY) is not None
    for call in rights.tried:
        rpc.call("anvil_impersonateAccount", call.sender)
        rpc.call("anvil_setBalance", call.sender, hex(10**20))
        really_is(rpc, built, ContractDeployer(rpc, call.sender), token, PoolPlan(), call)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.source}{len(case.says)}")
async def test_what_is_named_really_happens_and_what_is_not_does_not(
    ctx: Context, rpc: SyncRpc, built: Built, case: RightsCase
) -> None:
    token = put(rpc, built, f"rights/{case.source}", *case.extra)
    really(rpc, built, token, (await deep(ctx, token))[0])


async def test_so_it_does_in_a_contract_that_transfers_ask(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    token = put(rpc, built, "rights/controlled", int(put_controller(rpc)[0], 16))
    really(rpc, built, token, (await deep(ctx, token))[0])
