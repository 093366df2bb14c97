"""Deploys all contents of the built chain, in order."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from . import history
from .actors import ActorMarket
from .compile import compile_contract
from .deploy import COINBASE, ContractDeployer, create_eth_pool, deploy_exchange, put_token
from .hook_tokens import HOOKED, deploy_hooks
from .launch_samples import LAUNCHER, deploy_share, launch_stories
from .launchpad import deploy_launchpad, without_collector
from .launchpad_v1 import deploy_first, launch_first_stories
from .stories import STORIES
from .sync_rpc import SyncRpc

FOLDERS = ("tokens", "hostile", "launchpad", "launchpad_v1", "zoo/hooks")
SOURCES = frozenset(story.source for story in (*STORIES, *HOOKED))
"""Our contracts on the chain: ``FOLDERS`` as a whole, and these single files of other folders."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """The contents of the chain: contracts by name, tokens by story, the node's own accounts, hooks by file
    name and quote, and the actors' market."""

    contracts: dict[str, str]
    tokens: dict[str, str]
    accounts: list[str]
    hooks: dict[str, str]
    market: ActorMarket


def deploy(chain: SyncRpc, bytecode: dict[str, str], sources: Path, say: Callable[[str], None]) -> Deployed:
    """All contents of the local chain. ``bytecode`` by name, ``sources``: the folder of our contracts."""
    base = set_up(chain, bytecode, sources, say)
    deployer = ContractDeployer(chain, base.accounts[0])
    tokens = _put_stories(deployer, base, sources, say)
    say("launching sample tokens")
    tokens |= launch_stories(deployer, base.contracts, base.accounts)
    # Last, and by another account, so that no other address changes.
    launcher = ContractDeployer(chain, base.accounts[LAUNCHER])
    contracts = base.contracts | deploy_first(launcher, base.contracts, sources)
    contracts["beside"] = " ".join(contracts[f"launchpad{part}"] for part in ("Locker", "Escrow", "V1Locker"))
    return replace(
        base, contracts=contracts, tokens=tokens | launch_first_stories(launcher, contracts, base.accounts)
    )


def set_up(chain: SyncRpc, bytecode: dict[str, str], sources: Path, say: Callable[[str], None]) -> Deployed:
    """Exchange, launchpad and history, without sample tokens, which come at the history's end."""
    accounts = chain.call("eth_accounts")
    deployer = ContractDeployer(chain, accounts[0])
    chain.call("anvil_setCoinbase", COINBASE)
    chain.call("anvil_setBlockTimestampInterval", 1)
    say("deploying the exchange contracts")
    contracts = deploy_exchange(deployer, bytecode, sources)
    create_eth_pool(deployer, contracts)
    deployer.check_receipts()
    say("deploying the launchpad")
    contracts |= deploy_launchpad(deployer, contracts, sources)
    contracts["share"] = deploy_share(deployer, contracts, sources)
    hooks = deploy_hooks(deployer, contracts, sources)
    deployer.check_receipts()
    market = history.replay(deployer, contracts, accounts, sources, say)
    return Deployed(contracts, {}, accounts, hooks, market)


def _put_stories(
    deployer: ContractDeployer, base: Deployed, sources: Path, say: Callable[[str], None]
) -> dict[str, str]:
    compiled: dict[str, str] = {}
    stories, tokens = (*STORIES, *HOOKED), {}
    for number, story in enumerate(stories, 1):
        say(f"deploying sample tokens {number}/{len(stories)}: {story.key}")
        if story.source not in compiled:
            with without_collector():
                compiled[story.source] = compile_contract(sources / story.source)
        code = compiled[story.source]
        tokens[story.key] = put_token(deployer, base.contracts, story, code, base.hooks)
        deployer.check_receipts()
    return tokens
