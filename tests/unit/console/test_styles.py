"""The style sheet of the pages: one place for each colour and length, no class that only one side knows."""

import re
from importlib import resources

import pytest

from roundtrip.console.support.static_files import join_styles

MAX_BYTES = 24 * 1024
BREAKPOINTS = {"640px", "1024px"}
_CONSOLE = resources.files("roundtrip.console")
_FOLDER = _CONSOLE / "static" / "css"
FILES = sorted(file.name for file in _FOLDER.iterdir())
BY_SCRIPTS = {"plot", "one", "copied", "changed", "has-left", "htmx-request", "stranger"}
"""Classes that scripts and filters set."""
OF_LIBRARIES = {
    "authorize", "btn", "opblock-summary-method", "u-legend", "u-over", "u-title", "uplot", "url",
}  # fmt: skip


def read_rules(name: str) -> str:
    return re.sub(r"/\*.*?\*/", "", (_FOLDER / name).read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("name", [name for name in FILES if "tokens" not in name])
def test_colours_and_lengths_come_from_the_tokens(name: str) -> None:
    rules = read_rules(name)
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?![^{]*\{)", rules)
    lengths = re.findall(r"(?<![\w-])\d*\.?\d+(?:px|rem)\b", rules)
    assert set(lengths) <= {"1px"} | BREAKPOINTS


def test_there_are_two_breakpoints() -> None:
    widths = re.findall(r"\((?:min-|max-)?width[^)]*\)", "".join(map(read_rules, FILES)))
    assert {re.sub(r"[^0-9a-z]*(?:width)[^0-9]*", "", one).rstrip(")") for one in widths} == BREAKPOINTS


def test_every_token_is_used_and_every_used_one_exists() -> None:
    rules = "".join(map(read_rules, FILES))
    made = set(re.findall(r"(--[\w-]+):", rules))
    scripts = "".join(
        file.read_text() for file in (_CONSOLE / "static").iterdir() if file.name.endswith(".js")
    )
    used = set(re.findall(r"var\((--[\w-]+)", rules)) | set(re.findall(r"--[\w-]+", scripts))
    assert set(re.findall(r"var\((--[\w-]+)", rules)) <= made
    assert made <= used


def _read_templates() -> dict[str, str]:
    found, folders = {}, [_CONSOLE / "templates"]
    while folders:
        for one in folders.pop().iterdir():
            if one.is_dir():
                folders.append(one)
            else:
                found[str(one)] = one.read_text()
    return found


def find_used_classes(template: str) -> set[str]:
    """The classes of a template: those written out, and words in quotes of its expressions."""
    used: set[str] = set()
    for attribute in re.findall(r'class="((?:[^"{]|\{\{.*?\}\}|\{%.*?%\})*)"', template):
        expressions = " ".join(re.findall(r"\{\{.*?\}\}|\{%.*?%\}", attribute))
        words = re.sub(r"\{\{.*?\}\}", "?", re.sub(r"\{%.*?%\}", " ", attribute)).split()
        used |= {word for word in words if "?" not in word}
        used |= {word for text in re.findall(r"['\"]([\w -]+)['\"]", expressions) for word in text.split()}
    return used


def test_every_class_has_a_rule_and_every_rule_a_class() -> None:
    rules = re.sub(r"\{[^{}]*\}", "{}", "".join(map(read_rules, FILES)))
    styled = set(re.findall(r"\.([a-zA-Z][\w-]*)", rules))
    templates = _read_templates()
    written = {name: find_used_classes(text) for name, text in templates.items()}
    plain = {
        name: {one for one in re.findall(r'class="([\w -]+)"', text) for one in one.split()}
        for name, text in templates.items()
    }
    lacking = {f"{name}: {one}" for name, used in plain.items() for one in used - styled}
    assert not lacking
    everywhere = set().union(*written.values()) | BY_SCRIPTS | OF_LIBRARIES
    tones = {f"t-{tone}" for tone in ("ok", "warn", "danger", "unknown", "up", "quiet", "line")}
    assert styled - everywhere - tones == set()


def test_the_sheet_is_small() -> None:
    assert len(join_styles()) <= MAX_BYTES
