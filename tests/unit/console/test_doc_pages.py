"""The documentation as pages: its links lead somewhere, and nothing in it is style or script."""

import re
from pathlib import Path

import pytest

from roundtrip.console.support.doc_pages import DocPages

DOCS = Path(__file__).resolve().parents[3] / "docs"
NAMES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.name != "api.md")
PAGES = DocPages(DOCS)


def body(name: str) -> str:
    page = PAGES.find(name)
    assert page is not None
    return page.body


@pytest.mark.parametrize("name", NAMES)
def test_every_page_is_shown_and_its_links_lead_to_headings(name: str) -> None:
    html = body(name)
    for path, part in re.findall(r'href="(?:/docs/([^"#]+))?#([^"]+)"', html):
        assert f' id="{part}"' in body(path or name), f"{path}#{part}"
    for path in re.findall(r'href="/docs/([^"#]+)', html):
        assert path in NAMES
    assert re.findall(r'href="(?!/docs|#|https?://)[^"]*"', html) == []
    assert re.findall(r"<[a-z][^>]*\s(?:style|on[a-z]+)=|<(?:script|style|img)", html) == []


@pytest.mark.parametrize("name", ["api.md", "../README.md", "nothing.md", "", "decisions", "/etc/passwd"])
def test_nothing_else_is_shown(name: str) -> None:
    assert PAGES.find(name) is None


def test_what_is_written_there_is_shown_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text(
        "# One & all\n\n## A `b`, c\n\n## A b c\n\n<script>x</script> [out](../x.md) [same](#a-b-c-1)\n\n"
        "[other](two.md#x)\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n"
    )
    (tmp_path / "two.md").write_text("# Two\n")
    page = DocPages(tmp_path).find("one.md")
    assert page is not None
    assert page.title == "One & all"
    assert re.findall(r'<h2 id="([^"]+)"', page.body) == ["a-b-c", "a-b-c-1"]
    assert "&lt;script&gt;" in page.body
    assert re.findall("<a [^>]*>", page.body) == ['<a href="#a-b-c-1">', '<a href="/docs/two.md#x">']
    assert '<div class="wide"><table>' in page.body
    assert '<th scope="col" class="n">b</th>' in page.body


def test_a_search_finds_sections_with_all_words_headings_first() -> None:
    hits = PAGES.search("webhook signature")
    assert hits
    titles = [section.title.lower() for _, section, _ in hits]
    for page, section, excerpt in hits:
        assert "webhook" in f"{page.title} {section.title} {section.text}".lower()
        assert excerpt.strip("…") in section.text
        assert not section.id or f'id="{section.id}"' in page.body
    in_headings = ["webhook" in title or "signature" in title for title in titles]
    assert in_headings == sorted(in_headings, reverse=True)


@pytest.mark.parametrize("query", ["", "   ", "no-page-has-this-word", "<script>"])
def test_a_search_for_nothing_finds_nothing(query: str) -> None:
    assert PAGES.search(query) == []


def test_readers_are_told_the_titles(tmp_path: Path) -> None:
    listed = PAGES.list_for_readers()
    assert ("limits.md", "Limits") in listed
    assert all(PAGES.find(name) for name, _ in listed)
    assert DocPages(tmp_path).list_for_readers() == []
