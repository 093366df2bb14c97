"""The card of a check that was made before, read from its stored evidence."""

import asyncio
import contextlib
from datetime import datetime

import msgspec

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import AddressText
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.server.connections import DATABASE_FAULTS

from .card import CheckCard, read_card

_READ_S = 5.0


class CardParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which check: of which token, and when it was made, as its answer says."""

    address: AddressText
    checked_at: datetime


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
    """The card; None where the evidence has the shape of another release."""
    with contextlib.suppress(ValueError):
        evidence = canonical_json.load(Evidence, stored.document)
        return read_card(evidence, judge(evidence, policy), stored.deep, policy)
    return None
