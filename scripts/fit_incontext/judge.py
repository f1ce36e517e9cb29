"""Judge weights on packages that were held out: bits, exact match, edit similarity, identifier F1.

python -m scripts.fit_incontext.judge LANGUAGE WEIGHTS.npz SAMPLES.jsonl [--limit N] [--show]

With ``--record OUT.json`` the sources, their licences, the fit and the table are written down.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from ctxbench.bench.files import sha256_file, write_atomic
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext.decode import complete
from ctxbench.harness.generators.incontext.model import CopyModel
from ctxbench.harness.metrics import score
from scripts.fit_incontext.fetch import SOURCES
from scripts.fit_incontext.fit import prompt_of

_LOADED: dict[str, Any] = {}


def load(path: Path, language: Language) -> None:
    """Load what a worker needs."""
    _LOADED["model"] = CopyModel.load(path, language)


def judge(record: dict[str, Any]) -> tuple[str, list[float], str]:
    """Return the kind of prompt, the numbers and the completion."""
    model, prompt, target = _LOADED["model"], prompt_of(record), record["target"]
    start = time.process_time()
    bits = model.bits(prompt, target)
    middle = time.process_time()
    text = complete(model, model.read(prompt), 64).text
    spent = time.process_time() - middle
    scores = score("ctxbench", model.language, prompt=record["prefix"], prediction=text, ground_truth=target)
    return record["kind"], [bits, middle - start, *(100 * scores[name] for name in ("em", "es", "id_f1")), spent], text


def write_record(out: Path, weights: Path, language: str, rows: dict[str, list[list[float]]]) -> None:
    """Write what the weights are made of and how they did on held-out packages."""
    with np.load(weights) as arrays:
        samples, bits = arrays["fitted"].tolist()
    names = ("bits", "em", "es", "identifier_f1")
    table = {}
    for kind, group in rows.items():
        mean = np.mean(group, axis=0)
        picked = dict(zip(names, (mean[0], *mean[2:5]), strict=False))
        table[kind] = {"n": len(group), **{name: round(float(value), 1) for name, value in picked.items()}}
    library = {"name": "Python standard library", "version": platform.python_version(), "licence": "PSF-2.0"}
    record = {
        "weights_sha256": sha256_file(weights),
        "prior": library if language == "python" else "the sources below with the role fit",
        "sources": json.loads(SOURCES.read_text("utf-8"))[language],
        "samples": int(samples),
        "bits_a_sample_in_the_last_epoch": bits,
        "held_out": table,
    }
    write_atomic(out, json.dumps(record, indent=1) + "\n")


def main() -> None:
    """Print a table, one row a kind of prompt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", type=Language)
    parser.add_argument("weights", type=Path)
    parser.add_argument("samples", type=Path)
    parser.add_argument("--limit", type=int, default=10**9)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    records = [json.loads(line) for line in options.samples.read_text("utf-8").splitlines()]
    # The samples of one target follow each other, one a kind of prompt; all or none of them are taken.
    targets = list(dict.fromkeys(r["id"] for r in records))
    targets_judged = set(targets[:: max(1, len(records) // options.limit)])
    records = [record for record in records if record["id"] in targets_judged]
    rows: dict[str, list[list[float]]] = {}
    arguments = (options.weights, options.language)
    with ProcessPoolExecutor(options.workers, initializer=load, initargs=arguments) as pool:
        for record, (kind, numbers, text) in zip(records, pool.map(judge, records, chunksize=8), strict=True):
            rows.setdefault(kind, []).append(numbers)
            if options.show:
                print(
                    f"{record['subkind']:11} {kind:14} {numbers[0]:6.1f} {numbers[4]:5.1f} | {record['target'].strip()}"
                )
                print(f"{'':40}=> {text.strip()}")
    print(f"{'prompt':15}    n   bits  s/bits     EM     ES     F1  s/gen")
    for kind, group in rows.items():
        mean = np.mean(group, axis=0)
        print(
            f"{kind:15} {len(group):4} " + " ".join(f"{value:6.3f}" if value < 1 else f"{value:6.1f}" for value in mean)
        )

    if options.record:
        write_record(options.record, options.weights, options.language, rows)


if __name__ == "__main__":
    main()
