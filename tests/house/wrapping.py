"""Wrap the prose of pages at 100 columns: ``python -m tests.house.wrapping docs/broker.md ...``.

Paragraphs and items of lists are filled; code, tables, headings and HTML stay. A code span is not broken.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

WIDTH = 100
ITEM = re.compile(r"(\s*)([-*]|\d+\.)\s+")
KEPT = "\0"  # a blank at which no line ends


def filled(lines: list[str]) -> list[str]:
    """One paragraph or item, filled."""
    item = ITEM.match(lines[0])
    indent = item.group() if item else re.match(r"\s*", lines[0]).group()  # type: ignore[union-attr]
    text = " ".join([lines[0][len(indent) :].strip(), *(line.strip() for line in lines[1:])])
    text = re.sub(r"`[^`]*`", lambda span: span.group().replace(" ", KEPT), text)
    text = re.sub(r" (?=(?:[-*+#>]|\d+\.) )", KEPT, text)  # at the start of a line they would be marks
    wrapped = textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=" " * len(indent),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace(KEPT, " ") for line in wrapped]


def wrapped(page: str) -> str:
    """A page of Markdown with its prose wrapped."""
    done: list[str] = []
    paragraph: list[str] = []
    fenced = False

    def end_paragraph() -> None:
        if paragraph:
            done.extend(filled(paragraph))
            paragraph.clear()

    for line in page.split("\n"):
        if line.lstrip().startswith("```"):
            end_paragraph()
            fenced = not fenced
            done.append(line)
        elif fenced or not line.strip() or line.startswith(("|", "#", "<")) or (line[:4] == "    " and not paragraph):
            end_paragraph()
            done.append(line)
        else:
            if ITEM.match(line):
                end_paragraph()
            paragraph.append(line)
    end_paragraph()
    return "\n".join(done)


def main() -> None:
    """Wrap the pages that are named."""
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(wrapped(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
