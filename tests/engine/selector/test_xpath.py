"""XPATH on message bodies: namespaces, what is refused, and that no problem raises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pyengine
from pyengine._engine.selector.xpath import compile_path

XML = "<r a='1'><b>x</b><c n='5'/><c n='7'/></r>"


@pytest.mark.parametrize(
    ("path", "body", "found"),
    [
        ("//b", XML, True),
        ("//b", XML.encode(), True),
        ("//d", XML, False),
        ("/r/@a = 1", XML, True),
        ("sum(//@n)", XML, True),
        ("count(//d)", XML, False),
        ("number('x')", XML, False),
        ("string(//b)", XML, True),
        ("string(//d)", XML, False),
        ("false()", XML, False),
        ("//comment()", "<r><!-- c --></r>", False),
        ("//b", "<r xmlns='u'><b/></r>", False),
        ("//*[namespace-uri() = 'u' and local-name() = 'b']", "<r xmlns='u'><b/></r>", True),
        ("/r/b/text() = 'é'", "<r><b>é</b></r>", True),
        ("r", XML, True),
        ("b", XML, False),
        ("count(r/c) = 2", XML, True),
        (". = 'x'", XML, True),
        ("r)] | /r[(b", XML, False),
        ("1e3", XML, False),
        ("not(//p:b)", XML, True),
        ("//b = 'p:b' or //p:b", "<r><b>p:b</b></r>", True),
        ("//@xml:lang", "<r xml:lang='en'/>", False),
        ("-p:b != 1", XML, True),
        ("1-p:b != 1", XML, True),
        ("r[1]-é:b != 1", XML, True),
        ("r[p:and and @a]", XML, False),
        ("//c[1.5]", XML, True),
        ("//c[last() div 2][@n = 5]", XML, True),
        ("//c[(.5 + 2)]/@n = 7", XML, True),
        ("//c[number('2.9')]/@n = 7", XML, True),
        ("//c[. = '' and 1.5]/@n = 7", XML, True),
        ("//c[position() = 1.5]", XML, False),
        ("//c[0.5]", XML, False),
        ("//c[count(../c) div 2 = 1]/@n = 7", XML, True),
        ("2 - -1", XML, True),
        ("2 - - -1", XML, False),
        ("--1", XML, False),
        ("true() and - -1", XML, False),
        ("* * - -1", XML, False),
        ("/ - -1 != 0", XML, True),
        ("2div 1", XML, False),
        ("1.5-1", XML, False),
        ("1.5 -1", XML, True),
        ("3-1", XML, True),
        (". -1 != 0", XML, True),
        (".-1 != 0", XML, False),
        (".or 1", XML, False),
        ("1 or.5", XML, False),
        ("1 or 'a'[1]", XML, False),
        ("1 or 1 /r", XML, False),
        ("1 or not()", XML, False),
        ("1 or count(/, /)", XML, False),
        ("1 or nothing()", XML, False),
        ("1 or key('a', 'b')", XML, False),
        ("1 or current() or p:nothing(1)", XML, True),
        ("count( / ) = 1 and concat('a', 'b', 'c')", XML, True),
        ("translate(//b, 'x', 'y') = 'y'", XML, True),
        ("child::r/child::b", XML, True),
        ("//b", f"\ufeff{XML}", False),
        ("//b", f"\ufeff{XML}".encode(), True),
        ("//b", "<?xml version='1.0' encoding='UTF-16'?><r><b/></r>", True),
        ("//b", "<?xml version='1.0' encoding='ISO-8859-1'?><r><b>é</b></r>".encode("latin-1"), True),
    ],
)
def test_xpath_is_a_boolean_of_the_body(path: str, body: str | bytes, found: bool) -> None:
    assert compile_path(path)(body) is found


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("//b", None),
        ("//b", ""),
        ("//b", b""),
        ("//b", "zzz"),
        ("//b", "<r><b></r>"),
        ("//b", "<r><b/></r><r/>"),
        ("//b", "\ud800<r><b/></r>"),
        ("//b", "<!DOCTYPE r [<!ELEMENT r ANY>]><r><b/></r>"),
        ("//b", "<!DOCTYPE r SYSTEM 'r.dtd'><r><b/></r>"),
        ("//b", "<!DOCTYPE r [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><r><b>&e;</b></r>"),
        ("[", XML),
        ("", XML),
        ("\0", XML),
        ("p:b", XML),
        ("nothing()", XML),
        ("$variable", XML),
    ],
)
def test_any_problem_is_false(path: str, body: str | bytes | None) -> None:
    assert compile_path(path)(body) is False


def test_a_selector_reads_the_body_of_a_message() -> None:
    selector = pyengine.Selector("XPATH '//b' AND color = 'red'")
    assert selector.matches(pyengine.Message({"color": "red"}, body=XML))
    assert not selector.matches(pyengine.Message({"color": "red"}, body="text"))
    assert not selector.matches(pyengine.Message({"color": "red"}))
    assert pyengine.Selector("NOT XPATH '//b'").matches(pyengine.Message())


def test_without_lxml_the_selector_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['lxml'] = None\n"
        "import pyengine\n"
        "try: pyengine.Selector(\"XPATH '//b'\")\n"
        "except pyengine.MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True
    )
    assert "pip install 'lxml>=5'" in done.stdout
