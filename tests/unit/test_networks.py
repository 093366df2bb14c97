"""Addresses of real networks, held against each other by what can be computed of them."""

from roundtrip.domain.types import parse_address
from roundtrip.networks import ROBINHOOD
from roundtrip.venues import amm_v3, amm_v4, launchpad_pool

SHARE = parse_address("0xd0601ce157db5bdc3162bbac2a2c8af5320d9eec")
LAUNCHED = parse_address("0xc9e9ab90654f82893d7fd18b62f694992e8cef29")


def test_every_contract_has_an_address_of_its_own() -> None:
    found = list(ROBINHOOD.contracts.named().values())
    assert all(address == parse_address(address) for address in found)
    assert len(set(found)) == len(found)


def test_factory_weth_and_usdg_belong_together() -> None:
    """The well-known pool of weth and usdg lies where these three put it."""
    contracts = ROBINHOOD.contracts
    pool = amm_v3.pool_address(contracts.v3_factory, contracts.weth, contracts.usdg, 100)
    assert pool == "0x52e65b17fb6e5ba00ed806f37afcd2daa50271ca"


def test_the_launchpads_hook_is_the_one_of_a_graduated_launch() -> None:
    """The pool's id was told by the chain's own log of that graduation."""
    pool = launchpad_pool.pool(LAUNCHED, SHARE, 0, 200, ROBINHOOD.contracts)
    assert pool is not None
    assert pool.pool_id == "0x6eb457f0729bd458608099505990f03d8a6af91202f936124f72ad76c96f6fe1"
    assert pool.pool_id == amm_v4.pool_id(LAUNCHED, pool)
    # beforeInitialize, afterSwap, afterSwapReturnsDelta.
    assert int(ROBINHOOD.contracts.launchpad_hook or "0x0", 16) & 0x3FFF == 0x2044
