"""A node's error for one request."""

import msgspec


class RpcError(msgspec.Struct, frozen=True):
    """A node's own error for one request; ``data`` is hex where it carries revert bytes."""

    code: int = 0
    message: str = ""
    data: msgspec.Raw = msgspec.Raw()


REVERTED = 3
"""The code of a call that reverted, as geth and anvil answer eth_call."""
