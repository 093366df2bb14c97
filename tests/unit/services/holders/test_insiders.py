"""Which share of a token its insiders are said to hold, and when that is not known."""

import msgspec
import pytest

from roundtrip.domain.holders.read_state import ReadStatus
from roundtrip.domain.market.exposure import INSIDERS_MINDED_BPS
from roundtrip.services.holders.insiders import share_bps
from roundtrip.services.holders.present import present
from roundtrip.services.holders.schema import TokenHolders
from unit.services.holding import gathered


def held(bps: int | None, status: ReadStatus = "complete", has_deployer: bool = True) -> TokenHolders:
    """An answer whose insiders hold ``bps``."""
    whole = present(gathered())
    forensics = msgspec.structs.replace(whole.forensics, suspicious_bps=bps)
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
