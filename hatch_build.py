"""What a wheel carries beside the package: what pages load and show, fonts."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_LOADED = ("*.min.js", "*.min.css")
_EXPLORER = ("LICENSE", "NOTICE", "swagger-ui-bundle.js", "swagger-ui.css")
_FONTS = ("LICENSE", "ttf/DejaVuSans.ttf", "ttf/DejaVuSans-Bold.ttf")


class Carried(BuildHookInterface[Any]):
    """Only of a wheel to install: in a checkout all of it is there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises FileNotFoundError where npm has not been run."""
        if version != "standard":
            return
        root, into = Path(self.root), "roundtrip/carried"
        carried: list[Path] = []
        libraries = root / "node_modules"
        if not libraries.is_dir():
            raise FileNotFoundError("node_modules is missing: make write NAME=wheel has npm install it first")
        for library in sorted(path.parent for path in libraries.glob("[a-z]*/dist")):
            loaded = (one for kind in _LOADED for one in sorted((library / "dist").glob(kind)))
            carried += [library / "LICENSE", *loaded]
        carried += [libraries / "swagger-ui-dist" / name for name in _EXPLORER]
        carried += [libraries / "dejavu-fonts-ttf" / name for name in _FONTS]
        carried += sorted((root / "docs").rglob("*.md"))
        for path in carried:
            build_data["force_include"][str(path)] = f"{into}/{path.relative_to(root)}"
