"""Writes what the whole service answers, and compares: so that a change of its structure changes no answer.

    python -m bench.witness [--of FOLDER] [--write FILE] [--against FILE | --beside FOLDER]

``roundtrip serve --all`` of one checkout, over the local chain of this one, answers the questions of
``witness_questions``: the HTTP interface, the tools, the console's pages. ``--of``: the folder of the
checkout that answers; left out, this one. ``--write``: keeps its answers. ``--against``: compares them with
kept ones. ``--beside``: the same with those of another checkout, recorded in this run. Ends with 1 where they
differ.

Nothing moves by itself. The node mines a block per transaction, one second after the last. The service reads
its clocks and its entropy from a file that the questions write (``CLOCK``, for the standard library's
``time`` and ``secrets``), so drawn wallets, keys and sessions are the same in each run. Left out:
``UNSTEADY_HEADERS``, ``UNSTEADY`` and ports; how many rows come in a webhook's message; the order of lines
that are sent as they are known.
"""

import argparse
import difflib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .witness_questions import ask_everything
from .witness_service import PROJECT, service

SHOWN_LINES = 12


def record(code: Path) -> dict[str, Any]:
    """All answers of the checkout in ``code``, by question."""
    began_s = time.monotonic()
    with service(code) as witness:
        ask_everything(witness)
    print(f"{len(witness.answers)} answers of {code} in {time.monotonic() - began_s:.0f} s", flush=True)
    return witness.answers


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, list[str]]:
    """What differs, by question, as the lines of a diff."""
    found = {}
    for name in dict.fromkeys((*before, *now)):
        old, new = (_lines(answers.get(name)) for answers in (before, now))
        if old != new:
            found[name] = list(difflib.unified_diff(old, new, "before", "now", lineterm="", n=1))[2:]
    return found


def _lines(answer: Any) -> list[str]:
    """One line for each value; a text's own lines one by one."""
    text = json.dumps(answer, indent=1, ensure_ascii=False, sort_keys=True)
    return [line for row in text.split("\n") for line in row.replace("\\n", "\n").split("\n")]


def main(asked: argparse.Namespace) -> int:
    """Records, keeps and compares; how many answers differ."""
    before: Mapping[str, Any] | None = None
    if asked.beside is not None:
        before = record(asked.beside.resolve())
    elif asked.against is not None:
        before = json.loads(asked.against.read_text())
    now = record(asked.of.resolve())
    if asked.write is not None:
        asked.write.write_text(json.dumps(now, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    if before is None:
        return 0
    found = differences(before, now)
    for name, lines in found.items():
        print(f"\n=== {name[:300]}")
        print("\n".join(line[:300] for line in lines[:SHOWN_LINES]))
        if len(lines) > SHOWN_LINES:
            print(f"... and {len(lines) - SHOWN_LINES} more lines")
    print(f"\n{len(found)} of {len(before.keys() | now.keys())} answers differ")
    return len(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--of", type=Path, default=PROJECT, help="the folder of the checkout that answers")
    parser.add_argument("--write", type=Path, help="the file that keeps the answers")
    parser.add_argument("--against", type=Path, help="a file of kept answers, to compare with")
    parser.add_argument("--beside", type=Path, help="the folder of another checkout, to compare with")
    raise SystemExit(1 if main(parser.parse_args()) else 0)
