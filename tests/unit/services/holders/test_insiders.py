"""Which share of a token its insiders are said to hold, and when that is not known."""

import msgspec
import pytest

from roundtrip.domain.holders.read_state import ReadStatus
from roundtrip.domain.market.exposure import INSIDERS_MINDED_BPS
from roundtrip.services.holders.insiders import share_bps
from roundtrip.services.holders.present import present
from roundtrip.services.holders.schema import PurseAnswer, Purses, TokenHolders
from unit.services.holding import gathered


def held(
    bps: int | None, status: ReadStatus = "complete", has_deployer: bool = True, *purses: PurseAnswer
) -> TokenHolders:
    """An answer whose deployer, snipers and bundles hold ``bps``."""
    whole = present(gathered())
    tied = Purses(4, 2, 0, list(purses)) if purses else None
    forensics = msgspec.structs.replace(whole.forensics, suspicious_bps=bps, purses=tied)
    deployer = whole.deployer if has_deployer else None
    return msgspec.structs.replace(whole, status=status, deployer=deployer, forensics=forensics)


@pytest.mark.parametrize(
    ("bps", "has_deployer", "share"),
    [(390, True, 390), (0, True, 0), (390, False, 390), (0, False, None), (None, True, None)],
)
def test_none_at_all_is_only_known_of_a_known_deployer(
    bps: int | None, has_deployer: bool, share: int | None
) -> None:
    assert share_bps(held(bps, has_deployer=has_deployer)) == share


@pytest.mark.parametrize("status", ["reading", "partial"])
def test_a_small_share_is_only_known_if_everything_was_read(status: ReadStatus) -> None:
    assert share_bps(held(INSIDERS_MINDED_BPS, status)) == INSIDERS_MINDED_BPS
    assert share_bps(held(INSIDERS_MINDED_BPS - 1, status)) is None
    assert share_bps(held(INSIDERS_MINDED_BPS - 1)) == INSIDERS_MINDED_BPS - 1


def test_the_deployers_purse_counts_where_it_holds_more() -> None:
    others, own = PurseAnswer(2, 2, 9_000, None, False), PurseAnswer(2, 2, 700, None, True)
    assert share_bps(held(390, "complete", True, others)) == 390
    assert share_bps(held(390, "complete", True, others, own)) == 700
    assert share_bps(held(701, "complete", True, own)) == 701
    assert share_bps(held(390, "partial", True, own)) == 700
    assert share_bps(held(None, "complete", True, own)) is None
