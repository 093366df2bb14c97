"""Which stored check a card is of: the newest, or a worse one that tried real holders' sells."""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import CellOutcome, HolderSell, HolderSells, RefusedCall, Sold
from roundtrip.services.cards.newest_check import OLD_S, CheckSummary, newest_check, read_checks
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import HistoryParams, at
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.check.evidence import KeptEvidence
from roundtrip.store.server.rows import as_bytes
from unit.domain.builders import cells, evidence, sold, venue

TOKEN = Address("0x" + "c4" * 20)
NO = RefusedCall("sell", "listed", 1)
FAIR = sold(60)


@pytest.fixture(autouse=True)
async def _no_checks(ctx: Context) -> None:
    await ctx.pool.execute("DELETE FROM facts.evidence WHERE token = $1", as_bytes(TOKEN))


async def keep(
    ctx: Context,
    age_s: float,
    holders: Collection[CellOutcome] = (),
    document: bytes | None = None,
    symbol: bytes = b"",
) -> None:
    """Stores a check: its fresh wallet can sell, and these are real holders' sells; it is plain without."""
    found = evidence(venue(cells(60)))
    found = replace(found, facts=replace(found.facts, symbol_data=f"0x{symbol.ljust(32, bytes(1)).hex()}"))
    if holders:
        control = FAIR
        assert isinstance(control, Sold)
        tried = tuple(
            HolderSell(Address(f"0x{n:040x}"), 1, one, one if one is NO else None)
            for n, one in enumerate(holders, 1)
        )
        found = replace(found, holder_sells=HolderSells(0, control, 12, tried))
    stored = KeptEvidence(
        at(ctx.now_s()) - timedelta(seconds=age_s),
        found.block.number,
        POLICY.version,
        "ok",
        "ok",
        document or canonical_json.dump(found),
        deep=bool(holders),
        holders=len(holders),
    )
    async with ctx.pool.acquire() as connection:
        await evidence_store.keep(connection, TOKEN, stored)


async def shown(ctx: Context) -> CheckSummary | None:
    return (await newest_check(ctx, HistoryParams(TOKEN))).answer.check


async def level(ctx: Context) -> str | None:
    check = await shown(ctx)
    return None if check is None else check.level


async def test_a_plain_check_does_not_hide_a_trap_for_holders(ctx: Context) -> None:
    await keep(ctx, 120, [NO, NO])
    await keep(ctx, 60)
    check = await shown(ctx)
    assert check is not None
    assert (check.level, check.code) == ("danger", "cannot_sell")


async def test_a_later_check_of_holders_refutes_one_before(ctx: Context) -> None:
    await keep(ctx, 120, [NO, NO])
    await keep(ctx, 90, [FAIR, FAIR])
    await keep(ctx, 60)
    assert await level(ctx) == "ok"


async def test_a_day_later_it_is_the_newest(ctx: Context) -> None:
    await keep(ctx, OLD_S + 60, [NO, NO])
    await keep(ctx, 60)
    assert await level(ctx) == "ok"


async def test_a_better_check_of_holders_hides_nothing(ctx: Context) -> None:
    await keep(ctx, 120, [FAIR, FAIR])
    await keep(ctx, 60, document=b"{}")
    assert await level(ctx) is None
    await keep(ctx, 30, [NO, NO])
    await keep(ctx, 10, document=b"{}")
    assert await level(ctx) == "danger"


async def test_one_check_is_read_by_its_time(ctx: Context) -> None:
    await keep(ctx, 120)
    rows = await ctx.pool.fetch("SELECT checked_at FROM facts.evidence WHERE token = $1", as_bytes(TOKEN))
    await keep(ctx, 60, [NO, NO])
    found = await read_checks(ctx, TOKEN, rows[0]["checked_at"])
    assert found.made is not None
    assert found.of_holders is not None
    assert (found.made.level, found.of_holders.level) == ("ok", "danger")
    assert (await read_checks(ctx, TOKEN, at(0))).made is None


@pytest.mark.parametrize(("symbol", "is_told"), [(b"WETH", True), (b"FOX", False)])
async def test_a_card_names_the_token_that_its_token_looks_like(
    ctx: Context, symbol: bytes, is_told: bool
) -> None:
    await keep(ctx, 60, symbol=symbol)
    card = (await newest_check(ctx, HistoryParams(TOKEN))).answer
    assert (ctx.contracts.weth in card.look_alike) is is_told
    assert bool(card.look_alike) is is_told
