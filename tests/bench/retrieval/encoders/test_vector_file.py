"""Vectors on disk: other processes, kills and damage; a cache may lose vectors and never give wrong ones."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.retrieval.encoders import vectors
from ctxbench.bench.retrieval.encoders.vectors import VectorFile

WIDTH = 8


def vector(number: int) -> np.ndarray:
    return np.arange(number, number + WIDTH, dtype=np.float32)


def digest(number: int) -> bytes:
    return number.to_bytes(32, "big")


def some(*numbers: int) -> dict[bytes, np.ndarray]:
    return {digest(number): vector(number) for number in numbers}


open_file = VectorFile


def numbers(found: dict[bytes, np.ndarray]) -> list[int]:
    for one, row in found.items():
        assert (row == vector(int.from_bytes(one, "big"))).all()
    return sorted(int.from_bytes(one, "big") for one in found)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "one.vectors"


def asked(path: Path, upto: int = 12) -> list[int]:
    return numbers(open_file(path).read([digest(number) for number in range(upto)]))


def test_what_was_added_is_read_by_others_also_later(path: Path) -> None:
    first, second = open_file(path), open_file(path)
    assert second.read([digest(1)]) == {}
    assert not path.parent.exists()
    first.add(some(1, 2))
    assert numbers(second.read([digest(1), digest(3)])) == [1]
    second.add(some(3))
    assert numbers(first.read([digest(n) for n in (3, 2, 1)])) == [1, 2, 3]


@pytest.mark.parametrize("raw", [b"", b"x", b"SQLite format 3\0", b"\0" * 5000])
def test_a_file_that_is_no_file_of_vectors_is_replaced(path: Path, raw: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(raw)
    assert asked(path) == []
    open_file(path).add(some(1))
    assert asked(path) == [1]


def test_a_damaged_vector_is_none_whatever_bit_was_flipped(path: Path) -> None:
    open_file(path).add(some(1, 2))
    whole = path.read_bytes()
    for where in range(0, len(whole), 37):
        raw = bytearray(whole)
        raw[where] ^= 0x10
        path.write_bytes(raw)
        assert set(asked(path)) <= {1, 2}
        open_file(path).add(some(1, 2, 3))
        assert asked(path) in ([1, 2, 3], [])  # a file whose damage only the writing shows is gone
    path.unlink(missing_ok=True)
    open_file(path).add(some(5))
    assert asked(path) == [5]


def test_a_full_disk_is_a_fault_of_the_machine(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(sqlite3.Connection):
        def executemany(self, *_: object) -> sqlite3.Cursor:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    monkeypatch.setattr(vectors.sqlite3, "connect", functools.partial(sqlite3.connect, factory=Full))
    with pytest.raises(MachineFault, match="database or disk is full; free space"):
        open_file(path).add(some(1))


def test_a_folder_that_cannot_be_made_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputFault, match="is a file, not a folder"):
        open_file(tmp_path / "file" / "one.vectors").add(some(1))


def add_for_ever(path: Path, start: int, step: int) -> None:
    file = open_file(path)
    for number in range(start, 100_000, step):
        file.add(some(number))


@pytest.mark.slow
def test_processes_add_at_once_and_are_killed(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=add_for_ever, args=(path, start, 3)) for start in range(3)]
    for worker in workers:
        worker.start()
    deadline = time.monotonic() + 60
    while len(asked(path, 300)) < 100 and time.monotonic() < deadline:
        time.sleep(0.01)
    for worker in workers:
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
    assert len(asked(path, 300)) >= 100
    open_file(path).add(some(99_999))
    assert numbers(open_file(path).read([digest(99_999)])) == [99_999]
