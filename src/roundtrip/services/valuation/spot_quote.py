"""The result of an ordinary buy of a token now, and of selling it straight back."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.check.evidence import Evidence, Missing, RefusedCall
from roundtrip.domain.check.sales import Sale
from roundtrip.services.engine.token_check import check_token
from roundtrip.services.runtime.context import Context

from .holdings import HoldingToSell, Valued, slot_of, worth


@dataclass(frozen=True, slots=True)
class ProbeBuy:
    """``token_raw``: what the probe (0.1 eth) buys, in base units. ``pays_wei``: proceeds of selling that."""

    token_raw: int
    pays_wei: int


Probed = ProbeBuy | RefusedCall | Missing
"""RefusedCall: the probe cannot buy it, or cannot sell it again. Missing: not found out."""


async def probe_buy(
    ctx: Context, head: ChainHead, token: Address, meter: Meter, at: str | None = None
) -> Probed:
    """Runs a check's buy and sell rounds. ``at``: the place (an address, or a v4 pool's id); None: the place
    where the round trip loses least. Raises NodeFault."""
    run = await check_token(ctx, token, meter, head=head, crowd=False)
    evidence, judgement = run.evidence, run.judgement
    if judgement.missing is not None:
        return judgement.missing
    number = judgement.best if at is None else _find_venue(evidence, at)
    if judgement.best is None:
        return RefusedCall("buy", None, 0)
    if number is None:
        return Missing("node", "the pool that trades it most was not among those that were tested")
    reading = judgement.readings[number]
    if reading.bought is None or reading.size != "probe":
        return RefusedCall("buy", None, 0)
    match reading.full:
        case Sale(loss_bps=loss_bps, whole=True):
            pays_wei = max(0, ctx.policy.probe_wei * (BPS - loss_bps) // BPS)
            return ProbeBuy(reading.bought.received_raw, pays_wei)
        case Missing() as missing:
            return missing
    return RefusedCall("sell", None, 0)


def _find_venue(evidence: Evidence, at: str) -> int | None:
    ids = [venue.venue.pool or venue.venue.pool_id for venue in evidence.venues]
    return ids.index(at) if at in ids else None


@dataclass(frozen=True, slots=True)
class TokenPricing:
    """The functions that price tokens; tests pass their own. Fields as the functions they are by default."""

    probe_buy: Callable[[Context, ChainHead, Address, Meter, str | None], Awaitable[Probed]] = probe_buy
    slot_of: Callable[[Context, ChainHead, Address, Meter], Awaitable[BalanceSlot | None]] = slot_of
    worth: Callable[[Context, ChainHead, Sequence[HoldingToSell], Meter], Awaitable[list[Valued]]] = worth


PRICES = TokenPricing()
