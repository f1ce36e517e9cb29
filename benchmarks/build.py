"""Build 200 samples of a repository of some 25,000 lines, beside a pass that only parses its files.

The repository is penzai where the home folder has it, otherwise packages of the standard library. Each
measurement has a process of its own, so that its peak memory is its own; both use one process only.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import statistics
import sys
import sysconfig
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.syntax import parser
from ctxbench.bench.lines.build import build_samples
from ctxbench.bench.repositories import checkout, manifest, snapshot
from ctxbench.bench.repositories.snapshot import Snapshot

T = TypeVar("T")
LINES = 25_000
SAMPLES = 200
ROUNDS = 3
PACKAGES = ("asyncio", "email", "logging", "importlib", "xml")


def main() -> None:
    name, lines, sample_count = _measured(_size)
    parsed = [_measured(_parse) for _ in range(ROUNDS)]
    built = [_measured(_build) for _ in range(ROUNDS)]
    parse_time, build_time = (statistics.median(run[0] for run in runs) for runs in (parsed, built))
    parse_peak, build_peak = (max(run[1] for run in runs) for runs in (parsed, built))
    print("| repository | lines | samples | build s | peak MB | parse only s | peak MB | time ratio |")
    print("|---|---|---|---|---|---|---|---|")
    print(
        f"| {name} | {lines} | {sample_count} | {build_time:.2f} | {build_peak:.0f} "
        f"| {parse_time:.2f} | {parse_peak:.0f} | {build_time / parse_time:.1f} |"
    )


def _measured(work: Callable[[], T]) -> T:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work).result()


def _size() -> tuple[str, int, int]:
    read = _repository()
    samples = build_samples([read], per_repo=SAMPLES, seed=0).samples
    return read.name, sum(text.count("\n") for text in read.texts.values()), len(samples)


def _parse() -> tuple[float, float]:
    texts = _repository().texts.values()
    began = time.process_time()
    for text in texts:
        parser(PYTHON).parse(text.encode())
    return time.process_time() - began, _peak()


def _build() -> tuple[float, float]:
    read = _repository()
    began = time.process_time()
    build_samples([read], per_repo=SAMPLES, seed=0)
    return time.process_time() - began, _peak()


def _peak() -> float:
    """Return the peak memory of this process in MB; macOS counts bytes, Linux kibibytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1024)


def _repository() -> Snapshot:
    about = manifest.load("penzai")
    fetched = checkout.find(about, Home(Path(os.environ.get("CTXBENCH_HOME", ".ctxbench")).absolute()))
    if fetched is not None:
        return snapshot.load(about.name, fetched.root, about.language, about.source_dir)
    texts: dict[str, str] = {}
    for package in PACKAGES:
        folder = Path(sysconfig.get_path("stdlib"), package)
        for path in sorted(folder.rglob("*.py")):
            texts[f"library/{package}/{path.relative_to(folder).as_posix()}"] = path.read_text("utf-8", "replace")
        if sum(text.count("\n") for text in texts.values()) >= LINES:
            break
    ordered = dict(sorted(texts.items()))
    digest = sha256("".join(ordered.values()))
    return Snapshot(name="stdlib", language=PYTHON, digest=digest, texts=ordered, dropped={})


if __name__ == "__main__":
    main()
