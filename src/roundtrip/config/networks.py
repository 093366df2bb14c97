"""The known networks: the contracts trusted on each, and default nodes.

Addresses are configuration, reviewed here; taxes, fees, thresholds and durations are read from the chain.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.market.look_alikes import ListedToken
from roundtrip.venues.base import Contracts

CHAIN_ID = 4663
"""The chain id of Robinhood Chain, and of the local chain."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network. ``rpc_url``: the default node; ``more_rpc_urls``: fallbacks; ``calls_per_second``: limit of
    each of them, 0: none. ``look_back_blocks``: how far back logs of pools and launches are read at the
    start; None: from the genesis block."""

    chain_id: int
    contracts: Contracts
    rpc_url: str
    look_back_blocks: int | None
    more_rpc_urls: tuple[str, ...] = ()
    calls_per_second: int = 0
    sync_every_ms: int = 0
    """The least time between two reads of new blocks by the sync: 0 asks the most of a node."""
    eth_usd_pool: Address | None = None
    """The v3 pool of weth and usdg from which the index takes the eth price; None: the first with
    liquidity."""
    stock_tokens: tuple[ListedToken, ...] = ()
    """Stock tokens, which others pass for. All are proxies of one beacon: one with the same code and beacon
    is of the same issuer."""
    explorer_url: str | None = None
    """A block explorer, without a slash at its end, with the pages ``/token/``, ``/address/`` and ``/tx/``;
    None: there is none."""

    def listed_tokens(self) -> tuple[ListedToken, ...]:
        """The tokens that others pass for: weth, usdg and the stock tokens."""
        contracts = self.contracts
        money = ListedToken("WETH", contracts.weth), ListedToken("USDG", contracts.usdg)
        return *money, *self.stock_tokens


def _address(text: str) -> Address:
    return Address(text.lower())


ROBINHOOD = Network(
    chain_id=CHAIN_ID,
    contracts=Contracts(
        weth=_address("0x0Bd7D308f8E1639FAb988df18A8011f41EAcAD73"),
        usdg=_address("0x5fc5360D0400a0Fd4f2af552ADD042D716F1d168"),
        multicall3=_address("0xcA11bde05977b3631167028862bE2a173976CA11"),
        permit2=_address("0x000000000022D473030F116dDEE9F6B43aC78BA3"),
        v3_factory=_address("0x1f7d7550B1b028f7571E69A784071F0205FD2EfA"),
        v3_position_manager=_address("0x73991a25C818Bf1f1128dEAaB1492D45638DE0D3"),
        swap_router02=_address("0xCaf681a66D020601342297493863E78C959E5cb2"),
        quoter_v2=_address("0x33e885eD0Ec9bF04EcfB19341582aADCb4c8A9E7"),
        v4_pool_manager=_address("0x8366a39CC670B4001A1121B8F6A443A643e40951"),
        v4_position_manager=_address("0x58daec3116aae6D93017bAAea7749052E8a04fA7"),
        v4_state_view=_address("0xF3334192D15450CdD385c8B70e03f9A6bD9E673b"),
        v4_quoter=_address("0x8Dc178eFB8111BB0973Dd9d722ebeFF267c98F94"),
        # Of several published routers, the one that nearly all trades use: version 2.1.1.
        universal_router=_address("0x8876789976dEcBfCbBbe364623C63652db8C0904"),
        eth_usd_feed=_address("0x78F3556b67E17Df817D51Ef5a990cDaF09E8d3A9"),
        launchpad_factory=_address("0x7eD598BcEf8bd9Edd8C97A195C6d13f40801EC7e"),
        launchpad_hook=_address("0xE5e702641Ea86F4ae6cC3cDaeD2B886f976Be044"),
        launchpad_router=_address("0xe33E9E479dF8802cb0866d5d05258bEc4cF62948"),
        launchpad_v1_factories=(
            _address("0x0c37a24F5D23A486FA692d1500881d698B1F77a4"),
            _address("0xA5aAb3F0c6EeadF30Ef1D3Eb997108E976351feB"),
            _address("0xF4fC0CD27fC8EcF17E55eE4c3f7201897dF3eb75"),
        ),
        beside=(
            # The exchange: v2's factory and router, two readers, other releases of the universal router.
            _address("0x8bcEaA40B9AcdfAedF85AdF4FF01F5Ad6517937f"),
            _address("0x89e5DB8B5aA49aA85AC63f691524311AEB649eba"),
            _address("0x7dfd4f31be6814d2906bde155c3e1b146eac1468"),
            _address("0x282a3c4d320cc7f0d5eaf56b8029e4b88338f0a3"),
            _address("0x06AfBA43Fd06227fA663b0DAecF536f6EaA6bf99"),
            _address("0x204FAca1764B154221e35c0d20aBb3c525710498"),
            _address("0x53bf6b0684ec7ef91e1387da3d1a1769bc5a6f77"),
            _address("0x248a454ac3584c2a48d1fcb28d3910a6b6ea00af"),
            # The launchpad: fee escrow, buyback vault, locker, deployer, graduation's executor and guard.
            _address("0xd3AFEB2a57f70eF218Aa82451c51B2fb0416Ac9e"),
            _address("0x42df2a798f82289E177311362e8f5ccC45c1219c"),
            _address("0x267444D099b10fB5Ed7c3Cc7B7c767AdcA574952"),
            _address("0x3711ceA4feaDE896C913C68F01Eda97Cb06D1A42"),
            _address("0xC7819B64A1dAECD7eC19856d026cb14EfBd89046"),
            _address("0xf5695117b99B6f6401e67d4195BD653628176C6C"),
            # Its first generation's lockers.
            _address("0x31ca5E101941A93A7DD6d0497928700625CF54B5"),
            _address("0x736D76699C26D0d966744cAe304C000d471f7F35"),
            _address("0x10f2756E373bAb14999Fdc9177587D51d30a1cF5"),
        ),
    ),
    rpc_url="https://rpc.mainnet.chain.robinhood.com",
    # Nearly an hour and a half at ten blocks a second, read in five ranges of 10,000 blocks.
    look_back_blocks=50_000,
    explorer_url="https://robinhoodchain.blockscout.com",
    sync_every_ms=2_000,
    more_rpc_urls=("https://robinhood-rpc.publicnode.com", "https://robinhood.drpc.org"),
    # The pool with a fee of 0.01 %, which other sources use, too.
    eth_usd_pool=_address("0x52e65b17fb6e5ba00ed806f37afcd2daa50271ca"),
    # Modest, as these nodes are public. A check of one pool takes 8 calls, following the chain 11 a second.
    calls_per_second=50,
    stock_tokens=(
        ListedToken("NVDA", _address("0xd0601CE157Db5bdC3162BbaC2a2C8aF5320D9EEC")),
        ListedToken("SPY", _address("0x117cc2133c37B721F49dE2A7a74833232B3B4C0C")),
        ListedToken("AAPL", _address("0xaF3D76f1834A1d425780943C99Ea8A608f8a93f9")),
        ListedToken("TSLA", _address("0x322f0929c4625ed5bad873c95208d54e1c003b2d")),
    ),
)
"""Robinhood Chain, mainnet. Contracts as published by Uniswap and by the launchpad."""


def contracts_from(addresses: Mapping[str, str]) -> Contracts:
    """The network's contracts from their names in ``devnet.json``. Several addresses under one name are
    separated by spaces. Raises KeyError: one is missing."""
    by_field = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): value for name, value in addresses.items()}
    contracts: dict[str, Any] = {}
    for field in fields(Contracts):
        if field.default is not MISSING and not by_field.get(field.name):
            continue
        if field.default == ():
            contracts[field.name] = tuple(parse_address(text) for text in by_field[field.name].split())
        else:
            contracts[field.name] = parse_address(by_field[field.name])
    return Contracts(**contracts)


def network_from(path: Path) -> Network:
    """The network that a file such as ``devnet.json`` describes. Raises OSError, ValueError."""
    try:
        description = json.loads(path.read_text())
        contracts, url = contracts_from(description["contracts"]), str(description["rpcUrl"])
        return Network(CHAIN_ID, contracts, url, None)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} does not describe a network: {error}") from None
