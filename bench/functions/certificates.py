"""Caches samples' certificates (which tests can judge a sample) in the home folder, for later builds."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import dump_line, explained, read_text, sha256
from ctxbench.bench.types import Reference, Sample


class Certificates:
    """The cached certificates for one environment on one back end of the sandbox."""

    def __init__(self, path: Path) -> None:
        self._file = GrowingFile(path)
        self._known: dict[str, Certificate] = {}
        self._busy_failures: dict[str, tuple[str, ...]] = {}
        for record in self._file.read():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                self._read(record)

    def _read(self, record: Mapping[str, Any]) -> None:
        if "loaded" in record:
            self._busy_failures[record["loaded"]] = tuple(map(str, record["left_out"]))
            return
        mutants = Mutants(*map(int, record["mutants"])) if record["mutants"] is not None else None
        tests = tuple(map(str, record["tests"]))
        self._known[record["certified"]] = Certificate(tests, mutants, bool(record["clocks_only"]))

    def get(self, sample: Sample, reference: Reference, others: Sequence[str] = ()) -> Certificate | None:
        """Return the certificate stored for exactly this sample, reference and further tests (`others`), or None."""
        return self._known.get(key_of(sample, reference, others))

    def add(self, sample: Sample, reference: Reference, certificate: Certificate, others: Sequence[str] = ()) -> None:
        """Store a sample's certificate. Thread-safe."""
        key, mutants = key_of(sample, reference, others), certificate.mutants
        self._file.add(
            {
                "certified": key,
                "id": sample.id,
                "tests": list(certificate.tests),
                "mutants": None if mutants is None else [mutants.tried, mutants.killed, mutants.killed_by_all],
                "clocks_only": certificate.clocks_only,
            }
        )
        self._known[key] = certificate

    def busy_failures(self, sample: Sample, reference: Reference) -> tuple[str, ...] | None:
        """Return the sample's tests that failed on a busy machine; None if no result is stored."""
        return self._busy_failures.get(key_of(sample, reference))

    def add_busy_failures(self, sample: Sample, reference: Reference, tests: tuple[str, ...]) -> None:
        """Store which of the sample's tests failed on a busy machine."""
        key = key_of(sample, reference)
        self._file.add({"loaded": key, "id": sample.id, "left_out": list(tests)})
        self._busy_failures[key] = tests


def key_of(sample: Sample, reference: Reference, others: Sequence[str] = ()) -> str:
    """Return the key of a sample's certificate: a hash of the sample's position, reference and candidate tests."""
    parts: list[Any] = [sample.path, sample.span, [sample.cursor.line, sample.cursor.column]]
    parts += [reference.target, reference.tests]
    return sha256(json.dumps([*parts, list(others)] if others else parts))


@dataclass(frozen=True, slots=True)
class Mutants:
    """Counts of a function's faulty versions: all that were tried, and those that tests detect."""

    tried: int = 0
    killed: int = 0
    """Number of faulty versions that the selected tests detect."""
    killed_by_all: int = 0
    """Number of faulty versions that at least one test of the function detects."""

    def __add__(self, other: Mutants) -> Mutants:
        return Mutants(self.tried + other.tried, self.killed + other.killed, self.killed_by_all + other.killed_by_all)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certified tests of a sample, and the evaluation of these tests."""

    tests: tuple[str, ...]
    mutants: Mutants | None
    """Evaluation of the tests by faulty versions; None if the tests were not evaluated."""
    clocks_only: bool = False


class GrowingFile:
    """An append-only file with a JSON object per line. A line that a crash left incomplete is ignored."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the objects, oldest first; nothing if the file cannot be read."""
        with contextlib.suppress(InputFault):
            for line in read_text(self._path).split("\n"):
                with contextlib.suppress(ValueError):
                    record = json.loads(line)
                    if isinstance(record, dict):
                        yield record

    def add(self, record: Mapping[str, Any]) -> None:
        """Append `record` as a JSON object. Thread-safe.

        Raises:
            CtxbenchError: if the file cannot be written (see `bench.files.fault_of`).
        """
        with self._lock, explained(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as out:
                # The previous line may be incomplete.
                out.write(("\n" if out.tell() else "").encode() + dump_line(record).encode())
