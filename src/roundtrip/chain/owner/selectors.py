"""Reads a contract's functions from its bytecode with evmole, in a separate process.

Code can be written so that reading it takes seconds and gigabytes; then the process is killed, and only that
reading fails.
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
if sys.platform == "linux":  # macOS refuses it
    resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))
import evmole
code = sys.stdin.buffer.read()
functions = evmole.contract_info(code, selectors=True).functions or []
print(json.dumps([[f.selector, f.bytecode_offset] for f in functions]), flush=True)
functions = evmole.contract_info(code, selectors=True, arguments=True).functions or []
print(json.dumps({f.selector: f.arguments for f in functions if len(f.arguments or "") < 200}), flush=True)
"""
_MAX_S = 3.0


class UnreadableCode(Exception):
    """The functions could not be read."""


class ArgumentsUnread(Exception):
    """The functions were read, but there was no time for their arguments. ``functions``: without them."""

    def __init__(self, functions: "tuple[Function, ...]") -> None:
        super().__init__("there was no time to read the arguments")
        self.functions = functions


@dataclass(frozen=True, slots=True)
class Function:
    """``selector``: ``0x`` and eight hex digits. ``offset``: of its first instruction. ``arguments``: their
    types, separated by commas; None: unknown."""

    selector: str
    offset: int
    arguments: str | None


def read(code: bytes, program: str = _PROGRAM, max_s: float = _MAX_S) -> tuple[Function, ...]:
    """Every function. Blocks for some tens of milliseconds, ``max_s`` at most. ``program``: reads the code
    from its input, in a process of its own. Raises UnreadableCode, and ArgumentsUnread where there was no
    time for the arguments."""
    try:
        process = subprocess.run(
            [sys.executable, "-I", "-c", program], input=code, capture_output=True, timeout=max_s
        )
        output = process.stdout
    except subprocess.TimeoutExpired as timeout:
        output = timeout.stdout or b""
    except OSError as error:
        raise UnreadableCode(str(error)) from error
    first, _, rest = output.partition(b"\n")
    is_complete = rest.endswith(b"}\n")
    try:
        offsets: list[tuple[str, int]] = json.loads(first)
        arguments: dict[str, str | None] = json.loads(rest) if is_complete else {}
    except ValueError as error:
        raise UnreadableCode("reading its functions failed") from error
    functions = tuple(Function(f"0x{name}", offset, arguments.get(name)) for name, offset in offsets)
    if not is_complete:
        raise ArgumentsUnread(functions)
    return functions
