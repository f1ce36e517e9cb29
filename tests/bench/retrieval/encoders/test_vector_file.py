"""Vectors on disk: other processes, kills and damage; a cache may lose vectors and never give wrong ones."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval.encoders.vectors import VectorFile

WIDTH = 8
RECORD = 32 + 4 * WIDTH + 4


def vector(number: int) -> np.ndarray:
    return np.arange(number, number + WIDTH, dtype=np.float32)


def digest(number: int) -> bytes:
    return number.to_bytes(32, "big")


def some(*numbers: int) -> dict[bytes, np.ndarray]:
    return {digest(number): vector(number) for number in numbers}


def open_file(path: Path, key: str = "key") -> VectorFile:
    return VectorFile(path, key=key, width=WIDTH)


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


def test_a_text_added_twice_keeps_its_first_vector(path: Path) -> None:
    open_file(path).add(some(1))
    open_file(path).add({digest(1): vector(7)})
    assert asked(path) == [1]


@pytest.mark.parametrize("left", [1, 31, RECORD - 1])
def test_a_record_that_was_cut_off_is_dropped_and_the_next_is_whole(path: Path, left: int) -> None:
    file = open_file(path)
    file.add(some(1, 2))
    size = path.stat().st_size
    os.truncate(path, size - RECORD + left)
    assert asked(path) == [1]
    open_file(path).add(some(3))
    assert asked(path) == [1, 3]
    assert path.stat().st_size == size
    assert numbers(file.read([digest(1), digest(3)])) == [1, 3]


@pytest.mark.parametrize("where", [0, 40, 127, 128 + 5, 128 + 40, 128 + RECORD - 1])
def test_a_damaged_file_is_thrown_away_and_made_again(path: Path, where: int) -> None:
    open_file(path).add(some(1, 2))
    raw = bytearray(path.read_bytes())
    raw[where] ^= 0x10
    path.write_bytes(raw)
    fresh = open_file(path)
    # A damaged digest is a text that nobody asks for.
    assert numbers(fresh.read([digest(1), digest(2)])) in ([], [2])
    fresh.add(some(1, 2, 3))
    assert asked(path) == [1, 2, 3]


@pytest.mark.parametrize("raw", [b"", b"x", b"ctxbench vectors 1 8", b"\0" * 1000])
def test_a_file_that_is_no_file_of_vectors_is_replaced(path: Path, raw: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(raw)
    open_file(path).add(some(1))
    assert asked(path) == [1]
    path.write_bytes(raw)
    assert asked(path) == []


def test_a_file_made_for_another_key_gives_nothing(path: Path) -> None:
    open_file(path).add(some(1))
    assert open_file(path, "other").read([digest(1)]) == {}


def test_a_reader_notices_that_the_file_was_replaced(path: Path) -> None:
    reader = open_file(path)
    open_file(path).add(some(1, 2))
    assert numbers(reader.read([digest(1)])) == [1]
    path.unlink()
    assert reader.read([digest(1)]) == {}
    open_file(path).add(some(5))
    assert numbers(reader.read([digest(1), digest(5)])) == [5]


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
    while (not path.exists() or path.stat().st_size < 300 * RECORD) and time.monotonic() < deadline:
        time.sleep(0.01)
    for worker in workers:
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
    whole = (path.stat().st_size - 128) // RECORD
    found = numbers(open_file(path).read([digest(number) for number in range(100_000)]))
    assert whole >= 290
    assert len(found) == whole
    open_file(path).add(some(99_999))
    assert (path.stat().st_size - 128) % RECORD == 0
    assert numbers(open_file(path).read([digest(99_999)])) == [99_999]
