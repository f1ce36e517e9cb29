"""A small set of function samples on disk, and a judge without a sandbox that only compares texts."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

from ctxbench.bench import samples as sets
from ctxbench.bench.home import Home
from ctxbench.bench.judging.types import Judgement, Verdict
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Cursor, Kind, Reference, Sample
from tests.helpers.samples import make_sample
from tests.helpers.trees import make_snapshot

RIGHT = "    return amount * {number}\n"
WRONG = "    return amount\n"
_HEAD = 'def times_{number}(amount):\n    """Return the amount times {number}."""\n'


def make_function_set(home: Home, *, name: str = "functions", repos: int = 2, per_repo: int = 3) -> SampleSet:
    samples: list[Sample] = []
    references: list[Reference] = []
    entries = {}
    for repo in (f"kit{number}" for number in range(repos)):
        text = "import math\n\n\n"
        for number in range(2, 2 + per_repo):
            head, body = (part.format(number=number) for part in (_HEAD, RIGHT))
            start = text.count("\n")
            prefix = text + head
            sample = make_sample(
                id=f"{repo}/kit/tax.py#times_{number}",
                kind=Kind.FUNCTION,
                subkind=("self_contained", "project_runnable")[number % 2],
                repo=repo,
                path="kit/tax.py",
                cursor=Cursor(line=start + 2, column=0),
                prefix=prefix,
                suffix="\n\n# the end\n",
                name=f"times_{number}",
                signature=head.partition("\n")[0],
                docstring=f"Return the amount times {number}.",
                span=(start, start + 3),
                hidden=("tests/",),
            )
            samples.append(sample)
            references.append(Reference(id=sample.id, target=(head + body).rstrip(), tests=(f"tests/t.py::{number}",)))
            text = f"{prefix}{body}\n\n"
        files = {"kit/tax.py": text, "kit/use.py": "from kit.tax import times_2\n"}
        made = make_snapshot(home.repos / repo / "1", files, name=repo)
        entries[repo] = {"language": "python", "checkout": f"{repo}/1", "snapshot": made.digest, "tests": {"runner": 1}}
    return sets.save(home, name, samples, references, {"repositories": entries})


class FakeJudge:
    """Passes a text that returns what the reference returns, and counts its calls."""

    def __init__(
        self,
        sample_set: SampleSet,
        *,
        answer: Callable[[Sample, str], Judgement] | None = None,
        image: Callable[[Sample], str] = lambda sample: f"image-{sample.repo}",
        delay: float = 0.0,
    ) -> None:
        self.asked: list[tuple[str, str]] = []
        self.images: Counter[str] = Counter()
        self.most = self.closed = self.alone = 0
        self._at_once = 0
        self._set, self._answer, self._image, self._delay = sample_set, answer, image, delay
        self._lock = threading.Lock()
        self.ended = threading.Event()

    def image(self, sample: Sample) -> str:
        self.images[sample.repo] += 1
        return self._image(sample)

    def judge(self, sample: Sample, text: str, *, alone: bool = False) -> Judgement:
        with self._lock:
            self.asked.append((sample.id, text))
            self.alone += alone
            self._at_once += 1
            self.most = max(self.most, self._at_once)
        try:
            if self.ended.wait(self._delay):
                return Judgement(verdict=Verdict.BROKEN, reason="its box was ended")
            if self._answer is not None:
                return self._answer(sample, text)
            right = self._set.references[sample.id].target.splitlines()[-1] in text
            if right:
                return Judgement(verdict=Verdict.PASSED, tests_run=1, seconds=0.5, peak_bytes=1 << 33)
            return Judgement(verdict=Verdict.FAILED, reason="1 of 1 tests failed", tests_run=1, output="E assert")
        finally:
            with self._lock:
                self._at_once -= 1

    @contextlib.contextmanager
    def open(
        self, home: Home, sample_set: SampleSet, sandbox: str | None, width: int
    ) -> Iterator[tuple[str, FakeJudge]]:
        self.ended.clear()
        try:
            yield sandbox or "docker", self
        finally:
            self.closed += 1
            self.ended.set()
            time.sleep(0)
