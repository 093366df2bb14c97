"""The zoo: what stands in contracts/zoo and is traded, each with what its constructor takes and its pools."""

from dataclasses import dataclass, replace

from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, calldata, put_token
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.fixtures import PROJECT

V3 = (PoolPlan(),)
V4 = (PoolPlan("eth", version=4),)


@dataclass(frozen=True)
class Animal:
    """A source of the zoo, what its constructor takes more, its pools, and calls made when they are full."""

    source: str
    extra: tuple[int, ...] = ()
    pools: tuple[PoolPlan, ...] = V3
    calls: tuple[tuple[str, tuple[object, ...]], ...] = ()
    decimals: int = 18

    def story(self) -> Story:
        return Story(
            self.source, "", f"zoo/{self.source}.vy", "Zoo", "ZOO", self.decimals,
            ("uint256",) * len(self.extra), self.extra, self.pools,
        )  # fmt: skip

    def named(self) -> str:
        """Its source, what its constructor takes, its market where that is not the usual one, and calls."""
        pool = self.pools[0]
        parts = [f"zoo/{self.source.rpartition('/')[2]}", *map(str, self.extra)]
        parts += [f"v{pool.version}"] if pool.version != 3 else []
        parts += [pool.quote] if pool.quote not in ("weth", "eth") else []
        return " ".join([*parts, *(call.partition("(")[0] for call, _ in self.calls)])


ANIMALS = (
    Animal("../tokens/cooldown", (60,)),
    Animal("../tokens/cooldown", (172_800,)),
    Animal("../tokens/fee_on_buy", (10_000,)),
    Animal("../tokens/fee_on_buy", (10_000,), V4),
    Animal("noop_transfer"),
    Animal("noop_transfer", pools=V4),
    Animal("false_return"),
    Animal("false_return", pools=V4),
    Animal("sell_cut", (1000,)),
    Animal("sell_cut", (1000,), V4),
    Animal("whitelist_sell"),
    Animal("freeze_on_receive"),
    Animal("escalating_fee", (0, 100)),
    Animal("escalating_fee", (500, 100), V4),
    Animal("escalating_fee", (0, 300), V4),
    Animal("reflection", (200,)),
    Animal("reflection", (200,), V4),
    Animal("rebase_up", (100, 3600)),
    Animal("rebase_up", (100, 3600), V4),
    Animal("rebase_down", (100, 3600)),
    Animal("rebase_down", (100, 3600), V4),
    Animal("tax_by_direction", (500, 0)),
    Animal("tax_by_direction", (300, 700), V4),
    Animal("tax_by_direction", (2000, 2000), V4),
    Animal("tax_by_direction", (3000, 5000), V4),
    Animal("locks_traders", (6,)),
    Animal("max_wallet", (100,)),
    Animal("no_contract_senders"),
    Animal("gas_bomb", (2_000_000,)),
    Animal("gas_bomb", (20_000_000,)),
    Animal("gas_price_cap", (0,)),
    Animal("gas_price_cap", (10**12,)),
    Animal("time_bomb", (1800,)),
    Animal("time_bomb", (604_800,)),
    Animal("detect_coinbase"),
    Animal("detect_basefee"),
    Animal("detect_gasprice"),
    Animal("detect_prevrandao"),
    Animal("detect_gasleft", (2_000_000,)),
    Animal("detect_gasleft", (30_000_000,)),
    Animal("detect_gaslimit"),
    Animal("detect_origin"),
    Animal("detect_buy_gas"),
    Animal("detect_approve_gas"),
    Animal("detect_gas_band"),
    Animal("detect_poor_sender"),
    Animal("sells_twice"),
    Animal("sells_after_others"),
    Animal("sells_after_others", pools=V4),
    Animal("detect_balance_call"),
    Animal("pausable_owner"),
    Animal("pausable_owner", calls=(("setSelling(bool)", (False,)),)),
    Animal("mintable"),
    Animal("blacklist_admin"),
    Animal("fee_admin"),
    Animal("fee_admin", calls=(("setFee(uint256)", (1000,)),)),
    Animal("fee_admin", pools=V4, calls=(("setFee(uint256)", (6000,)),)),
    Animal("pull_owner"),
    Animal("owner_close"),
    Animal("owner_close", calls=(("closeTrading()", ()),)),
    Animal("owner_cooldown", calls=(("setCooldown(uint256)", (60,)),)),
    Animal("owner_harmless"),
    Animal("owner_max_tx", calls=(("setMaxTx(uint256)", (1,)),)),
    Animal("owner_password"),
    Animal("owner_sell_tax", pools=V4, calls=(("setSellTax(uint256)", (30,)),)),
    Animal("owner_unguessable"),
    Animal("honeypot_by_amount", (10,)),
    Animal("first_buyer_only", (0,)),
    Animal("approve_trap"),
    Animal("transfer_callback"),
    Animal("odd_name_reverts"),
    Animal("odd_no_decimals"),
    Animal("odd_empty_symbol"),
    Animal("odd_zero_supply"),
    Animal("odd_24_decimals", decimals=24),
    Animal("odd_0_decimals", decimals=0),
    Animal("odd_0_decimals", pools=(PoolPlan(supply_bps=8),), decimals=0),
    Animal("odd_0_decimals", pools=(PoolPlan(supply_bps=1),), decimals=0),
    Animal("odd_0_decimals", pools=(PoolPlan("usdg", quote_milli=60_000_000, supply_bps=1),), decimals=0),
    Animal("odd_dear_approval", (2,)),
    Animal("odd_dear_approval", (5,)),
    Animal("odd_dear_approval", (5,), V4),
    Animal("odd_fixed_permit2"),
)

BY_MANNER = (
    Animal("detect_same_block"),
    Animal("detect_delays"),
    Animal("detect_exact_approval"),
    Animal("unlucky_wallets"),
    *(Animal("locks_traders", (kind,)) for kind in range(6)),
    Animal("locks_traders", (0,), V4),
    Animal("locks_traders", (7,)),
    Animal("locks_traders", (7,), V4),
    Animal("last_buyer_only"),
    Animal("detect_other_money", (0,)),
    Animal("detect_approval_age", (6,)),
    Animal("others_in_between", (1, 0)),
    Animal("others_in_between", (2, 0)),
    Animal("others_in_between", (1, 30_000)),
    Animal("others_in_between", (1, 0), (PoolPlan("usdg", quote_milli=70_000_000),)),
)
"""They refuse wallets that trade otherwise than the one in these tests, or some wallets and not others."""


def put(rpc: SyncRpc, contracts: dict[str, str], animal: Animal) -> str:
    """Deploys it, fills its pools and makes its calls; the token's address. Raises DeployError."""
    if animal.source == "detect_other_money":
        animal = replace(animal, extra=(*animal.extra, int(contracts["usdg"], 16)))
    story, deployer = animal.story(), ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    token = put_token(deployer, contracts, story, compile_contract(PROJECT / "contracts" / story.source))
    for signature, values in animal.calls:
        deployer.send(token, calldata(signature, *values))
    deployer.check_receipts()
    return token
