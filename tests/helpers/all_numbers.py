"""Prints, as JSON, numbers of every kind that ctxbench computes, to the last bit.

``raw`` are numpy's and the C library's own numbers, which depend on the processor.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.outline import Span
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.retrieval import encoders
from ctxbench.bench.retrieval.corpus import Corpus, search
from ctxbench.bench.retrieval.encoders.vectors import Vectors
from ctxbench.bench.retrieval.rankers import BM25, Dense, Jaccard
from ctxbench.bench.retrieval.units import Unit
from ctxbench.bench.types import Place
from ctxbench.harness.generators.incontext import decode, trained_model
from ctxbench.harness.generators.incontext.decode import complete_body
from ctxbench.harness.generators.incontext.lexer import lex
from ctxbench.harness.leaderboard import signflip, stats
from ctxbench.harness.leaderboard.signflip import step_down
from tests.helpers.incontext import prompt, similar

ROOT = Path(__file__).parents[2]
FILES = ("bench/windows.py", "bench/spec.py", "harness/leaderboard/pairs.py", "strategies/infercom.py")


def texts() -> list[str]:
    """Return parts of ctxbench's code of many lengths, some equal or with the same words in another order."""
    lines = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in FILES).splitlines()
    pieces = ["\n".join(lines[at : at + 1 + at % 5]) for at in range(0, 300, 30)]
    turned = [" ".join(reversed(piece.split())) for piece in pieces[:5]]
    return ["", "x", *pieces, *turned, *pieces[:2]]


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def vectors() -> Iterator[tuple[str, Any]]:
    for name in ("hashed", "hashed(width=4096)"):
        encoder, every = encoders.get(name), texts()
        together = encoder.encode(every)
        assert (encoder.encode(every[::-1])[::-1] == together).all(), name
        assert all((encoder.encode([text])[0] == row).all() for text, row in zip(every[:6], together, strict=False)), (
            name
        )
        yield name, digest(together)
        yield f"{name} ranks", ranks(Dense(encoder, name, Vectors(None)))


def ranks(ranker: Any) -> list[list[Any]]:
    units = [
        Unit(place=Place(path=f"{at % 7}.py", start=at, end=at + 1), text=text or "pass")
        for at, text in enumerate(texts())
    ]
    shared, own = Corpus(units), Corpus(units[3:9])
    return [
        [(hit.place.path, hit.place.start, hit.score.hex()) for hit in found]
        for query in (*texts()[5:20:4], "return the first of two equal numbers")
        for found in [search(query, shared=shared, own=own, path="3.py", name="it", ranker=ranker, top=25)]
    ]


def chances() -> Iterator[tuple[str, Any]]:
    code = (ROOT / FILES[2]).read_text(encoding="utf-8")
    java = "class A {\n    int total(Cart cart) {\n        int sum = cart.size();\n        return "
    for language, infile, truth in (
        (PYTHON, code[:2600], code[2600:2800]),
        (PYTHON, code[:1200] + "\n\ndef mean_of(one, two):\n    ", "return (one + two) / 2"),
        (JAVA, java, "cart.total(sum, größe);"),
    ):
        reader = trained_model(language)
        shown = prompt(infile, similar(("a.py", code[3000:5200])))
        reading = reader.read(shown)
        at = reading.context.point
        bits = []
        for token in lex(truth + "\n", language, line_start=reading.line_start)[0]:
            bits.append(reader.token_bits(reading, at, token).hex())
            at = reading.context.extend(at, token)
        paths = decode.finished(reader, reading, 60)
        yield (
            f"{language} {len(infile)}",
            {
                "bits": bits,
                "printed bits": reader.bits(shown, truth),
                "next": digest(reader.next(reading.context, reading.context.point).chances),
                "lines": [(path.text, path.score.hex()) for path in paths],
                "chosen": decode.choose(paths).text,
                "body": complete_body(reader, reading, 120).text,
            },
        )


def statistics() -> Iterator[tuple[str, Any]]:
    draw = np.random.default_rng(5)
    for repositories in (4, 9, 40):
        # Float sums of tenths depend on the order of addition, which decides ties between flips.
        values = draw.integers(-8, 9, (6, 12 * repositories)) / 10
        repos = [f"r{at % repositories}" for at in range(values.shape[1])]
        codes = stats.coded(repos)
        columns = [stats.clustered(row, codes) for row in values]
        estimates = [stats.estimate_of(column, (-1, 1)) for column in columns]
        yield f"estimates {repositories}", [[part and part.hex() for part in _parts(one)] for one in estimates]
        sums, sizes = (np.stack([getattr(one, of) for one in columns]) for of in ("sums", "sizes"))
        together = step_down(sums, sizes, seed="0")
        yield f"together {repositories}", [hexes(of) for of in (together.p, together.low, together.high)]
        yield f"p {repositories}", hexes(signflip.p_values(np.stack([one.sums for one in columns]), seed="0"))
    yield "t", hexes(stats.quantile(p, df) for p in (0.8, 0.975) for df in (1, 2, 3, 7, 30, 200, 5000))


def _parts(one: stats.Estimate) -> Sequence[float | None]:
    return one.mean, one.low, one.high, one.mean_of_repositories


def hexes(numbers: Any) -> list[str]:
    return [float(number).hex() for number in numbers]


def raw() -> dict[str, str]:
    draw = np.random.default_rng(1)
    one, two = draw.normal(0, 1, (37, 384)).astype(np.float32), draw.normal(0, 1, (384, 384)).astype(np.float32)
    row = draw.uniform(-20, 0, 4096)
    # Variants of the C library differ in the last bit of about one logarithm in ten thousand.
    many = draw.uniform(0.1, 50, 50_000).tolist()
    libm = np.array([function(number) for function in (math.log, math.sin, math.expm1) for number in many])
    return {
        "product": digest(one @ two) + digest(one.astype(np.float64) @ two.astype(np.float64)),
        "exp": digest(np.exp(row)) + digest(np.exp(row.astype(np.float32))),
        "libm": digest(libm),
    }


def main() -> None:
    skip: Span = (3, 8)
    lexical = {}
    for ranker in (BM25(), Jaccard()):
        index = ranker.index(texts())
        scores = [
            ranker.scores(query, index, ranker.index(["own one"]), skip)
            for text in texts()
            if (query := ranker.query(text))
        ]
        name = type(ranker).__name__
        lexical |= {name: digest(np.concatenate(scores)), f"{name} ranks": ranks(ranker)}
    print(json.dumps({"raw": raw(), "ours": lexical | dict([*vectors(), *chances(), *statistics()])}))


if __name__ == "__main__":
    main()
