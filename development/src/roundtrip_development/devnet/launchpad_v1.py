"""The first generation of the launchpad on the local chain: its contracts, and sample tokens.

A launch trades in a v3 pool from its first block. ``contracts`` has the exchange's and this launchpad's
addresses.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundtrip.venues.abi import keccak

from .compile import compile_contract
from .deploy import ContractDeployer, DeployError, calldata
from .launch_samples import BUYERS, LAUNCHER
from .launchpad import blueprint, without_collector

LAUNCH = "launchToken(string,string)"
TOKEN_LAUNCHED = keccak(
    b"TokenLaunched(address,address,address,address,address,uint256,uint256,uint256,uint256,uint256)"
).hex()
POOL_FEE_PIPS = 10_000
LIMITED_BLOCKS = 2
"""Blocks after the launch block in which a wallet may hold at most a twentieth of the supply."""

_SWAP = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"


@dataclass(frozen=True, slots=True)
class FirstStory:
    """One launch and its buys: ``buys_milli`` are thousandths of an eth."""

    key: str
    line: str
    name: str
    symbol: str
    buys_milli: tuple[int, ...]


FIRST: tuple[FirstStory, ...] = (
    FirstStory(
        "first_fresh", "Of the launchpad's first generation, in its pool from the first block.",
        "Dawn", "DAWN", (250, 150),
    ),
    FirstStory(
        "first_graduated", "Of the first generation, graduated where it was: over 4.2 eth lie in its pool.",
        "Noon", "NOON", (1500, 1500, 1500),
    ),
)  # fmt: skip


def deploy_first(deployer: ContractDeployer, contracts: dict[str, str], sources: Path) -> dict[str, str]:
    """The launchpad's addresses by name. ``sources``: the folder of our contracts. Raises DeployError."""
    with without_collector():
        code = {path.stem: compile_contract(path) for path in sorted((sources / "launchpad_v1").glob("*.vy"))}
    token = deployer.create(blueprint(code["token"]))
    names = ("v3Factory", "v3PositionManager", "swapRouter02", "weth")
    factory = deployer.create(code["factory"], ["address"] * 5, [token, *(contracts[name] for name in names)])
    locker = deployer.create(code["locker"], ["address"] * 2, [factory, contracts["v3PositionManager"]])
    deployer.send(factory, calldata("wire(address)", locker))
    deployer.check_receipts()
    return {"launchpadV1Factories": factory.lower(), "launchpadV1Locker": locker.lower()}


def launch_first(
    deployer: ContractDeployer, factory: str, name: str, symbol: str, first_buy_wei: int = 0
) -> str:
    """Launches a token, with its creator's first buy, and returns its address. Raises DeployError."""
    return launched_token(
        deployer.receipt(deployer.send(factory, calldata(LAUNCH, name, symbol), first_buy_wei))
    )


def launched_token(receipt: dict[str, Any]) -> str:
    """The token in a launch's receipt. Raises DeployError: there is none."""
    for log in receipt["logs"]:
        if log["topics"][0] == "0x" + TOKEN_LAUNCHED:
            return "0x" + str(log["topics"][1])[26:]
    raise DeployError("the launch says nothing of a token")


def pool_buy(deployer: ContractDeployer, contracts: dict[str, str], token: str, amount_wei: int) -> str:
    """Buys in a launch's pool through the exchange's router; returns the transaction's hash."""
    swap = (contracts["weth"], token, POOL_FEE_PIPS, deployer.account, amount_wei, 0, 0)
    return deployer.send(contracts["swapRouter02"], calldata(_SWAP, swap), amount_wei)


def launch_first_stories(
    deployer: ContractDeployer, contracts: dict[str, str], accounts: list[str]
) -> dict[str, str]:
    """Launches every story's token and buys it once its limits are over; addresses by key.

    ``accounts``: the node's own. Raises DeployError.
    """
    launcher = ContractDeployer(deployer.chain, accounts[LAUNCHER])
    buyers = [ContractDeployer(deployer.chain, accounts[number]) for number in BUYERS]
    factory = contracts["launchpadV1Factories"]
    tokens = {story.key: launch_first(launcher, factory, story.name, story.symbol) for story in FIRST}
    for _ in range(LIMITED_BLOCKS):
        deployer.chain.call("evm_mine")
    for story in FIRST:
        for buyer, milli in zip(buyers, story.buys_milli, strict=False):
            pool_buy(buyer, contracts, tokens[story.key], milli * 10**15)
    for buyer in buyers:
        buyer.check_receipts()
    return tokens
