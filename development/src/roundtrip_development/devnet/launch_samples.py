"""The launchpad's sample tokens: each is in one phase of a launch, reached by real transactions."""

from dataclasses import dataclass
from pathlib import Path

from .compile import compile_contract
from .deploy import MAX, ZERO, ContractDeployer, calldata, v3_pool
from .launchpad import (
    NATIVE_TERMS,
    USDG_TERMS,
    CurveToken,
    LaunchRequest,
    approve_quote,
    curve_buy,
    graduate,
    launch,
)

SHARE_TERMS = (1_664 * 10**16, 4_160 * 10**16)
"""Phantom quote and graduation threshold of the share, raw (18 decimals)."""
SHARE_PRICE_USDG = 180
_SHARES_IN_POOL = 20_000
_CURVE_FEE_BPS = 100
TERMS = {"eth": NATIVE_TERMS, "usdg": USDG_TERMS, "share": SHARE_TERMS}
LAUNCHER, BUYERS = 5, (6, 7, 8)
"""Which of the node's accounts launch the samples and buy them."""


@dataclass(frozen=True, slots=True)
class LaunchStory:
    """One launch: its quote, its creator's tax, and its progress.

    ``buys_bps``: buys on the curve, net of fees, in hundredths of a percent of the graduation threshold.
    ``left_raw``: what one more buy leaves of the threshold, raw and net; 0 sells out. ``phase``: curve,
    swept, pooled or rescued, the launchpad's numbers 0, 1, 2 and 3.
    """

    key: str
    line: str
    name: str
    symbol: str
    quote: str = "eth"
    creator_tax_bps: int = 0
    buys_bps: tuple[int, ...] = (1500, 900, 600)
    left_raw: int | None = None
    phase: str = "curve"


LAUNCHES: tuple[LaunchStory, ...] = (
    LaunchStory("curve", "On its curve, bought by three.", "Arc", "ARC"),
    LaunchStory(
        "curve_taxed", "On its curve; the creator takes 8 % of every trade.", "Tariff", "TRF",
        creator_tax_bps=800,
    ),
    LaunchStory("curve_usdg", "On its curve, against usdg.", "Buck", "BUCK", "usdg"),
    LaunchStory("curve_other", "On its curve, against a share.", "Stake", "STK", "share"),
    LaunchStory(
        "curve_nearly_full", "On its curve; a buy of 0.06 eth would sell it out.", "Brim", "BRIM",
        left_raw=5 * 10**16,
    ),
    LaunchStory(
        "curve_all_but_full", "On its curve; less than 0.0005 eth of buying is left.", "Drop", "DROP",
        left_raw=3 * 10**14,
    ),
    LaunchStory("curve_full", "Sold out; its graduation was not sent yet.", "Ripe", "RIPE", left_raw=0),
    LaunchStory(
        "swept", "Graduating: its curve is empty and its pool does not exist yet.", "Limbo", "LMBO",
        left_raw=0, phase="swept",
    ),
    LaunchStory(
        "rescued", "The launchpad's owner took its assets off the curve.", "Tow", "TOW", phase="rescued",
    ),
    LaunchStory(
        "graduated", "Graduated; trades against eth in a v4 pool with a fee of 1 %.", "Scholar", "SCH",
        left_raw=0, phase="pooled",
    ),
    LaunchStory(
        "graduated_usdg", "Graduated; trades against usdg.", "Banker", "BNKR", "usdg",
        left_raw=0, phase="pooled",
    ),
    LaunchStory(
        "graduated_taxed", "Graduated; the creator still takes 5 % of every trade.", "Dues", "DUES",
        creator_tax_bps=500, left_raw=0, phase="pooled",
    ),
    LaunchStory(
        "graduated_other", "Graduated; trades against a share.", "Partner", "PRTN", "share",
        left_raw=0, phase="pooled",
    ),
)  # fmt: skip


def deploy_share(deployer: ContractDeployer, contracts: dict[str, str], sources: Path) -> str:
    """A quote other than eth and usdg: a plain token with a deep usdg pool, approved by the launchpad."""
    code = compile_contract(sources / "tokens/plain.vy")
    types, supply_raw = ["string", "string", "uint256"], 10**7 * 10**18
    share = deployer.create(code, types, ["Share", "SHR", supply_raw]).lower()
    approve = calldata("approve(address,uint256)", contracts["v3PositionManager"], MAX)
    deployer.send(share, approve)
    usdg_raw = _SHARES_IN_POOL * SHARE_PRICE_USDG * 10**6
    amounts = {share: _SHARES_IN_POOL * 10**18, contracts["usdg"]: usdg_raw}
    v3_pool(deployer, contracts, amounts, 500, fill=True)
    approve_quote(deployer, contracts["launchpadFactory"], share, *SHARE_TERMS)
    return share


def launch_stories(
    deployer: ContractDeployer, contracts: dict[str, str], accounts: list[str]
) -> dict[str, str]:
    """Launches every story's token and takes it to its phase; addresses by key.

    ``contracts`` with the launchpad's and the share; ``accounts``: the node's own. Raises DeployError.
    """
    launcher = ContractDeployer(deployer.chain, accounts[LAUNCHER])
    buyers = [ContractDeployer(deployer.chain, accounts[number]) for number in BUYERS]
    _fund(deployer, contracts, buyers)
    # All launches come before any buy, so that the tax on the first three seconds is over for each.
    launched = [_launch(launcher, contracts, story) for story in LAUNCHES]
    for story, curve in zip(LAUNCHES, launched, strict=True):
        for buyer, amount_raw in zip(buyers * 2, _buys(story), strict=False):
            curve_buy(buyer, curve, amount_raw)
        for buyer in buyers:
            buyer.check_receipts()
        _finish(deployer, contracts, story, curve)
    return {story.key: curve.token for story, curve in zip(LAUNCHES, launched, strict=True)}


def _fund(deployer: ContractDeployer, contracts: dict[str, str], buyers: list[ContractDeployer]) -> None:
    """Gives every buyer enough of the quotes other than eth to sell out two launches alone."""
    for buyer in buyers:
        for quote in ("usdg", "share"):
            amount_raw = 4 * TERMS[quote][1]
            transfer = calldata("transfer(address,uint256)", buyer.account, amount_raw)
            deployer.send(contracts[quote], transfer)
    deployer.check_receipts()


def _launch(launcher: ContractDeployer, contracts: dict[str, str], story: LaunchStory) -> CurveToken:
    quote = contracts.get(story.quote, ZERO)
    request = LaunchRequest(story.name, story.symbol, quote, creator_tax_bps=story.creator_tax_bps)
    return launch(launcher, contracts, request)


def _buys(story: LaunchStory) -> list[int]:
    """The amount of each buy, raw. The buy that sells out sends twice what is left and gets the rest back."""
    threshold = TERMS[story.quote][1]
    kept_bps = 10_000 - _CURVE_FEE_BPS - story.creator_tax_bps
    nets = [threshold * bps // 10_000 for bps in story.buys_bps]
    if story.left_raw is not None:
        left = threshold - sum(nets)
        nets.append(left - story.left_raw if story.left_raw else 2 * left)
    return [net * 10_000 // kept_bps for net in nets]


def _finish(
    deployer: ContractDeployer, contracts: dict[str, str], story: LaunchStory, launched: CurveToken
) -> None:
    factory = contracts["launchpadFactory"]
    if story.phase == "pooled":
        graduate(deployer, contracts, launched.token)
    elif story.phase in ("swept", "rescued"):
        function = "graduate(address)" if story.phase == "swept" else "forceSweep(address)"
        deployer.receipt(deployer.send(factory, calldata(function, launched.token)))
    deployer.check_receipts()
