"""Certificates in the home folder's cache, so that an interrupted or larger build certifies nothing twice."""

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
    """The certificates of one environment on one back end."""

    def __init__(self, path: Path) -> None:
        """Read the stored certificates; `path` is named after the environment and the back end."""
        self._file = GrowingFile(path)
        self._known: dict[str, Certificate] = {}
        self._left_out: dict[str, tuple[str, ...]] = {}
        for record in self._file.read():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                self._read(record)

    def _read(self, record: Mapping[str, Any]) -> None:
        if "loaded" in record:
            self._left_out[record["loaded"]] = tuple(map(str, record["left_out"]))
            return
        mutants = Mutants(*map(int, record["mutants"])) if record["mutants"] is not None else None
        tests = tuple(map(str, record["tests"]))
        self._known[record["certified"]] = Certificate(tests, mutants, bool(record["clocks_only"]))

    def get(self, sample: Sample, reference: Reference, others: Sequence[str] = ()) -> Certificate | None:
        """Return the stored certificate, or None.

        Args:
            sample: the sample.
            reference: its answer, with the tests that coverage selected.
            others: further tests to select from.
        """
        return self._known.get(key_of(sample, reference, others))

    def add(self, sample: Sample, reference: Reference, certificate: Certificate, others: Sequence[str] = ()) -> None:
        """Store a certificate; thread-safe."""
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

    def left_out(self, sample: Sample, reference: Reference) -> tuple[str, ...] | None:
        """Return which of a reference's tests failed on a busy machine; None if they were not tried on one."""
        return self._left_out.get(key_of(sample, reference))

    def add_left_out(self, sample: Sample, reference: Reference, tests: tuple[str, ...]) -> None:
        """Store which of a reference's tests failed on a busy machine."""
        key = key_of(sample, reference)
        self._file.add({"loaded": key, "id": sample.id, "left_out": list(tests)})
        self._left_out[key] = tests


def key_of(sample: Sample, reference: Reference, others: Sequence[str] = ()) -> str:
    """Return a hash of a certificate's subject: the lines, the answer, and the tests to select from."""
    parts: list[Any] = [sample.path, sample.span, [sample.cursor.line, sample.cursor.column]]
    parts += [reference.target, reference.tests]
    return sha256(json.dumps([*parts, list(others)] if others else parts))


@dataclass(frozen=True, slots=True)
class Mutants:
    """Counts of faulty versions of functions that were not used to select tests."""

    tried: int = 0
    killed: int = 0
    """Number killed by the selected tests."""
    killed_by_all: int = 0
    """Number killed by any test that runs the function."""

    def __add__(self, other: Mutants) -> Mutants:
        """Return the sums."""
        return Mutants(self.tried + other.tried, self.killed + other.killed, self.killed_by_all + other.killed_by_all)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The tests that a function sample is certified with."""

    tests: tuple[str, ...]
    """The tests that judge it, sorted."""
    mutants: Mutants | None
    """None if no mutants were tried."""
    clocks_only: bool = False
    """Whether each of these tests reads a clock."""


class GrowingFile:
    """A file of records that is only appended to. A crash may cut off its last line, which is then ignored."""

    def __init__(self, path: Path) -> None:
        """Store the path; the file may not exist yet."""
        self._path, self._lock = path, threading.Lock()

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the stored records, oldest first."""
        with contextlib.suppress(InputFault):
            for line in read_text(self._path).split("\n"):
                with contextlib.suppress(ValueError):
                    record = json.loads(line)
                    if isinstance(record, dict):
                        yield record

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a record; thread-safe.

        Raises:
            MachineFault: if it cannot be written.
        """
        with self._lock, explained(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as out:
                # Start a new line, since the previous one may be cut off.
                out.write(("\n" if out.tell() else "").encode() + dump_line(record).encode())
