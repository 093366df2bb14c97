"""Links between pages lead somewhere, and so do those into a page."""

import re
from pathlib import Path

import pytest

from support.documents import PROJECT, prose

WITH_DECISIONS = sorted(
    str(one.relative_to(PROJECT))
    for one in (PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *(PROJECT / "docs").rglob("*.md"))
)
MAX_BYTES = 90_000
SHOWN = re.compile(r'(?:src|srcset)="([^"]+)"|!?\[[^\]]*\]\(([^)\s]+)\)')


def anchors(page: Path) -> set[str]:
    """Of its headings, as what shows Markdown makes them."""
    found: set[str] = set()
    for heading in re.findall(r"(?m)^#+ (.+)$", prose(str(page.relative_to(PROJECT)))):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.add(name if name not in found else f"{name}-1")
    return found


@pytest.mark.parametrize("page", WITH_DECISIONS)
def test_a_link_leads_somewhere(page: str) -> None:
    for found in SHOWN.findall(prose(page)):
        link = "".join(found)
        if re.match("https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = (PROJECT / page).parent / path if path else PROJECT / page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.resolve()), link


def test_every_page_is_led_to_from_the_readme() -> None:
    linked = set(re.findall(r"\((docs/[\w-]+\.md)", prose("README.md")))
    assert linked == {page for page in WITH_DECISIONS if re.fullmatch(r"docs/[\w-]+\.md", page)}


def test_pictures_are_small_said_in_words_and_there_for_light_and_dark() -> None:
    found = sorted((PROJECT / "docs" / "pictures").iterdir())
    assert {picture.suffix for picture in found} == {".png"}
    assert all(picture.read_bytes()[:4] == b"\x89PNG" for picture in found)
    assert all(picture.stat().st_size < MAX_BYTES for picture in found)
    answer = prose("README.md")
    assert {f"docs/pictures/{picture.name}" for picture in found} == set(
        re.findall(r"docs/pictures/[\w.]+", answer)
    )
    (alt,) = re.findall('<img [^>]*alt="([^"]*)"', answer)
    assert "Honeypot: you cannot sell" in alt
