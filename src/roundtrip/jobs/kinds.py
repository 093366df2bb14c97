"""THE TABLE of what is done later. The worker, the documentation and the tests loop over it."""

from types import MappingProxyType

from roundtrip.services.context import Context

from .prune import prune
from .recheck import recheck
from .token import token
from .worker import Kind

KINDS: MappingProxyType[str, Kind[Context]] = MappingProxyType(
    {
        "token": Kind(token, lease_s=30, at_once=4, limit_s=30),
        "recheck": Kind(recheck, lease_s=30, at_once=2, limit_s=120),
        "prune": Kind(prune, lease_s=60, at_once=1, limit_s=60, at_start="facts"),
    }
)
