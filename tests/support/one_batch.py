"""The base of nodes of tests that are asked for one batch after another."""

from collections.abc import Sequence

import msgspec

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault


class OneBatchNode:
    """Several batches at once fail the test."""

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        raise AssertionError("it is asked for one batch after another")
