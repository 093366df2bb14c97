"""The context of use cases over a node alone. Its database refuses every connection. Without one, a use case
goes on without what only an index knows, or says that it cannot."""

import contextlib
import secrets
import time
from collections.abc import AsyncIterator

import asyncpg

from roundtrip.chain.simulate.rates import Rates
from roundtrip.config.networks import Network
from roundtrip.domain.base.policy import POLICY
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.cancel_on_error import at_once

from .node_checks import check_network, make_heads, open_node


@contextlib.asynccontextmanager
async def open_node_context(rpc_url: str, network: Network, timeout_s: float) -> AsyncIterator[Context]:
    """The context at the node's newest block. Raises CallerFault, NodeFault."""
    async with open_node(rpc_url, timeout_s) as node:
        heads = make_heads(node, network, time.time)
        await at_once(heads.refresh(), check_network(node, network))
        yield Context(
            chain_id=network.chain_id,
            contracts=network.contracts,
            node=node,
            heads=heads,
            policy=POLICY,
            # Never opened, so that it refuses every connection.
            pool=asyncpg.create_pool("postgresql://none", min_size=0),
            rates=Rates(node, network.contracts),
            now_s=time.time,
            entropy=lambda: secrets.token_bytes(32),
        )
