"""Nine days of trading before the built chain's head: launches, snipers, a dump, a few graduations."""

from collections.abc import Callable
from pathlib import Path
from random import Random

from .actors import (
    DUMPER,
    FUNDER,
    LAUNCHERS,
    SERIAL,
    SNIPERS,
    TRADERS,
    ActorMarket,
    Role,
    TradedToken,
    choose,
    record,
)
from .compile import compile_contract
from .deploy import ContractDeployer, put_token
from .stories import PoolPlan, Story
from .trading import POOL_FEE, DevnetTrader

SEED = 4663
HISTORY_S = 9 * 86_400
TURNS = 560
ROLES: tuple[Role, ...] = ("plain",) * 18 + ("hot",) * 5 + ("serial",) * 6 + ("dumper",)
"""The launches of the history; the turns between them are trades."""
_USDG_RAW = 40_000 * 10**6

TRADED: tuple[Story, ...] = tuple(
    Story(key, "Honest; actors trade it.", "tokens/plain.vy", key.capitalize(), key[:4].upper(), pools=pools)
    for key, pools in {
        "harbor": (PoolPlan("weth", POOL_FEE, 30_000),),
        "quartz": (PoolPlan("weth", POOL_FEE, 12_000),),
        "meadow": (PoolPlan("eth", POOL_FEE, 25_000, version=4),),
        "ember": (PoolPlan("eth", POOL_FEE, 10_000, version=4),),
    }.items()
)
"""Tokens with pools from the first day on. Actors do not trade in the samples' own pools."""


def schedule(rng: Random, turns: int = TURNS) -> list[tuple[int, Role | None]]:
    """The start of every turn, in seconds from the history's start, and the launcher's role if it is a
    launch."""
    roles = list(ROLES)
    rng.shuffle(roles)
    launches = {number * turns // len(roles): role for number, role in enumerate(roles)}
    slot_s = HISTORY_S // turns
    # The last tenth of a slot stays free for the blocks of the turn, one a second.
    return [(n * slot_s + rng.randrange(slot_s * 9 // 10), launches.get(n)) for n in range(turns)]


def replay(
    deployer: ContractDeployer,
    contracts: dict[str, str],
    accounts: list[str],
    sources: Path,
    say: Callable[[str], None],
) -> ActorMarket:
    """Plays the history; the chain's clock ends nine days later. ``accounts``: the node's own; ``sources``:
    the folder of our contracts.

    Raises DeployError: a step failed.
    """
    chain, rng, market = deployer.chain, Random(SEED), ActorMarket()  # noqa: S311
    trader = DevnetTrader(chain, contracts, accounts)
    _put_pools(deployer, contracts, sources, market)
    _fund(trader)
    start_s = int(chain.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16) + 1
    for number, (at_s, role) in enumerate(schedule(rng)):
        if number % 100 == 0:
            say(f"playing nine days of trading, {number}/{TURNS}")
        chain.call("evm_setNextBlockTimestamp", start_s + at_s)
        for step in choose(market, rng, role):
            record(market, step, trader.perform(market, step))
    chain.call("evm_setNextBlockTimestamp", start_s + HISTORY_S)
    chain.call("evm_mine")
    return market


def _put_pools(
    deployer: ContractDeployer, contracts: dict[str, str], sources: Path, market: ActorMarket
) -> None:
    code = {source: compile_contract(sources / source) for source in {story.source for story in TRADED}}
    for story in TRADED:
        token = put_token(deployer, contracts, story, code[story.source])
        (pool,) = story.pools
        market.tokens.append(
            TradedToken("pool_v4" if pool.version == 4 else "pool_v3", pool.quote, token=token)
        )
    deployer.check_receipts()


def _fund(trader: DevnetTrader) -> None:
    for name in (*TRADERS, *LAUNCHERS, SERIAL, DUMPER, FUNDER, *SNIPERS):
        trader.fund(name)
    for name in TRADERS:
        trader.give_usdg(name, _USDG_RAW)
