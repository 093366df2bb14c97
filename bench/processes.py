"""Processes under measurement: started quietly, watched from outside, ended by whoever started them."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_END_S = 10.0


class EndedEarly(Exception):
    """A process ended before it was done; the text ends with what it said last."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A running process and where its words go."""

    process: subprocess.Popen[bytes]
    log: Path

    def memory_mb(self, field: str = "VmRSS") -> float:
        """What it holds; with ``VmHWM`` the most that it ever held."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) / 1024
        return 0.0

    def cpu_s(self) -> float:
        """Processor time of its own and of the children that it has waited for."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return sum(map(int, stat.rpartition(")")[2].split()[11:15])) / _TICKS

    def check(self) -> None:
        """Raises EndedEarly when it is gone."""
        if self.process.poll() is not None:
            raise EndedEarly(f"{self.process.args!r}: {self.log.read_text()[-1500:]}")


@contextlib.contextmanager
def started(command: list[str], environment: dict[str, str], log: Path, folder: Path) -> Iterator[Watched]:
    """Runs ``command`` in ``folder``, with ``environment`` on top of ours; ended at the end."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            yield Watched(process, log)
        finally:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
