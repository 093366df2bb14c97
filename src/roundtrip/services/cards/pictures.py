"""Draws SVG as PNG with resvg, each in a process of its own: it would hold up this one for a tenth of a
second, and strangers' text reaches a font engine. That process gets no environment, which has secrets."""

import asyncio
import hashlib
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from roundtrip.domain.base.errors import ServiceFull

_PROGRAM = """
import os, resource, sys
os.nice(10)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, (3, 3))
if sys.platform == "linux":  # macOS refuses it
    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
import resvg_py
svg = sys.stdin.buffer.read().decode()
png = resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True, font_files=sys.argv[1:])
sys.stdout.buffer.write(bytes(png))
"""
_FONTS = ("dejavu-fonts-ttf/ttf/DejaVuSans.ttf", "dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf")
_MAX_S = 10.0
_MAX_WAITING = 16
"""Callers at once, the one whose picture is drawn included."""
_MAX_KEPT = 256
"""Pictures of 20 to 60 KB."""
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def font_files(libraries: Path) -> list[Path]:
    """The fonts' files. ``libraries``: the folder into which npm installed them."""
    return [libraries / font for font in _FONTS]


def draw_picture(svg: str, fonts: tuple[str, ...]) -> bytes:
    """The picture as PNG. Blocks for some two tenths of a second. Raises ServiceFull (busy), whatever the
    cause."""
    try:
        process = subprocess.run(
            [sys.executable, "-I", "-c", _PROGRAM, *fonts],
            input=svg.encode(), capture_output=True, timeout=_MAX_S, env={},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceFull("busy", "The picture could not be drawn; retry in 5 s.", 5) from error
    if process.returncode != 0 or not process.stdout.startswith(_PNG_SIGNATURE):
        raise ServiceFull("busy", "The picture could not be drawn; retry in 5 s.", 5)
    return process.stdout


class Pictures:
    """Draws one picture at a time, and keeps the newest in memory. ``libraries``: as in ``font_files``."""

    def __init__(self, libraries: Path, draw: Callable[[str, tuple[str, ...]], bytes] = draw_picture) -> None:
        self._draw = draw
        self._fonts = tuple(str(font) for font in font_files(libraries))
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0

    async def draw(self, svg: str) -> bytes:
        """The picture as PNG. Raises ServiceFull (busy)."""
        key = hashlib.sha256(svg.encode()).digest()
        if key in self._kept:
            return self._kept[key]
        if self._waiting >= _MAX_WAITING:
            raise ServiceFull("busy", "Too many pictures are being drawn; retry in 2 s.", 2)
        self._waiting += 1
        try:
            async with self._turn:
                if key not in self._kept:
                    self._kept[key] = await asyncio.to_thread(self._draw, svg, self._fonts)
                    if len(self._kept) > _MAX_KEPT:
                        self._kept.popitem(last=False)
                return self._kept[key]
        finally:
            self._waiting -= 1
