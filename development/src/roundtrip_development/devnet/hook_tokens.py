"""Tokens with a hook in their v4 pool, or with a pool that is unusual in another way."""

from pathlib import Path

from eth_abi.abi import encode

from .compile import compile_contract
from .deploy import ZERO, ContractDeployer, DeployError, calldata
from .launchpad import mine_salt
from .stories import PoolPlan, Story

FLAGS = {
    "harmless": 0x0040,
    "revert_on_sell": 0x0080,
    "tenth_by_delta": 0x0044,
    "fee_jump": 0x0080,
    "allow_list": 0x0080,
}
"""The permissions that v4 reads from the last 14 bits of a hook's address, by the hook's file name."""

ODD_TIER = (2500, 50)
"""A v3 fee in pips with its tick spacing, which only the factory's owner can enable."""

_PLAIN = "tokens/plain.vy"


def _hook_pool(stem: str, fee_pips: int = 3000, dynamic: bool = False) -> PoolPlan:
    return PoolPlan("eth", fee_pips, version=4, hook=stem, dynamic_fee=dynamic)


def _with_fair_pool(
    stem: str, hooked_pips: int, fair_pips: int, hooked_milli: int = 20_000
) -> tuple[PoolPlan, ...]:
    """A hooked v4 pool and a fair v3 pool at the same price."""
    return (
        PoolPlan("eth", hooked_pips, hooked_milli, hooked_milli // 8, version=4, hook=stem),
        PoolPlan("weth", fair_pips, 20_000, 2500),
    )


HOOKED: tuple[Story, ...] = (
    Story(
        "hook_harmless", "Honest; its v4 pool has a hook that only counts swaps.", _PLAIN,
        "Counted", "CNTD", pools=(_hook_pool("harmless"),),
    ),
    Story(
        "hook_reverts_on_sell", "An honest token; the hook of its only pool refuses sales.", _PLAIN,
        "Valve", "VALV", pools=(_hook_pool("revert_on_sell"),),
    ),
    Story(
        "hook_takes_tenth", "An honest token; the hook of its only pool keeps a tenth both ways.", _PLAIN,
        "Tithe", "TITH", pools=(_hook_pool("tenth_by_delta"),),
    ),
    Story(
        "hook_fee_jump", "An honest token; its pool takes 0.3 % of a buy and half of a sale.", _PLAIN,
        "Leap", "LEAP", pools=(_hook_pool("fee_jump", dynamic=True),),
    ),
    Story(
        "hook_allow_list", "An honest token; its pool's hook lets only listed accounts sell.", _PLAIN,
        "Guest", "GST", pools=(_hook_pool("allow_list"),),
    ),
    Story(
        "hook_bait", "A deep, cheap pool that refuses sales, beside a fair one.", _PLAIN,
        "Bait", "BAIT", pools=_with_fair_pool("revert_on_sell", 100, 3000, 40_000),
    ),
    Story(
        "hook_slightly_cheaper", "Honest; its hooked pool is cheaper than the fair one by half a percent.",
        _PLAIN, "Nudge", "NUDG", pools=_with_fair_pool("harmless", 500, 3000),
    ),
    Story(
        "hook_much_cheaper", "Honest; its hooked pool is cheaper than the fair one by two percent.",
        _PLAIN, "Bargain", "BARG", pools=_with_fair_pool("harmless", 500, 10_000),
    ),
    Story(
        "toll_beside_fair", "A pool with a hook that keeps a tenth both ways, beside a fair one.", _PLAIN,
        "Fork", "FORK", pools=_with_fair_pool("tenth_by_delta", 3000, 3000),
    ),
    Story(
        "taxed_v4_hooked", "A tenth of every sell goes to the owner, in a pool with a counting hook.",
        "tokens/fee_on_sell.vy", "Levy", "LEVY", extra_types=("uint256",), extra_values=(1000,),
        pools=(_hook_pool("harmless"),),
    ),
    Story(
        "odd_key", "Honest; its v4 pool has an unusual fee and tick spacing.", _PLAIN, "Odd", "ODD",
        pools=(PoolPlan("eth", 2500, version=4, tick_spacing=25),),
    ),
    Story(
        "one_sided", "Honest; its pool sells the token and holds nothing to buy it back with.", _PLAIN,
        "Oneway", "ONEW", pools=(PoolPlan(one_sided=True),),
    ),
    Story(
        "odd_tier", "Honest; its v3 pool has a fee tier that the factory's owner added.", _PLAIN,
        "Tier", "TIER", pools=(PoolPlan("weth", ODD_TIER[0]),),
    ),
)  # fmt: skip


def deploy_hooks(deployer: ContractDeployer, contracts: dict[str, str], sources: Path) -> dict[str, str]:
    """Deploys the hooks of the stories, by file name and quote. ``sources``: the folder of our contracts.

    Also enables the unusual v3 fee tier. Raises DeployError.
    """
    deployer.send(contracts["v3Factory"], calldata("enableFeeAmount(uint24,int24)", *ODD_TIER))
    folder = sources / "zoo/hooks"
    helper = deployer.create(compile_contract(folder / "create2_deployer.vy"))
    needed = sorted({(pool.hook, pool.quote) for story in HOOKED for pool in story.pools if pool.hook})
    code = {stem: compile_contract(folder / f"{stem}.vy") for stem in sorted({stem for stem, _ in needed})}
    hooks = {}
    for stem, quote in needed:
        # The last argument is the owner of the list, or the collector of the tenth.
        extra = [deployer.account] if stem in ("allow_list", "tenth_by_delta") else []
        arguments = [contracts["v4PoolManager"], contracts.get(quote, ZERO), *extra]
        initial = bytes.fromhex(code[stem][2:]) + encode(["address"] * len(arguments), arguments)
        salt, address = mine_salt(helper, initial, FLAGS[stem])
        deployer.receipt(deployer.send(helper, calldata("create(bytes,bytes32)", initial, salt)))
        if deployer.chain.call("eth_getCode", address, "latest") == "0x":
            raise DeployError(f"the hook {stem} is not where its salt should have put it")
        hooks[f"{stem}_{quote}"] = address
    return hooks
