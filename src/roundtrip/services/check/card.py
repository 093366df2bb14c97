"""What a page shows of a check beside its answer, read from its stored evidence."""

import asyncio
import contextlib
from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.cost import Cost, cost_of
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.outlook import Prospect, Standing, prospects
from roundtrip.domain.check.verdict import judge, shown_index
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.server.errors import DATABASE_FAULTS

from .probe_grid import SIZES, CheckGrid, grid_of
from .schema import AddressText, at

_READ_S = 5.0
Share = Annotated[int | None, msgspec.Meta(description="Hundredths of a percent; null: not known.")]


class CardParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which check: of which token, and when it was made, as its answer says."""

    address: AddressText
    checked_at: datetime


class CostAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """What a round trip costs, split. ``size``: of the round trip, as people say it."""

    size: str | None
    round_trip_bps: Share
    taken_bps: Share
    pool_bps: Share
    tax_bps: Share
    buy_tax_bps: Share
    sell_tax_bps: Share
    impact_bps: Share


class ProspectAnswer(msgspec.Struct, frozen=True):
    """One thing that could change what was found."""

    standing: Standing
    text: str


class CheckCard(msgspec.Struct, frozen=True, rename="camel"):
    """``cost`` null: nothing was bought. ``outlook``: what could change it, the worst first."""

    block: int
    block_at: datetime
    deep: Annotated[bool, msgspec.Meta(description="What its owner may call was tried, and real holders.")]
    cost: CostAnswer | None
    grid: CheckGrid
    outlook: list[ProspectAnswer]


class KeptCard(msgspec.Struct, frozen=True):
    """``card`` null: the evidence of this check is no longer stored."""

    card: CheckCard | None


async def check_card(ctx: Context, params: CardParams) -> UseCaseAnswer[KeptCard]:
    """The card of that check. Raises CallerFault (bad_address), ServiceFull."""
    stored = await _load_check(ctx, parse_address(params.address), params.checked_at)
    # Decoding is slow for a token with many pools, and must not block the event loop.
    return UseCaseAnswer(
        KeptCard(None if stored is None else await asyncio.to_thread(_card, stored, ctx.policy))
    )


async def _load_check(
    ctx: Context, token: Address, checked_at: datetime
) -> evidence_store.KeptEvidence | None:
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            return await evidence_store.made_at(connection, token, checked_at)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Stored checks are unavailable; retry in 5 s.", 5) from error


def _card(stored: evidence_store.KeptEvidence, policy: Policy) -> CheckCard | None:
    """The card; None where the evidence has the shape of an earlier release."""
    with contextlib.suppress(ValueError):
        return _read(canonical_json.load(Evidence, stored.document), stored.deep, policy)
    return None


def _read(evidence: Evidence, deep: bool, policy: Policy) -> CheckCard:
    judgement = judge(evidence, policy)
    index = shown_index(judgement)
    cost = None if index is None else cost_of(evidence, index, judgement.readings[index])
    return CheckCard(
        block=evidence.block.number,
        block_at=at(evidence.block.timestamp_s),
        deep=deep,
        cost=None if cost is None else _cost(cost),
        grid=grid_of(evidence, judgement, policy),
        outlook=[_prospect(prospect) for prospect in prospects(evidence, judgement, policy)],
    )


def _cost(cost: Cost) -> CostAnswer:
    return CostAnswer(
        size=None if cost.size is None else SIZES[cost.size],
        round_trip_bps=cost.round_trip_bps,
        taken_bps=cost.taken_bps,
        pool_bps=cost.pool_bps,
        tax_bps=cost.tax_bps,
        buy_tax_bps=cost.buy_tax_bps,
        sell_tax_bps=cost.sell_tax_bps,
        impact_bps=cost.impact_bps,
    )


def _prospect(prospect: Prospect) -> ProspectAnswer:
    return ProspectAnswer(prospect.standing, prospect.text)
