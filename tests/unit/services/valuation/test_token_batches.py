"""Which requests of a valuation share a batch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter, RpcCall
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.services.valuation.token_batches import BatchRequest, send_round
from roundtrip.venues import amm_v4
from unit.venues.network import BELOW, CONTRACTS, address


@dataclass
class BatchesNode:
    """Answers every call with its only parameter; ``parameters``: those of each batch."""

    parameters: list[list[object]] = field(default_factory=list)

    async def batches(self, groups: Sequence[Sequence[RpcCall]], meter: Meter) -> list[list[msgspec.Raw]]:
        self.parameters = [[call.params[0] for call in group] for group in groups]
        return [[msgspec.Raw(msgspec.json.encode(one)) for one in group] for group in self.parameters]


def request(name: str, place: VenuePlace | None = None) -> BatchRequest:
    return BatchRequest(name, call=RpcCall("eth_call", (name,)), place=place)


def pool_with(hook: Address | None) -> VenuePlace:
    venue = amm_v4.pool("amm_v4", BELOW, "weth", CONTRACTS.weth, 3000, 60, hook)
    return VenuePlace(venue, amm_v4)


async def test_what_trades_through_a_strangers_hook_shares_no_batch() -> None:
    """It can answer with megabytes, and takes nobody else's answer along."""
    node, head = BatchesNode(), cast(ChainHead, None)
    hooked = request("hooked", pool_with(address(0xCC)))
    requests = {1: [request("plain", pool_with(None)), hooked], 2: [request("nowhere")]}
    answers = await send_round(cast(Context, SimpleNamespace(node=node)), head, requests, Meter())
    assert node.parameters == [["plain", "nowhere"], ["hooked"]]
    assert {number: list(own) for number, own in answers.items()} == {1: ["plain", "hooked"], 2: ["nowhere"]}
