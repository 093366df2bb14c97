"""Requests of many tokens in one trip to the node, none of which suffers what another one's code does."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import CodeFault, Meter, RpcCall, RpcError
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.request import Plan, Results, build, read
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.check.evidence import Missing
from roundtrip.services.check.session import MOST_PLANS_A_REQUEST
from roundtrip.services.runtime.context import Context

Told = Results | Missing | msgspec.Raw | RpcError
"""Results of a plan; of a plain call what was answered."""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """``plan`` or a plain ``call``, under a ``key`` of its own. ``place``: where a plan trades."""

    key: Hashable
    plan: Plan | None = None
    call: RpcCall | None = None
    place: VenuePlace | None = None

    def strange(self) -> bool:
        """Whether a stranger's hook takes part: it can answer with megabytes."""
        return self.place is not None and self.place.venue.rival_hook()


@dataclass(frozen=True, slots=True)
class _Unit:
    """What stays together: requests of one token, none or all of them of one strange place."""

    number: int
    requests: tuple[BatchRequest, ...]
    alone: bool


async def one_round(
    ctx: Context, head: ChainHead, asked: Mapping[int, Sequence[BatchRequest]], meter: Meter
) -> dict[int, dict[Hashable, Told]]:
    """The answers by key, for each of ``asked`` by its number, all in one trip. Where a request had an answer
    too large to read, those in it are asked once more, each token by itself."""
    told: dict[int, dict[Hashable, Told]] = {number: {} for number in asked}
    units = [unit for number, requests in asked.items() for unit in _units(number, requests)]
    groups = _pack_units(units)
    apart = await _ask_groups(ctx, head, groups, told, meter)
    if apart:
        await _ask_groups(ctx, head, [[unit] for unit in apart], told, meter)
    return told


def _units(number: int, requests: Sequence[BatchRequest]) -> list[_Unit]:
    plain = tuple(one for one in requests if not one.strange())
    strange: dict[VenuePlace | None, list[BatchRequest]] = {}
    for one in requests:
        if one.strange():
            strange.setdefault(one.place, []).append(one)
    found = [_Unit(number, plain, False)] if plain else []
    return found + [_Unit(number, tuple(own), True) for own in strange.values()]


def _pack_units(units: list[_Unit]) -> list[list[_Unit]]:
    groups: list[list[_Unit]] = []
    room = 0
    for unit in (one for one in units if not one.alone):
        if not groups or len(unit.requests) > room:
            groups.append([])
            room = MOST_PLANS_A_REQUEST
        groups[-1].append(unit)
        room -= len(unit.requests)
    return groups + [[unit] for unit in units if unit.alone]


async def _ask_groups(
    ctx: Context,
    head: ChainHead,
    groups: list[list[_Unit]],
    told: dict[int, dict[Hashable, Told]],
    meter: Meter,
) -> list[_Unit]:
    """Fills ``told``; the units that have to be asked apart."""
    calls = [[_call(head, one) for unit in group for one in unit.requests] for group in groups]
    if not calls:
        return []
    answers = await ctx.node.batches(calls, meter)
    apart: list[_Unit] = []
    for group, answer in zip(groups, answers, strict=True):
        if isinstance(answer, CodeFault) and len(group) > 1:
            apart += group
            continue
        left = [] if isinstance(answer, NodeFault) else list(answer)
        for unit in group:
            for one in unit.requests:
                if isinstance(answer, CodeFault):
                    told[unit.number][one.key] = Missing("token", answer.message)
                elif isinstance(answer, NodeFault):
                    told[unit.number][one.key] = Missing("node", answer.message)
                else:
                    told[unit.number][one.key] = _read(head, one, left.pop(0))
    return apart


def _call(head: ChainHead, one: BatchRequest) -> RpcCall:
    if one.plan is not None:
        return build(one.plan, head.block, head.known_dialect())
    assert one.call is not None
    return one.call


def _read(head: ChainHead, one: BatchRequest, answer: msgspec.Raw | RpcError) -> Told:
    return answer if one.plan is None else read(one.plan, answer, head.block, head.known_dialect())
