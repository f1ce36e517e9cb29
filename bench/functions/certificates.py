"""Keeps what came of certifying in the home folder's cache, so that an interrupted or larger build does none twice."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ctxbench.bench.files import sha256
from ctxbench.bench.functions.kept import GrowingFile
from ctxbench.bench.functions.types import Certificate, Mutants
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
