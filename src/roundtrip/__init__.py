"""Buys a token and sells it straight back inside a simulation, before you buy it.

``from roundtrip import Checker`` imports the library; nothing else of the package is imported with this
module."""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roundtrip.domain.base.errors import CallerFault, NodeFault, RoundtripError
    from roundtrip.library.checker import BlockingChecker, Checker

__version__ = "0.1.0"
__all__ = ["BlockingChecker", "CallerFault", "Checker", "NodeFault", "RoundtripError"]
_MODULES = MappingProxyType(
    {
        "Checker": "roundtrip.library.checker",
        "BlockingChecker": "roundtrip.library.checker",
        "RoundtripError": "roundtrip.domain.base.errors",
        "CallerFault": "roundtrip.domain.base.errors",
        "NodeFault": "roundtrip.domain.base.errors",
    }
)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
