"""Execution in the sandbox: `Executor` judges generated functions by tests, `Programs` runs strategies' programs."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from ctxbench.bench import records
from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.bench.judging.types import Judgement, Verdict
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Sample
from ctxbench.harness.run.batching import Stopped
from ctxbench.harness.run.sample import AnsweredSample
from ctxbench.harness.store import verdicts
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import UnscoredCompletion
from ctxbench.harness.store.write import StoredVerdict, clean
from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.types import MIB, Command, Ended, Environment, Job, Limits, Outcome, Pool, Sandbox
from ctxbench.strategies.api import Execute, Execution

T = TypeVar("T")
GIVE_UP = 3
"""Number of consecutive test runs without a verdict after which a repository's other completions are not tested."""
RULES = "1"
"""Version of the rules that turn test outcomes into verdicts. After a change, all completions are judged again."""
OUTPUT_KEPT = 16_384
"""Maximum stored characters of a job's output: half from its start, half from its end."""
_CURE = "see `ctxbench doctor`, then run the same command again; it does only what is missing"
SECONDS = 60.0
"""Maximum seconds that a program may run, even if a strategy requests more."""
OUTPUT = 20_000
"""Maximum bytes of a program's output that are returned: half from its start, half from its end."""
_ENVIRONMENT = Environment(name="execute")
_LONGEST = 1 * MIB
_LIMITS = Limits(memory=512 * MIB, output=OUTPUT)
_PROGRAM = "program.py"
_ACTION = Command(argv=("python3", "-I", _PROGRAM))
OpenTools = Callable[[int], AbstractContextManager[Execute]]
OpenSandbox = Callable[[Home, str | None], Sandbox]


class SampleJudge(Protocol):
    """A runner of samples' tests."""

    def image(self, sample: Sample) -> str:
        """Return a key of the sandbox image for a sample's tests. A missing image is built."""
        ...

    def judge(self, sample: Sample, text: str, *, alone: bool = False) -> Judgement:
        """Run a sample's tests on a whole function; thread-safe. With `alone`, the home folder's other jobs wait."""
        ...


OpenJudge = Callable[[Home, SampleSet, str | None, int], AbstractContextManager[tuple[str, SampleJudge]]]
"""(home, set, back end's name or None for the default, parallel sandboxes) -> the back end's name and a judge."""


class Executor:
    """A thread-safe judge of generated functions, which looks up verdicts or computes them by running tests."""

    def __init__(
        self,
        judge: SampleJudge,
        store: Store,
        sample_set: SampleSet,
        *,
        sandbox: str,
        threads: ThreadPoolExecutor,
    ) -> None:
        self._judge, self._store, self._set = judge, store, sample_set
        self.sandbox, self._threads = sandbox, threads
        self._lock = threading.Lock()
        self._under_way: dict[tuple[str, str], Future[StoredVerdict]] = {}
        self._preparing: dict[str, threading.Lock] = {}
        self._images: dict[str, str] = {}
        self._lost: dict[str, MachineFault] = {}
        self._broken: Counter[str] = Counter()
        self._closed = False

    def verdict(self, sample: Sample, text: str) -> StoredVerdict:
        """Return the verdict on a whole function: the stored one, or the result of running the tests.

        Raises:
            MachineFault: if the tests could not run; `Stopped` after `close`.
            InputFault: if the repository is missing, or has changed since the set was built.
        """
        return self.wait(self.submit(sample, text))

    def wait(self, future: Future[T]) -> T:
        """Wait for a future from `submit` and return its verdict; raises like `verdict`."""
        try:
            return future.result()
        except CancelledError:
            raise _stopped() from None

    def submit(self, sample: Sample, text: str) -> Future[StoredVerdict]:
        """Start to judge a whole function; return the future verdict. Equal functions in progress share one future."""
        text = clean(text)
        key = (sample.id, sha256(text))
        with self._lock:
            begun = self._under_way.get(key)
            if begun is not None:
                return begun
            try:
                future = self._threads.submit(self._find, sample, text)
            except RuntimeError:  # the thread pool was shut down
                raise _stopped() from None
            self._under_way[key] = future
        # Add the callback outside the lock, because a finished future calls back at once.
        future.add_done_callback(lambda _: self._forget(key))
        return future

    def close(self) -> None:
        """Drop the waiting tests. Running tests end when the judge is closed."""
        self._closed = True
        with self._lock:
            waiting = list(self._under_way.values())
        # `shutdown` must not cancel the futures: it would call back with its lock held, for which `submit` waits.
        self._threads.shutdown(wait=False)
        for future in waiting:
            future.cancel()

    def _forget(self, key: tuple[str, str]) -> None:
        with self._lock:
            self._under_way.pop(key, None)

    def _find(self, sample: Sample, text: str) -> StoredVerdict:
        image, content = self._image(sample), sample_digest(self._set, sample)
        key = verdict_key(content, text, image)
        verdict = verdicts.find(self._store, [key]).get(key)
        return verdict or verdicts.add(self._store, self._judged(sample, text, key, content, image))

    def _check(self, sample: Sample) -> None:
        if self._closed:
            raise _stopped()
        if sample.repo in self._lost:
            raise self._lost[sample.repo]

    def _judged(
        self, sample: Sample, text: str, key: str, content: str, image: str, *, alone: bool = False
    ) -> StoredVerdict:
        self._check(sample)
        try:
            judgement = self._judge.judge(sample, text, alone=alone)
        except (SandboxError, MachineFault) as error:
            judgement = Judgement(verdict=Verdict.BROKEN, reason=str(error))
        if judgement.verdict is Verdict.BROKEN:
            raise self._fault(sample, judgement.reason or "the sandbox was lost")
        with self._lock:
            self._broken[sample.repo] = 0
        return _stored(key, content, text, image, self.sandbox, judgement)

    def _image(self, sample: Sample) -> str:
        with self._lock:
            lock = self._preparing.setdefault(sample.repo, threading.Lock())
        with lock:
            if sample.repo in self._images:
                return self._images[sample.repo]
            if sample.repo in self._lost:
                raise self._lost[sample.repo]
            try:
                self._images[sample.repo] = self._judge.image(sample)
            except (SandboxError, MachineFault) as error:
                self._lost[sample.repo] = MachineFault(error.what, where=error.where, cure=error.cure or _CURE)
                raise self._lost[sample.repo] from error
            return self._images[sample.repo]

    def _fault(self, sample: Sample, reason: str) -> MachineFault:
        with self._lock:
            self._broken[sample.repo] += 1
            if self._broken[sample.repo] >= GIVE_UP:
                times = f"ended without a verdict {GIVE_UP} times in a row"
                message = f"the tests of {sample.repo} {times}; the last time: {reason}"
                self._lost.setdefault(sample.repo, MachineFault(message, cure=_CURE))
        return MachineFault(f"the tests ended without a verdict: {reason}", where=sample.id, cure=_CURE)


@contextlib.contextmanager
def open_judge(home: Home, sample_set: SampleSet, sandbox: str | None, width: int) -> Iterator[tuple[str, SampleJudge]]:
    """Provide a back end's name and a judge of at most `width` parallel tests. `sandbox` None is the default back end.

    Raises:
        SandboxUnavailable: if the back end is not available.
    """
    from ctxbench.bench.judging import judge as judging  # noqa: PLC0415 - runs over lines do not need it
    from ctxbench.sandbox import registry  # noqa: PLC0415

    opened = registry.open_sandbox(sandbox, home.cache / "sandbox")
    with judging.Judge(home, sample_set, opened, width=width) as judge:
        yield opened.name, judge


@contextlib.contextmanager
def open_executor(
    width: int,
    *,
    home: Home,
    store: Store,
    sample_set: SampleSet,
    sandbox: str | None,
    judges: OpenJudge = open_judge,
) -> Iterator[Executor]:
    """Provide an executor of at most `width` parallel tests. On exit, end every sandbox and drop waiting tests.

    `sandbox` names a back end; None uses the default. ctxbench's own tests replace `judges`.

    Raises:
        SandboxUnavailable: if the back end is not available.
    """
    with contextlib.ExitStack() as stack:
        # Enter the threads first, so that they close last: running tests end when the judge's boxes are closed.
        threads = stack.enter_context(ThreadPoolExecutor(max(1, width), thread_name_prefix="verdict"))
        name, judge = stack.enter_context(judges(home, sample_set, sandbox, width))
        executor = Executor(judge, store, sample_set, sandbox=name, threads=threads)
        stack.callback(executor.close)
        yield executor


def _stopped() -> Stopped:
    return Stopped("the run was stopped", cure="run the same command again to continue")


def judged(answered: AnsweredSample, executor: Executor) -> AnsweredSample:
    """Return an answered sample with verdicts on its completions, except blank ones; unchanged if it has no tests.

    Raises:
        MachineFault: if judging a completion fails. The other verdicts are stored.
    """
    if not answered.sample.tested:
        return answered
    futures = [
        executor.submit(answered.sample, completion.text) if completion.text.strip() else None
        for completion in answered.completions
    ]
    completions = [
        completion if future is None else dataclasses.replace(completion, verdict=executor.wait(future))
        for completion, future in zip(answered.completions, futures, strict=True)
    ]
    return dataclasses.replace(answered, completions=tuple(completions))


def judge_stored(
    store: Store, executor: Executor, sample_set: SampleSet, run: str, lacking: Sequence[UnscoredCompletion]
) -> Iterator[tuple[UnscoredCompletion, StoredVerdict | MachineFault]]:
    """Judge completions of a stored run, and store their scores. Yield each with its verdict or fault, in order."""
    samples = {sample.id: sample for sample in sample_set.samples}
    futures = [(completion, executor.submit(samples[completion.sample_id], completion.text)) for completion in lacking]
    for completion, future in futures:
        try:
            verdict = executor.wait(future)
        except MachineFault as fault:
            yield completion, fault
            continue
        store.link_verdicts(run, completion.sample_id, {completion.idx: verdict})
        yield completion, verdict


def sample_digest(sample_set: SampleSet, sample: Sample) -> str:
    """Return a digest of a sample, its reference, its repository's files and the setup of the repository's tests."""
    entry = sample_set.manifest["repositories"].get(sample.repo, {})
    parts = [
        records.from_sample(sample),
        records.from_reference(sample_set.references[sample.id]),
        {name: entry.get(name) for name in ("snapshot", "tests")},
    ]
    return sha256(json.dumps(parts, sort_keys=True))


def verdict_key(sample: str, text: str, image: str) -> str:
    """Return the key of a verdict, from the sample's digest, the whole function and the sandbox image."""
    return sha256("\n".join((RULES, sample, sha256(text), image)))


def _stored(key: str, content: str, text: str, image: str, sandbox: str, judgement: Judgement) -> StoredVerdict:
    output = judgement.output
    if len(output) > OUTPUT_KEPT:
        half = OUTPUT_KEPT // 2
        output = f"{output[:half]}\n[… {len(output) - 2 * half} characters omitted …]\n{output[-half:]}"
    return StoredVerdict(
        key=key,
        sample_digest=content,
        text_digest=sha256(text),
        image=image,
        sandbox=sandbox,
        verdict=str(judgement.verdict),
        reason=" ".join(judgement.reason.split()),
        tests_run=judgement.tests_run,
        output=output,
        seconds=judgement.seconds,
        peak_bytes=judgement.peak_bytes,
        flags=judgement.flags,
        earlier=" ".join(judgement.earlier.split()),
    )


class Programs:
    """A thread-safe runner of strategies' programs in a pool of sandboxes."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def __call__(self, program: str, *, seconds: float = 10.0) -> Execution:
        """Run a Python program for at most `seconds`; for `SECONDS` if `seconds` is larger or not positive."""
        # `min` would accept NaN, which a strategy may pass.
        seconds = seconds if 0 < seconds < SECONDS else SECONDS
        source = program.encode("utf-8", "replace")
        if len(source) > _LONGEST:
            return Execution(
                finished=False, output=f"the program has {len(source)} bytes, over the limit of {_LONGEST}"
            )
        try:
            outcome = self._pool.run(Job(action=_ACTION, files={_PROGRAM: source}, seconds=seconds))
        except SandboxError as error:
            raise MachineFault(f"a program could not be run: {error.what}", where=error.where, cure=_CURE) from error
        return Execution(
            finished=outcome.ended is Ended.EXITED and outcome.exit_code == 0, output=_words(outcome, seconds)
        )


def _words(outcome: Outcome, seconds: float) -> str:
    ends = {
        Ended.TIMED_OUT: f"timed out after {seconds:g} seconds",
        Ended.KILLED: "killed: out of memory" if outcome.out_of_memory else f"killed by signal {outcome.signal}",
        Ended.WRECKED: "killed: the program broke the sandbox",
    }
    end = ends.get(outcome.ended, "")
    return "\n".join(part for part in (outcome.output.rstrip("\n"), end) if part)


def back_end(home: Home, name: str | None) -> Sandbox:
    """Return the sandbox back end called `name`, or the default for None.

    Raises:
        SandboxUnavailable: if the back end is not available.
    """
    from ctxbench.sandbox import registry  # noqa: PLC0415 - few strategies need it

    return registry.open_sandbox(name, home.cache / "sandbox")


@contextlib.contextmanager
def open_tools(width: int, *, home: Home, sandbox: str | None, opens: OpenSandbox = back_end) -> Iterator[Execute]:
    """Provide a function that runs strategies' programs, at most `width` in parallel.

    The sandboxes end with the context. `sandbox` None uses the default back end. ctxbench's own tests replace `opens`.

    Raises:
        SandboxUnavailable: if the back end is not available.
    """
    opened = opens(home, sandbox)
    opened.prepare(_ENVIRONMENT, lambda _: None)
    with opened.open(_ENVIRONMENT, limits=_LIMITS, width=max(1, width), reuse=1) as pool:
        yield Programs(pool)
