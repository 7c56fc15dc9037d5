"""Properties files: what java.util.Properties.load makes of them."""

from __future__ import annotations

import pytest

from pyengine.topology.properties import parse_properties


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=b\n c : d\r\ne\tf\rg", {"a": "b", "c": "d", "e": "f", "g": ""}),
        ("a = b \n", {"a": "b "}),
        ("# one \\\na=b\n  ! c=d\n", {"a": "b"}),
        ("a = b, \\\n   c, \\\n  # d\ne=f", {"a": "b, c, # d", "e": "f"}),
        ("a=b\\\\\nc=d\\\\\\\ne", {"a": "b\\", "c": "d\\e"}),
        ("a=b\\", {"a": "b"}),
        ("a\\ b\\=c=d\\ \n", {"a b=c": "d "}),
        ("a=\\t\\n\\x\\\\u0041\\u0041\n", {"a": "\t\nx\\u0041A"}),
        ("a\\u00e9=\\ud83d\\ude00\\ud83d\n", {"a\xe9": "\U0001f600\ufffd"}),
        ("a=1\na=2", {"a": "2"}),
    ],
)
def test_a_file_is_read_as_java_reads_it(text: str, found: dict[str, str]) -> None:
    assert parse_properties(text) == found


def test_only_lines_with_a_sign_count_where_names_are_not_bare() -> None:
    assert parse_properties("a=b\nc d\ne\nf: g", bare_names=False) == {"a": "b", "f": "g"}
