"""The pages as their readers have them: what is fenced, what stands in the line, a shell to run it in."""

import asyncio
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{one.name}" for one in (PROJECT / "docs").glob("*.md")),
)
"""All but decisions, which tell of their day."""
WRITTEN = frozenset({"docs/api.md", "docs/tour.md"})
"""Pages that a command writes out of what it finds; other tests hold them against it."""
MORE = "…"
_BEGINS = "--- a block begins ---"
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_WAIT_S = 60


@dataclass(frozen=True, slots=True)
class Part:
    """A fenced block, or code in the line, of which ``language`` is empty. ``page``: from the project's
    folder."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def text_of(page: str) -> str:
    """All of it."""
    return (PROJECT / page).read_text()


def blocks(page: str, language: str | None = None) -> list[Part]:
    """What is fenced on the page, in order; of one language, or of all."""
    text = text_of(page)
    found = [
        Part(page, text.count("\n", 0, one.start()) + 1, one[1], one[2]) for one in _FENCED.finditer(text)
    ]
    return [one for one in found if language in (None, one.language)]


def prose(page: str) -> str:
    """The page without what is fenced, line by line where it was."""
    return _FENCED.sub(lambda found: "\n" * found[0].count("\n"), text_of(page))


def spans(page: str) -> list[Part]:
    """Code in the line, with one space where a line ends in it."""
    text = prose(page)
    return [
        Part(page, text.count("\n", 0, one.start()) + 1, "", re.sub(r"\s+", " ", one[1]))
        for one in re.finditer("`([^`]+)`", text)
    ]


def lines(page: str, language: str = "bash") -> list[Part]:
    """The commands of fenced blocks, one by one, without what is said behind them; what goes on in the next
    line is one command."""
    return [
        Part(page, block.line, language, line.partition(" # ")[0].strip())
        for block in blocks(page, language)
        for line in re.sub(r"\\\n *", "", block.text).splitlines()
    ]


async def run(folder: Path, texts: Sequence[str], url: str, rpc_url: str = "") -> list[str]:
    """What each block of commands printed, in one shell, where the pages' addresses and paths mean the test's
    own."""
    (folder / "var").mkdir(exist_ok=True)
    script = "".join(f"echo '{_BEGINS}'\n{text}\necho\n" for text in texts)
    script = script.replace("http://127.0.0.1:8463", url).replace("http://127.0.0.1:8545", rpc_url)
    script = script.replace(".venv/bin/", f"{Path(sys.executable).parent}/")
    shell = await asyncio.create_subprocess_exec(
        "bash", "-eu", "-o", "pipefail", "-c", script,
        cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    async with asyncio.timeout(_WAIT_S):
        printed, _ = await shell.communicate()
    answer = printed.decode()
    assert shell.returncode == 0, answer
    return [one.strip() for one in answer.split(_BEGINS)[1:]]


def differs(shown: Any, answer: Any, at: str = "") -> list[str]:
    """Where an answer is not as a page shows it, which may leave out what follows ``…``: the end of a text,
    of a list, or fields."""
    if isinstance(shown, dict) and isinstance(answer, dict):
        found = [f"{at}.{name} is not answered" for name in shown.keys() - answer.keys() - {MORE}]
        if MORE not in shown:
            found += [f"{at}.{name} is not shown" for name in answer.keys() - shown.keys()]
        for name in shown.keys() & answer.keys():
            found += differs(shown[name], answer[name], f"{at}.{name}")
        return found
    if isinstance(shown, list) and isinstance(answer, list):
        if shown[-1:] == [MORE]:
            shown, answer = shown[:-1], answer[: len(shown) - 1]
        if len(shown) != len(answer):
            return [f"{at} has {len(answer)} items"]
        pairs = enumerate(zip(shown, answer, strict=True))
        return [one for n, pair in pairs for one in differs(*pair, f"{at}[{n}]")]
    if isinstance(shown, str) and isinstance(answer, str) and shown.endswith(MORE):
        return [] if answer.startswith(shown.removesuffix(MORE)) else [f"{at} is {answer!r}"]
    is_same = type(shown) is type(answer) and shown == answer
    return [] if is_same else [f"{at} is {answer!r}"]
