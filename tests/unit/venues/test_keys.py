"""What says it is a pool is one only where the pool of the key it tells lies."""

import pytest

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.venues import abi, amm_v3, amm_v4
from unit.venues.logs import NETWORK
from unit.venues.network import address

LOW, HIGH, HOOK = address(0x10), address(0x20), address(0x30)


def words(*values: int | str) -> bytes:
    return bytes.fromhex("".join(map(abi.word, values)))


def test_a_v3_pool_lies_where_its_key_puts_it() -> None:
    at = amm_v3.pool_address(NETWORK.v3_factory, LOW, HIGH, 500)
    rows = (words(LOW), words(HIGH), words(500))
    assert amm_v3.read_key(at, rows, NETWORK) == (LOW, HIGH)
    assert amm_v3.read_key(address(0x99), rows, NETWORK) is None
    assert amm_v3.read_key(at, (rows[1], rows[0], rows[2]), NETWORK) is None
    assert amm_v3.read_key(at, (*rows[:2], words(3000)), NETWORK) is None
    for silent in range(3):
        some = tuple(None if place == silent else one for place, one in enumerate(rows))
        assert amm_v3.read_key(at, some, NETWORK) is None


@pytest.mark.parametrize(
    ("hook", "kind"), [(ZERO_ADDRESS, "amm_v4"), (HOOK, "amm_v4"), (NETWORK.launchpad_hook, "launchpad_pool")]
)
def test_a_v4_pool_has_the_id_of_its_key(hook: Address, kind: str) -> None:
    key = words(LOW, HIGH, 3000, 60, hook)
    at = "0x" + abi.keccak(key).hex()
    assert amm_v4.read_key(at, key, NETWORK) == (LOW, HIGH, kind)
    assert amm_v4.read_key(at, words(LOW, HIGH, 3000, 61, hook), NETWORK) is None
    assert amm_v4.read_key(at, None, NETWORK) is None
    assert amm_v4.key_call(at, NETWORK).data == amm_v4.POOL_KEYS + at[2:52] + "0" * 14
