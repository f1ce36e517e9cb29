"""Certificates, kept in the home folder's cache, so that an interrupted or larger build certifies none twice."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import dump_line, explained, read_text, sha256
from ctxbench.bench.types import Reference, Sample


class Certificates:
    """The certificates of one environment on one back end, and why other samples got none."""

    def __init__(self, path: Path, *, again: bool = False) -> None:
        """Read what is kept.

        Args:
            path: named after the environment and the back end.
            again: whether samples that got no certificate are tried again.
        """
        self._file = GrowingFile(path)
        self._known: dict[str, Certificate | None] = {}
        self._left_out: dict[str, tuple[str, ...]] = {}
        self._dropped: dict[str, str] = {}
        for record in self._file.read():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                self._read(record)
        if again:
            self._dropped.clear()

    def _read(self, record: Mapping[str, Any]) -> None:
        if "dropped" in record:
            # The fault may have been ours: another version tries again.
            if record["version"] == version("ctxbench"):
                self._dropped[record["dropped"]] = str(record["reason"])
            return
        if "loaded" in record:
            self._left_out[record["loaded"]] = tuple(map(str, record["left_out"]))
            return
        certificate = None
        if "tests" in record:
            mutants = Mutants(*map(int, record["mutants"]))
            certificate = Certificate(tuple(map(str, record["tests"])), mutants, bool(record.get("clocks_only")))
        self._known[record["certified"]] = certificate

    def has(self, sample: Sample, reference: Reference) -> bool:
        """Say whether a sample was certified before, with the same lines, answer and tests."""
        return key_of(sample, reference) in self._known

    def get(self, sample: Sample, reference: Reference, others: Sequence[str] = ()) -> Certificate | None:
        """Return the certificate that was kept, None if there is none.

        Args:
            sample: what is asked for.
            reference: its answer, with the tests that coverage chose.
            others: more tests that were there to choose from.
        """
        key = key_of(sample, reference, others)
        if key not in self._known:
            return None
        # Earlier versions kept nothing but that there is one.
        return self._known[key] or Certificate(reference.tests, None)

    def add(
        self,
        sample: Sample,
        reference: Reference,
        others: Sequence[str] = (),
        certificate: Certificate | None = None,
    ) -> None:
        """Keep a certificate; safe to call from many threads."""
        key = key_of(sample, reference, others)
        record: dict[str, Any] = {"certified": key, "id": sample.id}
        if certificate is not None and certificate.mutants is not None:
            mutants = certificate.mutants
            record["tests"] = list(certificate.tests)
            record["mutants"] = [mutants.tried, mutants.killed, mutants.killed_by_all]
            record |= {"clocks_only": True} if certificate.clocks_only else {}
        self._file.add(record)
        self._known[key] = certificate

    def left_out(self, sample: Sample, reference: Reference) -> tuple[str, ...] | None:
        """Return which of a reference's tests failed on a busy machine, None if they were not tried on one."""
        return self._left_out.get(key_of(sample, reference))

    def add_left_out(self, sample: Sample, reference: Reference, tests: tuple[str, ...]) -> None:
        """Keep which of a reference's tests failed on a busy machine."""
        key = key_of(sample, reference)
        self._file.add({"loaded": key, "id": sample.id, "left_out": list(tests)})
        self._left_out[key] = tests

    def dropped(self, sample: Sample, reference: Reference, others: Sequence[str] = ()) -> str:
        """Return why a sample got no certificate from this version, empty if that is not kept."""
        return self._dropped.get(key_of(sample, reference, others), "")

    def drop(self, sample: Sample, reference: Reference, others: Sequence[str], reason: str) -> None:
        """Keep why a sample gets no certificate; safe to call from many threads."""
        key = key_of(sample, reference, others)
        self._file.add({"dropped": key, "id": sample.id, "reason": reason, "version": version("ctxbench")})
        self._dropped[key] = reason


def key_of(sample: Sample, reference: Reference, others: Sequence[str] = ()) -> str:
    """Return a hash of what a certificate is about: the lines, the answer, and the tests to choose from."""
    parts: list[Any] = [sample.path, sample.span, [sample.cursor.line, sample.cursor.column]]
    parts += [reference.target, reference.tests]
    return sha256(json.dumps([*parts, list(others)] if others else parts))


@dataclass(frozen=True, slots=True)
class Mutants:
    """What became of faulty versions of functions that no choice of tests was made by."""

    tried: int = 0
    killed: int = 0
    """By the tests that were chosen."""
    killed_by_all: int = 0
    """By these or by others that run the function."""

    def __add__(self, other: Mutants) -> Mutants:
        """Return both together."""
        return Mutants(self.tried + other.tried, self.killed + other.killed, self.killed_by_all + other.killed_by_all)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a function sample was certified with."""

    tests: tuple[str, ...]
    """The tests that judge it, sorted."""
    mutants: Mutants | None
    """None where nothing was tried: certificates of earlier versions."""
    clocks_only: bool = False
    """Whether each of these tests reads a clock."""


class GrowingFile:
    """One file; a crash may cut off its last line, which then counts as none."""

    def __init__(self, path: Path) -> None:
        """Take a path; nothing need be there yet."""
        self._path, self._lock = path, threading.Lock()

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the records that are kept, oldest first."""
        with contextlib.suppress(InputFault):
            for line in read_text(self._path).split("\n"):
                with contextlib.suppress(ValueError):
                    record = json.loads(line)
                    if isinstance(record, dict):
                        yield record

    def add(self, record: Mapping[str, Any]) -> None:
        """Keep a record; safe to call from many threads.

        Raises:
            MachineFault: if it cannot be written.
        """
        with self._lock, explained(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as out:
                # A line of its own also behind one that was cut off.
                out.write(("\n" if out.tell() else "").encode() + dump_line(record).encode())
