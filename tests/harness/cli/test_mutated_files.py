"""500 damaged files of all kinds that users provide are read or refused in one line, in little memory.

One process tries all of them, so that its peak memory is known.
"""

import contextlib
import gzip
import io
import json
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.repositories.manifest import BUILTIN
from ctxbench.bench.repositories.sources import unpack
from ctxbench.harness.prices import load as load_prices
from ctxbench.harness.run.stored import read as read_completions
from tests.bench.formats import test_broken
from tests.harness.imported.records import java_task, python_task
from tests.helpers.cli import run_cli
from tests.helpers.functions import make_function_set
from tests.helpers.memory import forget_peak, peak
from tests.helpers.sets import make_set

COUNT = 500
SECONDS = 60
"""The time limit for one file, in seconds. A slower reader counts as hung; the slowest file takes about one second."""
MEMORY = 1 << 30
FORMATS = ("codereval", "crosscodeeval", "ctxbench", "projbench", "repobench")
SHAPES = [shape for shape in test_broken.SHAPES if shape.format in FORMATS]
ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**400, 2**63, 1e308, "", " ", "\n", "\0", "\ud800", "x" * 100_000, "../../etc/passwd",
    "\x1b[2J", [], {}, [[[]]], {"a": {"b": []}}, [None], "NaN", "é" * 3, "\u202e",
)  # fmt: skip
ODD_BYTES = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"NaN", b"Infinity", b"-", b"1e999", b"9" * 5000, b"[" * 3000, b"{" * 300, b'"',
    b"\\u", b"\\ud800", b"\r", b"\n", b",", b"}", b"]", b"\x1f\x8b",
)  # fmt: skip


def values_of(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value of a record."""
    if path:
        yield path
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, inner in items:
        yield from values_of(inner, (*path, key))


def changed_value(draw: random.Random, line: bytes) -> bytes:
    """Change, rename, wrap or remove one value of a record."""
    record = json.loads(line)
    *outer, last = draw.choice(list(values_of(record)))
    inner = record
    for key in outer:
        inner = inner[key]
    kind = draw.randrange(4)
    if kind == 0 or not isinstance(inner, dict):
        inner[last] = draw.choice(ODD_VALUES)
    elif kind == 1:
        del inner[last]
    elif kind == 2:
        at = draw.randrange(len(last) + 1)
        inner[last[:at] + draw.choice(("", "x", "_", " ")) + last[at + 1 :]] = inner.pop(last)
    else:
        inner[last] = [inner[last]]
    try:
        return json.dumps(record).encode()
    except ValueError:  # an integer with more digits than Python writes
        return line


def damaged(draw: random.Random, data: bytes) -> bytes:
    """Change bytes at random places."""
    for _ in range(draw.choice((1, 1, 2, 5, 30))):
        start = draw.randrange(len(data) + 1)
        end = min(len(data), start + draw.choice((0, 1, 1, 2, 10, 1000)))
        piece = draw.choice((b"", draw.choice(ODD_BYTES), draw.randbytes(draw.randrange(1, 20)), data[start:end] * 2))
        data = data[:start] + piece + data[end:]
    return data[: draw.randrange(len(data) + 1)] if draw.random() < 0.15 else data


def mutated(draw: random.Random, data: bytes) -> bytes:
    """Return a randomly damaged file."""
    lines = data.splitlines(keepends=True)
    kind = draw.randrange(4)
    with contextlib.suppress(ValueError, TypeError, IndexError, KeyError):
        if kind == 0:
            place = draw.randrange(len(lines))
            lines[place] = changed_value(draw, lines[place]) + b"\n"
            return b"".join(lines)
        if kind == 1:
            draw.shuffle(lines)
            return b"".join(lines + lines[: draw.randrange(3)])
    return damaged(draw, data)


def archive(kind: str) -> bytes:
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as file:
            file.writestr("demo/a.py", "a = 1\n")
            file.writestr("demo/pkg/b.py", "b = 2\n")
    else:
        with tarfile.open(fileobj=out, mode=f"w:{kind}") as tar:  # type: ignore[call-overload]
            for name in ("demo/a.py", "demo/pkg/b.py", f"demo/{'long' * 50}.py"):
                info = tarfile.TarInfo(name)
                info.size = 6
                tar.addfile(info, io.BytesIO(b"a = 1\n"))
    return out.getvalue()


def jsonl(*records: Any) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


class Case:
    """A valid file, and a function that reads it and returns an exit code."""

    def __init__(self, name: str, data: bytes, read: Callable[[Path], int]) -> None:
        self.name, self.data, self.read = name, data, read


def cases(home: Home) -> list[Case]:
    line_set, function_set = make_set(home), make_function_set(home)

    def command(*words: str) -> Callable[[Path], int]:
        def read(path: Path) -> int:
            result = run_cli(*[str(path) if word == "FILE" else word for word in words])
            told = [line for line in result.err.splitlines() if line.startswith("ctxbench: ")]
            assert "Traceback" not in result.err and (result.code != 1 or len(told) == 1), result
            shutil.rmtree(home.root / "samples" / "new", ignore_errors=True)
            return result.code

        return read

    def library(use: Callable[[Path], object]) -> Callable[[Path], int]:
        def read(path: Path) -> int:
            try:
                use(path)
            except InputFault as fault:
                assert fault.cure and "\n" not in str(fault)
                return 1
            return 0

        return read

    def unpacked(path: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            unpack(path, Path(folder), strip=True)

    def import_set(shape: test_broken.Shape) -> Callable[[Path], int]:
        return command("samples", "import", "--format", shape.format, "FILE", "--name", "new", "--home", str(home.root))

    def import_results(shape: str, *more: str) -> Callable[[Path], int]:
        return command("results", "import", "--format", shape, "FILE", *more, "--home", str(home.root))

    lines = [{"sample": sample.id, "text": "x = 1", "index": 0} for sample in line_set.samples]
    functions = [{"sample": sample.id, "text": "def f(): pass", "verdict": "PASSED"} for sample in function_set.samples]
    scores = [{"id": str(n), "prompt": "a = ", "prediction": "f(x)", "ground_truth": "f(y)"} for n in range(4)]
    manifest = (BUILTIN / "toolz.toml").read_bytes()
    prices = b'[[rate]]\nmatch = "m"\ninput = 1.0\noutput = 2.0\nseen = 2026-01-02\nsource = "a list"\n'
    own = home.root / "samples" / "demo"
    files = {path.name: path.read_bytes() for path in own.iterdir() if path.is_file()}

    def own_file(name: str) -> Callable[[Path], int]:
        def read(path: Path) -> int:
            shutil.copyfile(path, own / name)
            try:
                return library(lambda _: sets.load(home, "demo"))(path)
            finally:
                (own / name).write_bytes(files[name])

        return read

    return [
        *(Case(shape.name, shape.text(shape.record).encode(), import_set(shape)) for shape in SHAPES),
        *(Case(f"{s.name}.gz", gzip.compress(s.text(s.record).encode()), import_set(s)) for s in SHAPES),
        Case("lines.jsonl", jsonl(*lines), import_results("ctxbench", "--samples", "demo")),
        Case("functions.jsonl", jsonl(*functions), import_results("ctxbench", "--samples", "functions")),
        Case("python.jsonl", jsonl(python_task("a", True), python_task("b", False)), import_results("codereval")),
        Case("java.jsonl", jsonl(java_task("a", True), java_task("b", False)), import_results("codereval")),
        Case("scores.jsonl", jsonl(*scores), command("score", "FILE", "--language", "python", "--profile", "all")),
        Case("done.jsonl", jsonl(*functions), library(lambda path: read_completions(path, function_set))),
        Case("toolz.toml", manifest, command("repo", "check", "FILE")),
        Case("prices.toml", prices, library(load_prices)),
        *(Case(name, data, own_file(name)) for name, data in files.items()),
        *(Case(f"a.{kind}", archive(kind), library(unpacked)) for kind in ("gz", "bz2", "xz", "zip")),
    ]


class Hang(BaseException):
    """Raised when the time limit of a file is over."""


def _hang(*_: object) -> None:
    raise Hang


def attempt(number: int, case: Case, folder: Path) -> str:
    """Return the outcome of one damaged file: ``read``, ``refused``, or a description of the error."""
    path = folder / case.name
    path.write_bytes(mutated(random.Random(number), case.data))
    signal.signal(signal.SIGALRM, _hang)
    signal.alarm(SECONDS)
    try:
        code = case.read(path)
    except Hang:
        return f"{number} {case.name}: hangs"
    except BaseException as error:  # noqa: BLE001 - a traceback is what is looked for
        return f"{number} {case.name}: {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return {0: "read", 1: "refused"}.get(code, f"{number} {case.name}: exit code {code}")


def main() -> None:
    """Try all files, and write their outcomes and the peak memory as JSON."""
    forget_peak()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        all_cases = cases(Home(folder / "home"))
        refused = [case.name for case in all_cases if case.read(_written(folder, case))]
        assert not refused, f"good files are refused: {refused}"
        results = [attempt(number, all_cases[number % len(all_cases)], folder) for number in range(COUNT)]
    print(json.dumps({"results": results, "memory": peak()}))


def _written(folder: Path, case: Case) -> Path:
    path = folder / case.name
    path.write_bytes(case.data)
    return path


@pytest.mark.slow
def test_each_damaged_file_is_read_or_refused_in_one_line() -> None:
    program = "from tests.harness.cli.test_mutated_files import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    outcome: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert [result for result in outcome["results"] if result not in ("read", "refused")] == []
    assert outcome["results"].count("refused") > COUNT / 2
    assert outcome["memory"] < MEMORY
