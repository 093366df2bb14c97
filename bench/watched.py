"""Processes under measurement: started quietly, watched from outside, ended by the process that started
them."""

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
        """Processor time of it and of all that it started."""
        return cpu_s(self.process.pid)

    def check(self) -> None:
        """Raises EndedEarly when it is gone."""
        if self.process.poll() is not None:
            raise EndedEarly(f"{self.process.args!r}: {self.log.read_text()[-1500:]}")


def cpu_s(pid: int) -> float:
    """Processor time of a process, of its children that are gone, and of those that run."""
    spent = {pid: 0.0}
    for number in sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        with contextlib.suppress(OSError):
            # After the name in brackets: state, parent, and from the twelfth on the four times.
            values = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            if number == pid or int(values[1]) in spent:
                spent[number] = sum(map(int, values[11:15])) / _TICKS
    return sum(spent.values())


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
