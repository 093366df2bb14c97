"""Static files of the console, its own and libraries, under paths that contain a hash of their content."""

import hashlib
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from roundtrip.api.server.responses import Document
from roundtrip.services.cards.pictures import font_files

_CACHE_FOREVER = (
    (b"cache-control", b"public, max-age=31536000, immutable"),
    (b"x-content-type-options", b"nosniff"),
)
_KINDS = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "ico": "image/x-icon",
}
_CACHE_A_DAY = ((b"cache-control", b"public, max-age=86400"), (b"x-content-type-options", b"nosniff"))
_ROBOTS = b"""User-agent: *
Disallow: /v1/
Disallow: /mcp
Disallow: /account
Disallow: /sign-in
Disallow: /search
Disallow: /boards/*/live
Disallow: /boards/*/rows
"""
_LIBRARIES = {"htmx.js": "htmx.org/dist/htmx.min.js", "sse.js": "htmx-ext-sse/dist/sse.min.js",
              "uplot.js": "uplot/dist/uPlot.iife.min.js",
              "uplot.css": "uplot/dist/uPlot.min.css"}  # fmt: skip


_EXPLORER = {"swagger.js": "swagger-ui-dist/swagger-ui-bundle.js",
             "swagger.css": "swagger-ui-dist/swagger-ui.css"}  # fmt: skip
"""Files of the API explorer, which the documentation works without."""


class LibraryMissing(Exception):
    """A browser library is not installed."""


class StaticFiles:
    """The static files. ``libraries``: the folder into which npm installed the browser's libraries."""

    def __init__(self, libraries: Path) -> None:
        folder = resources.files("roundtrip.console") / "static"
        files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        files["console.css"] = join_styles()
        for name, path in _LIBRARIES.items():
            try:
                files[name] = (libraries / path).read_bytes()
            except OSError as error:
                raise LibraryMissing(f"{libraries / path} is missing: make run installs it") from error
        for name, path in _EXPLORER.items():
            if (libraries / path).is_file():
                files[name] = (libraries / path).read_bytes()
        for font in font_files(libraries):
            if not font.is_file():
                raise LibraryMissing(f"{font} is missing: make run installs it")
        self.paths: Mapping[str, str] = {name: _hashed_path(name, body) for name, body in files.items()}
        """Paths by file name."""
        self.documents: dict[str, Document] = {
            self.paths[name]: Document(body, _KINDS[name.rpartition(".")[2]], _CACHE_FOREVER, cors=False)
            for name, body in files.items()
        }
        # Programs ask for these by their well-known paths.
        self.documents |= {
            "/favicon.ico": Document(files["favicon.ico"], _KINDS["ico"], _CACHE_A_DAY, cors=False),
            "/robots.txt": Document(_ROBOTS, "text/plain; charset=utf-8", _CACHE_A_DAY, cors=False),
        }


def join_styles() -> bytes:
    """The style sheet of all pages: the files of ``static/css`` in the order of their names, without comments
    and needless spaces."""
    folder = resources.files("roundtrip.console") / "static" / "css"
    rules = "".join(file.read_text() for file in sorted(folder.iterdir(), key=lambda file: file.name))
    rules = re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", rules, flags=re.DOTALL))
    return re.sub(r" ?([{};>]) ?|(?<=[:,]) ", r"\1", rules).replace(";}", "}").encode()


def _hashed_path(name: str, body: bytes) -> str:
    stem, _, kind = name.rpartition(".")
    return f"/static/{stem}.{hashlib.sha256(body).hexdigest()[:12]}.{kind}"
