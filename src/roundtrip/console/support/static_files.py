"""What pages load: our own style and script, and the libraries, under names that change with what is in
them."""

import hashlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from roundtrip.api.server.responses import Document

_FOR_EVER = (
    (b"cache-control", b"public, max-age=31536000, immutable"),
    (b"x-content-type-options", b"nosniff"),
)
_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_LIBRARIES = {"htmx.js": "htmx.org/dist/htmx.min.js", "sse.js": "htmx-ext-sse/dist/sse.min.js",
              "uplot.js": "uplot/dist/uPlot.iife.min.js",
              "uplot.css": "uplot/dist/uPlot.min.css"}  # fmt: skip


class LibraryMissing(Exception):
    """A page's library is not where it is installed to."""


class StaticFiles:
    """``libraries``: the folder that npm installed them into."""

    def __init__(self, libraries: Path) -> None:
        own = resources.files("roundtrip.console") / "static"
        found = {file.name: file.read_bytes() for file in own.iterdir()}
        for name, where in _LIBRARIES.items():
            try:
                found[name] = (libraries / where).read_bytes()
            except OSError as error:
                raise LibraryMissing(f"{libraries / where} is missing: make run installs it") from error
        self.paths: Mapping[str, str] = {name: _path(name, body) for name, body in found.items()}
        """By name, where pages find each."""
        self.documents: Mapping[str, Document] = {
            self.paths[name]: Document(body, _KINDS[name.rpartition(".")[2]], _FOR_EVER, cors=False)
            for name, body in found.items()
        }


def _path(name: str, body: bytes) -> str:
    stem, _, kind = name.rpartition(".")
    return f"/static/{stem}.{hashlib.sha256(body).hexdigest()[:12]}.{kind}"
