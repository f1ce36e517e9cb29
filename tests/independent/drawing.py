"""Random stored runs with every kind of result, drawn from a seed."""

import random
from pathlib import Path

from tests.independent.inserting import Done, ModelCall, Planned, Rows

STRATEGIES = ("lc.infile", "lc.repocoder", "mine.py@near", "lc.infercom(encoder=bm25)", "oracle-context")


class Made:
    """Random samples. `write` stores them with random runs."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.functions = seed % 3 == 2
        self.n = self.draw.choice((1, 2, 10)) if self.functions else self.draw.choice((1, 1, 2))
        # Some runs are all right or all wrong, so that every spread is zero.
        self.flat = self.draw.choice((None, None, None, 0.0, 1.0))
        repos = self.draw.choice((1, 3, 5, 6, 8))
        self.samples = [self._sample(place, repos) for place in range(self.draw.choice((1, 2, 20, 40)))]

    def _sample(self, place: int, repos: int) -> Planned:
        kind = ("function", "plain") if self.functions else ("line", "single-line")
        language = self.draw.choice(("python", "python", "java"))
        return Planned(id=f"s{place}", repo=f"r{place % repos}", language=language, kind=kind[0], subkind=kind[1])

    def write(self, path: Path) -> None:
        """Insert the samples and random runs over them."""
        rows = Rows(path)
        rows.samples(self.samples)
        ids = [one.id for one in self.samples]
        for place, strategy in enumerate(STRATEGIES[: self.draw.randrange(1, len(STRATEGIES) + 1)]):
            skill, missing = self.draw.random(), self.draw.choice((0.0, 0.2))
            done = {one: self.done(skill) for one in ids if self.draw.random() >= missing}
            rows.run(f"run{place}", ids, done, strategy=strategy, n=self.n)
        for one in ids if self.functions else ():
            if self.draw.random() < 0.05:
                rows.add("mark", set_digest="d" * 64, sample_id=one, mark="broken", reason="", image="")
        rows.close()

    def done(self, skill: float) -> Done:
        draw, n, failed = self.draw, self.n, self.draw.random() < 0.1
        right = [[float(draw.random() < skill) if self.flat is None else self.flat for _ in range(n)] for _ in "12"]
        near = [draw.random() * skill if self.flat is None else self.flat for _ in range(n)]
        scores: dict[tuple[str, str], list[float | None]] = {
            ("ctxbench", "em"): [*right[0]],
            ("ctxbench", "es"): [*near],
            ("context", "hallucinated"): [draw.choice((None, 0.0, 0.5, 1.0)) for _ in range(n)],
            # The board must ignore the scores of another profile.
            ("crosscodeeval", "es"): [77.0] * n,
        }
        if draw.random() < 0.9:
            scores["context", "context_gain"] = [draw.gauss(5 * skill, 5)] * n
        if self.functions:
            judged = n if draw.random() < 0.9 else n - 1
            scores["ctxbench", "pass"] = [0.0] * judged if failed else [*right[1][:judged]]
        return Done(
            status="model-failed" if failed else "scored",
            scores=scores,
            calls=[self._asked() for _ in range(draw.randrange(1, 4))],
            tested={} if failed or not self.functions else {idx: draw.random() for idx in range(n)},
            completions=n,
            strategy_seconds=draw.random(),
            context_tokens=draw.randrange(4000),
        )

    def _asked(self) -> ModelCall:
        draw = self.draw
        price = None if draw.random() < 0.01 else draw.random() / 1000
        tokens = {
            "tokens_in": 100 + draw.randrange(4000),
            "tokens_out": draw.randrange(128),
            "cached": draw.randrange(100),
        }
        return ModelCall(**tokens, seconds=draw.random(), price=price)
