"""Requests for many tokens in one batch to the node, isolated so that no token's code spoils another's."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import CodeFault, Meter, RpcCall, RpcError
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.number_copies import NumberCopies
from roundtrip.chain.simulate.request import Plan, Results, build, read
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.check.evidence import Missing
from roundtrip.services.engine.session import MAX_PLANS_A_REQUEST
from roundtrip.services.runtime.context import Context

BatchAnswer = Results | Missing | msgspec.Raw | RpcError
"""Results of a plan, or the answer to a plain call."""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A ``plan`` or a plain ``call``, under its own ``key``. ``place``: where a plan trades. ``copies``: of
    the code that reads the block number, for a plan that waits where the node's block numbers do not pass."""

    key: Hashable
    plan: Plan | None = None
    call: RpcCall | None = None
    place: VenuePlace | None = None
    copies: NumberCopies | None = None

    def has_foreign_hook(self) -> bool:
        """Whether a third-party hook takes part: it can answer with megabytes."""
        return self.place is not None and self.place.venue.rival_hook()


@dataclass(frozen=True, slots=True)
class _Unit:
    """Requests of one holding that stay together. ``number``: the holding's, as in ``send_round``. ``alone``:
    they trade at a place with a third-party hook, so they get a group of their own."""

    number: int
    requests: tuple[BatchRequest, ...]
    alone: bool


async def send_round(
    ctx: Context, head: ChainHead, requests_by_number: Mapping[int, Sequence[BatchRequest]], meter: Meter
) -> dict[int, dict[Hashable, BatchAnswer]]:
    """Sends all requests in one batch and returns the answers by number and key. A number stands for one
    holding of a token. If an answer is too large to read, its requests are sent once more, each token
    separately."""
    answers: dict[int, dict[Hashable, BatchAnswer]] = {number: {} for number in requests_by_number}
    units = [
        unit for number, requests in requests_by_number.items() for unit in _split_units(number, requests)
    ]
    groups = _pack_units(units)
    apart = await _ask_groups(ctx, head, groups, answers, meter)
    if apart:
        await _ask_groups(ctx, head, [[unit] for unit in apart], answers, meter)
    return answers


def _split_units(number: int, requests: Sequence[BatchRequest]) -> list[_Unit]:
    plain = tuple(request for request in requests if not request.has_foreign_hook())
    by_hooked_place: dict[VenuePlace | None, list[BatchRequest]] = {}
    for request in requests:
        if request.has_foreign_hook():
            by_hooked_place.setdefault(request.place, []).append(request)
    units = [_Unit(number, plain, False)] if plain else []
    return units + [_Unit(number, tuple(group), True) for group in by_hooked_place.values()]


def _pack_units(units: list[_Unit]) -> list[list[_Unit]]:
    groups: list[list[_Unit]] = []
    room = 0
    for unit in (unit for unit in units if not unit.alone):
        if not groups or len(unit.requests) > room:
            groups.append([])
            room = MAX_PLANS_A_REQUEST
        groups[-1].append(unit)
        room -= len(unit.requests)
    return groups + [[unit] for unit in units if unit.alone]


async def _ask_groups(
    ctx: Context,
    head: ChainHead,
    groups: list[list[_Unit]],
    answers: dict[int, dict[Hashable, BatchAnswer]],
    meter: Meter,
) -> list[_Unit]:
    """Sends the groups and fills ``answers``. Returns the units to send again separately."""
    calls = [[_build_call(head, request) for unit in group for request in unit.requests] for group in groups]
    if not calls:
        return []
    batches = await ctx.node.batches(calls, meter)
    apart: list[_Unit] = []
    for group, batch in zip(groups, batches, strict=True):
        if isinstance(batch, CodeFault) and len(group) > 1:
            apart += group
            continue
        remaining = [] if isinstance(batch, NodeFault) else list(batch)
        for unit in group:
            for request in unit.requests:
                if isinstance(batch, CodeFault):
                    answers[unit.number][request.key] = Missing("token", batch.message)
                elif isinstance(batch, NodeFault):
                    answers[unit.number][request.key] = Missing("node", batch.message)
                else:
                    answers[unit.number][request.key] = _read(head, request, remaining.pop(0))
    return apart


def _build_call(head: ChainHead, request: BatchRequest) -> RpcCall:
    if request.plan is not None:
        dialect, plan = head.known_dialect(), _with_numbers(head, request.plan)
        return build(plan, head.block, dialect, None if plan.passes_numbers else request.copies)
    assert request.call is not None
    return request.call


def _read(head: ChainHead, request: BatchRequest, answer: msgspec.Raw | RpcError) -> BatchAnswer:
    if request.plan is None:
        return answer
    return read(_with_numbers(head, request.plan), answer, head.block, head.known_dialect())


def _with_numbers(head: ChainHead, plan: Plan) -> Plan:
    """The plan; block numbers pass where that costs the node nothing. Elsewhere code that may read them
    leaves a sell unknown, or runs as a copy."""
    return replace(plan, passes_numbers=head.known_dialect().lets_numbers_pass())
