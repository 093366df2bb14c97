"""Where a pool's changes of liquidity are read."""

from roundtrip.chain.liquidity.position_logs import log_call
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.base.venue import Venue
from roundtrip.venues import amm_v3, amm_v4
from unit.venues.network import BELOW, CONTRACTS

HEAD = BlockRef(255, "0x" + "ab" * 32, 1_760_000_000)
POOL_ID = "0x" + "1d" * 32


def test_a_v3_pool_logs_its_own_changes() -> None:
    venue = amm_v3.pool(BELOW, CONTRACTS.weth, 3000, CONTRACTS)
    (asked,) = log_call(venue, CONTRACTS, HEAD).params
    topics = [[amm_v3.MINT, amm_v3.BURN]]
    assert asked == {"address": venue.pool, "topics": topics, "fromBlock": "0x0", "toBlock": "0xff"}


def test_the_changes_of_a_v4_pool_are_logged_by_the_manager_under_its_id() -> None:
    venue = Venue("amm_v4", "weth", CONTRACTS.weth, None, 3000, 60, None, POOL_ID)
    (asked,) = log_call(venue, CONTRACTS, HEAD).params
    topics = [amm_v4.MODIFY_LIQUIDITY, POOL_ID]
    manager = CONTRACTS.v4_pool_manager
    assert asked == {"address": manager, "topics": topics, "fromBlock": "0x0", "toBlock": "0xff"}
