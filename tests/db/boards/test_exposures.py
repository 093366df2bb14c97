"""What was read of tokens: each half by itself, the newest one, for a day."""

from datetime import UTC, datetime, timedelta

from roundtrip.domain.market.exposure import NEVER_READ, LeavingLiquidity, TokenExposure
from roundtrip.domain.market.moving import CheckedLevel, TokenChecks
from roundtrip.store.boards.moving import (
    KEPT_FOR,
    forget,
    put_insiders,
    put_leaving,
    read_exposures,
    read_shown_checks,
)
from roundtrip.store.check.evidence import KeptEvidence, keep, latest
from roundtrip.store.server.rows import Connection
from unit.venues.network import address

TOKEN, OTHER = address(0x5EE1), address(0x5EE2)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOW_S = NOW.timestamp()
MINUTE = timedelta(minutes=1)
LEAVING = LeavingLiquidity(9_000, 1_000)


async def test_the_newest_reading_of_each_half_stays(connection: Connection) -> None:
    await put_insiders(connection, TOKEN, 0, NOW)
    assert await read_exposures(connection, [TOKEN, OTHER]) == {
        TOKEN: TokenExposure(0, NOW_S, None, None),
        OTHER: NEVER_READ,
    }
    await put_leaving(connection, TOKEN, LEAVING, NOW)
    await put_insiders(connection, TOKEN, 5, NOW - MINUTE)
    await put_leaving(connection, TOKEN, None, NOW - MINUTE)
    assert (await read_exposures(connection, [TOKEN]))[TOKEN] == TokenExposure(0, NOW_S, LEAVING, NOW_S)
    # What could not be found out any more is not known, whatever was known before.
    await put_insiders(connection, TOKEN, None, NOW)
    await put_leaving(connection, TOKEN, None, NOW)
    assert (await read_exposures(connection, [TOKEN]))[TOKEN] == TokenExposure(None, NOW_S, None, NOW_S)


async def test_old_readings_are_forgotten(connection: Connection) -> None:
    await put_insiders(connection, TOKEN, 1, NOW - KEPT_FOR - MINUTE)
    await put_leaving(connection, OTHER, LEAVING, NOW - KEPT_FOR - MINUTE)
    await put_insiders(connection, OTHER, 1, NOW)
    await forget(connection, NOW - KEPT_FOR)
    found = await read_exposures(connection, [TOKEN, OTHER])
    assert (found[TOKEN], found[OTHER].leaving) == (NEVER_READ, LEAVING)


async def test_checks_that_people_are_shown_have_it_beside_them(connection: Connection) -> None:
    await keep(connection, TOKEN, KeptEvidence(NOW, 7, "p", "ok", "warn", b""))
    await put_insiders(connection, TOKEN, 2_500, NOW)
    checks = await read_shown_checks(connection, [TOKEN, OTHER])
    assert checks[TOKEN].exposure.insiders(NOW_S) == 2_500
    assert checks[TOKEN].checked == CheckedLevel("ok", "warn", NOW_S, None)
    assert checks[OTHER] == TokenChecks(None, None)


async def test_when_a_check_ends_is_kept_with_it(connection: Connection) -> None:
    for ends_at, ends_s in ((NOW + MINUTE, NOW_S + 60), (None, None)):
        kept = KeptEvidence(NOW, 7, "p", "heavy_fees", "danger", b"", deep=True, ends_at=ends_at)
        await keep(connection, TOKEN, kept)
        assert await latest(connection, TOKEN) == kept
        checks = (await read_shown_checks(connection, [TOKEN]))[TOKEN]
        assert checks.checked == CheckedLevel("heavy_fees", "danger", NOW_S, None, ends_s)
