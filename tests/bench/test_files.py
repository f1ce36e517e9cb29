"""Atomic writes, checked JSON Lines, and faults that name a fix."""

import errno
import os
import pickle
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault, MachineFault, UnknownName
from ctxbench.bench.files import explained, fault_of, read_jsonl, sha256, write_atomic, write_jsonl


def test_an_atomic_write_leaves_no_other_files(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    write_atomic(path, "é\n")
    assert path.read_bytes() == "é\n".encode()
    assert os.listdir(path.parent) == ["file.txt"]


def test_full_disk_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.txt"
    write_atomic(path, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MachineFault, match="disk is full.*free some space"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_pipes_and_devices_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "stdout"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomic(link, "one\n")
        assert write_jsonl(pipe, [{"a": 1}]) == sha256('{"a": 1}\n')
        assert os.read(reader, 100) == b'one\n{"a": 1}\n'
    finally:
        os.close(reader)
    assert pipe.is_fifo() and link.is_symlink() and sorted(os.listdir(tmp_path)) == ["pipe", "stdout"]
    with pytest.raises(MachineFault, match="disk is full"):
        write_atomic(Path("/dev/full"), "x")
    assert Path("/dev/full").is_char_device()


def test_jsonl_round_trip_keeps_odd_line_separators(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    records = [{"text": "a\u2028b\x0bc\r\n"}, {"text": ""}]
    write_jsonl(path, records)
    assert [record for _, record in read_jsonl(path)] == records


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b'{"a": 1}\n{"a": ', ":2: .* not valid JSON"),
        (b"[1]\n", ":1: .* not a JSON object"),
        (b"{}\n" + b"[" * 100_000, ":2: .* nested too deeply"),
        (b'{"index": ' + b"9" * 5000 + b"}", ":1: the text is not valid JSON"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_a_fault_of_invalid_jsonl_names_the_line(tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputFault, match=word):
        list(read_jsonl(path))


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match=r"no such file.*check the path"):
        list(read_jsonl(tmp_path / "none.jsonl"))


@pytest.mark.parametrize(
    "number", [errno.ENOENT, errno.EACCES, errno.EROFS, errno.EISDIR, errno.ENOTDIR, errno.ENOSPC, errno.EIO]
)
def test_every_system_error_has_a_fix(number: int) -> None:
    fault = fault_of(OSError(number, os.strerror(number)), "place")
    assert fault.cure and "place" in str(fault)


def test_explained_keeps_the_file_name_of_the_error(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="gone"), explained("elsewhere"):
        (tmp_path / "gone").read_text()


def test_faults_survive_pickling() -> None:
    fault = UnknownName("strategy", "lc.infil", ["lc.infile"], command="ctxbench strategy list")
    copy = pickle.loads(pickle.dumps(fault))
    assert type(copy) is UnknownName and str(copy) == str(fault)
    assert "did you mean lc.infile" in str(copy)


def test_texts_with_lone_surrogates_can_be_hashed() -> None:
    assert len(sha256("\ud800")) == 64


def test_an_unknown_name_lists_at_most_20_names() -> None:
    text = str(UnknownName("sample", "zzz", [f"a{number:03}" for number in range(800)]))
    assert "a019" in text and "a020" not in text and "780 more" in text
