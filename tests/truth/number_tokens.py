"""Tokens that count block numbers, or run other code than their own: those of contracts/numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from roundtrip.devnet.compile import compile_contract
from roundtrip.devnet.deploy import ContractDeployer, calldata, put_token
from roundtrip.devnet.stories import PoolPlan, Story
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from support.dialects import Kind
from support.fixtures import PROJECT
from support.nitro_blocks import parent_number

V3 = (PoolPlan(),)
V4_USDG = (PoolPlan("usdg", 3000, 60_000_000, version=4),)
TWO_V3 = (PoolPlan(), PoolPlan("weth", 10_000, 2000, 800))
NEVER = 10**6
"""Blocks that nobody waits for."""
_SHUT_LATER = 2000
"""Numbers: more than an hour has, and fewer than a day."""
_OPEN = 10**9
"""A number that no chain reaches."""


@cache
def code_of(source: str) -> str:
    """Of a file of contracts/numbers, or of another folder of contracts/."""
    path = source if "/" in source else f"numbers/{source}"
    return compile_contract(PROJECT / "contracts" / f"{path}.vy")


@dataclass(frozen=True)
class Maker:
    """Puts tokens and what stands behind them on the chain. ``kind``: of the node that is asked of them."""

    rpc: SyncRpc
    built: Built
    pools: tuple[PoolPlan, ...] = V3
    kind: Kind = "anvil"

    def deployer(self) -> ContractDeployer:
        return ContractDeployer(self.rpc, self.built.accounts[0])

    def number(self) -> int:
        """NUMBER, as a simulation on this kind of node gives it to contracts."""
        number = int(self.rpc.call("eth_blockNumber"), 16)
        return parent_number(number) if self.kind == "nitro" else number

    def contract(self, name: str, *values: object) -> int:
        """Its address as a number, as constructors take it."""
        types = ["address" if isinstance(v, str) else "uint256" for v in values]
        return int(self.deployer().create(code_of(name), types, list(values)), 16)

    def named(self, name: str) -> int:
        """The address of a contract of the network."""
        return int(self.built.contracts[name], 16)

    def token(self, name: str, *extra: int, code: str = "") -> str:
        story = Story(name, "", "", "Numbers", "NUM", 18, ("uint256",) * len(extra), extra, self.pools)
        deployer = self.deployer()
        token = put_token(deployer, self.built.contracts, story, code or code_of(name))
        deployer.check_receipts()
        return token

    def minimal_proxy(self, logic: int) -> str:
        """An EIP-1167 proxy that its creation fills."""
        runtime = f"363d3d373d3d3d363d73{logic:040x}5af43d82803e903d91602b57fd5bf3"
        filled = calldata(
            "initialize(string,string,uint256,address)", "Numbers", "NUM", 10**27, self.built.accounts[0]
        )[2:]
        size = len(filled) // 2
        fill = f"61{size:04x}61{{data:04x}}600039" + f"6000600061{size:04x}600073{logic:040x}5af450"
        give = "602d61{runtime:04x}600039602d6000f3"
        length = len(fill.format(data=0) + give.format(runtime=0)) // 2
        code = fill.format(data=length + 45) + give.format(runtime=length)
        return self.token("minimal", code="0x" + code + runtime + filled)

    def beacon_share(self, logic: int) -> str:
        return self.token("beacon_proxy", self.contract("beacon", hex40(logic)))

    def proxy(self, logic: int) -> str:
        return self.token("proxy", logic, code=code_of("zoo/proxy"))

    def configure(self, token: str, signature: str, *values: object) -> str:
        """The token, after a call by its operator."""
        deployer = self.deployer()
        deployer.send(token, calldata(signature, *values))
        deployer.check_receipts()
        return token


def hex40(address: int) -> str:
    return f"0x{address:040x}"


@dataclass(frozen=True)
class NumberToken:
    """``hides``: why nodes whose NUMBER does not pass as the chain's must leave it unproven; empty: they
    must not."""

    make: Callable[[Maker], str]
    pools: tuple[PoolPlan, ...] = V3
    hides: str = ""

    def put(self, rpc: SyncRpc, built: Built, kind: Kind = "anvil") -> str:
        """Deploys it and fills its pools; the token's address. Raises DeployError."""
        return self.make(Maker(rpc, built, self.pools, kind))


_NOTICES = "it could notice a copy of its code"
NUMBER_TOKENS: dict[str, NumberToken] = {
    "a share behind a beacon": NumberToken(lambda m: m.beacon_share(m.contract("share_logic"))),
    "a share in a v4 pool": NumberToken(lambda m: m.beacon_share(m.contract("share_logic")), V4_USDG),
    "a paused share in a v4 pool": NumberToken(
        lambda m: m.configure(m.beacon_share(m.contract("share_logic")), "setPaused(bool)", True), V4_USDG
    ),
    "a share that blocks its pool": NumberToken(
        lambda m: m.configure(
            m.beacon_share(m.contract("share_logic")),
            "setBlocked(address,bool)",
            m.built.contracts["v4PoolManager"],
            True,
        ),
        V4_USDG,
    ),
    "a share that blocks a wallet": NumberToken(
        lambda m: m.configure(
            m.beacon_share(m.contract("share_logic")), "setBlocked(address,bool)", hex40(0xB10C), True
        ),
        V4_USDG,
    ),
    "a wait behind a beacon": NumberToken(lambda m: m.beacon_share(m.contract("waiting_logic", 200))),
    "a trap behind a beacon": NumberToken(lambda m: m.beacon_share(m.contract("waiting_logic", NEVER))),
    "a list behind a beacon": NumberToken(lambda m: m.beacon_share(m.contract("listing_logic")), V4_USDG),
    "a wait behind a proxy": NumberToken(lambda m: m.proxy(m.contract("waiting_logic", 10))),
    "a long wait behind a proxy": NumberToken(lambda m: m.proxy(m.contract("waiting_logic", 5000))),
    "a trap behind a proxy": NumberToken(lambda m: m.proxy(m.contract("waiting_logic", NEVER))),
    "a list behind a proxy": NumberToken(lambda m: m.proxy(m.contract("listing_logic"))),
    "a minimal proxy": NumberToken(lambda m: m.minimal_proxy(m.contract("share_logic"))),
    "a wait behind a minimal proxy": NumberToken(lambda m: m.minimal_proxy(m.contract("waiting_logic", 200))),
    "a list behind a minimal proxy": NumberToken(lambda m: m.minimal_proxy(m.contract("listing_logic"))),
    "a diamond": NumberToken(lambda m: m.token("diamond", m.contract("share_logic"))),
    "a wait in a diamond": NumberToken(lambda m: m.token("diamond", m.contract("waiting_logic", 10))),
    "a list in a diamond": NumberToken(lambda m: m.token("diamond", m.contract("listing_logic"))),
    "a swap in the sale": NumberToken(
        lambda m: m.token("swaps_back", m.named("swapRouter02"), m.named("weth"), 0), TWO_V3
    ),
    "a tax that is swapped in the sale": NumberToken(
        lambda m: m.token("swaps_back", m.named("swapRouter02"), m.named("weth"), 500), TWO_V3
    ),
    "a heavy tax that is swapped in the sale": NumberToken(
        lambda m: m.token("swaps_back", m.named("swapRouter02"), m.named("weth"), 3000), TWO_V3
    ),
    "the block's producer too": NumberToken(lambda m: m.token("knows_producer")),
    "a wait": NumberToken(lambda m: m.token("cooldown", 5000, code=code_of("zoo/cooldown_blocks"))),
    "a wait of more than a day": NumberToken(
        lambda m: m.token("cooldown", 20_000, code=code_of("zoo/cooldown_blocks"))
    ),
    "a list from the next number on": NumberToken(
        lambda m: m.token("listed", code=code_of("tokens/blacklist_after_buy"))
    ),
    "another contract asked later": NumberToken(
        lambda m: m.token("asks_later", m.contract("gate", m.number() + _SHUT_LATER))
    ),
    "notices its code's hash": NumberToken(lambda m: m.token("notices_hash"), hides=_NOTICES),
    "notices its code": NumberToken(lambda m: m.token("notices_code"), hides=_NOTICES),
    "notices by another contract": NumberToken(
        lambda m: m.token("watched", m.contract("watcher")), hides=_NOTICES
    ),
    "a hidden contract asked later": NumberToken(
        lambda m: m.token("asks_hidden", m.contract("gate", m.number() + _SHUT_LATER)),
        hides="not all that its sale runs is known",
    ),
    "the network's contract asked for the number": NumberToken(
        lambda m: m.token("asks_multicall", m.named("multicall3")), hides="may read block hashes"
    ),
    "makes a contract for each buyer": NumberToken(
        lambda m: m.token("makes_gates", m.contract("gate", _OPEN)), hides="makes other contracts"
    ),
    "names twenty contracts": NumberToken(
        lambda m: m.token("names_many", m.contract("gate", _OPEN)), hides="names too many contracts"
    ),
}
"""By what stands between a buyer and a sale. ``draws_hash`` is not here: chance decides what it does."""
