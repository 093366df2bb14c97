"""Tables that a bench hands on as data: kept as JSON, and written as Markdown by ``bench.side_by_side``."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from .timing import Times

SIDE_BY_SIDE = ("measured", "median", "p95", "beside it, in the same run", "its median", "ratio")
"""The columns of what is measured beside something else."""

MIN_FOR_P95 = 20


class Table(msgspec.Struct):
    """``title`` says of what; cells are ready to be read."""

    title: str
    heads: Sequence[str]
    rows: list[list[str]]

    def text(self) -> str:
        """In columns of equal width."""
        lines = [list(self.heads), *self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.heads))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    def markdown(self) -> str:
        """As Markdown has tables."""
        lines = [list(self.heads), ["---"] * len(self.heads), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def beside(name: str, found: Times, other: str, others: Times) -> list[str]:
    """A row of ``SIDE_BY_SIDE``; the ratio is of the medians. With few times there is no 95th percentile."""
    ratio = found.median / others.median
    p95 = ms(found.p95) if len(found.times_ms) >= MIN_FOR_P95 else "-"
    return [name, ms(found.median), p95, other, ms(others.median), f"{ratio:.2f}"]


def ms(time_ms: float) -> str:
    """With as many digits as mean something, and in seconds where it is one or more."""
    if time_ms >= 1000:
        return f"{time_ms / 1000:.2f} s"
    return f"{time_ms:.0f} ms" if time_ms >= 100 else f"{time_ms:.2f} ms"


def keep(path: Path | None, tables: list[Table]) -> None:
    """Writes them if ``path`` is given."""
    if path is not None:
        path.write_bytes(msgspec.json.encode(tables))


def kept(path: Path) -> list[Table]:
    """What ``keep`` wrote."""
    return msgspec.json.decode(path.read_bytes(), type=list[Table])
