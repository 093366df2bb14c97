"""Addresses of real networks, held against each other by what can be computed of them."""

from dataclasses import MISSING, fields, replace

import pytest

from roundtrip.config.networks import ROBINHOOD, contracts_from
from roundtrip.domain.base.types import parse_address
from roundtrip.venues import amm_v3, amm_v4, launchpad_pool
from roundtrip.venues.base import Contracts

SHARE = parse_address("0xd0601ce157db5bdc3162bbac2a2c8af5320d9eec")
"""A stock as a token, which launches trade against."""
LAUNCHED = parse_address("0xc9e9ab90654f82893d7fd18b62f694992e8cef29")
"""A launch against it that has graduated."""


def test_every_contract_has_an_address_of_its_own() -> None:
    found = list(ROBINHOOD.contracts.by_name().values())
    assert all(address == parse_address(address) for address in found)
    assert len(set(found)) == len(found)


def test_the_launchpads_first_generation_has_three_factories() -> None:
    assert ROBINHOOD.contracts.launchpad_v1_factories == (
        "0x0c37a24f5d23a486fa692d1500881d698b1f77a4",
        "0xa5aab3f0c6eeadf30ef1d3eb997108e976351feb",
        "0xf4fc0cd27fc8ecf17e55ee4c3f7201897df3eb75",
    )


def test_contracts_are_told_by_name_and_several_under_one() -> None:
    known = ROBINHOOD.contracts
    first, second, third = known.launchpad_v1_factories
    named = known.by_name()
    assert (named["launchpad_v1_factories 2"], named["weth"]) == (second, known.weth)
    assert {first, second, third, known.weth, known.launchpad_hook} <= known.all_addresses()
    assert len(named) == len(known.all_addresses()) == len(fields(Contracts)) + 2 + len(known.beside) - 1


def test_the_contracts_of_a_description_are_read_by_their_names() -> None:
    wanted = {field.name for field in fields(Contracts) if field.default is MISSING}
    named = {
        _camel(name): address for name, address in ROBINHOOD.contracts.by_name().items() if name in wanted
    }
    plain = contracts_from(named | {"share": SHARE, "launchpadHook": ""})
    assert plain.launchpad_v1_factories == ()
    assert plain.launchpad_hook is None
    assert contracts_from(named | {"launchpadV1Factories": SHARE.upper().replace("X", "x")}) == replace(
        plain, launchpad_v1_factories=(SHARE,)
    )
    several = contracts_from(named | {"launchpadV1Factories": f"{SHARE} {LAUNCHED}"})
    assert several.launchpad_v1_factories == (SHARE, LAUNCHED)
    with pytest.raises(KeyError):
        contracts_from({name: address for name, address in named.items() if name != "weth"})
    with pytest.raises(ValueError, match="address"):
        contracts_from(named | {"launchpadV1Factories": f"{SHARE},{LAUNCHED}"})


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


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
