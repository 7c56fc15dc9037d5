"""Files in the encodings and conditions in which people hand them over."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from pyengine.backlog.diagnosis.diagnose import diagnose
from pyengine.backlog.diagnosis.evidence import read_files, read_what_can_be
from pyengine.backlog.diagnosis.evidence.opening import open_text
from pyengine.errors import InvalidSourceError, InvalidTopologyError
from pyengine.topology import BrokerConfiguration

TABLE = "Name  Queue Size  Producer #  Consumer #\n订单.eu  12  0  0\n"
BROKER = (
    '<?xml version="1.0" encoding="{encoding}"?>\n<broker xmlns="http://activemq.apache.org/schema/core" '
    'brokerName="b"><destinationPolicy><policyMap><policyEntries><policyEntry queue="订单{more}"/></policyEntries>'
    "</policyMap></destinationPolicy></broker>"
)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (TABLE.encode(), ""),
        (TABLE.encode("utf-8-sig"), ""),
        (TABLE.encode("utf-16"), ""),
        (TABLE.replace("\n", "\r\n").encode("utf-32"), ""),
        (TABLE.encode("gb18030"), "gb18030"),
        (gzip.compress(TABLE.encode()), ""),
        (gzip.compress(TABLE[:40].encode()) + gzip.compress(TABLE[40:].encode()), ""),
        (TABLE.encode("utf-16-le"), ""),
        (TABLE.encode("utf-16-be"), ""),
        (TABLE.replace("订", "\x1b[1m订\x1b[0m").encode(), ""),
    ],
    ids=[
        "utf-8",
        "with its mark",
        "utf-16",
        "utf-32",
        "gb18030",
        "gzip",
        "gzip of two members",
        "utf-16-le",
        "utf-16-be",
        "bold",
    ],
)
def test_a_table_in_any_dress(data: bytes, encoding: str, tmp_path: Path) -> None:
    (tmp_path / "dstat").write_bytes(data)
    (queue,) = read_files([tmp_path / "dstat"], encoding).destinations
    assert (queue.name, queue.queue_size) == ("订单.eu", 12)


def test_bytes_of_another_encoding_cost_a_remark_not_the_file(tmp_path: Path) -> None:
    file = tmp_path / "dstat"
    file.write_bytes(TABLE.encode()[1:] + TABLE.splitlines()[1].encode("gb18030"))
    cut = open_text(file)
    assert [(each.line, str(each.why)) for each in cut.remarks] == [
        (3, "4 characters are not UTF-8; try --encoding gb18030")
    ]
    (tmp_path / "cut").write_bytes("单\n".encode()[1:] + TABLE.encode())
    evidence = read_files([tmp_path / "cut"])
    assert len(evidence.destinations) == len(evidence.remarks) == 1
    file.write_bytes(b"new\x0cpage\nhere \xb5\n")
    assert [(each.line, each.text) for each in open_text(file).remarks] == [(2, "here \N{REPLACEMENT CHARACTER}")]


@pytest.mark.parametrize(
    ("data", "encoding", "words"),
    [
        (b"\x7fELF\x00\xff", "", r"is a compiled program, not text$"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "", r"is a picture \(PNG\), not text; paste the text that it shows"),
        (b"\xca\xfe\xba\xbe\0\0\0\x3d", "", "is a compiled Java class, not text$"),
        (b"PK\x03\x04\x14\0\x08\x08\0\0META-INF/MANIFEST.MF", "", "is a jar, compiled Java, not text$"),
        (b"\xd4\xc3\xb2\xa1\x02\0\x04\0", "", r"is a capture of packets \(pcap\), not text; give the client's log"),
        (b"JAVA PROFILE 1.0.2\0\0\0\0\x08", "", "is a heap dump, not text; give thread dumps"),
        (gzip.compress(b"%PDF-1.4\n\0\xff"), "", "is a PDF, not text"),
        (gzip.compress(b"a.txt".ljust(257, b"\0") + b"ustar\0" + bytes(255)), "", "is an archive .tar., not text"),
        (b"\x00\x01\x02\xff\xfe", "", r"is binary data, not text \(byte 3\); give what a tool prints"),
        (
            bz2.compress(TABLE.encode()),
            "",
            r"is packed with bzip2; unpack it with bunzip2; gzip alone is read as it is$",
        ),
        (lzma.compress(TABLE.encode()), "", r"is packed with xz; unpack it with unxz"),
        (b"\x28\xb5\x2f\xfd\x24\x01\x09\x00\x00a\x8e\x7e\xd9\x5a", "", r"is packed with zstd; unpack it with zstd -d"),
        (b"PK\x03\x04\x14\x00", "gb18030", r"is packed with zip; unpack it with unzip"),
        (b"\xff\xfe\x00", "", r"is not text in UTF-16 \(byte 2\)$"),
        (b"\xff", "gb18030", "is not text in GB18030"),
        (b"a", "klingon", "unknown encoding: klingon"),
        (b"a", "undefined", "cannot be read: .*undefined encoding"),
        (b"a", "utf\0", "cannot be read: "),
        (b"\x1f\x8b\x08cut", "", "cannot be read"),
        (b" \n", "", "is empty"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, encoding: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(InvalidSourceError, match=words):
        read_files([tmp_path / "file"], encoding)


def test_a_gzip_file_that_breaks_off_keeps_what_came_before(tmp_path: Path) -> None:
    file = tmp_path / "dstat.gz"
    file.write_bytes(gzip.compress(TABLE.encode())[:-9])
    evidence = read_files([file])
    assert [str(each.why) for each in evidence.remarks] == ["the gzip file breaks off: what came before is read"]
    assert evidence.destinations or evidence.sources


def covered(file: Path, properties: dict[str, str] | None = None) -> str:
    """What the only policy of a broker's file covers."""
    (policy,) = read_files([file], properties=properties).brokers[0].policies.entries
    return policy.destination


@pytest.mark.parametrize("encoding", ["GB18030", "GBK", "UTF-8", "UTF-16"])
def test_a_broker_s_file_in_the_encoding_it_declares(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "activemq.xml"
    file.write_bytes(BROKER.format(encoding=encoding, more="").encode(encoding))
    assert read_files([file]).brokers == [BrokerConfiguration.load(file)]
    assert covered(file) == "订单"
    for other, words in (("x-none", "unknown encoding: x-none"), ("undefined", "undefined encoding")):
        file.write_bytes(BROKER.format(encoding=other, more="").encode())
        with pytest.raises(InvalidSourceError, match=words):
            read_files([file])
        with pytest.raises(InvalidTopologyError, match="encoding"):
            BrokerConfiguration.load(file)


def test_placeholders_of_a_broker_s_file_are_given(tmp_path: Path) -> None:
    file = tmp_path / "activemq.xml"
    file.write_text(BROKER.format(encoding="UTF-8", more="${number}"), "utf-8")
    assert covered(file, {"number": "7"}) == "订单7"
    with pytest.raises(InvalidSourceError, match=r"\$\{number\} is not defined"):
        read_files([file])


def test_a_file_counts_once_and_the_readable_ones_are_answered(tmp_path: Path) -> None:
    good, bad = tmp_path / "dstat.txt", tmp_path / "bad.txt"
    good.write_text(TABLE, "utf-8")
    bad.write_text("buy milk")
    evidence, refused = read_what_can_be([good, bad, good, tmp_path])
    assert [each.problem for each in refused] == ["holds nothing that is known here"]
    assert len(evidence.destinations) == 1
    assert {finding.code for finding in diagnose(evidence)} == {"no_consumer"}
