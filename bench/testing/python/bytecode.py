"""Bytecode of a suite's tests and of what they import, made once in a box and given to the jobs that judge.

Half of what a judgement takes goes into rewriting the assertions of test modules, which no completion changes.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Protocol, runtime_checkable

from ctxbench.bench.files import sha256, write_atomic
from ctxbench.bench.home import Home
from ctxbench.sandbox.types import Job, Pool

_MAX_BYTES = 8 << 20
"""Of one file."""
_VERSION = 1


@runtime_checkable
class Compiling(Protocol):
    """A `Suite` whose tests are compiled whenever they are imported."""

    def compiling(self, tests: Collection[str]) -> Job:
        """Return the job that compiles the modules of these tests and what they import."""
        ...


def bytecode(suite: Compiling, tests: Collection[str], pool: Pool, image: str, home: Home) -> Mapping[str, bytes]:
    """Return path -> content of the bytecode files of some tests, from the home's cache if it has them.

    Args:
        suite: whose tests they are.
        tests: their ids.
        pool: boxes of the suite's environment.
        image: a key of all that the boxes hold.
        home: whose cache is used.

    Raises:
        SandboxLost: if the machine failed.
    """
    if not tests:
        return {}
    path = home.cache / "bytecode" / f"{sha256(json.dumps([_VERSION, image, sorted(tests)]))[:32]}.json"
    if path.is_file():
        return read(json.loads(path.read_text(encoding="utf-8")))
    outcome = pool.run(suite.compiling(tests))
    files = read(outcome.result)
    if files:
        write_atomic(path, json.dumps(outcome.result))
    return files


def with_bytecode(job: Job, files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return a job's files and the bytecode files but those of the job's own, which were made of the answer."""
    own = {(str(path.parent), path.stem) for path in map(PurePosixPath, job.files)}
    return {**{path: content for path, content in files.items() if _source(path) not in own}, **job.files}


def read(result: object) -> dict[str, bytes]:
    """Return path -> content of what ``ctxbench_pytest:compiled`` returned.

    What is odd is left out: a job without it takes longer and says the same.
    """
    files: dict[str, bytes] = {}
    for path, text in result.items() if isinstance(result, dict) else ():
        if PurePosixPath(path).parent.name != "__pycache__" or PurePosixPath(path).suffix != ".pyc":
            continue
        unpacker = zlib.decompressobj()
        try:
            content = unpacker.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
        except (TypeError, ValueError, binascii.Error, zlib.error):
            continue
        if unpacker.eof:
            files[path] = content
    return files


def _source(path: str) -> tuple[str, str]:
    """Return folder and stem of the file that a bytecode file was made of."""
    cached = PurePosixPath(path)
    return str(cached.parent.parent), cached.name.partition(".")[0]
