"""The dependencies of a check alone: it needs a node, and no database."""

from dataclasses import dataclass

from roundtrip.chain.rpc.client import RpcNode
from roundtrip.chain.simulate.rates import RateSource
from roundtrip.domain.base.policy import Policy
from roundtrip.venues.base import Contracts


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The dependencies of a check, apart from its head: what it takes to run the same check again."""

    chain_id: int
    contracts: Contracts
    node: RpcNode
    policy: Policy
    rates: RateSource
