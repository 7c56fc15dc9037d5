"""Links of a built site: each leads to a file of it, each anchor to an element; no page loads from another host."""

from __future__ import annotations

import os
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
NOT_LOADED = {"canonical", "alternate", "next", "prev", "edit"}  # of <link rel>


def anchor_of(heading: str) -> str:
    """The anchor that a code host and the site give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class Page(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in LOADED and LOADED[tag] in found:
            only_named = tag == "link" and found.get("rel") in NOT_LOADED
            (self.links if only_named else self.loads).append(found[LOADED[tag]])


@cache
def page(path: Path) -> Page:
    """A page, read once."""
    return Page(path.read_text("utf-8"))


def broken_links(site: Path) -> list[str]:
    """A line for each link that leads nowhere, and each thing that is loaded from another host."""
    wrong = []
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":  # served for any address; its links begin at the site's own
            continue
        found = page(path)
        here = path.relative_to(site).as_posix()
        wrong += [f"{here}: loads {each}" for each in found.loads if urlsplit(each).netloc]
        for link in [*found.links, *found.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                wrong.append(f"{here}: {link} is not there")
            elif (
                target.suffix == ".html"
                and unquote(parts.fragment) not in page(target).anchors
                and not parts.fragment.startswith("__")  # made by the theme's script
            ):
                wrong.append(f"{here}: {link} has no such anchor")
    return wrong
