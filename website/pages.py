"""The pages of the site, gathered in a folder that MkDocs reads: those of docs/ as they stand, those beside docs/ under
names of their own, the scripts that a tutorial is about, and the reference.

Pages are written for a code host: their links lead from file to file. Here a link to a page leads to its place in the
site, and a link to any other file to the file at the address of the sources.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

from website.links import anchor_of
from website.reference import reference_pages

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = ROOT / "build" / "website" / "pages"
BESIDE = {  # file of the checkout -> page of the site
    "README.md": "index.md",
    "README.zh.md": "index.zh.md",
    "docs/README.md": "tasks.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "bench/README.md": "measuring.md",
    "wheels/README.md": "wheels.md",
    "examples/flights/README.md": "tutorials/flights.md",
}
LINK = re.compile(r"(?P<text>!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?P<to>[^)\s]+)\)")
HEADING = re.compile(r"^##+ (.+)$", re.MULTILINE)
FENCED = re.compile(r"^ *```.*?^ *```[^\n]*\n?", re.MULTILINE | re.DOTALL)


def sources_address() -> str:
    """The address of the sources, of pyproject.toml."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"])


def staged() -> dict[str, str]:
    """File of the checkout -> page of the site."""
    inside = {f"docs/{page}": page for page in (found.relative_to(DOCS).as_posix() for found in DOCS.rglob("*.md"))}
    beside = {name: page for name, page in BESIDE.items() if (ROOT / name).exists()}
    if clashing := set(beside.values()) & (set(inside.values()) - {"README.md"}):
        raise SystemExit(f"docs/ has pages whose names the site gives to files beside it: {sorted(clashing)}")
    return inside | beside


def relinked(text: str, origin: str, pages: dict[str, str]) -> str:
    """The text of the page that ``origin`` becomes, with links that lead to the site's pages."""
    here = Path(pages[origin]).parent

    def link(found: re.Match[str]) -> str:
        to, _, anchor = found["to"].partition("#")
        if not to or re.match(r"[a-z]+:", to):
            return found.group()
        target = os.path.normpath((Path(origin).parent / to).as_posix())
        if not (ROOT / target).exists():
            raise SystemExit(f"{origin}: the link {to} leads to no file")
        if other := in_the_other_language(origin, target, pages):
            return f'<a href="{os.path.relpath(other, here)}">{found["text"][1:-1]}</a>'
        if target in pages:
            to = os.path.relpath(pages[target].replace(".zh.md", ".md"), here)
        elif (DOCS / Path(target)).is_relative_to(DOCS) and target.startswith("docs/") and (ROOT / target).is_file():
            to = os.path.relpath(Path(target).relative_to("docs"), here)
        else:
            kind = "tree" if (ROOT / target).is_dir() else "blob"
            to = f"{sources_address()}/{kind}/main/{target}"
        return f"{found['text']}({to}{'#' if anchor else ''}{anchor})"

    return outside_code(text, lambda prose: LINK.sub(link, prose))


def in_the_other_language(origin: str, target: str, pages: dict[str, str]) -> str | None:
    """The address of a page that is only in the other language, or of the same page there, seen from the default root.

    Both languages have all pages, so any other link stays in its language.
    """
    if target.endswith(".zh.md") and not origin.endswith(".zh.md"):
        return "zh/" + pages[target].replace(".zh.md", ".html")
    if origin.endswith(".zh.md") and target == origin.replace(".zh.md", ".md"):
        return "../" + pages[target].replace(".md", ".html")
    return None


def with_anchors_of(text: str, english: str) -> str:
    """A Chinese page with the English headings' anchors too, which English pages link to."""
    slugs = [anchor_of(found) for found in HEADING.findall(english)]
    if len(slugs) != len(HEADING.findall(text)):
        return text
    left = iter(slugs)
    return HEADING.sub(lambda found: f'<a id="{next(left)}"></a>\n\n{found.group()}', text)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with its prose changed, and its fenced code as it was."""
    parts, last = [], 0
    for fence in FENCED.finditer(text):
        parts += [change(text[last : fence.start()]), fence.group()]
        last = fence.end()
    return "".join([*parts, change(text[last:])])


def with_scripts(text: str) -> str:
    """A tutorial, and below it each script of examples/ that it links to."""
    scripts = dict.fromkeys(re.findall(r"\]\(\.\./\.\./(examples/[\w/]+\.(?:py|toml))\)", text))
    parts = [f'??? example "{name}"\n\n{indented(name)}\n' for name in scripts]
    return "\n".join([text, *(["## The files\n", *parts] if parts else [])])


def indented(name: str) -> str:
    """A file as a block of code of an admonition."""
    code = f"```{Path(name).suffix.replace('.py', 'python').lstrip('.')}\n{(ROOT / name).read_text('utf-8')}```"
    return "\n".join(f"    {line}" if line else "" for line in code.split("\n"))


def listed(text: str) -> str:
    """The same with a blank line before a list or table that follows a paragraph, as on a code host."""
    text = re.sub(r"^((?!\s*(?:[-*|#>]|\d+\.)).*\S.*\n)(?=(?:[-*] |1\. ))", r"\1\n", text, flags=re.MULTILINE)
    return re.sub(r"^((?!\|).*\S.*\n)(?=\|)", r"\1\n", text, flags=re.MULTILINE)


def write_pages() -> Path:
    """Write all pages; return their folder."""
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = staged()
    for source in DOCS.rglob("*"):
        if source.is_file() and source.suffix != ".md":
            copy = PAGES / source.relative_to(DOCS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
    for origin, page in pages.items():
        text = (ROOT / origin).read_text("utf-8")
        if origin.startswith("docs/tutorials/"):
            text = with_scripts(text)
        if origin.endswith(".zh.md"):
            text = with_anchors_of(text, (ROOT / origin.replace(".zh.md", ".md")).read_text("utf-8"))
        text = outside_code(relinked(text, origin, pages), listed)
        (PAGES / page).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / page).write_text(text, "utf-8")
    for name, text in reference_pages().items():
        (PAGES / "reference" / name).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / "reference" / name).write_text(text, "utf-8")
    shutil.copytree(Path(__file__).parent / "style", PAGES / "style")
    return PAGES
