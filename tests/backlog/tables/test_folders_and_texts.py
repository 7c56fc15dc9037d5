"""Columns from names of folders, other delimiters and encodings, and .zst."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyengine.backlog.tables.messages import to_messages
from pyengine.backlog.tables.shards import piece_from_text, pieces_to_text
from pyengine.backlog.tables.sources import parquet_pieces, read_piece, read_schema, read_source
from pyengine.errors import ConfigurationError, InvalidSourceError, InvalidTopologyError
from pyengine.topology import Source, Topology


def write_days(folder: Path) -> None:
    for day, region, n in ((1, "EU", 1), (2, "a%2Fb", 2), (2, "__HIVE_DEFAULT_PARTITION__", 3)):
        path = folder / f"day={day}" / f"region={region}"
        path.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"n": [n]}), path / f"{n}.parquet")


@pytest.mark.parametrize("pattern", ["log", "log/day=*/*/*.parquet"])
def test_folders_are_columns(tmp_path: Path, pattern: str) -> None:
    write_days(tmp_path / "log")
    source = Source("q.{region}", path=str(tmp_path / pattern))
    expected = {"day": [1, 2, 2], "n": [1, 2, 3], "region": ["EU", "a/b", None]}
    table = read_source(source).table
    order = [("n", "ascending")]
    found = {name: table.sort_by(order).column(name).to_pylist() for name in expected}
    if pattern == "log":
        assert found == expected
    else:  # folders before the first wildcard make no column
        assert found["region"] == expected["region"]
    assert str(table.schema.field("region").type) == "string"


def test_the_pieces_of_workers_have_the_same_columns(tmp_path: Path) -> None:
    write_days(tmp_path)
    source = Source("q.{region}", path=str(tmp_path), types=(("day", "string"),), properties=("day",))
    pieces = [piece_from_text(text) for text in pieces_to_text(parquet_pieces(source) or ())]
    assert {str(read_schema(piece, source).field("day").type) for piece in pieces} == {"string"}
    tables = [read_piece(piece, source).table.select(["region", "day"]) for piece in pieces]
    assert pa.concat_tables(tables).to_pylist() == read_source(source).table.select(["region", "day"]).to_pylist()
    messages, rejects = to_messages(read_source(source).table, range(3), source)
    assert (messages.num_rows, len(rejects)) == (2, 1)


def test_a_column_of_the_file_counts_before_its_folder(tmp_path: Path) -> None:
    (tmp_path / "n=7").mkdir()
    pq.write_table(pa.table({"n": [1]}), tmp_path / "n=7" / "a.parquet")
    assert read_source(Source("q", path=str(tmp_path))).table.to_pydict() == {"n": [1]}
    assert read_source(Source("q", path=str(tmp_path / "n=7" / "a.parquet"))).table.to_pydict() == {"n": [1]}


def test_delimiters_and_encodings(tmp_path: Path) -> None:
    text = 'id;city;note\n1;Köln;"a;b"\n2;Zürich;x\n3;too;many;fields\n'
    (tmp_path / "a.csv").write_bytes(text.encode("cp1252"))
    source = Source("q", path=str(tmp_path / "a.csv"), delimiter=";", encoding="cp1252")
    rows = read_source(source)
    assert rows.table.to_pydict() == {"id": [1, 2], "city": ["Köln", "Zürich"], "note": ["a;b", "x"]}
    assert [(reject.row, reject.reason) for reject in rows.rejects] == [(2, "has 4 fields, the header has 3")]
    (tmp_path / "b.tsv").write_bytes(text.replace(";", "\t").encode("utf-16"))
    tabs = Source("q", path=str(tmp_path / "b.tsv"), format="csv", delimiter="\t", encoding="utf-16")
    assert read_source(tabs).table.column("city").to_pylist() == ["Köln", "Zürich"]
    (tmp_path / "c.jsonl").write_bytes('{"city": "北京"}\n'.encode("gbk"))
    assert read_source(Source("q", path=str(tmp_path / "c.jsonl"), encoding="gbk")).table["city"].to_pylist() == [
        "北京"
    ]
    with pytest.raises(InvalidSourceError, match="is not ascii"):
        read_source(Source("q", path=str(tmp_path / "a.csv"), encoding="ascii"))


def test_zstandard_is_unpacked_and_tells_what_it_lost(tmp_path: Path) -> None:
    lines = "".join(f'{{"n": {n}, "text": "{n * 7919 % 10007}"}}\n' for n in range(2000)).encode()
    packed = pa.compress(lines, codec="zstd", asbytes=True)
    (tmp_path / "a.jsonl.zst").write_bytes(packed + pa.compress(b'{"n": 2000, "text": "x"}\n', "zstd", asbytes=True))
    assert read_source(Source("q", path=str(tmp_path))).table.column("n").to_pylist() == list(range(2001))
    (tmp_path / "a.jsonl.zst").write_bytes(packed + packed[: len(packed) // 2])
    rows = read_source(Source("q", path=str(tmp_path)))
    assert rows.table.column("n").to_pylist()[:2000] == list(range(2000))
    assert rows.rejects[-1].reason == "the .zst breaks off here: this row and those behind it are lost"
    (tmp_path / "a.jsonl.zst").write_bytes(b"no frame of zstandard")
    with pytest.raises(InvalidSourceError, match=r"a\.jsonl\.zst"):
        read_source(Source("q", path=str(tmp_path)))


def test_what_is_no_delimiter_or_encoding_is_named() -> None:
    for given, words in (
        ({"delimiter": ";;"}, "must be one ASCII character"),
        ({"delimiter": '"'}, "must be one ASCII character"),
        ({"encoding": "utf-9"}, "is not an encoding that Python knows"),
        ({"encoding": "base64"}, "is not an encoding that Python knows"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            Source("q", **given)
        ((key, value),) = given.items()
        text = f"[source]\npath = 'a.csv'\ndestination = 'q'\n{key} = '{value}'\n"
        with pytest.raises(InvalidTopologyError, match=words):
            Topology.from_text(text)
    made = Topology.from_text("[source]\npath = 'a'\ndestination = 'q'\ndelimiter = \"\\t\"\nencoding = 'gbk'\n")
    assert (made.source.delimiter, made.source.encoding) == ("\t", "gbk")
    assert Topology.from_text(made.to_text()) == made


def test_objects_of_json_lines_whose_values_differ_in_type_are_read_as_json(tmp_path: Path) -> None:
    lines = ['{"h": {"n": 5}}', '{"h": {"n": "five"}}', '{"h": {"n": [5]}}', '{"h": null}', '{"h": 7}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    source = Source("q", path=str(tmp_path / "a.jsonl"), columns=(("n", "h.n"),), properties=())
    rows = read_source(source)
    messages, rejects = to_messages(rows.table, rows.numbers, source)
    assert messages.column("__json:n").to_pylist() == ["5", '"five"', None]
    assert [(reject.row, reject.reason) for reject in rejects] == [
        (2, "is not a value that a property can have"),
        (4, "is not a JSON object"),
    ]
