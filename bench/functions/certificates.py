"""Keeps certificates in the home folder's cache, so that an interrupted or larger build does none twice."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.errors import InputFault
from bench.files import dump_line, explained, read_text, sha256
from bench.functions.types import Certificate, Mutants
from bench.types import Reference, Sample


class Certificates:
    """The certificates of one environment on one back end: a file of JSON lines that only grows."""

    def __init__(self, path: Path) -> None:
        """Read what is kept; a line that a crash cut off is left out.

        Args:
            path: named after the environment and the back end.
        """
        self._path, self._lock = path, threading.Lock()
        self._known: dict[str, Certificate | None] = {}
        self._left_out: dict[str, tuple[str, ...]] = {}
        with contextlib.suppress(InputFault):
            for line in read_text(path).split("\n"):
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    self._read(json.loads(line))

    def _read(self, kept: Mapping[str, Any]) -> None:
        if "loaded" in kept:
            self._left_out[kept["loaded"]] = tuple(map(str, kept["left_out"]))
            return
        certificate = None
        if "tests" in kept:
            mutants = Mutants(*map(int, kept["mutants"]))
            certificate = Certificate(tuple(map(str, kept["tests"])), mutants, bool(kept.get("clocks_only")))
        self._known[kept["certified"]] = certificate

    def has(self, sample: Sample, reference: Reference) -> bool:
        """Say whether a sample was certified before, with the same lines, answer and tests."""
        return _key(sample, reference) in self._known

    def get(self, sample: Sample, reference: Reference, others: Sequence[str] = ()) -> Certificate | None:
        """Return the certificate that was kept, None if there is none.

        Args:
            sample: what is asked for.
            reference: its answer, with the tests that coverage chose.
            others: more tests that were there to choose from.
        """
        key = _key(sample, reference, others)
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
        key = _key(sample, reference, others)
        record: dict[str, Any] = {"certified": key, "id": sample.id}
        if certificate is not None and certificate.mutants is not None:
            mutants = certificate.mutants
            record["tests"] = list(certificate.tests)
            record["mutants"] = [mutants.tried, mutants.killed, mutants.killed_by_all]
            record |= {"clocks_only": True} if certificate.clocks_only else {}
        self._append(record)
        self._known[key] = certificate

    def left_out(self, sample: Sample, reference: Reference) -> tuple[str, ...] | None:
        """Return which of a reference's tests failed on a busy machine, None if they were not tried on one."""
        return self._left_out.get(_key(sample, reference))

    def add_left_out(self, sample: Sample, reference: Reference, tests: tuple[str, ...]) -> None:
        """Keep which of a reference's tests failed on a busy machine."""
        key = _key(sample, reference)
        self._append({"loaded": key, "id": sample.id, "left_out": list(tests)})
        self._left_out[key] = tests

    def _append(self, record: Mapping[str, Any]) -> None:
        with self._lock, explained(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as out:
                # A line of its own also behind one that was cut off.
                out.write(("\n" if out.tell() else "").encode() + dump_line(record).encode())


def _key(sample: Sample, reference: Reference, others: Sequence[str] = ()) -> str:
    parts: list[Any] = [sample.path, sample.span, [sample.cursor.line, sample.cursor.column]]
    parts += [reference.target, reference.tests]
    return sha256(json.dumps([*parts, list(others)] if others else parts))
