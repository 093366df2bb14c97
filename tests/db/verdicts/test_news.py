"""New rows of the event stream, on a real database."""

from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.types import Address
from roundtrip.store.check import evidence
from roundtrip.store.check.evidence import KeptEvidence
from roundtrip.store.server.rows import Connection
from roundtrip.store.verdicts import news

NOW = datetime(2026, 11, 1, tzinfo=UTC)
FIRST, SECOND = Address("0x" + "a1" * 20), Address("0x" + "b2" * 20)


async def keep(connection: Connection, token: Address, code: str, level: str = "ok") -> int:
    kept = KeptEvidence(NOW + timedelta(seconds=1), 100, "p", code, level, b"{}", loss_bps=60)
    return await evidence.keep(connection, token, kept)


async def test_checks_come_by_id_with_the_verdict_before(connection: Connection) -> None:
    start = (await news.newest_ids(connection)).evidence
    ids = [
        await keep(connection, FIRST, "ok"),
        await keep(connection, SECOND, "ok"),
        await keep(connection, FIRST, "ok"),
        await keep(connection, FIRST, "ok", "warn"),
    ]
    found = await news.checks_after(connection, start, [], 10)
    assert [check.id for check in found] == ids
    assert [check.is_change() for check in found] == [True, True, False, True]
    assert (found[3].level_before, found[3].loss_before_bps, found[0].code_before) == ("ok", 60, None)
    assert (await news.newest_ids(connection)).evidence == ids[-1]


async def test_a_page_is_bounded_and_late_ids_are_read_again(connection: Connection) -> None:
    start = (await news.newest_ids(connection)).evidence
    ids = [await keep(connection, FIRST, "ok") for _ in range(4)]
    assert [check.id for check in await news.checks_after(connection, start, [], 2)] == ids[:2]
    found = await news.checks_after(connection, ids[2], [ids[0], ids[0] + 10**6], 2)
    assert [check.id for check in found] == [ids[0], ids[3]]


async def test_what_was_missed_is_changes_of_the_tokens_alone(connection: Connection) -> None:
    start = (await news.newest_ids(connection)).evidence
    first = await keep(connection, FIRST, "ok")
    await keep(connection, FIRST, "ok")
    second = await keep(connection, SECOND, "ok")
    last = await keep(connection, FIRST, "cannot_sell", "danger")
    every = await news.changes_between(connection, start, last, None, NOW, 10)
    assert [check.id for check in every] == [first, second, last]
    of_first = await news.changes_between(connection, first, last, [FIRST], NOW, 10)
    assert [check.id for check in of_first] == [last]
    assert await news.changes_between(connection, first, last - 1, [FIRST], NOW, 10) == []
    later = NOW + timedelta(minutes=1)
    assert await news.changes_between(connection, start, last, None, later, 10) == []
    assert len(await news.changes_between(connection, start, last, None, NOW, 2)) == 2


async def test_reorgs_come_by_id(connection: Connection) -> None:
    start = (await news.newest_ids(connection)).rewound
    await connection.execute("INSERT INTO facts.rewound (to_number, to_s) VALUES (7, 70), (5, 50)")
    found = await news.reorgs_after(connection, start)
    assert [(reorg.to_number, reorg.to_s) for reorg in found] == [(7, 70), (5, 50)]
    assert await news.reorgs_after(connection, found[-1].id) == []


async def test_past_verdicts_come_the_newest_first(connection: Connection) -> None:
    for code in ("ok", "high_fees"):
        await keep(connection, FIRST, code)
    found = await evidence.past_verdicts(connection, FIRST, 10)
    assert [(verdict.code, verdict.loss_bps) for verdict in found] == [("high_fees", 60), ("ok", 60)]
    assert len(await evidence.past_verdicts(connection, FIRST, 1)) == 1
    assert {verdict.ends_at for verdict in found} == {None}
    ends_at = NOW + timedelta(seconds=90)
    taxed = KeptEvidence(NOW, 100, "p", "heavy_fees", "danger", b"{}", ends_at=ends_at)
    await evidence.keep(connection, FIRST, taxed)
    (newest,) = await evidence.past_verdicts(connection, FIRST, 1)
    assert newest.ends_at == ends_at
