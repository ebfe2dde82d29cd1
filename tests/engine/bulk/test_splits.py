"""However a file is cut, its splits give the rows, the error and the line numbers that the whole gives."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from engine.changes.bulk import read_split, splits
from engine.changes.bulk.read_split import make_decoder, worker_env
from engine.changes.bulk.splits import whole
from engine.changes.writes.copy_rows import RowLoader
from engine.session.progress import CopyProgress
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.errors import DataError
from tests.engine.bulk.loads import INT4, NUMERIC, TEXT, outcome, spec, splits_of
from tests.support.proofs import sampled

OPTIONS = [
    CopyOptions(),
    CopyOptions(delimiter="|", null=""),
    CopyOptions(header=True),
    CopyOptions(format="csv"),
    CopyOptions(format="csv", header=True, delimiter=";", null="NULL"),
    CopyOptions(format="csv", quote="'"),
    CopyOptions(format="csv", quote="'", escape="\\"),
    CopyOptions(format="csv", force_null=frozenset({1}), force_not_null=frozenset({2})),
    CopyOptions(format="csv", on_error="ignore"),
    CopyOptions(on_error="ignore"),
    CopyOptions(format="json"),
    CopyOptions(format="json", on_error="ignore"),
]
WORDS = [
    "",
    "x",
    "ä",
    "a b",
    '"',
    '""',
    "'",
    "\\",
    "\n",
    "\r\n",
    "|",
    ",",
    ";",
    "\\.",
    "long" * 20,
    "\\N",
    "\t",
]


def field(r: random.Random, options: CopyOptions) -> str:
    text = "".join(r.choice(WORDS) for _ in range(r.randint(0, 3)))
    if options.format == "csv":
        quote, escape = options.effective_quote, options.effective_escape
        if r.random() < 0.6:
            return quote + text.replace(escape, escape * 2).replace(quote, escape + quote) + quote
        return r.choice(["", "x", "plain text"])
    if options.format == "json":
        return (
            '"'
            + text.replace("\\", "\\\\")
            .replace('"', '\\"')
            .replace("\n", "\\n")
            .replace("\r", "")
            .replace("\t", "")
            + '"'
        )
    return r.choice(["\\N", "x", text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
                     .replace("|", "\\|")])  # fmt: skip


def sample(r: random.Random, options: CopyOptions) -> bytes:
    eol = r.choice(["\n", "\n", "\n", "\r\n", "\r"])
    delimiter = options.effective_delimiter
    lines = []
    for i in range(r.randint(1, 60)):
        number = str(i) if r.random() > 0.02 else "bad"
        decimal = r.choice(["1.50", "-3", "12345.678"])
        if options.format == "json":
            text = f'{{"a": {number if number != "bad" else chr(34) + "bad" + chr(34)}, "b": {field(r, options)}, "c": {decimal}}}'
        else:
            text = delimiter.join([number, field(r, options), decimal])
        lines.append(text + eol)
    data = bytearray("".join(lines).encode())
    if r.random() < 0.3:  # something odd anywhere
        odd = r.choice([b'"', b"'", b"\\", b"\n", b"\r", b"\\.\n", b",", b"\xff", b"\\\n", b"\n\\.\n"])
        at = r.randrange(len(data) + 1)
        data[at:at] = odd
    return bytes(data.rstrip(b"\r\n")) if r.random() < 0.2 else bytes(data)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_split, "BLOCK_BYTES", 96)
    monkeypatch.setattr(read_split, "CAREFUL_BYTES", 24)
    monkeypatch.setattr(read_split, "HEAD_BYTES", 16)


@pytest.mark.parametrize("files", sampled(1, [20, 50]))
@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_splits_agree_with_the_whole(
    options: CopyOptions, files: int, tmp_path: Path, small_blocks: None
) -> None:
    r = random.Random(str(options))
    path = tmp_path / "file"
    load = spec(options, INT4, TEXT, NUMERIC)
    several = 0
    for _ in range(files):
        data = sample(r, options)
        path.write_bytes(data)
        expected = outcome(load, [whole(0, str(path), str(path), len(data))])
        for chunk_bytes in (r.randint(3, 40), r.randint(40, 400)):
            cuts = splits_of(path, options, chunk_bytes)
            assert cuts[0].start == 0
            assert cuts[-1].end == len(data)
            assert all(one.end == two.start for one, two in pairwise(cuts))
            several += len(cuts) > 1
            assert outcome(load, cuts) == expected, data
    assert several > files // 5 or options.effective_escape == "\\"


@pytest.mark.parametrize("files", sampled(1, [20, 50]))
@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_a_whole_file_reads_as_the_row_decoder_reads_it(
    options: CopyOptions, files: int, tmp_path: Path, small_blocks: None
) -> None:
    """The reference feeds the decoder line by line and each row to the loader: nothing is read by column."""
    r = random.Random(f"whole {options}")
    path = tmp_path / "file"
    load = spec(options, INT4, TEXT, NUMERIC)
    for _ in range(files):
        data = sample(r, options)
        path.write_bytes(data)
        rows, error, said = outcome(load, [whole(0, str(path), str(path), len(data))])
        loader = RowLoader(load, worker_env(), CopyProgress("COPY FROM", 1, "FILE"), keep=100)
        decoder = make_decoder(load)
        reference = []
        wrong = None
        try:
            for line in data.splitlines(keepends=True):
                reference += loader.feed(decoder, line)
            reference += loader.finish(decoder)
        except DataError as caught:
            wrong = f'{caught.sqlstate} {caught.message} {caught.where}\nfile "{path}"'
        assert error == wrong, data
        if wrong is None:
            assert [(row["c1"], row["c2"]) for row in rows] == [row[:2] for row in reference]
            assert [row["c3"]["u"] for row in rows] == [
                int(row[2].scaleb(-row[2].as_tuple().exponent)) for row in reference
            ]
            assert said == [reject.message() for reject in loader.rejects.first]


def test_a_chunk_without_a_row_end_goes_with_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "SEARCH_BYTES", 16)
    path = tmp_path / "file"
    options = CopyOptions(format="csv")
    path.write_text("1,x,1\n" + '2,"' + "y\n" * 300 + '",2\n' + "3,z,3\n" * 40)
    load = spec(options, INT4, TEXT, NUMERIC)
    cuts = splits_of(path, options, 100)
    assert 1 < len(cuts) < 7
    assert outcome(load, cuts) == outcome(load, [whole(0, str(path), str(path), path.stat().st_size)])


def test_lines_are_counted_through_quotes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    options = CopyOptions(format="csv")
    path.write_text("0,x,1\n" + '1,"a\nb",1\n' * 50 + "x1,c,1\n")
    cuts = splits_of(path, options, 64)
    assert len(cuts) > 5
    _rows, error, _said = outcome(spec(options, INT4, TEXT, NUMERIC), cuts)
    assert error is not None
    assert 'COPY t, line 102, column a: "x1"' in error
