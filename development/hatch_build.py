"""What the development wheel carries beside the package: contracts, and npm's files for the chain's node."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_CARRIED = ("contracts", "package.json", "package-lock.json", ".npmrc")


class CarriedForChain(BuildHookInterface[Any]):
    """Only of a wheel to install: in a checkout all of it is there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files to the wheel."""
        if version == "standard":
            for name in _CARRIED:
                path = Path(self.root).parent / name
                build_data["force_include"][str(path)] = f"roundtrip_development/carried/{name}"
