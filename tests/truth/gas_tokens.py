"""Honest tokens whose transfers use much gas: those of contracts/truth/heavy_transfer.vy."""

from dataclasses import dataclass
from functools import cache

from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, put_token
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.fixtures import PROJECT

_SOURCE = "truth/heavy_transfer.vy"
V3 = PoolPlan()
V4 = PoolPlan("eth", version=4)


@dataclass(frozen=True)
class GasToken:
    """``hashes`` and ``writes``: what each transfer does. ``transfer_gas``: about what it uses."""

    hashes: int
    writes: int
    transfer_gas: int
    pool: PoolPlan = V3

    def put(self, rpc: SyncRpc, built: Built) -> str:
        """Deploys it and fills its pool; the token's address. Raises DeployError."""
        story = Story(
            "heavy_transfer", "", _SOURCE, "Heavy", "HEAVY", 18,
            ("uint256", "uint256"), (self.hashes, self.writes), (self.pool,),
        )  # fmt: skip
        deployer = ContractDeployer(rpc, built.accounts[0])
        token = put_token(deployer, built.contracts, story, _compile())
        deployer.check_receipts()
        return token


@cache
def _compile() -> str:
    return compile_contract(PROJECT / "contracts" / _SOURCE)


GAS_TOKENS = {
    "a transfer of 0.87 M gas": GasToken(8600, 0, 870_000),
    "a transfer of 1.44 M gas v4": GasToken(0, 270, 1_440_000, V4),
    "a transfer of 2.6 M gas v4": GasToken(0, 480, 2_580_000, V4),
}
"""A simulation of a check of these uses about the 50 M gas that geth and nitro give to a whole request."""
