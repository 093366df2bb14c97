"""The documentation's pages, ``docs/*.md``, as HTML."""

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

_REFERENCE = {"api.md": "/docs"}
"""Pages that are shown elsewhere: this one is the same table as the reference."""
_READERS = (
    "first-minutes.md", "meaning.md", "agents.md", "clients.md", "checks.md", "verdicts.md", "trade.md",
    "holders.md", "liquidity.md", "boards.md", "rules.md", "alerts.md", "keys.md", "limits.md", "bag.md",
    "practice.md", "marks.md", "scorecard.md", "verify.md", "terminal.md", "glossary.md", "security.md",
)  # fmt: skip
"""Pages for users, in order of use; the others are for operators and developers."""
_MAX_WORDS, _MAX_HITS, _EXCERPT = 8, 20, 180
_ABSOLUTE = re.compile(r"https?://|#")


@dataclass(frozen=True, slots=True)
class DocSection:
    """A part of a page below a heading. ``id``: empty: above the first heading. ``text``: its words, without
    marks; of a part of lower level, they belong to that one alone."""

    id: str
    title: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class DocPage:
    """One page. ``name``: its file, below the folder. ``body``: HTML, without the title."""

    name: str
    title: str
    body: str
    sections: tuple[DocSection, ...]


class DocPages:
    """The pages of a folder, rendered when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self._files: Mapping[str, Path] = {
            path.relative_to(folder).as_posix(): path
            for path in sorted(folder.rglob("*.md"))
            if path.name not in _REFERENCE
        }
        self._rendered: dict[str, DocPage] = {}
        self._lowered: list[tuple[DocPage, DocSection, str]] = []
        self._markdown = MarkdownIt("commonmark", {"html": False}, renderer_cls=_PageRenderer)
        self._markdown.enable("table").disable("image")

    def find(self, name: str) -> DocPage | None:
        """The page of a file's name; None: there is none."""
        if name not in self._files:
            return None
        if name not in self._rendered:
            self._rendered[name] = self._render(name)
        return self._rendered[name]

    def list_for_readers(self) -> list[tuple[str, str]]:
        """The pages for users: name and title."""
        return [(name, _read_title(self._files[name])) for name in _READERS if name in self._files]

    def search(self, query: str) -> list[tuple[DocPage, DocSection, str]]:
        """Sections of the pages for users that have every word of the query, those with one in their heading
        first, each with the words around the first word. Empty: none has, or nothing was asked for."""
        words = query.lower().split()[:_MAX_WORDS]
        if not self._lowered:
            pages = [page for name in _READERS if (page := self.find(name)) is not None]
            self._lowered = [
                (page, section, f"{page.title} {section.title} {section.text}".lower())
                for page in pages
                for section in page.sections
            ]
        found = [
            (page, section, _excerpt(section.text, words[0]))
            for page, section, text in self._lowered
            if words and all(word in text for word in words)
        ]
        found.sort(key=lambda hit: not any(word in hit[1].title.lower() for word in words))
        return found[:_MAX_HITS]

    def _render(self, name: str) -> DocPage:
        tokens = self._markdown.parse(self._files[name].read_text())
        title = tokens[1].content if tokens and tokens[0].tag == "h1" else name
        self._resolve_links(tokens, PurePosixPath(name).parent)
        _name_headings(tokens)
        body = self._markdown.renderer.render(tokens[3:], self._markdown.options, {})
        return DocPage(name, title, body, _split_sections(tokens[3:]))

    def _resolve_links(self, tokens: Sequence[Token], folder: PurePosixPath) -> None:
        """Points links to other pages at their addresses; of links to files that are not served, only the
        text stays."""
        for token in tokens:
            opened: list[Token] = []
            for child in token.children or ():
                if child.type == "link_open":
                    opened.append(child)
                    child.attrs["href"] = self._resolve(str(child.attrs["href"]), folder)
                elif child.type == "link_close" and not opened.pop().attrs["href"]:
                    child.hidden = True

    def _resolve(self, href: str, folder: PurePosixPath) -> str:
        if _ABSOLUTE.match(href):
            return href
        path, _, part = href.partition("#")
        parts: list[str] = []
        for step in (folder / path).parts:
            if step != "..":
                parts.append(step)
            elif not parts:
                return ""
            else:
                parts.pop()
        name = "/".join(parts)
        if name in _REFERENCE:
            return _REFERENCE[name]
        return f"/docs/{name}{f'#{part}' if part else ''}" if name in self._files else ""


class _PageRenderer(RendererHTML):
    """HTML without inline styles; wide tables scroll by themselves."""

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return self.renderToken(tokens, idx, options, env) if tokens[idx].attrs["href"] else ""

    def link_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "" if tokens[idx].hidden else "</a>"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="wide"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<td class="n">' if "right" in str(tokens[idx].attrs.get("style", "")) else "<td>"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        style = str(tokens[idx].attrs.get("style", ""))
        return '<th scope="col" class="n">' if "right" in style else '<th scope="col">'


def _name_headings(tokens: Sequence[Token]) -> None:
    """Gives headings the ids that links within the documentation use: those of the host of its repository."""
    seen: Counter[str] = Counter()
    for token, inline in itertools.pairwise(tokens):
        if token.type == "heading_open":
            text = "".join(child.content for child in inline.children or ())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            token.attrs["id"] = slug if not seen[slug] else f"{slug}-{seen[slug]}"
            seen[slug] += 1


def _split_sections(tokens: Sequence[Token]) -> tuple[DocSection, ...]:
    sections: list[DocSection] = []
    heading, texts = ("", "", 1), list[str]()
    is_heading = False
    for token in tokens:
        if token.type == "heading_open":
            sections.append(DocSection(*heading, " ".join(texts)))
            heading, texts, is_heading = (str(token.attrs["id"]), "", int(token.tag[1])), [], True
        elif token.type in ("inline", "fence"):
            children = token.children or [token]
            text = "".join(" " if child.type == "softbreak" else child.content for child in children)
            if is_heading:
                heading, is_heading = (heading[0], text, heading[2]), False
            else:
                texts.append(text)
    return tuple(one for one in (*sections, DocSection(*heading, " ".join(texts))) if one.id or one.text)


def _excerpt(text: str, word: str) -> str:
    """The words around the first place of ``word``, or the beginning."""
    place = max(0, text.lower().find(word))
    begin = text.rfind(" ", 0, max(0, place - _EXCERPT // 3)) + 1
    cut = text[begin : begin + _EXCERPT]
    return f"{'…' if begin else ''}{cut}{'…' if len(text) > begin + _EXCERPT else ''}"


def _read_title(path: Path) -> str:
    with path.open() as file:
        return file.readline().lstrip("# ").strip()
