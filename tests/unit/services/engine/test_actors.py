"""Who is called as: the owner, a proxy's admin, or nobody."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.check.evidence import Missing
from roundtrip.services.engine.deep_round import OwnerActors, actors_of
from unit.domain.builders import ITS_OWN, NODE, POOL, TOKEN, TOKEN_FACTS, evidence, venue
from unit.venues.network import CONTRACTS, address

OWNER, ADMIN = address(0x0A), address(0xAD)
Told = Address | Missing | None


def found(owner: Told, admin: Told) -> tuple[tuple[str, str], tuple[str, str]] | Missing | None:
    """Who calls, and who upgrades."""
    known = evidence(venue(), facts=replace(TOKEN_FACTS, owner=owner, proxy_admin=admin))
    result = actors_of(known, 0, CONTRACTS)
    if not isinstance(result, OwnerActors):
        return result
    owners, upgrader = result.owner, result.upgrader
    return (owners.by, owners.address), (upgrader.by, upgrader.address)


def test_the_owner_calls_and_the_admin_upgrades() -> None:
    owner, admin = ("owner", OWNER), ("proxy admin", ADMIN)
    assert found(OWNER, ADMIN) == (owner, admin)
    assert found(OWNER, None) == (owner, owner)
    assert found(None, ADMIN) == (admin, admin)


@pytest.mark.parametrize(
    "nobody", [None, *sorted(BURN_ADDRESSES), TOKEN, POOL, *sorted(CONTRACTS.all_addresses())]
)
def test_what_nobody_can_act_as_is_no_owner(nobody: Told) -> None:
    assert found(nobody, None) is None
    assert found(nobody, nobody) is None
    assert found(nobody, ADMIN) == (("proxy admin", ADMIN),) * 2


@pytest.mark.parametrize("gap", [NODE, ITS_OWN])
def test_an_owner_who_could_not_be_read_is_not_taken_for_none(gap: Missing) -> None:
    assert found(gap, None) == gap
    assert found(None, gap) == gap
    assert found(OWNER, gap) == gap
