"""A contract's functions as evmole reads them from its bytecode, in a process of its own.

Code can be written so that reading it takes seconds and gigabytes; then the process ends, and with it only
that reading.
"""

import json
import subprocess
import sys
from dataclasses import dataclass

_PROGRAM = """
import json, os, resource, sys
os.nice(10)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))
import evmole
code = sys.stdin.buffer.read()
told = evmole.contract_info(code, selectors=True).functions or []
print(json.dumps([[one.selector, one.bytecode_offset] for one in told]), flush=True)
told = evmole.contract_info(code, selectors=True, arguments=True).functions or []
print(json.dumps({one.selector: one.arguments for one in told if len(one.arguments or "") < 200}), flush=True)
"""
_MOST_S = 3.0


class UnreadableCode(Exception):
    """Not even what functions there are could be told."""


class ArgumentsUnread(Exception):
    """The functions were told, as ``told``, and their arguments were not."""

    def __init__(self, told: "tuple[Function, ...]") -> None:
        super().__init__("there was no time to read the arguments")
        self.told = told


@dataclass(frozen=True, slots=True)
class Function:
    """``selector``: ``0x`` and eight hex digits. ``offset``: where its own code begins. ``arguments``: their
    types with commas between; None where that could not be told."""

    selector: str
    offset: int
    arguments: str | None


def read(code: bytes) -> tuple[Function, ...]:
    """Every function. Blocks for some tens of milliseconds, three seconds at most. Raises Unreadable, and
    CutShort where the time was not enough for all."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _PROGRAM], input=code, capture_output=True, timeout=_MOST_S
        )
        told = done.stdout
    except subprocess.TimeoutExpired as late:
        told = late.stdout or b""
    except OSError as error:
        raise UnreadableCode(str(error)) from error
    first, _, rest = told.partition(b"\n")
    whole = rest.endswith(b"}\n")
    try:
        functions: list[tuple[str, int]] = json.loads(first)
        arguments: dict[str, str | None] = json.loads(rest) if whole else {}
    except ValueError as error:
        raise UnreadableCode("its functions could not be read") from error
    found = tuple(Function(f"0x{name}", offset, arguments.get(name)) for name, offset in functions)
    if not whole:
        raise ArgumentsUnread(found)
    return found
