"""`Vectors` encodes each text once in all threads. A vector file may lose vectors but never returns wrong ones."""

import functools
import multiprocessing
import os
import signal
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.retrieval.encoders import get, vectors
from ctxbench.bench.retrieval.encoders.vectors import VectorFile, Vectors
from tests.helpers.threads import together


class Counting:
    """The hashed encoder, with a list of the texts that it encoded."""

    def __init__(self, version: str = "1", width: int = 32, pause: float = 0) -> None:
        self.version, self.width, self.pause = version, width, pause
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        time.sleep(self.pause)
        return get(f"hashed(width={self.width})").encode(texts)


@pytest.fixture(params=["memory", "disk"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "vectors" if request.param == "disk" else None


def test_vectors_are_in_text_order_and_equal_texts_are_encoded_once(folder: Path | None) -> None:
    encoder, vectors = Counting(), Vectors(folder)
    texts = ["a long text of words", "b", "", "b", "lone \udc80 surrogate", "a long text of words"]
    found = vectors.of(encoder, "counting", texts)
    assert (found == get("hashed(width=32)").encode(texts)).all()
    assert sorted(encoder.asked) == sorted(set(texts))
    assert (vectors.of(encoder, "counting", texts[::-1]) == found[::-1]).all()
    assert len(encoder.asked) == 4
    assert vectors.of(encoder, "counting", ["b", "c"]).shape == (2, 32)
    assert encoder.asked[4:] == ["c"]
    assert vectors.of(encoder, "counting", []).shape == (0, 32)


def test_changing_a_returned_vector_does_not_change_the_stored_one(folder: Path | None) -> None:
    encoder, vectors = Counting(), Vectors(folder)
    first = vectors.of(encoder, "counting", ["a"])
    kept = first.copy()
    first[:] = 0
    assert (vectors.of(encoder, "counting", ["a"]) == kept).all()


def test_vectors_are_stored_by_spec_version_and_width(folder: Path | None) -> None:
    vectors = Vectors(folder)
    for encoder, spec in (
        (Counting(), "x"),
        (Counting(), "x(path=/models/x)"),
        (Counting("2"), "x"),
        (Counting(width=64), "x"),
    ):
        assert vectors.of(encoder, spec, ["a"]).shape == (1, encoder.width)
        assert encoder.asked == ["a"]


def test_progress_counts_only_missing_vectors(folder: Path | None) -> None:
    encoder, vectors = Counting(), Vectors(folder)
    told: list[tuple[int, int]] = []
    texts = [f"text {number}" for number in range(300)]
    vectors.of(encoder, "x", texts[:10])
    vectors.of(encoder, "x", texts, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (290, 290)
    assert len(told) > 1
    vectors.of(encoder, "x", texts, progress=lambda done, total: told.append((-1, -1)))
    assert (-1, -1) not in told


def test_memory_is_bounded_and_evicted_vectors_are_computed_again() -> None:
    encoder, vectors = Counting(), Vectors(None, most=10 * 32 * 4)
    texts = [f"text {number}" for number in range(25)]
    found = vectors.of(encoder, "x", texts)
    assert (found == get("hashed(width=32)").encode(texts)).all()
    before = len(encoder.asked)
    vectors.of(encoder, "x", texts)
    assert len(encoder.asked) > before


def test_threads_encode_a_text_once(folder: Path | None) -> None:
    encoder, vectors = Counting(pause=0.02), Vectors(folder)
    texts = [f"text {number}" for number in range(40)]
    found: list[np.ndarray] = []
    together(6, lambda: found.append(vectors.of(encoder, "x", texts)))
    assert len(found) == 6
    assert all((one == found[0]).all() for one in found)
    assert sorted(encoder.asked) == sorted(texts)


@pytest.mark.parametrize("wrong", ["shape", "numbers"])
def test_invalid_vectors_of_an_encoder_are_not_stored(folder: Path | None, wrong: str) -> None:
    class Broken(Counting):
        def encode(self, texts: Sequence[str]) -> np.ndarray:
            made = super().encode(texts)
            return made[:, 1:] if wrong == "shape" else made * np.float32("nan")

    vectors = Vectors(folder)
    with pytest.raises(MachineFault, match="encoder broken"):
        vectors.of(Broken(), "broken", ["a"])
    whole = Counting()
    assert vectors.of(whole, "broken", ["a"]).shape == (1, 32)
    assert whole.asked == ["a"]


def test_a_run_adds_at_most_its_limit_of_bytes_to_the_files(tmp_path: Path) -> None:
    vectors = Vectors(tmp_path, most=2 * 32 * 4)
    wanted = [vectors.of(Counting(), "counting", [text]) for text in ("a", "b", "c")]
    later, anew = Vectors(tmp_path), Counting()
    for text, vector in zip(("a", "b", "c"), wanted, strict=True):
        assert (later.of(anew, "counting", [text]) == vector).all()
    assert anew.asked == ["c"]


WIDTH = 8


def vector(number: int) -> np.ndarray:
    return np.arange(number, number + WIDTH, dtype=np.float32)


def digest(number: int) -> bytes:
    return number.to_bytes(32, "big")


def some(*numbers: int) -> dict[bytes, np.ndarray]:
    return {digest(number): vector(number) for number in numbers}


def numbers(found: dict[bytes, np.ndarray]) -> list[int]:
    for one, row in found.items():
        assert (row == vector(int.from_bytes(one, "big"))).all()
    return sorted(int.from_bytes(one, "big") for one in found)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "one.vectors"


def asked(path: Path, upto: int = 12) -> list[int]:
    return numbers(VectorFile(path).read([digest(number) for number in range(upto)]))


def test_added_vectors_are_read_by_other_instances(path: Path) -> None:
    first, second = VectorFile(path), VectorFile(path)
    assert second.read([digest(1)]) == {}
    assert not path.parent.exists()
    first.add(some(1, 2))
    assert numbers(second.read([digest(1), digest(3)])) == [1]
    second.add(some(3))
    assert numbers(first.read([digest(n) for n in (3, 2, 1)])) == [1, 2, 3]


@pytest.mark.parametrize("raw", [b"", b"x", b"SQLite format 3\0", b"\0" * 5000])
def test_an_invalid_vector_file_is_replaced(path: Path, raw: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(raw)
    assert asked(path) == []
    VectorFile(path).add(some(1))
    assert asked(path) == [1]


def test_a_vector_with_a_flipped_bit_is_never_returned(path: Path) -> None:
    VectorFile(path).add(some(1, 2))
    whole = path.read_bytes()
    for where in range(0, len(whole), 37):
        raw = bytearray(whole)
        raw[where] ^= 0x10
        path.write_bytes(raw)
        assert set(asked(path)) <= {1, 2}
        VectorFile(path).add(some(1, 2, 3))
        assert asked(path) in ([1, 2, 3], [])  # a file is deleted if only a write reveals its damage
    path.unlink(missing_ok=True)
    VectorFile(path).add(some(5))
    assert asked(path) == [5]


def test_a_full_disk_is_a_machine_fault(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(sqlite3.Connection):
        def executemany(self, *_: object) -> sqlite3.Cursor:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    monkeypatch.setattr(vectors.sqlite3, "connect", functools.partial(sqlite3.connect, factory=Full))
    with pytest.raises(MachineFault, match="database or disk is full; free some disk space"):
        VectorFile(path).add(some(1))


def test_a_folder_that_cannot_be_created_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputFault, match="is a file, not a folder"):
        VectorFile(tmp_path / "file" / "one.vectors").add(some(1))


def add_for_ever(path: Path, start: int, step: int) -> None:
    file = VectorFile(path)
    for number in range(start, 100_000, step):
        file.add(some(number))


@pytest.mark.slow
def test_a_vector_file_survives_killed_concurrent_writers(path: Path) -> None:
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
    VectorFile(path).add(some(99_999))
    assert numbers(VectorFile(path).read([digest(99_999)])) == [99_999]
