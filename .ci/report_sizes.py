#!/usr/bin/env python3
"""Prints how much code each capability takes through all floors, and what changed since the branch left main.

Code lines are lines without blanks, comments and docstrings. A capability is a room's name: ``store/holders``
and ``services/holders`` count as ``holders``. A new record class that shares four fields with another one is
pointed at: a new record needs a fact that no record has (docs/decisions/0044-one-record.md). It never
fails: it is for reviewers. The argument is another branch to compare with; a checkout without that branch
prints the sizes alone.
"""

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "src/roundtrip/"
SHARED_FIELDS = 4
SKIPPED = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip


def count_code_lines(source: str) -> int:
    """Lines that hold a token and are no docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SKIPPED:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", [])
        for child in body if isinstance(body, list) else []:
            is_text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if is_text and isinstance(child.value.value, str):
                lines -= set(range(child.lineno, (child.end_lineno or child.lineno) + 1))
    return len(lines)


def name_capability(path: str) -> str:
    """The room of a module, or its floor where the floor has no rooms."""
    parts = path.removeprefix(PACKAGE).split("/")
    return parts[1] if len(parts) > 2 else parts[0].removesuffix(".py")


def list_records(path: str, source: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Each class of the module with annotated fields, by its place, with ``name: type`` of each field."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            fields = {
                f"{child.target.id}: {ast.unparse(child.annotation)}"
                for child in node.body
                if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name)
            }
            if len(fields) >= SHARED_FIELDS:
                yield f"{path}:{node.name}", frozenset(fields)


def run_git(*arguments: str) -> str | None:
    """What git prints, or null where it fails: outside a checkout, or without that branch."""
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)  # noqa: S607
    return done.stdout if done.returncode == 0 else None


def read_sources_at(commit: str) -> dict[str, str]:
    """The package's modules at a commit, by path, read from one archive."""
    listed = run_git("ls-tree", "-r", "--name-only", commit, PACKAGE) or ""
    paths = [path for path in listed.splitlines() if path.endswith(".py")]
    asked = "".join(f"{commit}:{path}\n" for path in paths).encode()
    answer = subprocess.run(
        ["git", "cat-file", "--batch"],  # noqa: S607
        input=asked,
        capture_output=True,
        check=True,
    ).stdout
    sources, at = {}, 0
    for path in paths:
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split()[2])
        sources[path] = answer[end + 1 : end + 1 + size].decode()
        at = end + 2 + size
    return sources


def sum_lines(sources: dict[str, str]) -> Counter[str]:
    """Code lines of each capability."""
    lines: Counter[str] = Counter()
    for path, source in sources.items():
        lines[name_capability(path)] += count_code_lines(source)
    return lines


def find_doubles(now: dict[str, str], before: dict[str, str]) -> Iterator[str]:
    """New records that share fields with another record, each with the nearest one."""
    records = dict(record for path, source in now.items() for record in list_records(path, source))
    known = {
        place.rsplit(":", 1)[1] for path, source in before.items() for place, _ in list_records(path, source)
    }
    for place, fields in records.items():
        if place.rsplit(":", 1)[1] in known:
            continue
        shared, other = max((len(fields & theirs), name) for name, theirs in records.items() if name != place)
        if shared >= SHARED_FIELDS:
            yield f"{place} shares {shared} fields with {other}"


def main(branch: str = "origin/main") -> None:
    """Prints the line of sizes, and a line for each double."""
    now = {path.as_posix(): path.read_text() for path in sorted(Path(PACKAGE).rglob("*.py"))}
    lines = sum_lines(now)
    base = (run_git("merge-base", "HEAD", branch) or "").strip()
    before = read_sources_at(base) if base else {}
    earlier = sum_lines(before)
    shown = [
        f"{name} {lines[name]}"
        + (f" ({lines[name] - earlier[name]:+})" if base and lines[name] != earlier[name] else "")
        for name in sorted(lines | earlier, key=lambda name: -lines[name])
    ]
    change = f", {lines.total() - earlier.total():+} since {base[:8]}" if base else ""
    print(f"code lines: {lines.total()}{change}: {', '.join(shown)}")
    for double in find_doubles(now, before) if base else ():
        print(f"  {double}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
