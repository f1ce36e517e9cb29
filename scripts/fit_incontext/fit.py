"""Fit the feature weights by gradient ascent on the log-likelihood of the targets.

    python -m scripts.fit_incontext.fit LANGUAGE PRIOR.npz SAMPLES.jsonl --out WEIGHTS.npz [--epochs N]

Writes the weights and the prior as one file. Batches are spread over worker processes; the result
does not depend on how many there are.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from ctxbench.bench import languages
from ctxbench.bench.doubles import exp, total
from ctxbench.harness.generators.incontext import features
from ctxbench.harness.generators.incontext.context import TokenContext, TokenPoint
from ctxbench.harness.generators.incontext.lexer import lex
from ctxbench.harness.generators.incontext.model import REPEAT, CopyModel, Floats, Prior
from ctxbench.harness.generators.incontext.scores import QUANTUM
from ctxbench.strategies.api import Block, BlockKind, Prompt

BATCH = 32
_LOADED: dict[str, Any] = {}


def prompt_of(record: dict[str, Any]) -> Prompt:
    """Make the prompt of a cut sample."""
    return Prompt(blocks=tuple(Block(kind=BlockKind(kind), text=text) for kind, text in record["blocks"]))


def start_weights() -> Floats:
    """Return the hand-set weights that the fit starts from: the longer the match, the better."""
    weights = np.zeros(features.SIZE)
    for bucket, value in enumerate([0.0, 2, 3.5, 4.5, 5.5, 6.5, 7.5, 8, 8.5]):
        weights[4 * bucket : 4 * bucket + 4] = value
    copies = sum(cases for _, cases, _ in features.GROUPS)
    gates = (features.SIZE - copies) // 3
    weights[copies : copies + gates] = 1.6
    return weights


def load(prior: Path, language: str) -> None:
    """Load what a worker needs."""
    with np.load(prior) as arrays:
        # Its own weights are not used: those that are being fitted are no whole numbers.
        _LOADED["model"] = CopyModel(np.zeros(features.SIZE, np.int64), Prior(dict(arrays)), languages.get(language))


def weigh(
    weights: Floats, context: TokenContext, point: TokenPoint
) -> tuple[features.Cases, features.Cases, Floats, Floats]:
    """Return the weight numbers of positions and of the other candidates, and the shares of both."""
    rows, gates = features.indices(context, point), features.gates(point)
    scores, gate = weights.take(rows).sum(axis=0), weights[gates].sum(axis=1)
    scores[features.impossible(context)] = -np.inf
    if not point.written:
        gate[REPEAT] = -np.inf
    top = max(float(scores.max()), float(gate.max()))
    copied, gated = exp(scores - top), exp(gate - top)
    whole = total(copied) + total(gated)
    return rows, gates, copied / whole, gated / whole


def gradient(weights: Floats, record: dict[str, Any]) -> tuple[Floats, float, int]:
    """Return the gradient of the log-likelihood of one target (nats), its bits and its tokens."""
    model: CopyModel = _LOADED["model"]
    reading = model.read(prompt_of(record))
    context, point = reading.context, reading.context.point
    tokens, _ = lex(record["target"] + "\n", model.language, line_start=reading.line_start)
    slope, bits = np.zeros(features.SIZE), 0.0
    for token in tokens:
        rows, gates, copied, gated = weigh(weights, context, point)
        right = copied * (context.id == context.number(token.entry))
        right_gated = gated * model.chances(reading, point, token)
        all_right = right.sum() + right_gated.sum()
        bits -= math.log2(all_right)
        delta = right / all_right - copied
        slope += np.bincount(rows.ravel(), np.broadcast_to(delta, rows.shape).ravel(), features.SIZE)
        np.add.at(slope, gates, (right_gated / all_right - gated)[:, None])
        point = context.extend(point, token)
    return slope, bits, len(tokens)


def _share(job: tuple[Floats, list[dict[str, Any]]]) -> list[tuple[Floats, float, int]]:
    return [gradient(job[0], record) for record in job[1]]


def fit(
    records: list[dict[str, Any]], pool: ProcessPoolExecutor, epochs: int, rate: float, weights: Floats
) -> tuple[Floats, float]:
    """Run Adam over the records; return the weights and the bits a sample of the last epoch."""
    mean, square, step = np.zeros_like(weights), np.zeros_like(weights), 0
    total = epochs * math.ceil(len(records) / BATCH)
    spent = targets_read = 0.0
    for epoch in range(epochs):
        random.Random(f"epoch {epoch}").shuffle(records)  # noqa: S311
        spent, targets_read = 0.0, 0
        for at in range(0, len(records), BATCH):
            batch = records[at : at + BATCH]
            parts = [batch[k : k + BATCH // 2] for k in range(0, len(batch), BATCH // 2)]
            results = [r for share in pool.map(_share, [(weights, part) for part in parts]) for r in share]
            slope = np.sum([r[0] for r in results], axis=0) / sum(r[2] for r in results) - 2e-5 * weights
            step += 1
            mean = 0.9 * mean + 0.1 * slope
            square = 0.99 * square + 0.01 * slope**2
            pace = rate * (1 - step / (total + 1))
            weights = weights + pace * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-5)
            spent += sum(r[1] for r in results)
            targets_read += len(batch)
        print(f"epoch {epoch}: {spent / targets_read:.2f} bits a sample", flush=True)
    return weights, spent / max(1.0, targets_read)


def main() -> None:
    """Fit and write the weights file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language")
    parser.add_argument("prior", type=Path)
    parser.add_argument("samples", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--limit", type=int, default=10**9)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    lines = options.samples.read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    # A huge target would outweigh hundreds of others.
    records = [record for record in records if len(record["target"]) < 160]
    random.Random("records").shuffle(records)  # noqa: S311
    load(options.prior, options.language)
    with ProcessPoolExecutor(options.workers, initializer=load, initargs=(options.prior, options.language)) as pool:
        records = records[: options.limit]
        weights, bits = fit(records, pool, options.epochs, options.rate, start_weights())
    with np.load(options.prior) as arrays:
        stored = {
            **dict(arrays),
            "weights": np.clip(np.round(weights * QUANTUM), -32000, 32000).astype(np.int16),
            # For the record only: samples, bits a sample in the last epoch.
            "fitted": np.array([len(records), round(bits, 2)]),
        }
    np.savez_compressed(options.out, **stored)
    print(f"{options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
