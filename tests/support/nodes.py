"""One node, or several, behind a context."""

from roundtrip.chain.rpc import Node
from roundtrip.services.context import Context


def node_of(ctx: Context) -> Node:
    """The one node behind a context that has but one."""
    assert isinstance(ctx.node, Node)
    return ctx.node
